//! Real streams fit the schema that `cargo memcheck schema` prints, and have no other field.

use memcheck_tests::scenarios::Leg;
use serde_json::{Value, json};

use crate::controls;
use crate::fixture::{Project, Run, memcheck, workspace};

/// The schema, in which objects must not have further fields.
fn closed() -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if map.get("properties").is_some_and(Value::is_object)
                    && map.get("type") == Some(&json!("object"))
                {
                    map.insert("additionalProperties".to_owned(), json!(false));
                }
                map.values_mut().for_each(close);
            }
            Value::Array(values) => values.iter_mut().for_each(close),
            _ => {}
        }
    }
    let printed = memcheck(&workspace(), &["schema"]).exits(0).stdout;
    let mut schema: Value = serde_json::from_str(&printed).expect("the schema is JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    close(&mut schema);
    schema
}

fn assert_fits(run: &Run) {
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("stream.json", closed()).expect("the schema is JSON");
    let mut schemas = boon::Schemas::new();
    let schema = compiler.compile("stream.json", &mut schemas).expect("the schema is valid");
    for line in run.json() {
        schemas.validate(&line, schema).unwrap_or_else(|why| panic!("{why:#}\n{line}"));
    }
}

#[test]
fn the_stream_of_a_suite_fits_the_schema_on_each_device() {
    for leg in [Leg::Host, Leg::Device] {
        let run = controls::on(leg);
        assert!(run.json().len() > 20);
        assert_fits(run);
    }
}

#[test]
fn the_stream_of_a_failed_run_fits_the_schema() {
    let project = Project::new("");
    let none = project.run(&[]).exits(4);
    assert_fits(&none);
    project.write("tests/mem.rs", "not rust");
    assert_fits(&project.run(&[]).exits(101));
}
