//! Marks of a span in its fields: the `index` of a layer, or `replicated` if the tensors that are
//! made in it are copied to every device.

use tracing::field::{Field, Visit};
use tracing::span::Attributes;

/// A mark that distinguishes scopes of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum SpanMark {
    /// No mark.
    #[default]
    None,
    /// `info_span!("layer", index = 3)`: the scope `layer.3`.
    Index(u32),
    /// `info_span!("rotary", replicated = true)`.
    Replicated,
}

impl SpanMark {
    /// The mark of a new span. PERF: most spans have no fields, and then no values are read.
    pub(super) fn of(span: &Attributes<'_>) -> Self {
        let fields = span.metadata().fields();
        if fields.is_empty() || (fields.field(INDEX).is_none() && fields.field(COPIES).is_none()) {
            return Self::None;
        }
        let mut mark = Self::None;
        span.record(&mut Reader(&mut mark));
        mark
    }

    /// The mark as a number; 0 is [`Self::None`].
    pub(super) fn number(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Replicated => 1,
            Self::Index(index) => index.saturating_add(2),
        }
    }

    /// The mark with this number.
    pub(super) fn from_number(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Replicated,
            index => Self::Index(index - 2),
        }
    }
}

const INDEX: &str = "index";
const COPIES: &str = "replicated";

struct Reader<'a>(&'a mut SpanMark);

impl Visit for Reader<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if let (INDEX, Ok(index)) = (field.name(), u32::try_from(value)) {
            *self.0 = SpanMark::Index(index);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.record_u64(field, value);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == COPIES && value {
            *self.0 = SpanMark::Replicated;
        }
    }

    // Does not format the value, because that would allocate.
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
