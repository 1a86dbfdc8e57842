//! cuDNN, as far as candle's feature `cudnn` calls it: convolutions forwards.
//!
//! The program allocates the workspace of a convolution with the size that cuDNN returns. That size
//! is an ESTIMATE ([`algorithms`]), and [`workspaces`](crate::workspaces()) lets every output mark it as
//! such.

mod algorithms;

use std::ffi::{CStr, c_char, c_int};

use algorithms::{Problem, TABLE};

use crate::code::{Answer, Code};
use crate::descriptors::Descriptor;
use crate::driver::current;
use crate::ffi::{self, In, Out, Symbol, exports};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Library, Machine, with};
use crate::workspaces::CUDNN;
use memcheck_kernels::{Convolution, Convolve, Kind, Memory as _, Tensor};

/// cuDNN 9.21.
const VERSION: usize = 92_100;

/// `CUDNN_TENSOR_NCHW`.
const NCHW: c_int = 0;

/// `cudnnConvolutionFwdAlgoPerf_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Performance {
    algorithm: c_int,
    status: c_int,
    milliseconds: f32,
    memory: usize,
    determinism: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

exports! { ffi::cudnn;
    fn cudnnCreate(handle: Out<Handle>) {
        handle.make(|machine| {
            let context = current::get();
            machine.context(context)?;
            machine.schedule.library()?;
            let handle = machine.handle();
            machine.libraries.insert(handle, Library { context, ..Library::default() });
            Ok(handle)
        })
    }

    fn cudnnDestroy(handle: Handle) {
        with(|machine| machine.libraries.remove(&handle).map(drop).ok_or(Code::INVALID_HANDLE))
    }

    fn cudnnSetStream(handle: Handle, stream: Handle) {
        with(|machine| {
            let context = library(machine, handle)?.context;
            machine.stream_context(stream, context)?;
            library(machine, handle)?.stream = stream;
            Ok(())
        })
    }

    fn cudnnGetStream(handle: Handle, stream: Out<Handle>) {
        stream.put(with(|machine| Ok(library(machine, handle)?.stream))?)
    }

    fn cudnnCreateTensorDescriptor(descriptor: Out<Handle>) {
        create(descriptor, Descriptor::EmptyTensor)
    }

    fn cudnnCreateFilterDescriptor(descriptor: Out<Handle>) {
        create(descriptor, Descriptor::EmptyFilter)
    }

    fn cudnnCreateConvolutionDescriptor(descriptor: Out<Handle>) {
        create(descriptor, Descriptor::EmptyConvolution)
    }

    fn cudnnDestroyTensorDescriptor(descriptor: Handle) {
        destroy(descriptor)
    }

    fn cudnnDestroyFilterDescriptor(descriptor: Handle) {
        destroy(descriptor)
    }

    fn cudnnDestroyConvolutionDescriptor(descriptor: Handle) {
        destroy(descriptor)
    }

    fn cudnnSetTensor4dDescriptor(
        descriptor: Handle, format: c_int, kind: c_int, n: c_int, c: c_int, h: c_int, w: c_int,
    ) {
        let tensor = Tensor::contiguous(kind_of(kind)?, sizes([n, c, h, w])?);
        set(descriptor, Descriptor::Tensor(in_format(format, tensor)?))
    }

    fn cudnnSetTensor4dDescriptorEx(
        descriptor: Handle, kind: c_int, n: c_int, c: c_int, h: c_int, w: c_int,
        of_n: c_int, of_c: c_int, of_h: c_int, of_w: c_int,
    ) {
        let strides = [of_n, of_c, of_h, of_w].map(u64::try_from);
        let [Ok(n_step), Ok(c_step), Ok(h_step), Ok(w_step)] = strides else {
            return Err(Code::NOT_SUPPORTED);
        };
        let (kind, dims) = (kind_of(kind)?, sizes([n, c, h, w])?);
        let strides = [n_step, c_step, h_step, w_step];
        set(descriptor, Descriptor::Tensor(Tensor { kind, dims, strides }))
    }

    fn cudnnSetFilter4dDescriptor(
        descriptor: Handle, kind: c_int, format: c_int, k: c_int, c: c_int, h: c_int, w: c_int,
    ) {
        let filter = Tensor::contiguous(kind_of(kind)?, sizes([k, c, h, w])?);
        set(descriptor, Descriptor::Filter(in_format(format, filter)?))
    }

    fn cudnnSetConvolution2dDescriptor(
        descriptor: Handle, pad_h: c_int, pad_w: c_int, of_h: c_int, of_w: c_int,
        dilation_h: c_int, dilation_w: c_int, mode: c_int, compute: c_int,
    ) {
        kind_of(compute)?;
        let pads = [pad_h, pad_w].map(|pad| u64::try_from(pad).map_err(|_| Code::INVALID_VALUE));
        let [strides_h, strides_w, h, w] = sizes([of_h, of_w, dilation_h, dilation_w])?;
        set(descriptor, Descriptor::Convolution(Convolution {
            pads: [pads[0]?, pads[1]?],
            strides: [strides_h, strides_w],
            dilations: [h, w],
            groups: 1,
            is_reversed: mode == 0,
        }))
    }

    fn cudnnSetConvolutionMathType(descriptor: Handle, _math: c_int) {
        with(|machine| convolution(machine, descriptor).map(drop))
    }

    fn cudnnSetConvolutionGroupCount(descriptor: Handle, groups: c_int) {
        let groups = u64::try_from(groups).ok().filter(|&groups| groups > 0);
        with(|machine| {
            let all = convolution(machine, descriptor)?;
            let groups = groups.ok_or(Code::INVALID_VALUE)?;
            let changed = Descriptor::Convolution(Convolution { groups, ..all });
            machine.descriptors.insert(descriptor, changed);
            Ok(())
        })
    }

    fn cudnnGetConvolutionForwardAlgorithmMaxCount(handle: Handle, count: Out<c_int>) {
        with(|machine| library(machine, handle).map(drop))?;
        count.put(TABLE.len() as c_int)
    }

    fn cudnnGetConvolutionForwardAlgorithm_v7(
        handle: Handle, x: Handle, w: Handle, conv: Handle, y: Handle, wanted: c_int,
        count: Out<c_int>, results: Out<Performance>,
    ) {
        let problem = problem(handle, [x, w, conv, y])?;
        let room = usize::try_from(wanted).map_err(|_| Code::INVALID_VALUE)?;
        if results.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let results = results.address();
        let usable = TABLE.iter().filter_map(|row| Some((row, row.workspace(&problem)?)));
        let mut written = 0;
        for (index, (row, bytes)) in usable.take(room).enumerate() {
            let result = Performance {
                algorithm: row.number,
                status: 0,
                // Not measured, as cuDNN states it for a heuristic.
                milliseconds: -1.0,
                memory: bytes as usize,
                determinism: 1,
                math: 0,
                reserved: [0; 3],
            };
            // SAFETY: the caller passes an array with room for `wanted` results.
            unsafe { results.add(index).write(result) };
            written += 1;
        }
        count.put(written)
    }

    fn cudnnGetConvolutionForwardWorkspaceSize(
        handle: Handle, x: Handle, w: Handle, conv: Handle, y: Handle, algorithm: c_int,
        size: Out<usize>,
    ) {
        let bytes = workspace(&problem(handle, [x, w, conv, y])?, algorithm)?;
        CUDNN.count(bytes);
        size.put(usize::try_from(bytes).map_err(|_| Code::NOT_SUPPORTED)?)
    }

    fn cudnnConvolutionForward(
        handle: Handle, alpha: In<f32>, x_desc: Handle, x: u64, w_desc: Handle, w: u64,
        conv: Handle, algorithm: c_int, workspace_at: u64, workspace_bytes: usize, beta: In<f32>,
        y_desc: Handle, y: u64,
    ) {
        let problem = problem(handle, [x_desc, w_desc, conv, y_desc])?;
        let needed = workspace(&problem, algorithm)?;
        if needed > workspace_bytes as u64 || (needed > 0 && workspace_at == 0) {
            return Err(Code::INVALID_VALUE);
        }
        // The scales are on the host, in f32 unless the tensors are in f64.
        let scales = match problem.output.kind {
            Kind::F64 => [alpha.cast::<f64>().get()?, beta.cast::<f64>().get()?],
            _ => [f64::from(alpha.get()?), f64::from(beta.get()?)],
        };
        with(|machine| {
            let Library { context, stream, .. } = *library(machine, handle)?;
            machine.stream_context(stream, context)?;
            machine.touch()?;
            let Problem { image, filter, output, convolution } = problem;
            machine.submit(stream, NodeKind::Kernel, move |machine| {
                machine.launched();
                if needed > 0 {
                    machine.overwritten(workspace_at, needed);
                }
                let addresses = [x, w, y];
                let convolve = Convolve { image, filter, output, convolution, addresses };
                convolve.run(machine, scales == [1.0, 0.0]);
            });
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetVersion() -> usize {
    VERSION
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetCudartVersion() -> usize {
    crate::version::VERSION as usize
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetErrorString(status: c_int) -> *const c_char {
    let text: &CStr = match status {
        0 => c"CUDNN_STATUS_SUCCESS",
        1001 => c"CUDNN_STATUS_NOT_INITIALIZED",
        2000 => c"CUDNN_STATUS_BAD_PARAM",
        3000 => c"CUDNN_STATUS_NOT_SUPPORTED",
        5000 => c"CUDNN_STATUS_EXECUTION_FAILED",
        _ => c"<unknown>",
    };
    text.as_ptr()
}

/// The functions that do not return a status.
pub(crate) static OTHERS: &[Symbol] = &[
    Symbol { name: "cudnnGetVersion", address: cudnnGetVersion as *const () },
    Symbol { name: "cudnnGetCudartVersion", address: cudnnGetCudartVersion as *const () },
    Symbol { name: "cudnnGetErrorString", address: cudnnGetErrorString as *const () },
];

fn library(machine: &mut Machine, handle: Handle) -> Answer<&mut Library> {
    machine.libraries.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
}

fn create(to: Out<Handle>, descriptor: Descriptor) -> Answer {
    to.make(|machine| {
        let handle = machine.handle();
        machine.descriptors.insert(handle, descriptor);
        Ok(handle)
    })
}

fn destroy(handle: Handle) -> Answer {
    with(|machine| machine.descriptors.remove(&handle).map(drop).ok_or(Code::INVALID_VALUE))
}

/// Sets a descriptor, which must have been created for this kind.
fn set(handle: Handle, new: Descriptor) -> Answer {
    use Descriptor as D;
    with(|machine| {
        let old = machine.descriptors.get_mut(&handle).ok_or(Code::INVALID_VALUE)?;
        match (&*old, new) {
            (D::EmptyTensor | D::Tensor(_), D::Tensor(_))
            | (D::EmptyFilter | D::Filter(_), D::Filter(_))
            | (D::EmptyConvolution | D::Convolution(_), D::Convolution(_)) => *old = new,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    })
}

fn convolution(machine: &Machine, handle: Handle) -> Answer<Convolution> {
    match machine.descriptors.get(&handle) {
        Some(&Descriptor::Convolution(convolution)) => Ok(convolution),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The types in which cuDNN computes convolutions of tensors without vectors.
fn kind_of(number: c_int) -> Answer<Kind> {
    Ok(match number {
        0 => Kind::F32,
        1 => Kind::F64,
        2 => Kind::F16,
        9 => Kind::Bf16,
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

fn sizes(sizes: [c_int; 4]) -> Answer<[u64; 4]> {
    match sizes.map(|size| u64::try_from(size).ok().filter(|&size| size > 0)) {
        [Some(a), Some(b), Some(c), Some(d)] => Ok([a, b, c, d]),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn in_format(format: c_int, tensor: Tensor) -> Answer<Tensor> {
    if format == NCHW { Ok(tensor) } else { Err(Code::NOT_SUPPORTED) }
}

/// Reads the descriptors of image, filter, convolution and output, and checks that their shapes
/// agree.
fn problem(handle: Handle, descriptors: [Handle; 4]) -> Answer<Problem> {
    use Descriptor as D;
    with(|machine| {
        library(machine, handle)?;
        let found = descriptors.map(|handle| machine.descriptors.get(&handle).copied());
        let [
            Some(D::Tensor(image)),
            Some(D::Filter(filter)),
            Some(D::Convolution(convolution)),
            Some(D::Tensor(output)),
        ] = found
        else {
            return Err(Code::INVALID_VALUE);
        };
        let side =
            |axis: usize| convolution.output(axis, image.dims[2 + axis], filter.dims[2 + axis]);
        let expected = [Some(image.dims[0]), Some(filter.dims[0]), side(0), side(1)];
        let is_equal = image.kind == filter.kind && image.kind == output.kind;
        if !is_equal
            || expected != output.dims.map(Some)
            || Some(image.dims[1]) != filter.dims[1].checked_mul(convolution.groups)
            || filter.dims[0] % convolution.groups != 0
        {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Problem { image, filter, output, convolution })
    })
}

fn workspace(problem: &Problem, algorithm: c_int) -> Answer<u64> {
    let row = algorithms::find(algorithm).ok_or(Code::NOT_SUPPORTED)?;
    row.workspace(problem).ok_or(Code::NOT_SUPPORTED)
}
