//! cuRAND: generators of random numbers, which are not those of NVIDIA's generators.
//!
//! The memory of a generator's state is not modeled.

use std::ffi::{c_int, c_uint, c_ulonglong};

use crate::code::{Answer, Code};
use crate::driver::{VERSION, current};
use crate::ffi::{self, Out, exports};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Library, Machine, with};
use memcheck_kernels::{Distribution, Generator, Kind, Memory as _};

exports! { ffi::curand;
    fn curandCreateGenerator(generator: Out<Handle>, _kind: c_int) {
        generator.make(|machine| {
            let context = current::get();
            machine.context(context)?;
            let handle = machine.handle();
            machine.libraries.insert(handle, Library { context, ..Library::default() });
            Ok(handle)
        })
    }

    fn curandDestroyGenerator(generator: Handle) {
        with(|machine| machine.libraries.remove(&generator).map(drop).ok_or(Code::INVALID_HANDLE))
    }

    fn curandGetVersion(version: Out<c_int>) {
        version.put(VERSION / 1000 * 1000)
    }

    fn curandSetStream(generator: Handle, stream: Handle) {
        with(|machine| {
            let context = library(machine, generator)?.context;
            machine.stream_context(stream, context)?;
            library(machine, generator)?.stream = stream;
            Ok(())
        })
    }

    fn curandSetPseudoRandomGeneratorSeed(generator: Handle, seed: c_ulonglong) {
        with(|machine| {
            library(machine, generator)?.generator = Generator { seed, position: 0 };
            Ok(())
        })
    }

    fn curandSetGeneratorOffset(generator: Handle, offset: c_ulonglong) {
        with(|machine| {
            library(machine, generator)?.generator.position = offset;
            Ok(())
        })
    }

    fn curandSetGeneratorOrdering(generator: Handle, _order: c_int) {
        with(|machine| library(machine, generator).map(drop))
    }

    fn curandSetQuasiRandomGeneratorDimensions(generator: Handle, _dimensions: c_uint) {
        with(|machine| library(machine, generator).map(drop))
    }

    fn curandGenerateSeeds(generator: Handle) {
        with(|machine| library(machine, generator).map(drop))
    }

    fn curandGenerate(generator: Handle, to: u64, count: usize) {
        generate(generator, (Kind::U32, to), count, Distribution::Bits)
    }

    fn curandGenerateLongLong(generator: Handle, to: u64, count: usize) {
        generate(generator, (Kind::I64, to), count, Distribution::Bits)
    }

    fn curandGenerateUniform(generator: Handle, to: u64, count: usize) {
        generate(generator, (Kind::F32, to), count, Distribution::Uniform)
    }

    fn curandGenerateUniformDouble(generator: Handle, to: u64, count: usize) {
        generate(generator, (Kind::F64, to), count, Distribution::Uniform)
    }

    fn curandGenerateNormal(generator: Handle, to: u64, count: usize, mean: f32, deviation: f32) {
        check_pairs(count)?;
        let (mean, deviation) = (mean.into(), deviation.into());
        generate(generator, (Kind::F32, to), count, Distribution::Normal { mean, deviation })
    }

    fn curandGenerateNormalDouble(generator: Handle, to: u64, count: usize, mean: f64, deviation: f64) {
        check_pairs(count)?;
        generate(generator, (Kind::F64, to), count, Distribution::Normal { mean, deviation })
    }

    fn curandGenerateLogNormal(generator: Handle, to: u64, count: usize, mean: f32, deviation: f32) {
        check_pairs(count)?;
        let (mean, deviation) = (mean.into(), deviation.into());
        generate(generator, (Kind::F32, to), count, Distribution::LogNormal { mean, deviation })
    }

    fn curandGenerateLogNormalDouble(generator: Handle, to: u64, count: usize, mean: f64, deviation: f64) {
        check_pairs(count)?;
        generate(generator, (Kind::F64, to), count, Distribution::LogNormal { mean, deviation })
    }

    fn curandGeneratePoisson(generator: Handle, to: u64, count: usize, _lambda: f64) {
        generate(generator, (Kind::U32, to), count, Distribution::Poisson)
    }
}

/// Normal numbers of a pseudo-random generator come in pairs. candle therefore rounds the count up
/// to an even number.
fn check_pairs(count: usize) -> Answer {
    if count.is_multiple_of(2) { Ok(()) } else { Err(Code::LENGTH_NOT_MULTIPLE) }
}

fn library(machine: &mut Machine, generator: Handle) -> Answer<&mut Library> {
    machine.libraries.get_mut(&generator).ok_or(Code::INVALID_HANDLE)
}

fn generate(
    generator: Handle,
    (kind, to): (Kind, u64),
    count: usize,
    distribution: Distribution,
) -> Answer {
    with(|machine| {
        let Library { stream, context, .. } = *library(machine, generator)?;
        machine.stream_context(stream, context)?;
        machine.touch()?;
        machine.submit(stream, NodeKind::Kernel, move |machine| {
            machine.launched();
            // The numbers of a generator that was destroyed before a launch are unknown.
            let Ok(&mut Library { generator: mut state, .. }) = library(machine, generator) else {
                return machine.overwritten(to, count as u64 * kind.width());
            };
            state.generate(machine, (kind, to), count as u64, distribution);
            if let Ok(library) = library(machine, generator) {
                library.generator = state;
            }
        });
        Ok(())
    })
}
