//! The result of a run as a badge of <https://shields.io>: JSON that its endpoint reads from an address.

use serde::Serialize;

use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;
use crate::system::escape::{Form, escape};

#[derive(Debug, Default)]
pub(crate) struct Badge {
    result: Option<Endpoint>,
}

/// The fields of <https://shields.io/badges/endpoint-badge>.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    schema_version: u32,
    label: &'static str,
    message: String,
    color: &'static str,
    is_error: bool,
}

impl Endpoint {
    fn of(tally: &Tally) -> Self {
        let Tally { passed, failed, not_measured, needs_review, .. } = tally;
        let (message, color) = match () {
            () if tally.is_incomplete() => (summary::cut_short(tally).join("; "), "lightgrey"),
            () if *failed > 0 => (format!("{failed} failed"), "red"),
            () if *not_measured > 0 => (format!("{not_measured} not measured"), "orange"),
            () if *needs_review > 0 => (format!("{needs_review} to review"), "yellow"),
            () if *passed == 0 => ("no tests".to_owned(), "lightgrey"),
            () => (format!("{passed} passed"), "brightgreen"),
        };
        let is_error = *failed > 0;
        Self { schema_version: 1, label: "memory tests", message, color, is_error }
    }
}

impl Presenter for Badge {
    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.result = Some(Endpoint::of(tally));
    }
}

impl ReportWriter for Badge {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let result = self.result.clone().unwrap_or_else(|| Endpoint::of(&Tally::default()));
        let text = serde_json::to_string(&result)? + "\n";
        Ok(escape(text, Form::Json).into_owned().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn badge(tally: Tally) -> (String, String, bool) {
        let mut badge = Badge::default();
        badge.finished(&tally, 0);
        let json: serde_json::Value = serde_json::from_slice(&badge.text().unwrap()).unwrap();
        assert_eq!((&json["schemaVersion"], &json["label"]), (&1.into(), &"memory tests".into()));
        let text = |name: &str| json[name].as_str().unwrap().to_owned();
        (text("message"), text("color"), json["isError"].as_bool().unwrap())
    }

    #[test]
    fn the_gravest_count_is_the_message() {
        let passed = Tally { passed: 330, ..Tally::default() };
        let shown = |tally| {
            let (message, color, is_error) = badge(tally);
            format!("{message} {color} {is_error}")
        };
        assert_eq!(shown(passed.clone()), "330 passed brightgreen false");
        assert_eq!(shown(Tally { failed: 2, ..passed.clone() }), "2 failed red true");
        let review = Tally { needs_review: 1, ..passed.clone() };
        assert_eq!(shown(review), "1 to review yellow false");
        let blind = Tally { not_measured: 1, ..passed.clone() };
        assert_eq!(shown(blind), "1 not measured orange false");
        let cut = Tally { interrupted: true, ..passed };
        assert_eq!(shown(cut), "interrupted: the counts are incomplete lightgrey false");
        assert_eq!(shown(Tally::default()), "no tests lightgrey false");
    }
}
