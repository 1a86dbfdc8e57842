//! The values of flags: types that the command line parses and the rest of the command uses.

mod cargo;
#[cfg(feature = "comparison")]
mod change;
#[cfg(feature = "comparison")]
mod dependency;
mod editor;
mod history;
mod output;
mod report;
mod selection;
mod unpack;

pub(crate) use cargo::CargoOptions;
#[cfg(feature = "comparison")]
pub(crate) use change::BadChange;
#[cfg(feature = "comparison")]
pub(crate) use dependency::DependencyUpdate;
pub(crate) use editor::EditorUrl;
pub(crate) use history::HistoryPlace;
pub(crate) use output::{Color, Format, ProfileLayout, Verbosity};
pub(crate) use report::{ExportKind, ReportFile, ReportKind, page, with_opened};
pub(crate) use selection::{NoTests, RunIgnored};
pub(crate) use unpack::UnpackOptions;
