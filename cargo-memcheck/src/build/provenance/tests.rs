use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::thread::sleep;

use tempfile::TempDir;

use super::*;

const PAUSE: Duration = Duration::from_millis(30);

/// A package `app` with a source, an artifact, and the list of its sources.
struct Package {
    folder: TempDir,
    /// The folder of the workspace.
    root: PathBuf,
    is_shared: bool,
    compilers: Compilers,
}

impl Package {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("app");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(folder.path().join("deps")).unwrap();
        let compilers = Compilers::default();
        let package = Self { folder, root, is_shared: false, compilers };
        package.write("old");
        package
    }

    fn source(&self) -> PathBuf {
        self.root.join("src/lib.rs")
    }

    fn write(&self, text: &str) {
        fs::write(self.source(), text).unwrap();
        sleep(PAUSE);
    }

    /// Other contents with the modification time of the old ones, as an archiver restores a file.
    fn restore(&self, text: &str) {
        let modified = fs::metadata(self.source()).unwrap().modified().unwrap();
        self.write(text);
        let file = File::options().write(true).open(self.source()).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
        sleep(PAUSE);
    }

    /// What a build makes. Another text is another build.
    fn build(&self, text: &str) {
        self.build_in(&self.root, text);
    }

    /// What a build of the checkout in `root` makes.
    fn build_in(&self, root: &Path, text: &str) {
        sleep(PAUSE);
        fs::write(self.folder.path().join("deps/app.d"), "").unwrap();
        let text = format!("{text}\0{}\0", fs::canonicalize(root).unwrap().display());
        fs::write(self.folder.path().join("deps/app"), text).unwrap();
    }

    fn unit(&self, is_fresh: bool) -> Unit {
        let deps = self.folder.path().join("deps");
        Unit::example(&self.root, deps.join("app"), deps.join("app.d"), self.source(), is_fresh)
    }

    /// The reason why cargo must build it again.
    fn check_since(&self, is_fresh: bool, began: SystemTime) -> Option<Cause> {
        let own = self.folder.path().join("own");
        let mut records = Records::open(&own).unwrap();
        let tree =
            SourceTree { root: &self.root, is_shared: self.is_shared, made: [&self.root; 2] };
        let stale = check(&mut records, &[self.unit(is_fresh)], tree, &self.compilers, began);
        records.write().unwrap();
        stale.into_iter().next().map(|stale| stale.why)
    }

    fn check(&self, is_fresh: bool) -> Option<Cause> {
        self.check_since(is_fresh, SystemTime::now())
    }
}

#[test]
fn a_source_that_is_restored_with_an_older_time_makes_the_artifact_stale() {
    let package = Package::new();
    let began = SystemTime::now();
    package.build("1");
    assert_eq!(package.check_since(false, began), None);
    assert_eq!(package.check(true), None);
    package.restore("new");
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
    // A stale artifact stays stale until cargo has made it again.
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
    package.restore("old");
    let began = SystemTime::now();
    package.build("22");
    assert_eq!(package.check_since(false, began), None);
    // Only the contents count if the build was seen.
    package.restore("old");
    assert_eq!(package.check(true), None);
}

#[test]
fn a_build_of_another_program_is_trusted_if_no_source_can_have_changed_since() {
    let package = Package::new();
    package.build("1");
    assert_eq!(package.check(true), None);
    package.build("22");
    package.restore("new");
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
    package.build("333");
    assert_eq!(package.check(true), None);
    fs::remove_file(package.folder.path().join("deps/app.d")).unwrap();
    let mut unlisted = package.unit(true);
    unlisted.listing = None;
    let mut records = Records::open(&package.folder.path().join("other")).unwrap();
    let tree = SourceTree { root: &package.root, is_shared: false, made: [&package.root; 2] };
    let stale = check(&mut records, &[unlisted], tree, &package.compilers, SystemTime::now());
    assert_eq!(stale[0].why, Cause::Unlisted);
}

