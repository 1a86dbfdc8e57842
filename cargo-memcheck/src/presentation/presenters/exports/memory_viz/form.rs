//! The two forms of a snapshot. A value that occurs often, such as a call stack, is written once in
//! a pickle; JSON has no references and repeats it. serde-pickle has no references either, so that
//! its file of 50,000 blocks would have as many call stacks.

use std::collections::HashMap;

use crate::presentation::presenters::json;

/// Writes lists and dictionaries. Before each element of a list comes `item`, and before each value
/// of a dictionary `key`.
pub(in crate::presentation::presenters) trait SnapshotForm:
    Default
{
    fn number(&mut self, value: u64);
    fn text(&mut self, text: &str);
    fn open_list(&mut self);
    fn item(&mut self);
    fn close_list(&mut self);
    fn open_dict(&mut self);
    fn key(&mut self, key: &str);
    fn close_dict(&mut self);
    /// The value with this number. `write` writes the value if the form needs it again.
    fn shared(&mut self, number: usize, write: impl FnOnce(&mut Self));
    fn finish(self) -> Vec<u8>;
}

#[derive(Debug, Default)]
pub(in crate::presentation::presenters) struct Json {
    text: String,
    /// True for each open list or dictionary that has an element.
    open: Vec<bool>,
}

impl Json {
    fn next(&mut self) {
        let has_element = self.open.last_mut().expect("a list or a dictionary is open");
        if std::mem::replace(has_element, true) {
            self.text.push(',');
        }
    }
}

impl SnapshotForm for Json {
    fn number(&mut self, value: u64) {
        self.text.push_str(&value.to_string());
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(&json::text(&text));
    }

    fn open_list(&mut self) {
        self.text.push('[');
        self.open.push(false);
    }

    fn item(&mut self) {
        self.next();
    }

    fn close_list(&mut self) {
        self.text.push(']');
        self.open.pop();
    }

    fn open_dict(&mut self) {
        self.text.push('{');
        self.open.push(false);
    }

    fn key(&mut self, key: &str) {
        self.next();
        self.text(key);
        self.text.push(':');
    }

    fn close_dict(&mut self) {
        self.text.push('}');
        self.open.pop();
    }

    fn shared(&mut self, _number: usize, write: impl FnOnce(&mut Self)) {
        write(self);
    }

