//! cuRAND: generators that write no numbers.
//!
//! A tensor of random numbers reads as zeros. The memory of a generator's state is not modeled.

use std::ffi::{c_int, c_uint, c_ulonglong};

use crate::code::{Answer, Code};
use crate::driver::{VERSION, current};
use crate::ffi::{self, Out, exports};
use crate::machine::{Handle, Library, Machine, with};

exports! { ffi::curand;
    fn curandCreateGenerator(generator: Out<Handle>, _kind: c_int) {
        if generator.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        generator.put(with(|machine| {
            let context = current::get();
            machine.context(context)?;
            let handle = machine.handle();
            machine.libraries.insert(handle, Library { context, ..Library::default() });
            Ok(handle)
        })?)
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

    fn curandSetPseudoRandomGeneratorSeed(generator: Handle, _seed: c_ulonglong) {
        with(|machine| library(machine, generator).map(drop))
    }

    fn curandSetGeneratorOffset(generator: Handle, _offset: c_ulonglong) {
        with(|machine| library(machine, generator).map(drop))
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
        generate(generator, to, count, 4)
    }

    fn curandGenerateLongLong(generator: Handle, to: u64, count: usize) {
        generate(generator, to, count, 8)
    }

    fn curandGenerateUniform(generator: Handle, to: u64, count: usize) {
        generate(generator, to, count, 4)
    }

    fn curandGenerateUniformDouble(generator: Handle, to: u64, count: usize) {
        generate(generator, to, count, 8)
    }

    fn curandGenerateNormal(generator: Handle, to: u64, count: usize, _mean: f32, _deviation: f32) {
        check_pairs(count)?;
        generate(generator, to, count, 4)
    }

    fn curandGenerateNormalDouble(generator: Handle, to: u64, count: usize, _mean: f64, _deviation: f64) {
        check_pairs(count)?;
        generate(generator, to, count, 8)
    }

    fn curandGenerateLogNormal(generator: Handle, to: u64, count: usize, _mean: f32, _deviation: f32) {
        check_pairs(count)?;
        generate(generator, to, count, 4)
    }

    fn curandGenerateLogNormalDouble(generator: Handle, to: u64, count: usize, _mean: f64, _deviation: f64) {
        check_pairs(count)?;
        generate(generator, to, count, 8)
    }

    fn curandGeneratePoisson(generator: Handle, to: u64, count: usize, _lambda: f64) {
        generate(generator, to, count, 4)
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

fn generate(generator: Handle, to: u64, count: usize, width: u64) -> Answer {
    with(|machine| {
        let library = *library(machine, generator)?;
        machine.stream_context(library.stream, library.context)?;
        machine.touch()?;
        machine.launched();
        machine.overwritten(to, (count as u64).saturating_mul(width));
        Ok(())
    })
}
