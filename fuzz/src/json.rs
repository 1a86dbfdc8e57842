//! Mutations of JSON documents. Random bytes rarely are a document, and then they do not get beyond
//! the parser.

use serde_json::{Map, Value};

/// Numbers at the edges of their types.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "4294967295",
    "4294967296",
    "1152921504606846976",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "0.5",
    "1e308",
    "-1e308",
];

const STRINGS: [&str; 8] =
    ["", ".", "a.b", "host", "cuda:0", "\u{1b}]0;x\u{7}", "::error::x\r\n</pre>`|;", "🦀\u{fffe}"];

/// The mutated document; `None` if the input is not JSON. Of lines of JSON, one is mutated.
pub(crate) fn mutated(input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(input).ok()?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return None;
    }
    let number = random.below(lines.len());
    match random.below(12) {
        0 => lines.insert(number, lines[number].clone()),
        1 if lines.len() > 1 => drop(lines.remove(number)),
        _ => {
            let mut value: Value = serde_json::from_str(&lines[number]).ok()?;
            for _ in 0..=random.below(4) {
                mutate(&mut value, random);
            }
            lines[number] = value.to_string();
        }
    }
    let mut text = lines.join("\n");
    if input.ends_with(b"\n") {
        text.push('\n');
    }
    Some(text.into_bytes())
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

fn nth<'v>(value: &'v mut Value, number: &mut usize) -> Option<&'v mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, number)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, number)),
        _ => None,
    }
}

fn mutate(root: &mut Value, random: &mut Random) {
    let other = {
        let mut number = random.below(count(root));
        nth(root, &mut number).map(|value| value.clone()).unwrap_or_default()
    };
    let mut number = random.below(count(root));
    let Some(value) = nth(root, &mut number) else { return };
    match (random.below(8), &mut *value) {
        (0, _) => *value = other,
        (1, _) => *value = scalar(random),
        (_, Value::Object(fields)) => mutate_object(fields, random),
        (_, Value::Array(items)) => mutate_array(items, random),
        (2, _) => {
            for _ in 0..random.below(200) {
                *value = Value::Array(vec![value.take()]);
            }
        }
        (3, Value::Number(number)) => {
            let now = number.as_u64().unwrap_or(0);
            *value = Value::from(now.wrapping_add(random.next() % 5).wrapping_sub(2));
        }
        (_, Value::Number(_)) => *value = edge(random),
        (_, Value::String(text)) => mutate_text(text, random),
        _ => *value = scalar(random),
    }
}

fn mutate_object(fields: &mut Map<String, Value>, random: &mut Random) {
    let Some(name) = fields.keys().nth(random.below(fields.len().max(1))).cloned() else { return };
    match random.below(3) {
        0 => drop(fields.remove(&name)),
        1 => {
            let value = fields.remove(&name).unwrap_or_default();
            let mut name = name;
            mutate_text(&mut name, random);
            fields.insert(name, value);
        }
        _ => {
            let mut copy = name.clone();
            mutate_text(&mut copy, random);
            let value = fields.get(&name).cloned().unwrap_or_default();
            fields.insert(copy, value);
        }
    }
}

fn mutate_array(items: &mut Vec<Value>, random: &mut Random) {
    let number = random.below(items.len().max(1));
    match random.below(6) {
        0 => items.clear(),
        1 => items.truncate(number),
        2 if !items.is_empty() => drop(items.remove(number)),
        3 => items.reverse(),
        4 if !items.is_empty() => {
            let item = items[number].clone();
            items.extend(std::iter::repeat_n(item, random.below(40)));
        }
        _ => {
            let item = items.get(number).cloned().unwrap_or_else(|| scalar(random));
            items.push(item);
        }
    }
}

fn mutate_text(text: &mut String, random: &mut Random) {
    match random.below(5) {
        0 => STRINGS[random.below(STRINGS.len())].clone_into(text),
        1 => text.push_str(STRINGS[random.below(STRINGS.len())]),
        2 => drop(text.pop()),
        3 => *text = text.replace("host", "cuda:0"),
        _ => *text = text.repeat(1 + random.below(20)),
    }
}

fn edge(random: &mut Random) -> Value {
    serde_json::from_str(NUMBERS[random.below(NUMBERS.len())]).unwrap_or_default()
}

fn scalar(random: &mut Random) -> Value {
    match random.below(5) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::String(STRINGS[random.below(STRINGS.len())].to_owned()),
        3 => Value::Array(Vec::new()),
        _ => edge(random),
    }
}

/// xorshift64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 1 | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
