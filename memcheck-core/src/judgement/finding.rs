//! The findings: a row for each, with its code, its class and its page. A new kind needs a row in `codes!`, a page below `pages/`, and a rule in
//! [`crate::judgement::verdict`] with a test that fires it and one that does not.

use memcheck_limits::serialize_as_text;
use serde::{Deserialize, Serialize};

pub use crate::judgement::grown_holder::GrownHolder;
pub use crate::judgement::head_line::HeadLine;
use crate::judgement::rise::{self, Rise};
pub use crate::judgement::site::{Site, Via};
use crate::measurement::repeats::Range;
use crate::space::Space;

/// The effect of a finding on the result of its test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Measured: the test fails, exit code 100.
    Measured,
    /// The instrument was not armed, or had no device: exit code 104 or 105, and never a pass.
    Instrument,
    /// Bookkeeping: a warning, or exit code 5 if it is denied.
    Bookkeeping,
}

/// The treatment of a bookkeeping finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not reported.
    Allow,
    /// Reported.
    Warn,
    /// Reported, and exit code 5.
    Deny,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $class:ident, memory: $memory:literal, $ci:ident, $title:literal;)*) => {
        /// A kind of finding, by its stable name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        /// Every code with its class, its level in CI, its title and its page.
        pub const TABLE: &[CodeRow] = &[$(CodeRow {
            code: Code::$variant,
            name: $code,
            class: Class::$class,
            is_about_memory: $memory,
            level_in_ci: Level::$ci,
            title: $title,
            page: include_str!(concat!("../../pages/", $code, ".md")),
        },)*];
    };
}

/// The properties of a [`Code`].
#[derive(Debug, Clone, Copy)]
pub struct CodeRow {
    /// The code.
    pub code: Code,
    /// The stable kebab-case name.
    pub name: &'static str,
    /// The effect on the result of the test.
    pub class: Class,
    is_about_memory: bool,
    level_in_ci: Level,
    /// A summary in one line.
    pub title: &'static str,
    /// The explanation that `cargo memcheck explain CODE` prints.
    pub page: &'static str,
}

