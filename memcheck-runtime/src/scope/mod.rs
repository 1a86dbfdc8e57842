//! Scopes: the `tracing` spans that a thread has entered.
//!
//! A scope has a number and is a path of span names (`encoder.layer.attn`). A span that is entered
//! inside another is below it in the path, regardless of the place at which it was created, because
//! candle-transformers creates the spans of a model when it loads the model. If a span was created
//! on another thread and is the first to be entered on this one, it is below the span in which it
//! was created, so that work on other threads stays in its scope. A span with an `index` gives one
//! scope for each index: `layer.3`.

mod layer;
mod mark;
mod subscriber;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LazyLock, PoisonError, RwLock};

use memcheck_core::quiet;
use memcheck_ledger::scope::set_current;
use rustc_hash::FxHashMap;
use tracing::dispatcher::has_been_set;

pub use layer::Scopes;
pub(crate) use mark::SpanMark;
pub(crate) use memcheck_ledger::scope::current;

/// The number of spans that one thread can be in at the same time. Deeper spans keep the scope of
/// the last one.
const MAX_DEPTH: usize = 64;

/// The scope of a thread before each span that it has entered.
struct Entered {
    before: [Cell<u32>; MAX_DEPTH],
    depth: Cell<usize>,
}

thread_local! {
    static ENTERED: Entered = const {
        Entered { before: [const { Cell::new(0) }; MAX_DEPTH], depth: Cell::new(0) }
    };
}

/// Enters a span on the calling thread. `elsewhere` returns the scope in which the span was
/// created, if that was on another thread. `inside` returns the number of the span's scope inside
/// another scope. Returns the number of spans that the thread was in before.
fn enter(elsewhere: impl FnOnce() -> Option<u32>, inside: impl FnOnce(u32) -> u32) -> usize {
    ENTERED.with(|entered| {
        let depth = entered.depth.get();
        let outer = if depth == 0 { elsewhere().unwrap_or(0) } else { current() };
        let scope = inside(outer);
        entered.depth.set(depth + 1);
        if let Some(before) = entered.before.get(depth) {
            before.set(current());
            set_current(scope);
        }
        depth
    })
}

/// The number of spans that the calling thread is in.
fn depth() -> usize {
    ENTERED.with(|entered| entered.depth.get())
}

/// Leaves the span that the calling thread has entered last.
fn exit() {
    ENTERED.with(|entered| {
        let depth = entered.depth.get().saturating_sub(1);
        entered.depth.set(depth);
        if let Some(before) = entered.before.get(depth) {
            set_current(before.get());
        }
    });
}

/// Scopes by number, and numbers by parent, name and mark.
#[derive(Debug, Default)]
struct Names {
    scopes: Vec<Scope>,
    numbers: FxHashMap<(u32, &'static str, SpanMark), u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The number of the parent scope; 0 if it has none.
    pub(crate) parent: u32,
    /// The name without its parents, with its index if it has one.
    pub(crate) name: String,
    pub(crate) mark: SpanMark,
    path: String,
}

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(RwLock::default);

/// The path of a scope; empty for 0.
pub(crate) fn path(number: u32) -> String {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    let place = number.checked_sub(1).map(|place| place as usize);
    let scope = place.and_then(|place| names.scopes.get(place));
    scope.map(|scope| scope.path.clone()).unwrap_or_default()
}

/// All scopes so far; the first has number 1.
pub(crate) fn all() -> Vec<Scope> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner).scopes.clone()
}

/// The number of a scope inside `parent`.
fn number(parent: u32, name: &'static str, mark: SpanMark) -> u32 {
    let key = (parent, name, mark);
    if let Some(&known) = NAMES.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&key) {
        return known;
    }
    let above = path(parent);
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = names.numbers.get(&key) {
        return known;
    }
    let name = match mark {
        SpanMark::Index(index) => format!("{name}.{index}"),
        SpanMark::None | SpanMark::Replicated => name.to_owned(),
    };
    let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
    names.scopes.push(Scope { parent, name, mark, path });
    let number = u32::try_from(names.scopes.len()).unwrap_or(0);
    names.numbers.insert(key, number);
    number
}

