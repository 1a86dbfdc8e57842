//! The messages of pprof's `profile.proto`, as far as a profile of memory has them. Numbers of
//! fields are those of <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use micropb::{PbEncoder, Tag, WIRE_TYPE_LEN, WIRE_TYPE_VARINT};

/// Bytes of one message.
pub(super) struct Message(PbEncoder<Vec<u8>>);

impl Message {
    pub(super) fn new() -> Self {
        Self(PbEncoder::new(Vec::new()))
    }

    /// An integer of any type of `profile.proto`: all of them have the same encoding up to `i64::MAX`.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        let Self(encoder) = &mut self;
        let Ok(()) = encoder.encode_tag(Tag::from_parts(field, WIRE_TYPE_VARINT));
        let Ok(()) = encoder.encode_varint64(value);
        self
    }

    pub(super) fn numbers(self, field: u32, values: impl IntoIterator<Item = u64>) -> Self {
        values.into_iter().fold(self, |message, value| message.number(field, value))
    }

    pub(super) fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        let Self(encoder) = &mut self;
        let Ok(()) = encoder.encode_tag(Tag::from_parts(field, WIRE_TYPE_LEN));
        let Ok(()) = encoder.encode_bytes(bytes);
        self
    }

    pub(super) fn message(self, field: u32, message: Self) -> Self {
        self.bytes(field, &message.finish())
    }

    pub(super) fn messages(self, field: u32, messages: impl IntoIterator<Item = Self>) -> Self {
        messages.into_iter().fold(self, |outer, message| outer.message(field, message))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0.into_writer()
    }
}

/// Fields of `Profile`.
pub(super) mod profile {
    pub(in super::super) const SAMPLE_TYPE: u32 = 1;
    pub(in super::super) const SAMPLE: u32 = 2;
    pub(in super::super) const LOCATION: u32 = 4;
    pub(in super::super) const FUNCTION: u32 = 5;
    pub(in super::super) const STRING_TABLE: u32 = 6;
    pub(in super::super) const PERIOD_TYPE: u32 = 11;
    pub(in super::super) const PERIOD: u32 = 12;
    pub(in super::super) const COMMENT: u32 = 13;
    pub(in super::super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Both are indices of the table of strings.
pub(super) fn value_type(name: u64, unit: u64) -> Message {
    Message::new().number(1, name).number(2, unit)
}

/// The innermost location comes first.
pub(super) fn sample(locations: Vec<u64>, values: [u64; 4], labels: Vec<(u64, u64)>) -> Message {
    let labels =
        labels.into_iter().map(|(key, text)| Message::new().number(1, key).number(2, text));
    Message::new().numbers(1, locations).numbers(2, values).messages(3, labels)
}

pub(super) fn location(id: u64, function: u64, line: u64) -> Message {
    let line = Message::new().number(1, function).number(2, line);
    Message::new().number(1, id).message(4, line)
}

pub(super) fn function(id: u64, name: u64, file: u64) -> Message {
    Message::new().number(1, id).number(2, name).number(3, name).number(4, file)
}
