//! Lists the memory tests of each test executable. One without memory tests prints any text. One
//! that dies or hangs has an error, because otherwise its tests would be missing from the run without
//! a message. It does not stop the tests of the others.

mod attempt;
mod error;

use std::os::unix::process::ExitStatusExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memcheck_core::wire::protocol::{Entry, Listing, VERSION};

use crate::build::leg::{DeviceKind, Leg};
use crate::build::workspace::TestPackage;
use crate::system::binary::Binary;
use crate::system::launcher::Launcher;
use crate::system::libraries::LibrarySearch;
use crate::system::process::{self, ProcessResult};

use attempt::{ListingAttempt, start, status};

pub(crate) use error::DiscoverError;

/// For all attempts on this machine together.
pub(crate) const LISTING: Duration = Duration::from_secs(10);
/// The most bytes of a list. One of 100,000 tests has 60 MB.
const LONGEST: usize = 128 << 20;
/// Rust's exit status for a panic in `main`.
const PANICKED: i32 = 101;

#[derive(Debug, Clone)]
pub(crate) struct ListedExecutable {
    pub(crate) binary: Binary,
    pub(crate) tests: Vec<Entry>,
    pub(crate) warning: Option<String>,
    /// The reason why its tests are not known.
    pub(crate) unlisted: Option<Arc<DiscoverError>>,
}

impl ListedExecutable {
    pub(crate) fn with_tests(binary: Binary, tests: Vec<Entry>) -> Self {
        Self { binary, tests, warning: None, unlisted: None }
    }

    /// The folder of the package whose tests these are, if it is not `own`.
    pub(crate) fn foreign_folder(&self, own: &Path) -> Option<PathBuf> {
        let canonical = |folder: &Path| std::fs::canonicalize(folder).ok();
        let own = canonical(own);
        let folders = self.tests.iter().map(|entry| &entry.manifest_dir);
        folders.into_iter().find(|folder| canonical(folder) != own).cloned()
    }

    /// True if it has no other tests than those that are listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.warning.is_none() && self.unlisted.is_none()
    }
}

/// # Errors
/// The first reason why the tests of an executable are not known.
pub(crate) fn all_listed(listed: &[ListedExecutable]) -> Result<(), Arc<DiscoverError>> {
    listed.iter().find_map(|listed| listed.unlisted.clone()).map_or(Ok(()), Err)
}

pub(crate) fn discover(
    binaries: &[Binary],
    packages: &[TestPackage],
    leg: &Leg,
    launcher: &Launcher,
    search: &LibrarySearch,
) -> Vec<ListedExecutable> {
    let list_one = |binary: &Binary| {
        let mut binary = binary.clone();
        search.prepare(&mut binary);
        let folder = packages[binary.package].folder();
        list_tests(binary.clone(), folder, leg, launcher, search).unwrap_or_else(|error| {
            let unlisted = Some(Arc::new(error));
            ListedExecutable { unlisted, ..ListedExecutable::with_tests(binary, Vec::new()) }
        })
    };
    // A launcher may run one process at a time and let the others wait.
    let workers = if launcher.is_some() { 1 } else { process::cores().min(binaries.len()) };
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::SeqCst));
        let mine = numbers.map_while(|number| Some((number, binaries.get(number)?)));
        mine.map(|(number, binary)| (number, list_one(binary))).collect::<Vec<_>>()
    };
    let mut answers: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.flat_map(|answers| answers.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    // The workers end in any order.
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The last listing is right: a constructor of the user can print lines before it, and a launcher
/// lines after it.
fn parse_last_line<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    text.lines().rev().find_map(|line| read(line.trim()))
}

pub(crate) fn program(
    binary: &Binary,
    launcher: &Launcher,
    search: &LibrarySearch,
) -> Result<Binary, DiscoverError> {
    let mut binary = binary.clone();
    search.prepare(&mut binary);
    match search.complete(&mut binary, LISTING) {
        // The machine that the launcher leads to may have them.
        Err(missing) if !launcher.is_some() => {
            Err(DiscoverError::Missing(binary.id.clone(), missing))
        }
        _ => Ok(binary),
    }
}

fn list_tests(
    binary: Binary,
    folder: &Path,
    leg: &Leg,
    launcher: &Launcher,
    search: &LibrarySearch,
) -> Result<ListedExecutable, DiscoverError> {
    list_tests_within(LISTING, binary, folder, leg, launcher, search)
}

