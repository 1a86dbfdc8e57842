//! Derives the names of functions and files from the folders that sources were compiled in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::frame::{Frame, has_path};
use super::owner::module_of;

/// Folders of source files, with the paths in the line tables of an executable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The workspace. Names of files below it are relative to it.
    pub workspace: String,
    /// The crates of this tool by folder: the name of the crate for each folder.
    pub own: BTreeMap<String, String>,
}

impl Sources {
    /// Makes the file relative to the workspace and adds its module to the function's name, because
    /// line tables name an inlined function without its path.
    #[must_use]
    pub fn qualify(&self, frame: Frame) -> Frame {
        let Frame { mut function, file, line } = frame;
        let Some(file) = file else { return Frame { function, file, line } };
        if !has_path(&function)
            && let Some(module) = self.module_of(&file)
        {
            function = format!("{module}::{function}");
        }
        let below = file.strip_prefix(&self.workspace).and_then(|rest| rest.strip_prefix('/'));
        let file = below.map(str::to_owned).unwrap_or(file);
        Frame { function, file: Some(file), line }
    }

    fn module_of(&self, file: &str) -> Option<String> {
        let own = self.own.iter().find(|(folder, _)| file.starts_with(folder.as_str()));
        own.map(|(_, krate)| krate.clone()).or_else(|| module_of(file))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CANDLE, frame};
    use super::*;

    #[test]
    fn an_inlined_function_gets_the_path_of_its_file() {
        let sources = Sources {
            workspace: "/home/u/app".to_owned(),
            own: [("/opt/memcheck-runtime".to_owned(), "memcheck_runtime".to_owned())].into(),
        };
        for (function, file, qualified, shown) in [
            ("exp", CANDLE, "candle_core::tensor::exp", CANDLE),
            ("candle_nn::exp", CANDLE, "candle_nn::exp", CANDLE),
            ("here", "/opt/memcheck-runtime/src/site.rs", "memcheck_runtime::here", ""),
            ("step", "/home/u/app/src/step.rs", "step", "src/step.rs"),
            ("step", "/home/u/application/step.rs", "step", ""),
            ("main", "", "main", ""),
        ] {
            let qualified_frame = sources.qualify(frame(function, file));
            assert_eq!(qualified_frame.function, qualified, "{file}");
            let shown = if shown.is_empty() { file } else { shown };
            assert_eq!(qualified_frame.file.as_deref().unwrap_or_default(), shown);
        }
    }
}
