//! Validates a value against the words of JSON Schema that the schema of the stream uses. A word that
//! it does not know is an error, so that no part of the schema is left out.
//!
//! A library would switch on features of crates below candle, so that `cargo test --workspace` would
//! compile candle once more.

use serde_json::{Map, Value};

/// # Errors
/// The first difference, with its place in the value.
pub(crate) fn validate(root: &Value, value: &Value) -> Result<(), String> {
    check(root, root, value, "")
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let words = schema.as_object().ok_or("a schema is not an object")?;
    for (word, operand) in words {
        match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let path = operand.as_str().unwrap_or_default().trim_start_matches('#');
                let named = root.pointer(path).ok_or_else(|| format!("no schema {operand}"))?;
                check(root, named, value, at)?;
            }
            "type" => of_type(operand, value, at)?,
            "const" if operand == value => {}
            "enum" if operand.as_array().is_some_and(|all| all.contains(value)) => {}
            "const" | "enum" => return Err(format!("{at}: {value} is not {operand}")),
            "minimum" if value.as_f64() >= operand.as_f64() => {}
            "maximum" if value.as_f64() <= operand.as_f64() => {}
            "minimum" | "maximum" => return Err(format!("{at}: {value} is beyond {operand}")),
            "oneOf" => one_of(root, operand, value, at)?,
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, operand, item, &format!("{at}/{number}"))?;
                }
            }
            "required" => {
                let mut names = operand.as_array().into_iter().flatten().filter_map(Value::as_str);
                if let Some(name) = names.find(|name| value.get(name).is_none()) {
                    return Err(format!("{at}: `{name}` is missing"));
                }
            }
            "properties" => {
                for (name, property) in operand.as_object().into_iter().flatten() {
                    if let Some(field) = value.get(name) {
                        check(root, property, field, &format!("{at}/{name}"))?;
                    }
                }
            }
            "additionalProperties" => further(root, words, value, at)?,
            other => return Err(format!("the word `{other}` is not known")),
        }
    }
    Ok(())
}

fn of_type(name: &Value, value: &Value, at: &str) -> Result<(), String> {
    let is_one = match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => return Err(format!("the type {name} is not known")),
    };
    if is_one { Ok(()) } else { Err(format!("{at}: {value} is not of type {name}")) }
}

fn one_of(root: &Value, options: &Value, value: &Value, at: &str) -> Result<(), String> {
    let options = options.as_array().into_iter().flatten();
    let checked: Vec<Result<(), String>> =
        options.map(|option| check(root, option, value, at)).collect();
    match checked.iter().filter(|it| it.is_ok()).count() {
        1 => Ok(()),
        0 => {
            let why: Vec<String> = checked.into_iter().filter_map(Result::err).collect();
            Err(format!("{at}: no option fits: {}", why.join("; ")))
        }
        more => Err(format!("{at}: {more} options fit")),
    }
}

/// The fields that `properties` does not name.
fn further(
    root: &Value,
    words: &Map<String, Value>,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let is_known = |name: &str| words.get("properties").is_some_and(|it| it.get(name).is_some());
    let fields = value.as_object().into_iter().flatten();
    for (name, field) in fields.filter(|(name, _)| !is_known(name)) {
        match &words["additionalProperties"] {
            Value::Bool(true) => {}
            Value::Bool(false) => return Err(format!("{at}: `{name}` is not in the schema")),
            schema => check(root, schema, field, &format!("{at}/{name}"))?,
        }
    }
    Ok(())
}

/// The same schema, in which an object must not have fields that it does not name.
pub(crate) fn closed(mut schema: Value) -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(map) => {
                let is_object = map.get("type").is_some_and(|name| name == "object");
                if is_object && map.get("properties").is_some_and(Value::is_object) {
                    map.insert("additionalProperties".to_owned(), false.into());
                }
                map.values_mut().for_each(close);
            }
            Value::Array(values) => values.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_word_refuses_a_value_that_does_not_fit() {
        for (schema, good, bad) in [
            (json!({"type": "integer", "minimum": 0}), json!(0), json!(-1)),
            (json!({"type": "integer", "maximum": 255}), json!(255), json!(256)),
            (json!({"type": "integer"}), json!(1), json!(1.5)),
            (json!({"type": "string"}), json!("a"), json!(1)),
            (json!({"type": "boolean"}), json!(true), json!("true")),
            (json!({"type": "number"}), json!(1.5), json!(null)),
            (json!({"const": 1}), json!(1), json!(2)),
            (json!({"enum": ["a", "b"]}), json!("b"), json!("c")),
            (json!({"type": "array", "items": {"type": "string"}}), json!(["a"]), json!(["a", 1])),
            (json!({"required": ["a"]}), json!({"a": 1}), json!({"b": 1})),
            (json!({"properties": {"a": {"const": 1}}}), json!({"b": 2}), json!({"a": 2})),
            (json!({"additionalProperties": {"const": 1}}), json!({"a": 1}), json!({"a": 2})),
            (json!({"oneOf": [{"const": 1}, {"type": "string"}]}), json!("a"), json!(2)),
            (json!({"oneOf": [{"type": "number"}, {"const": 1}]}), json!(2), json!(1)),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}), json!(1), json!(2)),
        ] {
            assert_eq!(validate(&schema, &good), Ok(()), "{schema}");
            assert!(validate(&schema, &bad).is_err(), "{schema}");
        }
        assert!(validate(&json!({"$ref": "#/$defs/no"}), &json!(1)).is_err());
        assert!(validate(&json!({"pattern": "a"}), &json!("a")).is_err());
        assert!(validate(&json!({"type": "null"}), &json!(null)).is_err());
    }

    #[test]
    fn a_closed_schema_refuses_further_fields() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let value = json!({"a": "a", "b": 1});
        assert_eq!(validate(&schema, &value), Ok(()));
        assert!(
            validate(&closed(schema), &value).unwrap_err().contains("`b` is not in the schema")
        );
    }
}
