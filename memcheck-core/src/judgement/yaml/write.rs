//! Writes the YAML of a snapshot as insta does.

use std::fmt::Write;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::read::plain;
use crate::characters::is_special;

/// Block style, as insta writes it, without the last line end. The fields keep their order.
pub(in crate::judgement) fn write(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("a map of strings and numbers is JSON");
    let node: YamlNode = serde_json::from_str(&json).expect("JSON that was just written is valid");
    let mut text = String::new();
    block(&node, 0, &mut text);
    text.trim_start_matches('\n').to_owned()
}

/// JSON whose objects keep the order of their fields.
enum YamlNode {
    Scalar(Value),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Nodes;
        impl<'de> Visitor<'de> for Nodes {
            type Value = YamlNode;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = list.next_element()? {
                    nodes.push(node);
                }
                Ok(YamlNode::List(nodes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(YamlNode::Map(entries))
            }
        }
        deserializer.deserialize_any(Nodes)
    }
}

fn block(node: &YamlNode, indent: usize, text: &mut String) {
    match node {
        YamlNode::Scalar(value) => text.push_str(&scalar(value)),
        YamlNode::List(nodes) if nodes.is_empty() => text.push_str("[]"),
        YamlNode::Map(entries) if entries.is_empty() => text.push_str("{}"),
        YamlNode::List(nodes) => {
            for node in nodes {
                let _ = write!(text, "\n{:indent$}-{}", "", gap(node));
                block(node, indent + 2, text);
            }
        }
        YamlNode::Map(entries) => {
            for (key, node) in entries {
                let _ = write!(text, "\n{:indent$}{}:{}", "", string(key), gap(node));
                block(node, indent + 2, text);
            }
        }
    }
}

/// Nothing if the value begins on the next line.
fn gap(node: &YamlNode) -> &'static str {
    match node {
        YamlNode::List(nodes) if !nodes.is_empty() => "",
        YamlNode::Map(entries) if !entries.is_empty() => "",
        _ => " ",
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        value => value.to_string(),
    }
}

fn string(text: &str) -> String {
    if text.chars().any(is_special) {
        return quoted(text);
    }
    let is_plain = plain(text).is_string()
        && !text.starts_with(|c: char| c == ' ' || "-?:,[]{}#&*!|>'\"%@`.=<".contains(c))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #");
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn quoted(text: &str) -> String {
    let mut line = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if !is_special(c) => line.push(c),
            // All of them have at most four digits.
            c => drop(write!(line, "\\u{:04x}", u32::from(c))),
        }
    }
    line + "\""
}
