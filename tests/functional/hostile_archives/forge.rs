//! Makes archives that the command would never write: the header, the page, each tar entry and the
//! zstd stream can be changed apart from each other.

use std::collections::BTreeMap;

use memcheck_core::device::Need;
use memcheck_core::limits::Layer;
use memcheck_core::wire::protocol::{Entry, VERSION};
use serde_json::{Value, json};

/// The format that the command reads.
const FORMAT: u32 = 2;
/// A block of tar.
const BLOCK: usize = 512;

/// An entry of the tar stream.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) header: tar::Header,
    pub(super) data: Vec<u8>,
}

impl Raw {
    pub(super) fn file(name: &[u8], mode: u32, data: &[u8]) -> Self {
        let header = tar::Header::new_gnu();
        Self { header, data: data.to_owned() }.change(|header| {
            header.set_size(data.len() as u64);
            header.set_mode(mode);
            header.set_entry_type(tar::EntryType::Regular);
            header.as_old_mut().name[..name.len()].copy_from_slice(name);
        })
    }

    /// An entry without data that refers to `link`.
    pub(super) fn special(name: &str, kind: tar::EntryType, link: &str) -> Self {
        Self::file(name.as_bytes(), 0o644, b"").change(|header| {
            header.set_entry_type(kind);
            header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        })
    }

    /// An extension for the entry that follows: a long name, or a line of pax.
    pub(super) fn extension(kind: u8, data: &[u8]) -> Self {
        Self::file(b"././@LongLink", 0o644, data)
            .change(|header| header.set_entry_type(tar::EntryType::new(kind)))
    }

    pub(super) fn change(mut self, change: impl FnOnce(&mut tar::Header)) -> Self {
        change(&mut self.header);
        self.header.set_cksum();
        self
    }
}

/// The line of a pax extension, which begins with its own length.
pub(super) fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (1..).find(|length| *length == length.to_string().len() + rest.len());
    format!("{}{rest}", length.unwrap()).into_bytes()
}

/// The parts of an archive. It is valid until one of them is changed.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) header: Value,
    /// Its `metadata` is a string in the archive.
    pub(super) page: Value,
    pub(super) files: Vec<Raw>,
    /// The two blocks of zeros at the end, and all that follows them.
    pub(super) end: Vec<u8>,
    /// Sizes of header and page, if they are not those of their texts.
    pub(super) claimed: [Option<u64>; 2],
}

impl Parts {
    /// The archive has one executable, a shell script with one test.
    pub(super) fn new(script: &str) -> Self {
        let table = json!({"memcheck": VERSION, "executables": [[entry()]]}).to_string();
        let package = json!({
            "name": "app", "version": "1.0.0", "id": "app", "targets": [], "features": {},
            "manifest_path": "/build/app/Cargo.toml",
            "dependencies": [{
                "name": "memcheck-runtime", "source": null, "req": "*", "kind": "dev", "optional": false,
                "uses_default_features": true, "features": [], "target": null, "rename": null,
            }],
        });
        let mut parts = Self {
            header: json!({
                "version": FORMAT, "memcheck": env!("CARGO_PKG_VERSION"), "id": "1", "page": null,
            }),
            page: json!({
                "target": format!("{}-linux", std::env::consts::ARCH), "commit": null,
                "profile": "dev", "features": [], "devices": ["cpu"], "names_targets": false,
                "packages": ["app"], "baselines": {},
                "metadata": {
                    "packages": [package], "workspace_members": ["app"], "resolve": null,
                    "version": 1, "workspace_root": "/build/app",
                    "target_directory": "/build/app/target",
                },
                "builds": [{
                    "kind": "Cpu", "not_built": [], "nvml": null, "tests": "tests/cpu.json",
                    "executables": [{
                        "id": "app::mem", "package": "app", "file": "cpu/mem", "tests": 1,
                        "environment": [], "out_dir": null,
                    }],
                }],
                "files": [],
            }),
            files: Vec::new(),
            end: vec![0; 2 * BLOCK],
            claimed: [None; 2],
        };
        parts.add("tests/cpu.json", false, table.as_bytes());
        parts.add("cpu/mem", true, script.as_bytes());
        parts.add("workspace/data", false, b"data");
        parts
    }