#[test]
fn a_link_or_a_folder_that_leads_to_older_sources_is_a_change() {
    let package = Package::new();
    let other = package.root.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("lib.rs"), "new").unwrap();
    package.build("1");
    sleep(PAUSE);
    // The times of the files themselves are those of before the build.
    fs::rename(package.root.join("src"), package.root.join("before")).unwrap();
    fs::rename(&other, package.root.join("src")).unwrap();
    sleep(PAUSE);
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())), "a folder");
    package.build("22");
    assert_eq!(package.check(true), None);
    fs::rename(package.root.join("src"), &other).unwrap();
    symlink(package.root.join("before"), package.root.join("src")).unwrap();
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())), "by its contents");
    package.build("333");
    fs::remove_file(package.root.join("src")).unwrap();
    sleep(PAUSE);
    symlink(&other, package.root.join("src")).unwrap();
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())), "by its time");
}

#[test]
fn an_artifact_of_another_checkout_is_stale() {
    let mut package = Package::new();
    let began = SystemTime::now();
    package.build("1");
    assert_eq!(package.check_since(false, began), None);
    // The same contents, but compiled in another folder.
    let moved = package.folder.path().join("moved");
    fs::rename(&package.root, &moved).unwrap();
    let before = std::mem::replace(&mut package.root, moved);
    assert_eq!(package.check(true), Some(Cause::OtherCheckout(before)));
    package.is_shared = true;
    package.build("22");
    assert_eq!(package.check(true), Some(Cause::UnknownCheckout));
}

#[test]
fn a_source_that_changes_while_cargo_runs_is_not_recorded() {
    let package = Package::new();
    let began = SystemTime::now();
    sleep(PAUSE);
    // rustc reads the source here.
    package.restore("new");
    package.build("1");
    assert_eq!(package.check_since(false, began), None);
    let deps = package.folder.path().join("deps");
    let file = File::options().write(true).open(deps.join("app.d")).unwrap();
    file.set_times(FileTimes::new().set_modified(began)).unwrap();
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
}

#[test]
fn an_artifact_of_the_future_proves_nothing() {
    let package = Package::new();
    package.build("1");
    let deps = package.folder.path().join("deps");
    for name in ["app", "app.d"] {
        let file = File::options().write(true).open(deps.join(name)).unwrap();
        let future = SystemTime::now() + Duration::from_secs(3600);
        file.set_times(FileTimes::new().set_modified(future)).unwrap();
    }
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
}

#[test]
fn records_of_artifacts_that_are_gone_are_dropped() {
    let package = Package::new();
    package.build("1");
    assert_eq!(package.check(true), None);
    let stored = || fs::read_to_string(package.folder.path().join("own/sources.json")).unwrap();
    assert!(stored().contains("lib.rs"));
    fs::remove_file(package.folder.path().join("deps/app")).unwrap();
    Records::open(&package.folder.path().join("own")).unwrap().write().unwrap();
    assert!(!stored().contains("lib.rs"));
}

#[test]
fn a_build_of_another_program_in_another_checkout_is_stale() {
    let package = Package::new();
    let worktree = package.root.join("worktree");
    fs::create_dir(&worktree).unwrap();
    for root in [package.folder.path(), &worktree] {
        package.build_in(root, "1");
        assert_eq!(package.check(true), Some(Cause::UnknownCheckout), "{}", root.display());
    }
    package.build("1");
    assert_eq!(package.check(true), None);
    // A library has the path of its source.
    let library = |root: &Path| {
        let text = format!("rust{}/src/lib.rs", fs::canonicalize(root).unwrap().display());
        let long = [vec![b' '; (1 << 20) - 10], text.into_bytes()].concat();
        fs::write(package.folder.path().join("deps/app"), long).unwrap();
    };
    library(&worktree);
    assert_eq!(package.check(true), Some(Cause::UnknownCheckout));
    library(&package.root);
    assert_eq!(package.check(true), None);
}

