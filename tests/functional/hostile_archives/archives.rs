//! The hostile archives: each differs in one place from an archive that is accepted.

use serde_json::{Value, json};

use super::forge::{Parts, Raw, bomb, compressed, pax};
use super::{NOT_MEASURED, Sentinel, USAGE};

type Change = Box<dyn Fn(&mut Parts)>;

/// Defects of the page.
fn pages(sentinel: &Sentinel) -> Vec<(&'static str, Change)> {
    fn set(pointer: &'static str, value: Value) -> Change {
        Box::new(move |parts| parts.set(pointer, value.clone()))
    }
    /// Also names a program outside the archive, so that the page is refused in any case.
    fn many(change: fn(&mut Parts)) -> Change {
        Box::new(move |parts| {
            parts.set("/builds/0/nvml", json!("/usr/bin/id"));
            change(parts);
        })
    }
    fn named(name: impl Into<String>) -> Change {
        let name = name.into();
        Box::new(move |parts| parts.rename(&name))
    }
    let outside = sentinel.path("written").display().to_string();
    let executable = "/builds/0/executables/0/file";
    let manifest = "/metadata/packages/0/manifest_path";
    vec![
        ("absolute path", named(outside)),
        ("parent folder", named("workspace/../../written")),
        ("many parent folders", named(format!("{}tmp/written", "../".repeat(30)))),
        ("current folder", named("./workspace/data")),
        ("double separator", named("workspace//data")),
        ("separator at the end", named("workspace/data/")),
        ("empty name", named("")),
        ("zero byte in a name", named("workspace/a\0b")),
        ("line feed in a name", named("workspace/a\n::error::injected")),
        ("escape sequence in a name", named("workspace/\u{1b}]0;title\u{7}")),
        ("name of 2000 bytes", named(format!("workspace/{}", "a/".repeat(1000) + "a"))),
        ("component of 300 bytes", named(format!("workspace/{}", "a".repeat(300)))),
        ("name outside the known folders", named("elsewhere/data")),
        ("name of the table", named("tests/cpu.json")),
        ("file as a folder", named("cpu/mem/data")),
        ("folder as a file", named("cpu")),
        ("absolute program", set(executable, json!("/usr/bin/id"))),
        ("program not in the archive", set(executable, json!("cpu/other"))),
        ("program behind a parent folder", set(executable, json!("cpu/../../../bin/sh"))),
        ("program that is no executable", set(executable, json!("tests/cpu.json"))),
        (
            "manifest_path with parent folders",
            set(manifest, json!("/build/app/../../../x/Cargo.toml")),
        ),
        ("manifest_path outside", set(manifest, json!("/tmp/x/Cargo.toml"))),
        ("manifest_path without a file", set(manifest, json!("/build/app"))),
        ("relative workspace", set("/metadata/workspace_root", json!("../app"))),
        (
            "output of build scripts outside",
            set("/builds/0/executables/0/out_dir", json!(["/x", "../../x"])),
        ),
        ("NVML outside", set("/builds/0/nvml", json!("/lib/x86_64-linux-gnu/libc.so.6"))),
        ("table outside", set("/builds/0/tests", json!("../../tests.json"))),
        ("invalid variable", set("/builds/0/executables/0/environment", json!([["A=B\0", "c"]]))),
        ("escape sequence in a text", set("/profile", json!("\u{1b}]52;c;aWQ=\u{7}"))),
        ("invalid device", set("/devices/0", json!("sim:\u{1b}[2J"))),
        ("unknown package", set("/packages/0", json!("other"))),
        ("larger in the list", set("/files/2/bytes", json!(5))),
        ("smaller in the list", set("/files/2/bytes", json!(3))),
        ("a petabyte", set("/files/2/bytes", json!(1_u64 << 50))),
        (
            "sum beyond 64 bits",
            Box::new(|parts| {
                parts.set("/files/1/bytes", json!(u64::MAX));
                parts.set("/files/2/bytes", json!(u64::MAX));
            }),
        ),
        ("negative size", set("/files/2/bytes", json!(-1))),
        ("large table", set("/files/0/bytes", json!(100 << 20))),
        ("metadata of 3 MiB", set("/metadata/packages/0/description", json!("a".repeat(3 << 20)))),
        (
            "deep metadata",
            Box::new(|parts| {
                let deep = (0..500).fold(json!(0), |inner, _| json!([inner]));
                parts.set("/metadata/packages/0/metadata", deep);
            }),
        ),
        ("many features", many(|parts| parts.set("/features", json!(vec![""; 2_500_000])))),
        (
            "many devices",
            many(|parts| {
                let device = |n| format!("sim:h200,capacity={n}MiB");
                parts.set("/devices", json!((1..200_000).map(device).collect::<Vec<_>>()));
            }),
        ),
        (
            "many packages",
            many(|parts| {
                let id = |n: u32| n.to_string();
                parts.set("/packages", json!((0..500_000).map(id).collect::<Vec<_>>()));
            }),
        ),
        (
            "many members",
            many(|parts| {
                let members = vec!["a"; 400_000];
                parts.set("/metadata/workspace_members", json!(members));
            }),
        ),
        (
            "many deep names",
            many(|parts| {
                let name = |n: u32| format!("cpu/{}{n}", "a/".repeat(500));
                let file = |n| json!({"name": name(n), "bytes": 0, "executable": false});
                let files: Vec<Value> = (0..7000).map(file).collect();
                parts.page["files"].as_array_mut().unwrap().extend(files);
            }),
        ),
        (
            "many executables",
            many(|parts| {
                let executable = parts.page["builds"][0]["executables"][0].clone();
                parts.set("/builds/0/executables", json!(vec![executable; 60_000]));
            }),
        ),
        ("page of other JSON", Box::new(|parts| parts.page = json!({"metadata": 0}))),
        ("program with set-user-id in the list", set("/files/1/executable", json!("4755"))),
    ]
}

