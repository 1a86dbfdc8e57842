//! The steps of a command before its first process runs.

use std::path::PathBuf;

use anyhow::Context;

use crate::build::compile::BuildGoal;
use crate::build::leg::Leg;
use crate::build::workspace::TestPackage;
use crate::discovery::legs::{self, Legs};
use crate::discovery::listing;
use crate::discovery::session::{Chosen, Session};
use crate::execution::run::Runner;
use crate::invocation::options::{Flags, Options};
use crate::system::binary::Binary;
use crate::system::error::Failure;
use crate::system::process::Interrupt;

pub(super) struct Prologue {
    pub(super) interrupt: Interrupt,
    pub(super) session: Session,
}

impl Prologue {
    pub(super) fn open(flags: Flags) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen().context("listening for signals")?;
        Ok(Self { session: Session::open(flags)?, interrupt })
    }

    /// `None` if a signal ended the build.
    pub(super) fn tests(&self) -> Result<Option<(Runner<'_>, Vec<Chosen>)>, Failure> {
        let Self { interrupt, session } = self;
        session.announce();
        let discovered = interrupt.outlived(legs::discover(session))?;
        let Some((nvml, legs)) = discovered else { return Ok(None) };
        let chosen = legs.iter().map(|tests| session.choose(tests)).collect();
        Ok(Some((self.runner(nvml)?, chosen)))
    }

    /// `None` if a signal ended the build.
    pub(super) fn programs<T>(
        &self,
        packages: &[TestPackage],
        goal: BuildGoal<'_>,
        of: impl Fn(&Leg, &Binary) -> Result<T, Failure>,
    ) -> Result<Option<(Runner<'_>, Vec<T>)>, Failure> {
        let Self { interrupt, session } = self;
        session.announce();
        let Options { scheduling, search, .. } = &session.options;
        let mut legs = Legs::open(session)?;
        let mut programs = Vec::new();
        for leg in &session.legs {
            let built = interrupt.outlived(legs.build(leg, packages, goal))?;
            let Some(built) = built else { return Ok(None) };
            for binary in &built.binaries {
                let binary = listing::program(binary, &scheduling.launcher, search)?;
                programs.push(of(leg, &binary)?);
            }
        }
        Ok(Some((self.runner(legs.nvml())?, programs)))
    }

    fn runner(&self, nvml: Option<PathBuf>) -> anyhow::Result<Runner<'_>> {
        Runner::prepare(&self.session, nvml, self.interrupt.clone())
    }
}
