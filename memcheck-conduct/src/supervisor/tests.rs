use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;

const OWN: Terms<'_> = Terms::OWN;
const PATIENCE: Duration = Duration::from_secs(20);

fn start(script: &str, folder: &Path, terms: Terms<'_>) -> Supervised {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder);
    Supervised::start(&command, terms, |command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(())
    })
    .unwrap()
}

/// Waits until a script has written its number, and reads it.
fn number(file: &Path) -> i32 {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let (Ok(number), true) = (text.trim().parse(), text.ends_with('\n')) {
            return number;
        }
        assert!(started.elapsed() < PATIENCE, "{} has no number", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(number: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[track_caller]
fn assert_ends(number: i32) {
    let started = Instant::now();
    while is_running(number) {
        assert!(started.elapsed() < PATIENCE, "{number} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_is_still_open_for_writing_is_started_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, "#!/bin/sh\nexit 7\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let writer = std::fs::File::options().append(true).open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(writer);
        });
        let mut child = Supervised::start(&Command::new(&path), OWN, |_| Ok(())).unwrap();
        assert_eq!(child.wait(PATIENCE).unwrap().and_then(|status| status.code()), Some(7));
    });
}

/// A process in a session of its own, whose parent has ended.
const DAEMON: &str = "setsid --fork sh -c 'echo $$ > daemon; exec sleep 600'; ";

#[test]
fn a_daemon_ends_with_the_program_that_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{DAEMON} while [ ! -s daemon ]; do sleep 0.01; done; exit 7");
    let mut child = start(&script, folder.path(), OWN);
    assert_eq!(child.wait(PATIENCE).unwrap().and_then(|status| status.code()), Some(7));
    drop(child);
    assert!(!is_running(number(&folder.path().join("daemon"))));
}

#[test]
fn a_program_and_its_daemon_end_when_the_command_ends() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{DAEMON} echo $$ > program; exec sleep 600");
    let child = start(&script, folder.path(), OWN);
    let numbers = ["daemon", "program"].map(|name| number(&folder.path().join(name)));
    // The kernel closes the socket of a command that was killed.
    child.socket.get_ref().shutdown(Shutdown::Both).unwrap();
    numbers.into_iter().for_each(assert_ends);
}

#[test]
fn a_program_ends_when_its_supervisor_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start("echo $$ > program; exec sleep 600", folder.path(), OWN);
    let program = number(&folder.path().join("program"));
    crate::os::signal(child.supervisor.id() as i32, libc::SIGKILL);
    let status = child.wait(PATIENCE).unwrap().unwrap();
    assert_eq!(status.signal(), Some(9));
    assert_ends(program);
}

#[test]
fn a_launcher_can_cancel_its_job_when_the_command_ends() {
    let folder = tempfile::tempdir().unwrap();
    let terms = Terms { grace: Some(PATIENCE), ..OWN };
    let script = "trap 'echo 1 > cancelled; exit' TERM; echo $$ > program; sleep 600 & wait";
    let child = start(script, folder.path(), terms);
    let program = number(&folder.path().join("program"));
    child.socket.get_ref().shutdown(Shutdown::Both).unwrap();
    assert_eq!(number(&folder.path().join("cancelled")), 1);
    assert_ends(program);
}

#[test]
fn a_service_of_the_build_outlives_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{DAEMON} while [ ! -s daemon ]; do sleep 0.01; done");
    let terms = Terms { membership: Membership::OfCommand, ..OWN };
    let mut child = start(&script, folder.path(), terms);
    assert!(child.wait(PATIENCE).unwrap().is_some_and(|status| status.success()));
    drop(child);
    let daemon = number(&folder.path().join("daemon"));
    assert!(is_running(daemon));
    // A build that is interrupted ends with all its processes except the services.
    let script = "sh -c 'echo $$ > compiler; exec sleep 600' & wait";
    let child = start(script, folder.path(), terms);
    let compiler = number(&folder.path().join("compiler"));
    drop(child);
    assert_ends(compiler);
    assert!(is_running(daemon));
    crate::os::signal(daemon, libc::SIGKILL);
}

#[test]
fn a_program_gets_its_arguments_variables_folder_and_input_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let odd = OsStr::from_bytes(b"a\xff \"b\n");
    command
        .args(["-c", "cat; printf '%s|%s|%s' \"$1\" \"$ODD\" \"${HOME-none}\"; pwd", "sh"])
        .arg(odd)
        .env("ODD", odd)
        .env_remove("HOME")
        .current_dir(folder.path());
    let input = "x".repeat(100_000);
    let mut child =
        Supervised::start(&command, Terms { input: Some(input.as_bytes()), ..OWN }, |command| {
            command.stdout(Stdio::piped());
            Ok(())
        })
        .unwrap();
    let mut stdout = Vec::new();
    child.stdout().unwrap().read_to_end(&mut stdout).unwrap();
    let expected = [
        input.as_bytes(),
        odd.as_bytes(),
        b"|",
        odd.as_bytes(),
        b"|none",
        folder.path().as_os_str().as_bytes(),
        b"\n",
    ];
    assert_eq!(stdout, expected.concat());
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_of_the_system() {
    let missing = Supervised::start(&Command::new("/no/such/program"), OWN, |_| Ok(()));
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    let folder = tempfile::tempdir().unwrap();
    let refused = Supervised::start(&Command::new(folder.path()), OWN, |_| Ok(()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
}
