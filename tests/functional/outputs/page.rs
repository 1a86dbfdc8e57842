//! Reads the steps of a page: the comments above its blocks, and the blocks.

use std::ops::Range;

/// A block of a page and what to do with it.
pub(super) struct Step {
    /// The line of the block's fence, from 0.
    pub(super) line: usize,
    pub(super) action: Action,
    /// The place of the block's text in the page.
    pub(super) text: Range<usize>,
}

pub(super) enum Action {
    /// The block is a file of a project.
    Write { file: String, project: String },
    /// The block is a diff of a file of a project.
    Change { file: String, project: String },
    /// The block is a command and its output.
    Run(Run),
}

pub(super) struct Run {
    pub(super) place: Place,
    pub(super) exit: u8,
    /// First and last line to show, from 1.
    pub(super) lines: Option<(usize, usize)>,
    /// True if the fields of events are left out: everything from the first `name=value`.
    pub(super) without_fields: bool,
    /// The path of the pictures without `-light.svg` and `-dark.svg`.
    pub(super) picture: Option<String>,
}

#[derive(Clone)]
pub(super) enum Place {
    Project(String),
    Folder(String),
}

/// The steps of a page, in order.
#[track_caller]
pub(super) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut pending = None;
    let mut is_code = false;
    let mut offset = 0;
    for (line, text) in page.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += text.len();
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        if is_code && is_fence {
            if let Some(action) = pending.take() {
                let length = page[offset..].find("```").expect("the end of the block");
                steps.push(Step { line, action, text: offset..offset + length });
            }
        } else if let Some(comment) = comment(text).filter(|_| !is_code) {
            pending = action(comment);
        } else {
            assert!(pending.is_none(), "no block below the comment: {}", &page[..start]);
        }
    }
    steps
}

fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

#[track_caller]
fn action(comment: &str) -> Option<Action> {
    let (verb, rest) = comment.split_once(' ')?;
    let of_project = || {
        let (file, project) = rest.split_once(" of project ").expect(comment);
        (file.to_owned(), project.to_owned())
    };
    match verb {
        "write" => {
            let (file, project) = of_project();
            Some(Action::Write { file, project })
        }
        "change" => {
            let (file, project) = of_project();
            Some(Action::Change { file, project })
        }
        "run" => Some(Action::Run(run(rest))),
        _ => None,
    }
}

#[track_caller]
fn run(text: &str) -> Run {
    let (place, options) = text.split_once(": ").unwrap_or((text, ""));
    let place = match place.split_once(' ').zip(place.rsplit_once(' ')) {
        Some((("in", _), ("in project", name))) => Place::Project(name.to_owned()),
        Some((("in", _), ("in folder", path))) => Place::Folder(path.to_owned()),
        _ => panic!("a run is `in project NAME` or `in folder PATH`: {text}"),
    };
    let mut run = Run { place, exit: 0, lines: None, without_fields: false, picture: None };
    for option in options.split(", ").filter(|option| !option.is_empty()) {
        match option.split_once(' ') {
            Some(("exit", code)) => run.exit = code.parse().expect("an exit code"),
            Some(("lines", range)) => {
                let (first, last) = range.split_once('-').expect("lines FIRST-LAST");
                run.lines = Some((first.parse().unwrap(), last.parse().unwrap()));
            }
            Some(("without", "fields")) => run.without_fields = true,
            Some(("picture", path)) => run.picture = Some(path.to_owned()),
            _ => panic!("not an option of a run: {option}"),
        }
    }
    run
}