fn list_tests_within(
    limit: Duration,
    mut binary: Binary,
    folder: &Path,
    leg: &Leg,
    launcher: &Launcher,
    search: &LibrarySearch,
) -> Result<ListedExecutable, DiscoverError> {
    let ListingAttempt { ended, missing, foreign, lacks, patience } =
        start(&mut binary, folder, launcher, search, limit);
    let id = || binary.id.clone();
    let ended = ended.map_err(|error| DiscoverError::Start(id(), error))?;
    let Some(status) = status(&ended) else {
        return Err(DiscoverError::Hangs { id: id(), patience });
    };
    if ended.output.is_cut {
        return Err(DiscoverError::TooLong(id()));
    }
    let stdout = &ended.output.stdout;
    let Some(mut listing) =
        parse_last_line(stdout, |line| serde_json::from_str::<Listing>(line).ok())
    else {
        if let Some(version) = parse_last_line(stdout, version_of) {
            return Err(DiscoverError::Version(id(), version));
        }
        if !status.success() {
            if let Some(target) = foreign.filter(|_| !launcher.is_some()) {
                return Err(DiscoverError::Foreign(id(), target));
            }
            if let Some(missing) = missing {
                return Err(DiscoverError::Missing(id(), missing));
            }
        }
        // An executable that could not be listed may have tests, so it must not count as one
        // without tests.
        if is_dead(status) || (lacks && !status.success()) {
            return Err(died(id(), status, &ended));
        }
        let warning = (!status.success()).then(|| {
            format!(
                "{}: {status} when asked for its tests; memcheck assumes that it has no memory \
                 tests",
                binary.id
            )
        });
        return Ok(ListedExecutable { warning, ..ListedExecutable::with_tests(binary, vec![]) });
    };
    if is_dead(status) {
        return Err(died(id(), status, &ended));
    }
    if listing.memcheck != VERSION {
        return Err(DiscoverError::Version(id(), listing.memcheck));
    }
    let needed = match leg.kind {
        DeviceKind::Cpu => None,
        DeviceKind::Sim => Some("sim"),
        DeviceKind::Cuda => Some("cuda"),
    };
    if let Some(needed) = needed
        // An executable without tests needs no device.
        && !listing.tests.is_empty()
        && !listing.built_for.iter().any(|built| built == needed)
    {
        return Err(DiscoverError::NotFor(id(), needed));
    }
    listing.tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(ListedExecutable::with_tests(binary, listing.tests))
}

fn is_dead(status: ExitStatus) -> bool {
    status.signal().is_some() || status.code() == Some(PANICKED)
}

fn died(id: String, status: ExitStatus, ended: &ProcessResult) -> DiscoverError {
    let stderr = ended.output.stderr.trim();
    let stderr = if stderr.is_empty() { String::new() } else { format!("\n{stderr}") };
    DiscoverError::Died(id, status.to_string(), stderr)
}

