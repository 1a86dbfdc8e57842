//! cuBLASLt: handles, descriptors, the choice of an algorithm, and products with an epilogue.
//!
//! A handle holds no memory of the program: `cublasLtCreate` has no parameter for it, and a product
//! uses the workspace that the program passes. The documentation says that the handle itself
//! "allocates light hardware resources on the host and device"; their bytes are not documented and
//! were not measured, so that no figure contains them. The size of a workspace that
//! `cublasLtMatmulAlgoGetHeuristic` returns is an ESTIMATE ([`heuristic`]). If the program passes a
//! workspace of such a size, [`workspaces`](crate::workspaces()) lets every output mark it.

mod descriptors;
mod heuristic;
mod matmul;
mod problem;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char, c_int, c_void};

use heuristic::{HeuristicResult, MatmulAlgorithm};
use matmul::Matmul;
use memcheck_limits::cards::Card;
use problem::MatmulProblem;

use crate::attributes::{DescriptorValues, layout, operation, preference};
use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, Symbol, exports};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Library, Machine, with};
use crate::version::VERSION;
use crate::workspaces::CUBLASLT;
use crate::{cublas, cudart};

/// The first capacity of the cache of heuristics, as cuBLASLt 13.0.2 returns it.
const CACHE: usize = 8192;
/// The alignment of a workspace, by the documentation of `cublasLtMatmul`.
const ALIGNMENT: u64 = 256;

exports! { ffi::cublas;
    fn cublasLtCreate(handle: Out<Handle>) {
        handle.fill(|| {
            // cuBLASLt calls the runtime API, which needs no current context.
            let context = cudart::context()?;
            with(|machine| {
                machine.context(context)?;
                machine.schedule.library()?;
                let handle = machine.handle();
                machine.libraries.insert(handle, Library { context, ..Library::default() });
                Ok(handle)
            })
        })
    }

    fn cublasLtDestroy(handle: Handle) {
        if handle == 0 {
            return Err(Code::INVALID_VALUE);
        }
        with(|machine| machine.libraries.remove(&handle).map(drop).ok_or(Code::INVALID_HANDLE))
    }

    fn cublasLtGetProperty(property: c_int, value: Out<c_int>) {
        cublas::property(property, value)
    }

    fn cublasLtHeuristicsCacheGetCapacity(capacity: Out<usize>) {
        capacity.put(CACHE)
    }

    // The simulator keeps no cache.
    fn cublasLtHeuristicsCacheSetCapacity(_capacity: usize) {
        Ok(())
    }

    fn cublasLtMatrixLayoutCreate(
        descriptor: Out<Handle>, kind: c_int, rows: u64, columns: u64, leading: i64,
    ) {
        let set = [
            (layout::TYPE, kind.into()),
            (layout::ROWS, rows as i64),
            (layout::COLUMNS, columns as i64),
            (layout::LEADING, leading),
        ];
        descriptors::create(descriptor, DescriptorValues::new(layout::TABLE, &set))
    }

    fn cublasLtMatrixLayoutDestroy(descriptor: Handle) {
        descriptors::destroy(descriptor, layout::TABLE)
    }

    fn cublasLtMatrixLayoutSetAttribute(
        descriptor: Handle, attribute: c_int, value: In<c_void>, bytes: usize,
    ) {
        descriptors::set(descriptor, layout::TABLE, attribute, value, bytes)
    }

    fn cublasLtMatrixLayoutGetAttribute(
        descriptor: Handle, attribute: c_int, value: Out<c_void>, bytes: usize, written: Out<usize>,
    ) {
        descriptors::get(descriptor, layout::TABLE, attribute, value, bytes, written)
    }

    fn cublasLtMatmulDescCreate(descriptor: Out<Handle>, compute: c_int, scale: c_int) {
        let set = [(operation::COMPUTE_TYPE, compute.into()), (operation::SCALE_TYPE, scale.into())];
        descriptors::create(descriptor, DescriptorValues::new(operation::TABLE, &set))
    }

    fn cublasLtMatmulDescDestroy(descriptor: Handle) {
        descriptors::destroy(descriptor, operation::TABLE)
    }

    fn cublasLtMatmulDescSetAttribute(
        descriptor: Handle, attribute: c_int, value: In<c_void>, bytes: usize,
    ) {
        descriptors::set(descriptor, operation::TABLE, attribute, value, bytes)
    }

    fn cublasLtMatmulDescGetAttribute(
        descriptor: Handle, attribute: c_int, value: Out<c_void>, bytes: usize, written: Out<usize>,
    ) {
        descriptors::get(descriptor, operation::TABLE, attribute, value, bytes, written)
    }

    fn cublasLtMatmulPreferenceCreate(descriptor: Out<Handle>) {
        descriptors::create(descriptor, DescriptorValues::new(preference::TABLE, &[]))
    }

    fn cublasLtMatmulPreferenceDestroy(descriptor: Handle) {
        descriptors::destroy(descriptor, preference::TABLE)
    }

    fn cublasLtMatmulPreferenceSetAttribute(
        descriptor: Handle, attribute: c_int, value: In<c_void>, bytes: usize,
    ) {
        descriptors::set(descriptor, preference::TABLE, attribute, value, bytes)
    }

    fn cublasLtMatmulPreferenceGetAttribute(
        descriptor: Handle, attribute: c_int, value: Out<c_void>, bytes: usize, written: Out<usize>,
    ) {
        descriptors::get(descriptor, preference::TABLE, attribute, value, bytes, written)
    }

    fn cublasLtMatmulAlgoGetHeuristic(
        handle: Handle, operation: Handle, a: Handle, b: Handle, c: Handle, d: Handle,
        preferences: Handle, wanted: c_int, results: Out<HeuristicResult>, count: Out<c_int>,
    ) {
        let (problem, card) = problem(handle, operation, [a, b, c, d])?;
        let (limit, schemes) = descriptors::change(preferences, preference::TABLE, |preferences| {
            let limit = preferences.get(preference::MAX_WORKSPACE) as u64;
            Ok((limit, preferences.get(preference::REDUCTION_SCHEMES)))
        })?;
        if wanted <= 0 || results.is_null() || count.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let algorithm = MatmulAlgorithm::of(&problem, card, limit, schemes);
        CUBLASLT.estimated(algorithm.workspace());
        results.put(algorithm.result(&problem, card))?;
        count.put(1)
    }

    fn cublasLtMatmul(
        handle: Handle, operation: Handle, alpha: u64, a: u64, a_layout: Handle,
        b: u64, b_layout: Handle, beta: u64, c: u64, c_layout: Handle, d: u64, d_layout: Handle,
        algorithm: In<MatmulAlgorithm>, workspace: u64, bytes: usize, stream: Handle,
    ) {
        let (problem, card) = problem(handle, operation, [a_layout, b_layout, c_layout, d_layout])?;
        let bytes = bytes as u64;
        if bytes > 0 && (workspace == 0 || !workspace.is_multiple_of(ALIGNMENT)) {
            return Err(Code::INVALID_VALUE);
        }
        // Without an algorithm, the library chooses one for the workspace that it gets.
        let algorithm = match algorithm.is_null() {
            true => MatmulAlgorithm::of(&problem, card, bytes, preference::ALL_SCHEMES),
            false => algorithm.get()?,
        };
        if !algorithm.is_valid() || algorithm.workspace() > bytes {
            return Err(Code::INVALID_VALUE);
        }
        let matmul = Matmul {
            problem,
            addresses: [a, b, c, d],
            scales: [alpha, beta],
            workspace: (workspace, algorithm.workspace()),
        };
        with(|machine| {
            let context = library(machine, handle)?.context;
            let scales = matmul.scales_on_host(machine);
            matmul.check_addresses(scales)?;
            machine.stream_context(stream, context)?;
            machine.touch()?;
            if bytes != algorithm.limit() {
                CUBLASLT.allocated(bytes);
            }
            if problem.m > 0 && problem.n > 0 {
                machine.submit(stream, NodeKind::Kernel, move |machine| matmul.run(machine, scales));
            }
            Ok(())
        })
    }
}

