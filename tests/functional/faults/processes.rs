//! The processes of a command, also those that have left its group and session: they inherit a
//! variable.

use std::fs;

pub(super) const VARIABLE: &str = "FAULTS_RUN";

pub(super) struct Process {
    pub(super) id: u32,
    pub(super) arguments: Vec<String>,
    pub(super) environment: String,
}

impl Process {
    pub(super) fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|own| own == argument)
    }
}

/// Not the zombies.
pub(super) fn with_variable(value: &str) -> Vec<Process> {
    let variable = format!("{VARIABLE}={value}\0");
    let entries = fs::read_dir("/proc").expect("the system lists processes").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        let read = |name| fs::read(format!("/proc/{id}/{name}")).ok();
        let environment = String::from_utf8_lossy(&read("environ")?).into_owned();
        if !environment.contains(&variable) {
            return None;
        }
        let arguments = String::from_utf8_lossy(&read("cmdline")?).into_owned();
        let arguments = arguments.split_terminator('\0').map(str::to_owned).collect();
        Some(Process { id, arguments, environment })
    })
    .collect()
}
