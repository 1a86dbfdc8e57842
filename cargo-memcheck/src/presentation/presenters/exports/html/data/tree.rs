//! The frames, call stacks and call sites of a test, each stored once and referred to by its index.

use std::collections::HashMap;

use memcheck_core::judgement::blame;
use memcheck_core::judgement::finding::Site;
use memcheck_core::measurement::attribution::{Attribution, Place};
use memcheck_core::measurement::stack::{Frame, Owner, Stack};
use serde::Serialize;

use super::super::ending::Extent;
use crate::presentation::presenters::frames;

/// Lines of the program whose source is shown.
const MOST_LINES: usize = 24;

/// The owner of a frame, as the script needs it to fold the frames of candle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum FrameOwner {
    Program,
    Candle,
    Library,
}

#[derive(Debug, Serialize)]
struct FrameData {
    function: String,
    path: String,
    place: Option<String>,
    owner: FrameOwner,
}

/// The purpose of the memory that a stack allocates, if the stack shows it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Role {
    Gradients,
    Optimizer,
}

#[derive(Debug, Serialize)]
struct StackData {
    /// The innermost frame first.
    frames: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
}

#[derive(Debug, Serialize)]
struct PlaceData {
    stack: usize,
    /// Operation, tensor and scope, as a baseline names them.
    label: String,
    operation: String,
    tensor: Option<String>,
    scope: Option<String>,
}

/// The lists that indices refer to.
#[derive(Debug, Default, Serialize)]
pub(super) struct TreeData {
    frames: Vec<FrameData>,
    stacks: Vec<StackData>,
    places: Vec<PlaceData>,
}

/// Collects the frames, stacks and call sites that the data of a test refers to.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The name of the test.
    test: String,
    data: TreeData,
    frames: HashMap<Frame, usize>,
    stacks: HashMap<Vec<Frame>, usize>,
    places: HashMap<usize, usize>,
    lines: Vec<(String, u32, Extent)>,
}

impl Tree {
    pub(super) fn of(test: &str) -> Self {
        Self { test: test.to_owned(), ..Self::default() }
    }

    pub(super) fn finish(self) -> TreeData {
        self.data
    }

    /// Files and lines of the program, the most important first.
    pub(super) fn lines_of_program(&self) -> Vec<(String, u32, Extent)> {
        self.lines.clone()
    }

    /// Asks for the source of this line.
    pub(super) fn show(&mut self, file: Option<&str>, line: Option<u32>) {
        let (Some(file), Some(line)) = (file, line) else { return };
        self.show_lines(file, line, Extent::Around);
    }

    /// The same, with the lines of `extent`. Each line has one snippet.
    pub(super) fn show_lines(&mut self, file: &str, line: u32, extent: Extent) {
        let is_there =
            self.lines.iter().any(|(other, at, _)| (other.as_str(), *at) == (file, line));
        if self.lines.len() < MOST_LINES && !is_there {
            self.lines.push((file.to_owned(), line, extent));
        }
    }

    /// The same of `src/model.rs:42`.
    pub(super) fn show_place(&mut self, place: &str) {
        let Some((file, line)) = place.rsplit_once(':') else { return };
        self.show(Some(file), line.parse().ok());
    }

    /// The index of a call site of the record.
    pub(super) fn place(&mut self, attribution: &Attribution, index: usize) -> usize {
        if let Some(&known) = self.places.get(&index) {
            return known;
        }
        let none = Place {
            space: memcheck_core::space::Space::Host,
            stack: usize::MAX,
            scope: String::new(),
            operation: Some("(the record has no such place)".to_owned()),
            tensor: None,
            calls: 0,
            bytes: 0,
            last_calls: 0,
            last_bytes: 0,
            last: 0,
        };
        let place = attribution.places.get(index).unwrap_or(&none);
        let stack = attribution.stack_of(place);
        if let Some(user) = stack.user() {
            self.show(user.file.as_deref(), user.line);
        }
        let site = Site {
            operation: place.operation.clone(),
            tensor: place.tensor.as_ref().map(ToString::to_string),
            scope: (!place.scope.is_empty()).then(|| place.scope.clone()),
            stack: stack.frames.first().cloned().into_iter().collect(),
            ..Site::default()
        };
        let label = blame::label(&site);
        let innermost = || stack.frames.first().map_or_else(|| "unknown".to_owned(), Frame::short);
        let data = PlaceData {
            stack: self.stack(stack),
            label,
            operation: site.operation.unwrap_or_else(innermost),
            tensor: site.tensor,
            scope: site.scope,
        };
        let number = self.data.places.len();
        self.data.places.push(data);
        self.places.insert(index, number);
        number
    }

    pub(super) fn stack(&mut self, stack: &Stack) -> usize {
        let role = match () {
            () if stack.is_backward() => Some(Role::Gradients),
            () if stack.is_optimizer() => Some(Role::Optimizer),
            () => None,
        };
        if let Some(&known) = self.stacks.get(&stack.frames) {
            return known;
        }
        let indices = stack.frames.iter().map(|frame| self.frame(frame)).collect();
        let number = self.data.stacks.len();
        self.data.stacks.push(StackData { frames: indices, role });
        self.stacks.insert(stack.frames.clone(), number);
        number
    }

    fn frame(&mut self, frame: &Frame) -> usize {
        if let Some(&known) = self.frames.get(frame) {
            return known;
        }
        let owner = match frame.owner() {
            Owner::User => FrameOwner::Program,
            Owner::Candle => FrameOwner::Candle,
            Owner::Library | Owner::Plumbing => FrameOwner::Library,
        };
        let number = self.data.frames.len();
        self.data.frames.push(FrameData {
            function: frames::name(frame, &self.test),
            path: frame.path(),
            place: frame.short_place(),
            owner,
        });
        self.frames.insert(frame.clone(), number);
        number
    }
}