fn library(machine: &mut Machine, handle: Handle) -> Answer<&mut Library> {
    machine.libraries.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
}

/// Returns a product that a handle is asked for, and the card of the handle.
fn problem(
    handle: Handle,
    operation: Handle,
    matrices: [Handle; 4],
) -> Answer<(MatmulProblem, &'static Card)> {
    with(|machine| {
        let context = library(machine, handle)?.context;
        let device = machine.context(context)?.device;
        let card = machine.devices[device].spec.card;
        Ok((MatmulProblem::new(machine, card, operation, matrices)?, card))
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasLtGetVersion() -> usize {
    VERSION as usize * 10
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasLtGetCudartVersion() -> usize {
    VERSION as usize
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasLtGetStatusName(status: c_int) -> *const c_char {
    cublas::text(status).as_ptr()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasLtGetStatusString(status: c_int) -> *const c_char {
    explanation(status).as_ptr()
}

/// The functions that do not return a status.
pub(crate) static OTHERS: &[Symbol] = &[
    Symbol { name: "cublasLtGetVersion", address: cublasLtGetVersion as *const () },
    Symbol { name: "cublasLtGetCudartVersion", address: cublasLtGetCudartVersion as *const () },
    Symbol { name: "cublasLtGetStatusName", address: cublasLtGetStatusName as *const () },
    Symbol { name: "cublasLtGetStatusString", address: cublasLtGetStatusString as *const () },
];

/// The library's own texts.
fn explanation(status: c_int) -> &'static CStr {
    match status {
        0 => c"success",
        1 => c"the library was not initialized",
        3 => c"the resource allocation failed",
        7 => c"an unsupported value or parameter was passed to the function",
        8 => c"the function requires an architectural feature absent from the device",
        11 => c"an access to GPU memory space failed",
        13 => c"the function failed to launch on the GPU",
        14 => c"an internal operation failed",
        15 => c"the requested functionality is not supported",
        16 => c"the license check failed",
        _ => c"unrecognized status",
    }
}