    /// Adds a file to the page and to the tar stream.
    pub(super) fn add(&mut self, name: &str, executable: bool, data: &[u8]) {
        let mode = if executable { 0o755 } else { 0o644 };
        self.files.push(Raw::file(name.as_bytes(), mode, data));
        let bytes = data.len();
        let file = json!({"name": name, "bytes": bytes, "executable": executable});
        self.page["files"].as_array_mut().unwrap().push(file);
    }

    /// Gives the last file another name, in the page and in the tar stream.
    pub(super) fn rename(&mut self, name: &str) {
        self.files.pop();
        self.page["files"].as_array_mut().unwrap().pop();
        match name.len() > 100 {
            false => self.add(name, false, b"data"),
            true => {
                let long = [name.as_bytes(), b"\0"].concat();
                self.files.push(Raw::extension(b'L', &long));
                self.add("cut", false, b"data");
                self.page["files"].as_array_mut().unwrap().last_mut().unwrap()["name"] =
                    name.into();
                let file = self.files.pop().unwrap().change(|header| {
                    header.as_old_mut().name.copy_from_slice(&name.as_bytes()[..100]);
                });
                self.files.push(file);
            }
        }
    }

    pub(super) fn set(&mut self, pointer: &str, value: Value) {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match self.page.pointer_mut(parent).expect("the page has it") {
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
            object => object[key] = value,
        }
    }

    pub(super) fn tar(&self) -> Vec<u8> {
        let mut page = self.page.clone();
        page["metadata"] = Value::String(page["metadata"].to_string());
        let page = page.to_string();
        let mut header = self.header.clone();
        if header["page"].is_null() {
            header["page"] = page.len().into();
        }
        let header = header.to_string();
        let mut bytes = Vec::new();
        let names = [("memcheck-archive.json", header), ("memcheck-contents.json", page)];
        for ((name, text), claimed) in names.iter().zip(self.claimed) {
            let raw = Raw::file(name.as_bytes(), 0o644, text.as_bytes());
            let size = claimed.unwrap_or(text.len() as u64);
            append(&mut bytes, &raw.change(|header| header.set_size(size)));
        }
        self.files.iter().for_each(|raw| append(&mut bytes, raw));
        bytes.extend(&self.end);
        bytes
    }

    pub(super) fn zstd(&self) -> Vec<u8> {
        compressed(&self.tar())
    }
}

pub(super) fn compressed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory suffices")
}

fn append(bytes: &mut Vec<u8>, raw: &Raw) {
    bytes.extend(raw.header.as_bytes());
    bytes.extend(&raw.data);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
}

/// A frame of zstd that begins with `start` and repeats `byte` after it, 128 KiB in each block of
/// four bytes.
pub(super) fn bomb(start: &[u8], byte: u8, bytes: u64, window_log: u8) -> Vec<u8> {
    const LARGEST: usize = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
    let mut block = |last: bool, kind: u32, size: usize, data: &[u8]| {
        let header = u32::from(last) | kind << 1 | (size as u32) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(data);
    };
    start.chunks(LARGEST).for_each(|chunk| block(false, 0, chunk.len(), chunk));
    let blocks = bytes.div_ceil(LARGEST as u64);
    (1..=blocks).for_each(|number| block(number == blocks, 1, LARGEST, &[byte]));
    frame
}

/// The test of the executable.
pub(super) fn entry() -> Entry {
    Entry {
        name: "forged".to_owned(),
        module: "mem".to_owned(),
        case: BTreeMap::new(),
        file: "tests/mem.rs".into(),
        line: 3,
        ignored: false,
        need: Need::Any,
        deviceless: false,
        attribute: Layer::default(),
        scaling: Vec::new(),
        manifest_dir: "/build/app".into(),
        snapshot: "mem__forged".to_owned(),
    }
}