/// Defects of the header and of the tar stream.
fn streams(sentinel: &Sentinel) -> Vec<(&'static str, Change)> {
    /// Inserts an entry before the last file.
    fn insert(raw: Raw) -> Change {
        Box::new(move |parts| parts.files.insert(2, raw.clone()))
    }
    /// Changes the header of the last file.
    fn last(change: fn(&mut tar::Header)) -> Change {
        Box::new(move |parts| {
            let raw = parts.files.pop().unwrap();
            parts.files.push(raw.change(change));
        })
    }
    fn typed(kind: u8) -> Raw {
        Raw::special("workspace/data", tar::EntryType::new(kind), "")
    }
    let folder = sentinel.path("").display().to_string();
    let outside = sentinel.path("outside").display().to_string();
    let symlink = Raw::special("workspace", tar::EntryType::Symlink, &folder);
    let hard_link = Raw::special("workspace/data", tar::EntryType::Link, &outside);
    let written = sentinel.path("written").display().to_string();
    vec![
        ("symbolic link and a file through it", insert(symlink)),
        ("hard link to a file outside", insert(hard_link.clone())),
        ("hard link in place of a file", Box::new(move |parts| parts.files[2] = hard_link.clone())),
        ("character device", insert(typed(b'3'))),
        ("block device", insert(typed(b'4'))),
        ("folder in place of a file", Box::new(|parts| parts.files[2] = typed(b'5'))),
        ("pipe", insert(typed(b'6'))),
        ("contiguous file", last(|header| header.set_entry_type(tar::EntryType::Continuous))),
        ("sparse file", last(|header| header.set_entry_type(tar::EntryType::GNUSparse))),
        ("unknown type", insert(typed(b'Z'))),
        ("pax path", insert(Raw::extension(b'x', &pax("path", &written)))),
        ("pax size", insert(Raw::extension(b'x', &pax("size", "1000000000000")))),
        ("global pax path", insert(Raw::extension(b'g', &pax("path", &written)))),
        ("pax link", insert(Raw::extension(b'x', &pax("linkpath", "/etc/passwd")))),
        ("long name of another file", insert(Raw::extension(b'L', b"/tmp/written\0"))),
        ("long name without an end", insert(Raw::extension(b'L', b"workspace/data"))),
        (
            "two long names",
            Box::new(|parts| {
                let name = Raw::extension(b'L', b"workspace/data\0");
                parts.files.splice(2..2, [name.clone(), name]);
            }),
        ),
        ("long link", insert(Raw::extension(b'K', b"/etc/passwd\0"))),
        ("entry that is not listed", insert(Raw::file(b"workspace/more", 0o644, b""))),
        (
            "entry after the listed ones",
            Box::new(|parts| parts.files.push(Raw::file(b"workspace/more", 0o644, b""))),
        ),
        ("duplicate entry", Box::new(|parts| parts.files.push(parts.files[1].clone()))),
        ("missing entry", Box::new(|parts| drop(parts.files.pop()))),
        ("other order", Box::new(|parts| parts.files.swap(1, 2))),
        ("name that is not UTF-8", last(|header| header.as_old_mut().name[3] = 0xff)),
        ("name in upper case", last(|header| header.as_old_mut().name[..9].make_ascii_uppercase())),
        (
            "set-user-id",
            Box::new(|parts| {
                parts.files[1] = parts.files[1].clone().change(|header| header.set_mode(0o4755));
            }),
        ),
        ("writable for all", last(|header| header.set_mode(0o666))),
        ("program that is not listed as one", last(|header| header.set_mode(0o755))),
        ("larger entry", last(|header| header.set_size(600))),
        ("entry of 8 EiB", last(|header| header.set_size(1 << 62))),
        (
            "wrong checksum",
            Box::new(|parts| parts.files.last_mut().unwrap().header.as_old_mut().name[0] = b'v'),
        ),
        (
            "escape sequence as a size",
            last(|header| {
                header.as_old_mut().size[..4].copy_from_slice(b"\x1b[2J");
            }),
        ),
        ("no end", Box::new(|parts| parts.end.clear())),
        ("half an end", Box::new(|parts| parts.end.truncate(512))),
        ("bytes after the end", Box::new(|parts| parts.end.extend([0; 512]))),
        ("page of a gibibyte", Box::new(|parts| parts.header["page"] = json!(1 << 30))),
        ("page smaller than its entry", Box::new(|parts| parts.header["page"] = json!(10))),
        (
            "page larger than 8 MiB",
            Box::new(|parts| {
                parts.set("/features", json!(vec![""; 4 << 20]));
            }),
        ),
        ("long header", Box::new(|parts| parts.header["more"] = "a".repeat(5000).into())),
        ("header without its fields", Box::new(|parts| parts.header["id"] = json!(1))),
        ("header without a version", Box::new(|parts| parts.header["version"] = json!("2"))),
    ]
}

