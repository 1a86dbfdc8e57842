//! Reads of unknown values of device memory, with the lines of the program that read them.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::measurement::stack::{Frame, Sources, Stack};
use crate::size::{counted, exact};

/// The reads of unknown values in the body. The program got zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownReads {
    /// The number of reads, without those of iterations beyond the measured ones.
    pub reads: u64,
    /// The number of unknown bytes that they read.
    pub bytes: u64,
    /// The number of reads in iterations beyond the measured ones, if there were no others. It
    /// depends on the number of these iterations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further: u64,
    /// The lines of the first reads, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<ReadSite>,
    /// The call stacks of the first reads while they have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<UnresolvedReads>,
}

/// A line of the program that read unknown values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSite {
    /// The innermost line of the program, such as `src/x.rs:12`; the function if there are no line
    /// tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The type of the elements, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// The number of reads.
    pub reads: u64,
}

/// The sites of reads as a test process measures them: call stacks are addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnresolvedReads {
    /// The folders of the sources.
    pub sources: Sources,
    /// The addresses of each call stack, the innermost first, with its reads.
    pub sites: Vec<(Vec<u64>, ReadSite)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl UnknownReads {
    /// Names the lines of the reads with `lookup`. Returns false if they have names already.
    pub fn resolve(&mut self, mut lookup: impl FnMut(u64) -> Vec<Frame>) -> bool {
        let Some(UnresolvedReads { sources, sites }) = self.unresolved.take() else { return false };
        let mut known: HashMap<u64, Vec<Frame>> = HashMap::new();
        let mut joined: BTreeMap<(Option<String>, Option<String>), u64> = BTreeMap::new();
        for (calls, site) in sites {
            let frames = calls.iter().flat_map(|&call| {
                let named = known.entry(call).or_insert_with(|| {
                    lookup(call).into_iter().map(|frame| sources.qualify(frame)).collect()
                });
                named.clone()
            });
            let stack = Stack::trimmed(frames);
            let user = stack.user();
            let at = user.map(|frame| frame.place().unwrap_or_else(|| frame.path()));
            let reads = joined.entry((at, site.element)).or_default();
            *reads = reads.saturating_add(site.reads);
        }
        self.sites = joined
            .into_iter()
            .map(|((at, element), reads)| ReadSite { at, element, reads })
            .collect();
        self.sites.sort_by_key(|site| std::cmp::Reverse(site.reads));
        true
    }

    /// The distinct lines, the most frequent first.
    pub fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = Vec::new();
        for line in self.sites.iter().filter_map(|site| site.at.as_deref()) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// The mark on the line of a test: `3 unknown reads`.
    pub fn mark(&self) -> String {
        let mark = |reads| counted(reads, "unknown read", "unknown reads");
        match self.further {
            0 => mark(self.reads),
            further => format!("{} in further iterations", mark(further)),
        }
    }

    /// A sentence for people: `the body read unknown values of device memory 3 times, as zeros: at
    /// src/x.rs:12 (f32)`.
    pub fn sentence(&self) -> String {
        const SHOWN: usize = 3;
        let mut places: Vec<String> = self.sites.iter().filter_map(place).collect();
        places.dedup();
        let more = places.len().saturating_sub(SHOWN);
        places.truncate(SHOWN);
        let times = |reads| match reads {
            1 => "once".to_owned(),
            reads => format!("{} times", exact(reads)),
        };
        let times = match self.further {
            0 => times(self.reads),
            further => format!("{} in iterations beyond the measured ones", times(further)),
        };
        let at = if places.is_empty() { "" } else { ": at " };
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!(
            "the body read unknown values of device memory {times}, as zeros{at}{}{more}",
            places.join(", ")
        )
    }
}

fn place(site: &ReadSite) -> Option<String> {
    let at = site.at.as_ref()?;
    Some(match &site.element {
        Some(element) => format!("{at} ({element})"),
        None => at.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(address: u64) -> Vec<Frame> {
        let (function, file) = match address {
            1 => ("memcheck_runtime::reads::note", "/opt/memcheck-runtime/src/reads.rs"),
            2 => (
                "candle_core::tensor::Tensor::to_vec1",
                "/c/registry/src/i/candle-core-0.11.1/a.rs",
            ),
            3 => ("app::sample", "/w/src/x.rs"),
            4 => ("app::main", "/w/src/main.rs"),
            _ => return Vec::new(),
        };
        let file = Some(file.to_owned());
        vec![Frame { function: function.to_owned(), file, line: Some(12) }]
    }

    fn reads(sites: &[(&[u64], Option<&str>, u64)]) -> UnknownReads {
        let site = |&(calls, element, reads): &(&[u64], Option<&str>, u64)| {
            (calls.to_vec(), ReadSite { at: None, element: element.map(str::to_owned), reads })
        };
        let sources = Sources { workspace: "/w".to_owned(), ..Sources::default() };
        let unresolved = Some(UnresolvedReads { sources, sites: sites.iter().map(site).collect() });
        UnknownReads {
            reads: sites.iter().map(|&(.., reads)| reads).sum(),
            bytes: 12,
            unresolved,
            ..UnknownReads::default()
        }
    }

    #[test]
    fn a_read_has_the_innermost_line_of_the_program() {
        let mut found = reads(&[
            (&[1, 2, 4], Some("u32"), 1),
            (&[1, 2, 3, 4], Some("f32"), 1),
            (&[1, 3, 4], Some("f32"), 1),
        ]);
        assert!(found.resolve(lookup));
        assert_eq!(found.lines(), ["src/x.rs:12", "src/main.rs:12"]);
        assert_eq!(found.mark(), "3 unknown reads");
        assert_eq!(
            found.sentence(),
            "the body read unknown values of device memory 3 times, as zeros: at src/x.rs:12 \
             (f32), src/main.rs:12 (u32)"
        );
        assert!(!found.resolve(lookup), "they have names");
    }

    #[test]
    fn a_read_without_a_name_is_counted() {
        let mut found = reads(&[(&[9], None, 1)]);
        assert!(found.resolve(lookup));
        assert!(found.lines().is_empty());
        assert_eq!(
            found.sentence(),
            "the body read unknown values of device memory once, as zeros"
        );
        assert_eq!(found.mark(), "1 unknown read");
    }

    #[test]
    fn reads_of_further_iterations_have_a_mark_too() {
        let mut found = reads(&[(&[3], Some("f32"), 2)]);
        (found.reads, found.further) = (0, 2);
        assert!(found.resolve(lookup));
        assert_eq!(found.mark(), "2 unknown reads in further iterations");
        assert_eq!(
            found.sentence(),
            "the body read unknown values of device memory 2 times in iterations beyond the \
             measured ones, as zeros: at src/x.rs:12 (f32)"
        );
    }
}