codes! {
    /// Live memory grows by more than `max_growth` per iteration, or the C heap by more than
    /// `max_c_growth`.
    Leak = "leak", Measured, memory: true, Deny, "memory allocated in an iteration is never freed";
    /// The bytes taken from the device grow by more than `max_reserved_growth` per iteration, or the
    /// resident memory by more than `max_rss_growth`.
    GrowthLimit = "growth-limit", Measured, memory: true, Deny, "memory grows from iteration to iteration";
    /// Blocks of earlier iterations hold more bytes than `max_kept`.
    KeptLimit = "kept-limit", Measured, memory: true, Deny, "memory that iterations leave behind is above its limit";
    /// `peak_allocated` is above `max_peak`.
    PeakLimit = "peak-limit", Measured, memory: true, Deny, "the peak is above its limit";
    /// More bytes than `max_retained` are live after the body returned.
    Retained = "retained", Measured, memory: true, Deny, "memory is still live after the test body returned";
    /// An iteration makes more allocations than `max_allocations`.
    AllocationsLimit = "allocations-limit", Measured, memory: true, Deny, "an iteration makes more allocations than allowed";
    /// An iteration allocates more bytes than `max_allocated`.
    AllocatedLimit = "allocated-limit", Measured, memory: true, Deny, "an iteration allocates more bytes than allowed";
    /// `peak_allocated` is above its baseline.
    PeakRegression = "peak-regression", Measured, memory: true, Deny, "the peak is above its baseline";
    /// `allocations` is above its baseline.
    AllocationsRegression = "allocations-regression", Measured, memory: true, Deny, "an iteration makes more allocations than in the baseline";
    /// `growth` is above its baseline.
    GrowthRegression = "growth-regression", Measured, memory: true, Deny, "memory grows faster than in the baseline";
    /// A figure differs from run to run, and its limit or baseline is between the values.
    Unstable = "unstable", Measured, memory: true, Deny, "a figure differs from run to run, and only some runs exceed its limit";
    /// A figure grows faster over the cases than `scaling` allows.
    Scaling = "scaling", Measured, memory: true, Deny, "a figure grows faster over the cases than allowed";
    /// The test needs more memory than `fits`.
    DoesNotFit = "does-not-fit", Measured, memory: true, Deny, "the test needs more memory than the capacity that it must fit into";
    /// The device had no memory left.
    OutOfMemory = "out-of-memory", Measured, memory: true, Deny, "the device ran out of memory";
    /// A refused allocation left memory behind, crashed the body or stopped it.
    FaultUnsafe = "fault-unsafe", Measured, memory: false, Deny, "a refused allocation left memory behind, crashed the body or stopped it";
    /// The body failed because the GPU or its driver failed.
    DeviceFault = "device-fault", Measured, memory: false, Deny, "the GPU or its driver failed while the test ran";
    /// The body panicked or returned an error.
    TestFailed = "test-failed", Measured, memory: false, Deny, "the test itself failed";
    /// The test process ended by a signal or an unexpected exit.
    Crashed = "crashed", Measured, memory: false, Deny, "the test process crashed or exited without a report";
    /// The test took longer than its time-out.
    TimedOut = "timed-out", Measured, memory: false, Deny, "the test took longer than its time-out";
    /// The instrument was not armed, or events were lost.
    NotMeasured = "not-measured", Instrument, memory: false, Deny, "the measurement is missing or incomplete";
    /// The device could not be opened.
    NoDevice = "no-device", Instrument, memory: false, Deny, "the requested device could not be opened";
    /// No baseline exists.
    MissingBaseline = "missing-baseline", Bookkeeping, memory: false, Deny, "the test has no baseline yet";
    /// The baseline was measured with another version of candle, build profile, dtype, processor
    /// architecture, or number of threads or iterations.
    UncomparableBaseline = "uncomparable-baseline", Bookkeeping, memory: false, Deny, "the baseline was measured with another version of candle, profile, dtype, architecture, threads or iterations";
    /// The baseline cannot be read.
    CorruptBaseline = "corrupt-baseline", Bookkeeping, memory: false, Deny, "the baseline cannot be read";
    /// A baseline belongs to no test.
    StaleBaseline = "stale-baseline", Bookkeeping, memory: false, Warn, "the baseline belongs to no test";
    /// An `[[override]]` of the configuration matches no test.
    UnmatchedOverride = "unmatched-override", Bookkeeping, memory: false, Warn, "an override of the configuration matches no test";
    /// A figure is below its baseline.
    Improved = "improved", Bookkeeping, memory: false, Warn, "a figure is below its baseline";
    /// The growth could not be decided in the iterations that were run.
    Undecided = "undecided", Bookkeeping, memory: false, Warn, "it could not be decided whether memory grows";
    /// A test target was not built.
    NotBuilt = "not-built", Bookkeeping, memory: false, Deny, "a test target was not built";
}

/// A mark on the line of a test, which is not a finding.
#[derive(Debug, Clone, Copy)]
pub struct TestMark {
    /// The stable kebab-case name.
    pub name: &'static str,
    /// A summary in one line.
    pub title: &'static str,
    /// The explanation that `cargo memcheck explain NAME` prints.
    pub page: &'static str,
}

/// Every mark.
pub const MARKS: &[TestMark] = &[TestMark {
    name: "unknown-values",
    title: "the body read unknown values of the simulated device",
    page: include_str!("../../pages/unknown-values.md"),
}];

/// The reason why a text is not a code, or why a code cannot have a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The code does not exist.
    #[error("`{0}` is not a finding: {known}", known = names(|_| true))]
    Unknown(String),
    /// Only a bookkeeping finding can have a level other than `deny`.
    #[error(
        "`{0}` always fails its test; a level can be set only for {bookkeeping}",
        bookkeeping = names(|row| row.class == Class::Bookkeeping)
    )]
    Fixed(&'static str),
}

