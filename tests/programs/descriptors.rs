//! Of `functional/descriptors.rs`.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::OsStringExt;

use candle_core::Result;
use memcheck_runtime::{Trial, mem_test};

/// Programs that the process starts inherit the file, as those that C code opens.
fn open(name: &str) -> File {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
    let path = crate::folder().join(name).into_os_string().into_vec();
    let path = CString::new(path).unwrap();
    // SAFETY: the path is a C string.
    let number = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    assert!(number >= 3);
    // SAFETY: no other code has the descriptor.
    unsafe { File::from_raw_fd(number) }
}

fn close_by_number() {
    for number in 3..1024 {
        // SAFETY: the test is about a body that does so.
        unsafe { libc::close(number) };
    }
}

fn close_all() {
    // SAFETY: the test is about a body that does so.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
}

/// Opens files until every number of before is taken, and writes a line to each in each iteration.
fn write(trial: &Trial, name: &str, most: i32) -> Result<()> {
    let mut files = vec![open(name)];
    while files.iter().all(|file| file.as_raw_fd() < most) {
        files.push(open(name));
    }
    trial.iterate(|_| {
        for file in &mut files {
            file.write_all(b"mine\n")?;
        }
        Result::Ok(())
    })?;
    for mut file in files {
        file.write_all(b"mine\n")?;
        // SAFETY: no other code has the descriptor.
        assert_eq!(unsafe { libc::close(file.into_raw_fd()) }, 0);
    }
    Ok(())
}

#[mem_test(max_growth = "1 GiB", baseline = false)]
fn by_number(trial: &mut Trial) -> Result<()> {
    close_by_number();
    write(trial, "by_number", 64)
}

/// The highest number that memcheck uses is taken too.
#[mem_test(max_growth = "1 GiB", baseline = false)]
fn all(trial: &mut Trial) -> Result<()> {
    // SAFETY: it only reads the limit.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    close_all();
    write(trial, "all", if limit > 4096 { 4110 } else { limit as i32 - 2 })
}

/// Resident memory that grows must be seen without the file that memcheck has opened.
#[mem_test(max_rss_growth = "256 KiB", max_growth = "1 GiB", baseline = false)]
fn grows(trial: &mut Trial) -> Result<()> {
    close_all();
    let mut kept = Vec::new();
    trial.iterate(|_| kept.push(vec![1u8; 1 << 20]));
    Ok(())
}

/// The process is started again with the file of the body under the number of memcheck's pipe.
#[mem_test(max_growth = "1 GiB", baseline = false)]
fn restarts(trial: &mut Trial) -> Result<()> {
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
fn twice(trial: &mut Trial) -> Result<()> {
    static KEPT: std::sync::Once = std::sync::Once::new();
    KEPT.call_once(|| std::mem::forget(vec![1u8; 1 << 20]));
    close_all();
    write(trial, "twice", 64)
}