#[test]
fn a_link_outside_of_the_package_and_a_folder_with_a_new_file_are_changes() {
    let package = Package::new();
    let outside = package.folder.path().join("outside");
    for name in ["old", "new"] {
        fs::create_dir_all(outside.join(name)).unwrap();
        fs::write(outside.join(name).join("text"), name).unwrap();
    }
    symlink(outside.join("old"), outside.join("current")).unwrap();
    let text = outside.join("current/text");
    let check = || {
        let deps = package.folder.path().join("deps");
        let source = text.clone();
        let unit = Unit::example(&package.root, deps.join("app"), deps.join("app.d"), source, true);
        let mut records = Records::open(&package.folder.path().join("none")).unwrap();
        let tree = SourceTree { root: &package.root, is_shared: false, made: [&package.root; 2] };
        let stale = check(&mut records, &[unit], tree, &package.compilers, SystemTime::now());
        stale.into_iter().next().map(|stale| stale.why)
    };
    sleep(PAUSE);
    package.build("1");
    assert_eq!(check(), None);
    fs::remove_file(outside.join("current")).unwrap();
    symlink(outside.join("new"), outside.join("current")).unwrap();
    assert_eq!(check(), Some(Cause::Changed(text.clone())));
    package.build("1");
    assert_eq!(check(), None);
    // The folder above, which is outside of the package too.
    fs::rename(&outside, package.folder.path().join("other")).unwrap();
    fs::rename(package.folder.path().join("other"), &outside).unwrap();
    assert_eq!(check(), Some(Cause::Changed(text.clone())));

    let next = package.root.join("next");
    fs::create_dir(&next).unwrap();
    fs::write(next.join("lib.rs"), "new").unwrap();
    package.build("1");
    assert_eq!(package.check(true), None);
    package.build("22");
    sleep(PAUSE);
    fs::rename(package.root.join("src"), package.root.join("before")).unwrap();
    fs::rename(&next, package.root.join("src")).unwrap();
    fs::write(package.root.join("src/note"), "").unwrap();
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
}

#[test]
fn a_source_that_changes_after_the_compiler_has_read_it_is_a_change() {
    let package = Package::new();
    let began = SystemTime::now();
    sleep(PAUSE);
    package.restore("new");
    // The list of sources is written after the change.
    package.build("1");
    assert_eq!(package.check_since(false, began), None);
    assert_eq!(package.check(true), Some(Cause::Changed(package.source())));
    let began = SystemTime::now();
    package.build("22");
    assert_eq!(package.check_since(false, began), None);
    assert_eq!(package.check(true), None);
}

#[test]
fn another_compiler_or_wrapper_makes_the_artifact_stale() {
    let mut package = Package::new();
    let (one, other) = (package.root.join("one"), package.root.join("other"));
    fs::write(&one, "exec \"$@\"").unwrap();
    fs::write(&other, "exec \"$@\"").unwrap();
    let build = |package: &Package, text: &str| {
        sleep(PAUSE);
        let began = SystemTime::now();
        package.build(text);
        assert_eq!(package.check_since(false, began), None);
    };
    build(&package, "1");
    package.compilers = Compilers::example(&[&one], &[]);
    assert_eq!(package.check(true), Some(Cause::OtherCompiler(one.clone())), "it is new");
    build(&package, "22");
    assert_eq!(package.check(true), None);
    fs::write(&one, "exec \"$@\" --cfg leaky").unwrap();
    assert_eq!(package.check(true), Some(Cause::OtherCompiler(one.clone())), "it has changed");
    build(&package, "333");
    package.compilers = Compilers::example(&[&other], &[]);
    assert!(matches!(package.check(true), Some(Cause::OtherCompiler(_))), "another one");
    build(&package, "4444");
    package.compilers = Compilers::default();
    assert_eq!(package.check(true), Some(Cause::OtherCompiler(other.clone())), "none");
    build(&package, "55555");
    // A wrapper for members of the workspace compiles no other package.
    package.compilers = Compilers::example(&[], &[&one]);
    assert_eq!(package.check(true), None);
    package.compilers.add_member("app");
    assert_eq!(package.check(true), Some(Cause::OtherCompiler(one)));
}

/// The time of a folder that another process has removed in the meantime.
#[test]
fn a_time_that_is_not_known_is_never_before_another() {
    assert!(!is_before(Duration::MAX, Duration::MAX));
    assert!(!is_before(Duration::from_secs(1), Duration::from_secs(1) + TICK));
    assert!(is_before(Duration::from_secs(1), Duration::from_secs(2)));
}
