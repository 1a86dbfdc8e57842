//! The operations that the simulated device computes, which have a limit.
//!
//! The limit is that of the set-up and the measured iterations. An iteration beyond them has the
//! operations that the last measured one had. Its values are therefore known as far as those of the
//! measured iterations, however long the test is followed.

#[cfg(feature = "sim")]
use memcheck_sim::Operations as Counted;

/// Other devices compute all values.
#[cfg(not(feature = "sim"))]
#[derive(Debug, Clone, Copy)]
struct Counted;

#[cfg(not(feature = "sim"))]
impl Counted {
    fn now() -> Self {
        Self
    }

    fn permit_again(self) {}
}

/// The operations that were counted at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operations(Counted);

impl Operations {
    /// The operations that are counted now.
    pub(crate) fn now() -> Self {
        Self(Counted::now())
    }

    /// Permits the operations again that were counted since.
    pub(crate) fn permit_again(self) {
        self.0.permit_again();
    }
}