/// The other fields may not be understood.
fn version_of(line: &str) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct ListingVersion {
        memcheck: u32,
    }
    serde_json::from_str::<ListingVersion>(line).ok().map(|versioned| versioned.memcheck)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use memcheck_core::device::Request;
    use memcheck_core::wire::exit;

    use super::*;
    use crate::system::error::CommandError;

    #[test]
    fn a_binary_that_cannot_start_on_this_machine_is_listed_through_its_launcher() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mem");
        let listing = format!("{{\"memcheck\":{VERSION},\"built_for\":[],\"tests\":[]}}");
        let script = format!("#!/bin/sh\ntest \"$THERE\" || exit 127\necho '{listing}'\n");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let id = "app::mem".to_owned();
        let binary = Binary::new(id, 0, path, Vec::new());
        let leg = Leg::new(Request::Cpu, DeviceKind::Cpu, "");
        let asked = |line: &str| {
            let launcher = Launcher::read(line, folder.path()).unwrap();
            let binary = binary.clone();
            list_tests(binary, folder.path(), &leg, &launcher, &LibrarySearch::default())
                .map(|carried| carried.warning)
                .map_err(|error| (error.exit_code(), error.to_string()))
        };
        let (code, error) = asked("").unwrap_err();
        assert!(code == exit::NOT_MEASURED && error.contains("127"), "{error}");
        assert_eq!(asked("env THERE=1"), Ok(None));
        let (code, _) = asked("env -u THERE").unwrap_err();
        assert_eq!(code, exit::NOT_MEASURED, "there it does not start either");
        // The output of a launcher around the list does not hide it.
        assert_eq!(asked("sh -c 'echo first; THERE=1 \"$0\"; echo job 1 done'"), Ok(None));
    }

    #[test]
    fn a_binary_for_another_machine_is_started_by_the_launcher_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mem");
        // The header of an executable for RISC-V.
        let header = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xf3\0";
        std::fs::write(&path, [&header[..], &[0; 44]].concat()).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let binary = Binary::new("app::mem".to_owned(), 0, path, Vec::new());
        let leg = Leg::new(Request::Cpu, DeviceKind::Cpu, "");
        let asked = |line: &str| {
            let launcher = Launcher::read(line, folder.path()).unwrap();
            let search = LibrarySearch::default();
            list_tests(binary.clone(), folder.path(), &leg, &launcher, &search)
                .map(|carried| carried.warning)
        };
        let listing = format!("{{\"memcheck\":{VERSION},\"built_for\":[],\"tests\":[]}}");
        assert_eq!(asked(&format!("sh -c 'echo \"$1\"' it '{listing}'")).unwrap(), None);
        let error = asked("").unwrap_err();
        assert_eq!(error.exit_code(), exit::NOT_MEASURED);
        assert!(error.to_string().contains("is for riscv64-linux"), "{error}");
        assert!(error.hint().unwrap().contains("--runner"));
        let of_launcher = asked("sh -c 'exit 2'").unwrap_err();
        assert!(of_launcher.to_string().contains("status: 2"), "{of_launcher}");
    }

    #[test]
    fn a_harness_without_a_listing_counts_as_one_without_memory_tests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("custom");
        std::fs::write(&path, "#!/bin/sh\nexit 3\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let id = "app::custom".to_owned();
        let binary = Binary::new(id, 0, path, Vec::new());
        let leg = Leg::new(Request::Cpu, DeviceKind::Cpu, "");
        for line in ["", "env -i", "false"] {
            let launcher = Launcher::read(line, folder.path()).unwrap();
            let carried = list_tests(
                binary.clone(),
                folder.path(),
                &leg,
                &launcher,
                &LibrarySearch::default(),
            );
            assert!(carried.unwrap().warning.is_some_and(|stderr| stderr.contains("status: 3")));
        }
    }

    fn compiled(source: &str, folder: &Path) -> Binary {
        std::fs::write(folder.join("main.c"), source).unwrap();
        let mut cc = std::process::Command::new("cc");
        let done = cc.args(["-static", "-o", "main", "main.c"]).current_dir(folder).status();
        assert!(done.is_ok_and(|status| status.success()), "a static executable");
        let (id, path) = ("app::main".to_owned(), folder.join("main"));
        Binary::new(id, 0, path, Vec::new())
    }

    #[test]
    fn a_static_executable_that_hangs_is_ended_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        // Without a loader the look-up of libraries starts the program.
        let source = "#include <stdlib.h>\n#include <unistd.h>\n\
            int main(void) { if (getenv(\"LD_TRACE_LOADED_OBJECTS\")) sleep(60); return 1; }\n";
        let binary = compiled(source, folder.path());
        let started = Instant::now();
        let limit = Duration::from_millis(500);
        let mut searched = binary.clone();
        assert_eq!(LibrarySearch::default().complete(&mut searched, limit), Ok(false));
        assert!((limit..limit * 10).contains(&started.elapsed()), "{:?}", started.elapsed());
        let leg = Leg::new(Request::Cpu, DeviceKind::Cpu, "");
        let limit = Duration::from_secs(2);
        let started = Instant::now();
        let (search, none) = (LibrarySearch::default(), Launcher::None);
        let listed = list_tests_within(limit, binary, folder.path(), &leg, &none, &search);
        assert!(listed.is_ok_and(|listed| listed.warning.is_some()));
        assert!(started.elapsed() < limit + Duration::from_secs(3), "{:?}", started.elapsed());
    }

    #[test]
    fn a_list_that_is_too_long_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("endless");
        std::fs::write(&path, "#!/bin/sh\nhead -c 200000000 /dev/zero\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let binary = Binary::new("app".to_owned(), 0, path, Vec::new());
        let leg = Leg::new(Request::Cpu, DeviceKind::Cpu, "");
        let search = LibrarySearch::default();
        let error = list_tests(binary, folder.path(), &leg, &Launcher::None, &search).unwrap_err();
        assert_eq!(error.exit_code(), exit::NOT_MEASURED);
        assert!(error.to_string().contains("more than 128.0 MiB"), "{error}");
    }

    #[test]
    fn an_executable_without_the_driver_library_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let compile = |arguments: &[&str]| {
            let mut cc = std::process::Command::new("cc");
            assert!(cc.args(arguments).current_dir(folder.path()).status().unwrap().success());
        };
        std::fs::write(folder.path().join("cuda.c"), "int cuInit(void) { return 0; }").unwrap();
        std::fs::write(
            folder.path().join("mem.c"),
            "int cuInit(void); int main(void) { return cuInit(); }",
        )
        .unwrap();
        let driver =
            ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1.none", "-o", "libcuda.so", "cuda.c"];
        compile(&driver);
        compile(&["-o", "mem", "mem.c", "-L.", "-lcuda"]);
        let path = folder.path().join("mem");
        let binary = Binary::new("app::mem".to_owned(), 0, path, Vec::new());
        let leg = Leg::new(Request::Cuda(None), DeviceKind::Cuda, "");
        let asked = |launcher: &Launcher| {
            list_tests(binary.clone(), folder.path(), &leg, launcher, &LibrarySearch::default())
        };
        let error = asked(&Launcher::None).unwrap_err();
        assert_eq!(error.exit_code(), exit::NO_DEVICE);
        assert!(error.to_string().ends_with("libcuda.so.1.none was not found"), "{error}");
        assert!(error.hint().unwrap().contains("NVIDIA driver"));
        // The machine that the launcher leads to may have the library, so the executable is started
        // there. Without an answer from there the library is still reported as missing.
        let launcher = Launcher::read("false", folder.path()).unwrap();
        assert_eq!(asked(&launcher).unwrap_err().exit_code(), exit::NO_DEVICE);
    }
}
