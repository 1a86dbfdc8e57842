//! A layer that provides scopes in a program with its own subscriber.

use memcheck_core::quiet;
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::{SpanMark, current, number};

/// A `tracing_subscriber` layer that tracks the scope of every thread.
///
/// In a run with attribution, `memcheck` installs a subscriber that tracks scopes, unless the
/// program has installed its own subscriber before its first tensor, or the body of a test installs
/// one. Such a program must add this layer so that its spans become scopes:
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(memcheck_runtime::Scopes);
/// # drop(subscriber);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Scopes;

/// The origin of a span: its scope, thread and mark.
struct SpanOrigin {
    scope: u32,
    thread: std::thread::ThreadId,
    mark: SpanMark,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Scopes {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let _quiet = quiet::enter();
        if let Some(span) = context.span(id) {
            let thread = std::thread::current().id();
            let mark = SpanMark::of(attributes);
            span.extensions_mut().insert(SpanOrigin { scope: current(), thread, mark });
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let _quiet = quiet::enter();
        let Some(span) = context.span(id) else { return };
        let elsewhere = || {
            let extensions = span.extensions();
            let origin = extensions.get::<SpanOrigin>()?;
            (origin.thread != std::thread::current().id()).then_some(origin.scope)
        };
        let mark =
            || span.extensions().get::<SpanOrigin>().map_or(SpanMark::None, |origin| origin.mark);
        super::enter(elsewhere, |outer| number(outer, span.name(), mark()));
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        super::exit();
    }
}