    fn finish(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

/// Python's pickle, protocol 2, with the operations that MemoryViz.js reads.
#[derive(Debug)]
pub(in crate::presentation::presenters) struct Pickle {
    bytes: Vec<u8>,
    /// The elements of each open list since its last mark.
    open: Vec<usize>,
    texts: HashMap<String, u32>,
    shared: HashMap<usize, u32>,
    memorized: u32,
}

/// Python's own writer appends as many elements at once. A viewer keeps them on a stack.
const BATCH: usize = 1_000;

mod operation {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const STOP: u8 = b'.';
    pub(super) const MARK: u8 = b'(';
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const LONG_BINPUT: u8 = b'r';
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
}

impl Default for Pickle {
    fn default() -> Self {
        Self {
            bytes: vec![operation::PROTO, 2],
            open: Vec::new(),
            texts: HashMap::new(),
            shared: HashMap::new(),
            memorized: 0,
        }
    }
}

impl Pickle {
    /// Numbers the value that was written last.
    fn memorize(&mut self) -> u32 {
        let number = self.memorized;
        self.memorized += 1;
        self.bytes.push(operation::LONG_BINPUT);
        self.bytes.extend(number.to_le_bytes());
        number
    }

    fn recall(&mut self, number: u32) {
        match u8::try_from(number) {
            Ok(short) => self.bytes.extend([operation::BINGET, short]),
            Err(_) => {
                self.bytes.push(operation::LONG_BINGET);
                self.bytes.extend(number.to_le_bytes());
            }
        }
    }
}

impl SnapshotForm for Pickle {
    fn number(&mut self, value: u64) {
        if let Ok(short) = u8::try_from(value) {
            self.bytes.extend([operation::BININT1, short]);
        } else if let Ok(short) = u16::try_from(value) {
            self.bytes.push(operation::BININT2);
            self.bytes.extend(short.to_le_bytes());
        } else {
            // The number has a sign, so that its highest bit must be 0.
            let bytes = value.to_le_bytes();
            let used = 8 - value.leading_zeros() as usize / 8;
            let needs_sign = value.leading_zeros().is_multiple_of(8);
            self.bytes.extend([operation::LONG1, (used + usize::from(needs_sign)) as u8]);
            self.bytes.extend(&bytes[..used]);
            self.bytes.extend(needs_sign.then_some(0));
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(&number) = self.texts.get(text) {
            return self.recall(number);
        }
        self.bytes.push(operation::BINUNICODE);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
        let number = self.memorize();
        self.texts.insert(text.to_owned(), number);
    }

    fn open_list(&mut self) {
        self.bytes.extend([operation::EMPTY_LIST, operation::MARK]);
        self.open.push(0);
    }

    fn item(&mut self) {
        let elements = self.open.last_mut().expect("a list is open");
        if *elements == BATCH {
            *elements = 0;
            self.bytes.extend([operation::APPENDS, operation::MARK]);
        }
        *elements += 1;
    }

    fn close_list(&mut self) {
        self.bytes.push(operation::APPENDS);
        self.open.pop();
    }

    fn open_dict(&mut self) {
        self.bytes.extend([operation::EMPTY_DICT, operation::MARK]);
    }

    fn key(&mut self, key: &str) {
        self.text(key);
    }

    fn close_dict(&mut self) {
        self.bytes.push(operation::SETITEMS);
    }

    fn shared(&mut self, number: usize, write: impl FnOnce(&mut Self)) {
        if let Some(&known) = self.shared.get(&number) {
            return self.recall(known);
        }
        write(self);
        let known = self.memorize();
        self.shared.insert(number, known);
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(operation::STOP);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document<F: SnapshotForm>() -> Vec<u8> {
        let mut form = F::default();
        form.open_dict();
        form.key("numbers");
        form.open_list();
        for value in [0, 255, 256, 65_535, 65_536, 1 << 31, (1 << 40) - 1, u64::MAX >> 1, u64::MAX]
        {
            form.item();
            form.number(value);
        }
        form.close_list();
        form.key("texts");
        form.open_list();
        for text in ["a", "a", "ü\u{1b}\"", ""] {
            form.item();
            form.text(text);
        }
        form.close_list();
        form.key("shared");
        form.open_list();
        for number in [0, 1, 0, 1] {
            form.item();
            form.shared(number, |form| {
                form.open_dict();
                form.key("a");
                form.number(number as u64);
                form.close_dict();
            });
        }
        form.close_list();
        form.close_dict();
        form.finish()
    }

    #[test]
    fn python_reads_the_same_values_from_both_forms() {
        let json: serde_json::Value = serde_json::from_slice(&document::<Json>()).unwrap();
        assert_eq!(json["numbers"][8], u64::MAX);
        assert_eq!(json["texts"][2], "ü\u{1b}\"");
        assert_eq!(json["shared"][3]["a"], 1);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pickle");
        std::fs::write(&file, document::<Pickle>()).unwrap();
        let script =
            "import json, pickle, sys; print(json.dumps(pickle.load(open(sys.argv[1], 'rb'))))";
        let python = std::process::Command::new("python3").args(["-c", script]).arg(&file).output();
        let Ok(python) = python else {
            eprintln!("skipped: this machine has no python3");
            return;
        };
        let error = String::from_utf8_lossy(&python.stderr);
        let read: serde_json::Value = serde_json::from_slice(&python.stdout).expect(&error);
        assert_eq!(read, json);
    }
}