/// The time at which a subscriber that tracks scopes is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Install {
    /// At once, because the body of a test runs later.
    Now,
    /// When the program has its first tensor or its first device memory. A program that installs
    /// its own subscriber has done so by then, so that its installation does not fail.
    Late,
    /// Never, because the body installs its own.
    Never,
}

static PENDING: AtomicBool = AtomicBool::new(false);

/// Installs a subscriber that tracks scopes, unless there is already one.
pub(crate) fn install(when: Install) {
    match when {
        Install::Now => install_now(),
        Install::Late => PENDING.store(true, Relaxed),
        Install::Never => {}
    }
}

/// Must be called when the program uses a tensor or device memory; see [`Install::Late`].
#[inline]
#[cfg_attr(
    not(any(feature = "candle", feature = "cuda")),
    expect(dead_code, reason = "the program has neither")
)]
pub(crate) fn install_pending() {
    if PENDING.load(Relaxed) && PENDING.swap(false, Relaxed) && !has_been_set() {
        let _quiet = quiet::enter();
        install_now();
    }
}

fn install_now() {
    // An error means that the program has its own subscriber. It must then add the layer to have
    // scopes.
    let _ = tracing::subscriber::set_global_default(subscriber::Spans);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::{Dispatch, info_span, trace_span};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry::Registry;

    fn here() -> String {
        path(current())
    }

    /// Runs the test with both sources of scopes: our subscriber, and the layer in another.
    fn with_each(test: impl Fn()) {
        let layered = Registry::default().with(Scopes);
        for dispatch in [Dispatch::new(subscriber::Spans), Dispatch::new(layered)] {
            tracing::dispatcher::with_default(&dispatch, &test);
        }
    }

    #[test]
    fn a_scope_is_the_path_of_entered_spans_on_every_thread() {
        with_each(|| {
            let made_early = trace_span!("attn");
            assert_eq!(here(), "");
            let outer = info_span!("forward").entered();
            assert_eq!(here(), "forward");
            made_early.in_scope(|| assert_eq!(here(), "forward.attn"));
            assert_eq!(here(), "forward");
            let handed_on = info_span!("worker");
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            std::thread::spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    assert_eq!(here(), "");
                    handed_on.in_scope(|| assert_eq!(here(), "forward.worker"));
                    assert_eq!(here(), "");
                });
            })
            .join()
            .unwrap();
            drop(outer);
            assert_eq!(here(), "");
            made_early.in_scope(|| assert_eq!(here(), "attn"));
        });
    }

    #[test]
    fn a_span_gives_one_scope_for_each_index() {
        with_each(|| {
            let layers: Vec<_> =
                (0..3_usize).map(|index| info_span!("model.layers", index)).collect();
            for (index, layer) in layers.iter().enumerate().chain(layers.iter().enumerate()) {
                let _layer = layer.enter();
                assert_eq!(here(), format!("model.layers.{index}"));
                trace_span!("attn", note = "ignored").in_scope(|| {
                    assert_eq!(here(), format!("model.layers.{index}.attn"));
                });
            }
            for index in [7_i32, -7] {
                let name = if index < 0 { "signed".to_owned() } else { format!("signed.{index}") };
                info_span!("signed", index).in_scope(|| assert_eq!(here(), name));
            }
            for (replicated, mark) in [(true, SpanMark::Replicated), (false, SpanMark::None)] {
                let copies = info_span!("copies", replicated).in_scope(current);
                let scope = all()[copies as usize - 1].clone();
                assert_eq!((scope.name.as_str(), scope.mark), ("copies", mark));
            }
        });
    }

    #[test]
    fn a_panic_in_a_span_leaves_it() {
        with_each(|| {
            let _ = std::panic::catch_unwind(|| {
                let _span = info_span!("doomed").entered();
                panic!("on purpose");
            });
            assert_eq!(here(), "");
        });
    }

    #[test]
    fn the_current_span_can_be_handed_to_another_thread() {
        with_each(|| {
            let _outer = info_span!("outer").entered();
            let current = info_span!("inner").in_scope(tracing::Span::current);
            assert_eq!(current.metadata().map(|metadata| metadata.name()), Some("inner"));
            assert_eq!(tracing::Span::current().metadata().unwrap().name(), "outer");
            current.in_scope(|| assert_eq!(here(), "outer.inner"));
        });
    }
}
