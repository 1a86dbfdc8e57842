//! `cargo memcheck env`: prints the environment of a build for the simulated device on stdout, so
//! that clippy and editors analyze the code that only such a build contains. Writes the toolkit if
//! necessary.

use std::ffi::OsStr;

use memcheck_core::request::variables;
use memcheck_core::wire::exit;
use serde::Serialize;

use crate::build::toolchain::Toolkit;
use crate::build::workspace::Workspace;
use crate::invocation::cli::EnvArgs;
use crate::invocation::values::Format;
use crate::system::error::Failure;
use crate::system::printing::{eprint_line, print_raw};
use crate::system::shell;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "variable")]
struct EnvironmentLine {
    name: &'static str,
    /// `None` if the variable must not be set.
    value: Option<String>,
}

pub(super) fn env(args: &EnvArgs) -> Result<u8, Failure> {
    let EnvArgs { workspace, form } = args;
    let workspace = Workspace::load(&workspace.cargo())?;
    let toolkit = Toolkit::prepare(workspace.toolkit_directory(), workspace.cuda_version())?;
    let mut variables = toolkit.environment();
    match &toolkit.nvml {
        Ok(library) => variables.push((variables::SIM_NVML, Some(library.into()))),
        Err(why) => eprint_line!("note: no simulated NVML, `device_used` is not available: {why}"),
    }
    for (name, value) in variables {
        let value = value.as_deref().map(OsStr::to_string_lossy).map(Into::into);
        let variable = EnvironmentLine { name, value };
        let line = match form.message_format {
            Format::Json => serde_json::to_string(&variable).expect("a variable has only text"),
            Format::Human => line(&variable),
        };
        print_raw(&format!("{line}\n"));
    }
    Ok(exit::OK)
}

fn line(variable: &EnvironmentLine) -> String {
    match &variable.value {
        Some(value) => format!("export {}={}", variable.name, shell::quote(value)),
        None => format!("unset {}", variable.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_is_printed() {
        let value = "/a b/it's $HOME \"x\"\\";
        let set = line(&EnvironmentLine { name: "MEMCHECK_A", value: Some(value.to_owned()) });
        let unset = line(&EnvironmentLine { name: "MEMCHECK_B", value: None });
        let script =
            format!("{set}\n{unset}\nprintf '%s|%s' \"$MEMCHECK_A\" \"${{MEMCHECK_B-none}}\"");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .env("MEMCHECK_B", "set")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{value}|none"));
    }
}
