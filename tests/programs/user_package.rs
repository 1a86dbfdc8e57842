//! Of `functional/user_package.rs`.

use std::sync::Mutex;

use memcheck_runtime::mem_test;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[mem_test(max_growth = "0 B", baseline = false, max_retained = "1 GiB")]
fn leaks_on_the_host() {
    KEPT.lock().unwrap().push(vec![1; 2 << 20]);
}