fn names(wanted: impl Fn(&CodeRow) -> bool) -> String {
    let names: Vec<_> = TABLE.iter().filter(|row| wanted(row)).map(|row| row.name).collect();
    names.join(", ")
}

impl Code {
    /// True if the process of the test did not end by itself.
    pub fn ended_process(self) -> bool {
        matches!(self, Self::Crashed | Self::TimedOut)
    }

    /// True if the test did not end, for a reason other than memory: its figures are incomplete.
    pub fn cut_it_short(self) -> bool {
        match self {
            Self::TestFailed | Self::Crashed | Self::TimedOut | Self::DeviceFault => true,
            other => other.row().class == Class::Instrument,
        }
    }

    /// The properties of the code.
    pub fn row(self) -> &'static CodeRow {
        // `codes!` declares both in one list, so the table is in the order of the variants.
        &TABLE[self as usize]
    }

    /// The stable kebab-case name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The level of the code unless the user sets another one.
    pub fn default_level(self, ci: bool) -> Level {
        match self.row().class {
            Class::Measured | Class::Instrument => Level::Deny,
            Class::Bookkeeping if ci => self.row().level_in_ci,
            Class::Bookkeeping => Level::Warn,
        }
    }

    /// True if the finding is about bytes that call sites can explain.
    pub fn is_about_memory(self) -> bool {
        self.row().is_about_memory
    }

    /// True if the figure of the finding is a number of allocations instead of bytes.
    pub fn is_about_a_number(self) -> bool {
        matches!(self, Self::AllocationsLimit | Self::AllocationsRegression)
    }

    /// Checks `level`: only a bookkeeping finding can have one other than `deny`.
    pub fn check_level(self, level: Level) -> Result<(), CodeError> {
        match (self.row().class, level) {
            (Class::Bookkeeping, _) | (_, Level::Deny) => Ok(()),
            (Class::Measured | Class::Instrument, _) => Err(CodeError::Fixed(self.name())),
        }
    }
}

impl std::str::FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        TABLE
            .iter()
            .find(|row| row.name == text)
            .map(|row| row.code)
            .ok_or_else(|| CodeError::Unknown(text.to_owned()))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

serialize_as_text!(Code);

/// A finding in one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind.
    pub code: Code,
    /// The memory space, if the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub space: Option<Space>,
    /// The phase of the body, if the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phase: Option<String>,
    /// Bytes per iteration, for findings about growth.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_iteration: Option<u64>,
    /// The measured figure, for findings about other figures.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub figure: Option<u64>,
    /// The greatest value that the figure may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
    /// The figure in the baseline, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub baseline: Option<u64>,
    /// The values of the figure over several runs of the test; `figure` is the greatest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub range: Option<Range>,
    /// One sentence for people, without the code and the name of the test.
    pub message: String,
    /// The next step for the user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The line of the program to look at: the one that allocates the memory or calls those that do
    /// ([`Self::caller`]). Of a crash, the line that it happened at or, without a function, that of
    /// the test ([`Self::iterates`]).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keeps_at: Option<HeadLine>,
    /// True if [`Self::keeps_at`] is the line that calls the iterations, in one of which the process
    /// ended at a line that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub iterates: bool,
    /// The line that computes the last tensor of a graph that iterations keep, and with it all other
    /// tensors of the graph, or the line that makes the only list longer that can hold the tensors.
    /// `None` if it is not known, or if [`Self::keeps_at`] has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kept_through: Option<HeadLine>,
    /// The places that hold or allocate the bytes.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// Holders that are new at the peak or hold more than in the baseline.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub grown: Vec<GrownHolder>,
    /// Holders that hold less at the peak than in the baseline.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shrunk: Vec<GrownHolder>,
    /// The sum of all other holders, if it differs: then [`Self::grown`], [`Self::shrunk`] and this
    /// add up to the rise of the peak.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub other_holders: Option<GrownHolder>,
    /// The reason of a regression, as far as its call sites show it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rise: Option<Rise>,
    /// What a run of more iterations has shown, if it decided the growth.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub longer_run: Option<String>,
    /// The kind of mistake, if one is recognized.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<crate::judgement::diagnosis::Cause>,
}