/// Whole files.
fn streams_of_bytes(sentinel: &Sentinel) -> Vec<(&'static str, u8, Vec<u8>)> {
    let parts = sentinel.parts();
    let (whole, tar) = (parts.zstd(), parts.tar());
    let with = |change: &dyn Fn(&mut Parts)| {
        let mut parts = parts.clone();
        change(&mut parts);
        parts
    };
    // 3.4 GB of spaces, as in the first page of format 1, with and without a version before them.
    let huge = 3_400_000_000;
    let start = |size: u64, text: &str| {
        let header =
            Raw::file(b"memcheck-archive.json", 0o644, b"").change(|header| header.set_size(size));
        [header.header.as_bytes(), text.as_bytes()].concat()
    };
    let claimed = with(&|parts| {
        parts.claimed[1] = Some(huge);
        parts.header["page"] = json!(huge);
    });
    let large = with(&|parts| parts.add("workspace/large", false, b""));
    let large = with(&|parts| {
        *parts = large.clone();
        parts.set("/files/3/bytes", json!(huge));
        let file = parts.files.pop().unwrap();
        parts.files.push(file.change(|header| header.set_size(huge)));
        parts.end.clear();
    });
    let long_name = with(&|parts| {
        let name = Raw::extension(b'L', b"").change(|header| header.set_size(huge));
        parts.files = vec![name];
        parts.end.clear();
    });
    let old =
        |version: &str| start(huge, &format!("{{\"version\":{version},\"memcheck\":\"0.0.1\","));
    let version = |change: &dyn Fn(&mut Parts)| with(change).zstd();
    vec![
        ("empty file", USAGE, Vec::new()),
        ("empty frame", USAGE, compressed(b"")),
        ("tar without zstd", USAGE, tar.clone()),
        ("text", USAGE, b"no archive".to_vec()),
        ("other first entry", USAGE, compressed(&tar[1024..])),
        ("other format", USAGE, version(&|parts| parts.header["version"] = json!(3))),
        ("other version", USAGE, version(&|parts| parts.header["memcheck"] = "99.0.0".into())),
        (
            "escape sequence as the version",
            USAGE,
            version(&|parts| parts.header["memcheck"] = "\u{1b}]0;title\u{7}".into()),
        ),
        ("3.4 GB in format 1", USAGE, bomb(&old("1"), b' ', huge, 27)),
        ("3.4 GB without a version", NOT_MEASURED, bomb(&start(huge, "{"), b' ', huge, 27)),
        ("3.4 GB of nested lists", NOT_MEASURED, bomb(&start(huge, "{\"a\":"), b'[', huge, 27)),
        ("3.4 GB as the page", NOT_MEASURED, bomb(&claimed.tar(), b' ', huge, 27)),
        ("3.4 GB as a file", NOT_MEASURED, bomb(&large.tar(), 0, huge, 27)),
        ("3.4 GB as a long name", NOT_MEASURED, bomb(&long_name.tar(), b'a', huge, 27)),
        ("3.4 GB after the end", NOT_MEASURED, bomb(&tar, 0, huge, 27)),
        ("window of 2 TiB", NOT_MEASURED, bomb(&tar, 0, 1, 41)),
        ("cut off in the header", NOT_MEASURED, compressed(&tar[..700])),
        ("cut off in the page", NOT_MEASURED, compressed(&tar[..1800])),
        ("cut off in the last file", NOT_MEASURED, compressed(&tar[..tar.len() - 1536 + 2])),
        ("frame cut off", NOT_MEASURED, whole[..whole.len() - 5].to_vec()),
        ("bytes after the frame", NOT_MEASURED, [&whole[..], b"more"].concat()),
        ("second frame", NOT_MEASURED, [&whole[..], &whole[..]].concat()),
        ("zeros after the frame", NOT_MEASURED, [&whole[..], &[0; 1 << 20][..]].concat()),
    ]
}

/// Each archive with the exit code that it must have.
pub(super) fn hostile(sentinel: &Sentinel) -> Vec<(&'static str, u8, Vec<u8>)> {
    let changed = |(name, change): (&'static str, Change)| {
        let mut parts = sentinel.parts();
        change(&mut parts);
        (name, NOT_MEASURED, parts.zstd())
    };
    let mut all: Vec<_> = pages(sentinel).into_iter().map(changed).collect();
    all.extend(streams(sentinel).into_iter().map(changed));
    all.extend(streams_of_bytes(sentinel));
    all
}
