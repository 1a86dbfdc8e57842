//! Bodies that close the descriptors of the process, and open files under their numbers.

use crate::fixture::Project;

const TESTS: &str = r#"
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

/// Programs that the process starts inherit the file, as those that C code opens.
fn open(name: &str) -> File {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
    let name = CString::new(name).unwrap();
    let number = unsafe { libc::open(name.as_ptr(), flags, 0o644) };
    assert!(number >= 3);
    unsafe { File::from_raw_fd(number) }
}

fn close_by_number() {
    for number in 3..1024 {
        unsafe { libc::close(number) };
    }
}

fn close_all() {
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
}

/// Opens files until every number of before is taken, and writes a line to each in each iteration.
fn write(trial: &Trial, name: &str, most: i32) -> candle_core::Result<()> {
    let mut files = vec![open(name)];
    while files.iter().all(|file| file.as_raw_fd() < most) {
        files.push(open(name));
    }
    trial.iterate(|_| {
        for file in &mut files {
            file.write_all(b"mine\n")?;
        }
        candle_core::Result::Ok(())
    })?;
    for mut file in files {
        file.write_all(b"mine\n")?;
        assert_eq!(unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(file)) }, 0);
    }
    Ok(())
}

#[mem_test(max_growth = "1 GiB", baseline = false)]
fn by_number(trial: &mut Trial) -> candle_core::Result<()> {
    close_by_number();
    write(trial, "by_number", 64)
}

/// The highest number that memcheck uses is taken too.
#[mem_test(max_growth = "1 GiB", baseline = false)]
fn all(trial: &mut Trial) -> candle_core::Result<()> {
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    close_all();
    write(trial, "all", if limit > 4096 { 4110 } else { limit as i32 - 2 })
}

/// Resident memory that grows must be seen without the file that memcheck has opened.
#[mem_test(max_rss_growth = "256 KiB", max_growth = "1 GiB", baseline = false)]
fn grows(trial: &mut Trial) -> candle_core::Result<()> {
    close_all();
    let mut kept = Vec::new();
    trial.iterate(|_| kept.push(vec![1u8; 1 << 20]));
    Ok(())
}

/// The process is started again with the file of the body under the number of memcheck's pipe.
#[mem_test(max_growth = "1 GiB", baseline = false)]
fn restarts(trial: &mut Trial) -> candle_core::Result<()> {
    close_all();
    let mut file = open("restarts");
    file.write_all(b"mine\n")?;
    std::mem::forget(file);
    tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new()).unwrap();
    trial.iterate(|_| ());
    Ok(())
}

/// The second round, whose output is discarded.
#[mem_test(max_growth = "1 GiB", baseline = false)]
fn twice(trial: &mut Trial) -> candle_core::Result<()> {
    static KEPT: std::sync::Once = std::sync::Once::new();
    KEPT.call_once(|| std::mem::forget(vec![1u8; 1 << 20]));
    close_all();
    write(trial, "twice", 64)
}
"#;

const FILES: [&str; 4] = ["by_number", "all", "restarts", "twice"];

#[test]
fn a_file_that_a_body_opens_under_a_number_of_memcheck_gets_only_what_the_body_writes() {
    let project = Project::new(TESTS);
    for device in ["cpu", "sim"] {
        for explain in ["never", "always"] {
            for file in FILES {
                let _ = std::fs::remove_file(project.path().join(file));
            }
            let run = ["run", "--device", device, "--no-ci", "--message-format", "json"];
            let run = project.memcheck(&[&run[..], &["--explain", explain]].concat());
            for test in FILES {
                let line = run.test(test);
                assert_eq!(line["status"], "passed", "{device} {explain} {line}\n{}", run.stderr);
                let text = project.read(test);
                assert!(text.lines().all(|line| line == "mine"), "{test}: {text}");
            }
            if explain == "never" {
                assert_eq!(run.codes("grows"), ["growth-limit"], "{device}\n{}", run.stderr);
            }
        }
    }
}
