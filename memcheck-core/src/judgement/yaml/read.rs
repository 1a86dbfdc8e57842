//! Reads the YAML of a snapshot from the events of a parser, with limits of length and depth.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// A snapshot has at most twelve holders for each space, so that even a large one has some
/// kilobytes.
pub(in crate::judgement) const MAX_BYTES: usize = 1 << 20;

/// The deepest snapshot has four levels.
const MAX_DEPTH: usize = 16;

/// The error is a sentence fragment.
pub(in crate::judgement) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, but at most {MAX_BYTES} are read", text.len()));
    }
    let value = Reader { events: Parser::new_from_str(text) }.document()?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line(), error.info())),
            None => Err("it ends early".to_owned()),
        }
    }

    fn document(&mut self) -> Result<Value, String> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Err("it is empty".to_owned()),
                (event, span) => {
                    let value = self.value(event, span, 0)?;
                    self.end()?;
                    return Ok(value);
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, span) => return Err(at(span, "it has a second document")),
            }
        }
    }

    /// The recursion ends at [`MAX_DEPTH`].
    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(at(span, "it is nested too deeply"));
        }
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag),
            Event::Alias(anchor) => (*anchor, &None),
            _ => return Err(at(span, "a value is missing")),
        };
        if anchor != 0 {
            return Err(at(span, "it has an anchor or an alias, which snapshots do not have"));
        }
        if tag.is_some() {
            return Err(at(span, "it has a tag, which snapshots do not have"));
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => Ok(plain(&text)),
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => self.list(depth),
            _ => self.map(depth),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(list)),
                (event, span) => list.push(self.value(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        loop {
            let (key, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(map)),
                (Event::Scalar(key, _, 0, None), span) => (key.into_owned(), span),
                (_, span) => return Err(at(span, "a key is not text")),
            };
            if map.contains_key(&key) {
                return Err(at(span, &format!("the key `{key}` occurs twice")));
            }
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth + 1)?;
            map.insert(key, value);
        }
    }
}

fn at(span: Span, problem: &str) -> String {
    format!("line {}: {problem}", span.start.line())
}

/// The core schema of YAML 1.2, without octal and hexadecimal numbers.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let string = || Value::String(text.to_owned());
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return string();
    }
    // `010` is octal for some readers.
    let is_ambiguous = digits.len() > 1
        && digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_ambiguous {
        return string();
    }
    if let Ok(number) = text.parse::<u64>() {
        return Value::Number(number.into());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::Number(number.into());
    }
    match text.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => string(),
    }
}
