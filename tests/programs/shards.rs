//! Of `functional/shards.rs`: two tests, of which each can be in another shard.

use memcheck_runtime::mem_test;

#[mem_test(baseline = false)]
fn a() {}

#[mem_test(baseline = false)]
fn b() {}
