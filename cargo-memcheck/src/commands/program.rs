//! The task that `profile` and `bench` make of a program.

use std::collections::BTreeMap;
use std::path::Path;

use memcheck_core::device::Need;
use memcheck_core::limits::Layer;
use memcheck_core::request::config;
use memcheck_core::wire::protocol::Entry;

use crate::binary::Binary;
use crate::build::Program;
use crate::devices::Leg;
use crate::session::Session;
use crate::task::Task;
use crate::workspace::TestPackage;

/// Returns a task with a program in the place of a test, so that runners and presenters can treat both alike.
pub(super) fn task(
    session: &Session,
    package: &TestPackage,
    program: &Program,
    file: &Path,
    leg: &Leg,
    binary: &Binary,
) -> Task {
    let options = &session.options;
    let subject =
        config::Subject { package: package.name(), test: &program.name, family: leg.family() };
    let config = &options.configuration.config;
    Task {
        package: package.name().to_owned(),
        folder: package.folder().to_owned(),
        candle: package.candle.clone().unwrap_or_else(|| "none".to_owned()),
        binary: binary.clone(),
        entry: Entry {
            name: program.name.clone(),
            module: program.name.clone(),
            case: BTreeMap::new(),
            file: file.to_owned(),
            line: 1,
            ignored: false,
            need: Need::Any,
            deviceless: false,
            attribute: Layer::default(),
            scaling: Vec::new(),
            manifest_dir: package.folder().to_owned(),
            snapshot: String::new(),
        },
        leg: leg.clone(),
        limits: config.program_limits(subject, &options.environment, &options.flags),
    }
}
