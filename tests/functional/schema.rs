//! Real streams fit the schema that `cargo memcheck schema` prints, and have no other field.

#[path = "../../cargo-memcheck/src/presentation/schema/validator.rs"]
mod validator;

use memcheck_tests::scenarios::Family;
use serde_json::Value;

use crate::controls;
use crate::fixture::{Project, Run, memcheck, workspace};
use validator::{closed, validate};

fn assert_fits(run: &Run) {
    let printed = memcheck(&workspace(), &["schema"]).exits(0).stdout;
    let schema: Value = serde_json::from_str(&printed).expect("the schema is JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let schema = closed(schema);
    for line in run.json() {
        validate(&schema, &line).unwrap_or_else(|why| panic!("{why}\n{line}"));
    }
}

#[test]
fn the_stream_of_a_suite_fits_the_schema_on_each_device() {
    for leg in [Family::Cpu, Family::Cuda] {
        let run = controls::on(leg);
        assert!(run.json().len() > 5);
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
