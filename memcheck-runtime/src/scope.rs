//! Scopes: the `tracing` spans that a thread is in.
//!
//! A scope is a path of span names (`encoder.layer.attn`), and a number. Paths
//! grow by entering: a span that is entered inside another is below it, as
//! candle-transformers' models mean it, whose spans are made when the model is
//! loaded. A span that was made on another thread and is the first to be entered
//! on this one is below the span that it was made in: work that was handed on
//! stays in its scope.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LazyLock, PoisonError, RwLock};

use memcheck_core::quiet;
use rustc_hash::FxHashMap;
use tracing::dispatcher::has_been_set;
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::intern::mix;

/// Spans that one thread may be in at once; deeper ones keep the scope of the
/// last.
const DEEPEST: usize = 64;

/// A parent and where a name stands: address and length.
type Way = (u32, usize, usize);

/// The scopes that a thread was in before each span that it is in.
struct Entered {
    before: [Cell<u32>; DEEPEST],
    depth: Cell<usize>,
}

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
    static ENTERED: Entered = const {
        Entered { before: [const { Cell::new(0) }; DEEPEST], depth: Cell::new(0) }
    };
    /// Scopes that the thread has entered lately: parent and name, number.
    static RECENT: [Cell<(Way, u32)>; 64] = const { [const { Cell::new(((0, 0, 0), 0)) }; 64] };
}

/// The scope of the calling thread, by number; 0 is none.
#[inline]
pub(crate) fn current() -> u32 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// Paths by number, and numbers by parent and name.
#[derive(Debug, Default)]
struct Names {
    paths: Vec<String>,
    numbers: FxHashMap<(u32, &'static str), u32>,
}

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(RwLock::default);

/// The path of a scope; empty for none.
pub(crate) fn path(number: u32) -> String {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    let place = number.checked_sub(1).map(|place| place as usize);
    place.and_then(|place| names.paths.get(place)).cloned().unwrap_or_default()
}

/// The number of a scope in a scope.
fn number(parent: u32, name: &'static str) -> u32 {
    // PERF: by where the name stands, without the lock. The same name at another
    // address is looked up once more.
    let key = (parent, name.as_ptr() as usize, name.len());
    let hash = mix(u64::from(parent), key.1 as u64) >> 32;
    RECENT.with(|recent| {
        let place = &recent[hash as usize % recent.len()];
        let (known, number) = place.get();
        if known == key {
            return number;
        }
        let number = named(parent, name);
        place.set((key, number));
        number
    })
}

fn named(parent: u32, name: &'static str) -> u32 {
    if let Some(&known) =
        NAMES.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&(parent, name))
    {
        return known;
    }
    let above = path(parent);
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = names.numbers.get(&(parent, name)) {
        return known;
    }
    names.paths.push(if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") });
    let number = u32::try_from(names.paths.len()).unwrap_or(0);
    names.numbers.insert((parent, name), number);
    number
}

/// A `tracing_subscriber` layer that keeps the scope of every thread.
///
/// In a run with attribution `memcheck` installs a subscriber with this layer,
/// unless the program has installed one of its own before its first tensor. Such
/// a program adds the layer itself, and its spans become scopes:
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(memcheck_runtime::Scopes);
/// # drop(subscriber);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Scopes;

/// Where a span was made.
struct Made {
    scope: u32,
    thread: std::thread::ThreadId,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Scopes {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let _quiet = quiet::enter();
        if let Some(span) = context.span(id) {
            let thread = std::thread::current().id();
            span.extensions_mut().insert(Made { scope: current(), thread });
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let _quiet = quiet::enter();
        let Some(span) = context.span(id) else { return };
        let depth = ENTERED.with(|entered| entered.depth.get());
        let inside = match depth {
            0 => match span.extensions().get::<Made>() {
                Some(made) if made.thread != std::thread::current().id() => made.scope,
                _ => 0,
            },
            _ => current(),
        };
        let scope = number(inside, span.name());
        ENTERED.with(|entered| {
            entered.depth.set(depth + 1);
            if let Some(before) = entered.before.get(depth) {
                before.set(current());
                CURRENT.with(|current| current.set(scope));
            }
        });
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        ENTERED.with(|entered| {
            let depth = entered.depth.get().saturating_sub(1);
            entered.depth.set(depth);
            if let Some(before) = entered.before.get(depth) {
                CURRENT.with(|current| current.set(before.get()));
            }
        });
    }
}

/// When a subscriber that keeps scopes is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Install {
    /// At once: the body of a test comes later.
    Now,
    /// When the program has its first tensor or its first device memory. One
    /// that installs a subscriber of its own has done so by then, and would not
    /// find it already done.
    Late,
}

static WANTED: AtomicBool = AtomicBool::new(false);

/// Installs a subscriber that keeps scopes, unless there is one already.
pub(crate) fn install(when: Install) {
    match when {
        Install::Now => install_now(),
        Install::Late => WANTED.store(true, Relaxed),
    }
}

/// The program works on tensors.
#[inline]
pub(crate) fn needed() {
    if WANTED.load(Relaxed) && WANTED.swap(false, Relaxed) && !has_been_set() {
        let _quiet = quiet::enter();
        install_now();
    }
}

fn install_now() {
    let subscriber = Quiet(Registry::default().with(Scopes));
    // The program has its own: then that has the layer, or there are no scopes.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// A subscriber whose own memory is not the workload's.
struct Quiet<S>(S);

impl<S: Subscriber> Subscriber for Quiet<S> {
    fn register_callsite(
        &self,
        metadata: &'static Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        let _quiet = quiet::enter();
        // Spans only: what events say would be evaluated, as the workload's own.
        if metadata.is_span() {
            self.0.register_callsite(metadata)
        } else {
            tracing::subscriber::Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        self.0.max_level_hint()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let _quiet = quiet::enter();
        self.0.new_span(span)
    }

    fn record(&self, span: &Id, values: &tracing::span::Record<'_>) {
        let _quiet = quiet::enter();
        self.0.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let _quiet = quiet::enter();
        self.0.record_follows_from(span, follows);
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let _quiet = quiet::enter();
        self.0.event(event);
    }

    fn enter(&self, span: &Id) {
        let _quiet = quiet::enter();
        self.0.enter(span);
    }

    fn exit(&self, span: &Id) {
        let _quiet = quiet::enter();
        self.0.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        let _quiet = quiet::enter();
        self.0.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        let _quiet = quiet::enter();
        self.0.try_close(id)
    }

    fn current_span(&self) -> tracing_core::span::Current {
        self.0.current_span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::{info_span, trace_span};

    fn here() -> String {
        path(current())
    }

    #[test]
    fn a_scope_is_the_path_of_entered_spans_on_every_thread() {
        let subscriber = Quiet(Registry::default().with(Scopes));
        tracing::subscriber::with_default(subscriber, || {
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
    fn a_panic_in_a_span_leaves_it() {
        let subscriber = Quiet(Registry::default().with(Scopes));
        tracing::subscriber::with_default(subscriber, || {
            let _ = std::panic::catch_unwind(|| {
                let _span = info_span!("doomed").entered();
                panic!("on purpose");
            });
            assert_eq!(here(), "");
        });
    }
}