/// The ranges that findings report.
pub fn reported(findings: &[Finding]) -> Vec<&Range> {
    findings.iter().filter_map(|finding| finding.range.as_ref()).collect()
}

impl Finding {
    /// A finding that has a message only.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            space: None,
            phase: None,
            bytes_per_iteration: None,
            figure: None,
            limit: None,
            baseline: None,
            range: None,
            message: message.into(),
            hint: None,
            keeps_at: None,
            iterates: false,
            kept_through: None,
            sites: Vec::new(),
            grown: Vec::new(),
            shrunk: Vec::new(),
            other_holders: None,
            rise: None,
            longer_run: None,
            cause: None,
        }
    }

    /// The observations behind the cause, and those of a longer run.
    pub fn evidence(&self) -> Option<String> {
        let observed = self.cause.as_ref().map(|cause| cause.evidence.as_str());
        let (Some(observed), Some(longer)) = (observed, self.longer_run.as_deref()) else {
            return observed.or(self.longer_run.as_deref()).map(str::to_owned);
        };
        // The evidence can end with a question about the owner.
        if observed.ends_with('?') {
            let mut letters = longer.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            return Some(format!("{observed} {}", first.chain(letters).collect::<String>()));
        }
        Some(format!("{observed}; {longer}"))
    }

    /// The reason of a regression: the stored one or, of a run of an earlier version, that of the
    /// holders that grew.
    pub fn reason(&self) -> Option<Rise> {
        self.rise.clone().or_else(|| rise::of_peak(&self.grown))
    }

    /// The headline, if it is not the line of the first place: then it called the lines of the sites.
    pub fn caller(&self) -> Option<&HeadLine> {
        let is_kept = matches!(self.code, Code::Leak | Code::Retained) && self.grown.is_empty();
        let at = self.keeps_at.as_ref().filter(|_| is_kept)?;
        let first = self.sites.iter().find_map(|site| Some((site.file.as_ref()?, site.line?)));
        (first != Some((&at.file, at.line))).then_some(at)
    }

    /// The line at which the process crashed or was killed because it took too long or, without a
    /// function, that of its test.
    pub fn stopped_at(&self) -> Option<&HeadLine> {
        self.keeps_at.as_ref().filter(|_| self.code.ended_process())
    }

    /// The same finding with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, place);
            assert_eq!(row.name.parse(), Ok(row.code));
        }
    }

    #[test]
    fn every_page_has_its_sections() {
        for row in TABLE {
            assert!(row.page.starts_with(&format!("# {}\n", row.name)), "{}", row.name);
            for part in ["## What it means", "## What to do"] {
                assert!(row.page.contains(part), "{}: no `{part}`", row.name);
            }
            assert!(row.page.len() > 200, "{}: too short to help", row.name);
        }
    }

    #[test]
    fn only_bookkeeping_can_be_allowed() {
        assert!(Code::Leak.check_level(Level::Allow).is_err());
        assert!(Code::NotMeasured.check_level(Level::Warn).is_err());
        assert!(Code::Improved.check_level(Level::Allow).is_ok());
    }

    #[test]
    fn ci_denies_the_documented_findings() {
        let denied: Vec<_> = TABLE
            .iter()
            .filter(|row| {
                row.class == Class::Bookkeeping && row.code.default_level(true) == Level::Deny
            })
            .map(|row| row.name)
            .collect();
        assert_eq!(
            denied,
            ["missing-baseline", "uncomparable-baseline", "corrupt-baseline", "not-built"]
        );
        assert_eq!(Code::MissingBaseline.default_level(false), Level::Warn);
    }
}
