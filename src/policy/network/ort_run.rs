//! A run of an ONNX Runtime session by its C interface. `ort`'s own way allocates lists of
//! names and values for every run, which nobody should do who decides while others wait.

use ort::session::Session;
use ort::{sys, AsPointer, Error};
use std::ffi::{c_char, c_void, CString};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};

/// More than any of our graphs has.
const MOST_INPUTS: usize = 3;

pub(super) struct Runner {
    session: Session,
    memory: Memory,
    inputs: Vec<CString>,
    output: CString,
}

impl Runner {
    pub fn new(session: Session) -> Result<Runner, Error> {
        let named = |name: &str| CString::new(name).map_err(|e| Error::new(e.to_string()));
        let [output] = session.outputs() else {
            return Err(Error::new("the graph has not one output"));
        };
        if session.inputs().len() > MOST_INPUTS {
            return Err(Error::new("the graph has too many inputs"));
        }
        let inputs = session.inputs().iter().map(|input| named(input.name()));
        Ok(Runner {
            inputs: inputs.collect::<Result<_, _>>()?,
            output: named(output.name())?,
            memory: Memory::of_the_cpu()?,
            session,
        })
    }

    /// Data that somebody else owns, as an input.
    pub fn tensor<'a, T: Element>(
        &self,
        data: &'a [T],
        dims: &[usize],
    ) -> Result<Tensor<'a>, Error> {
        // SAFETY: inputs are only read.
        unsafe { Tensor::new(&self.memory, data.as_ptr().cast_mut(), data.len(), dims) }
    }

    /// `inputs` in the order of the graph's; its output are `rows` numbers.
    pub fn run(
        &mut self,
        inputs: &[&Tensor<'_>],
        rows: usize,
        q: &mut Vec<f32>,
    ) -> Result<(), Error> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::new("the graph has other inputs"));
        }
        q.clear();
        q.resize(rows, f32::NAN);
        // SAFETY: `q` outlives the value and is used by nobody else meanwhile.
        let output =
            unsafe { Tensor::<'_>::new(&self.memory, q.as_mut_ptr(), q.len(), &[1, rows])? };
        let mut names: [*const c_char; MOST_INPUTS] = [null(); MOST_INPUTS];
        let mut values: [*const sys::OrtValue; MOST_INPUTS] = [null(); MOST_INPUTS];
        for (at, (name, value)) in self.inputs.iter().zip(inputs).enumerate() {
            (names[at], values[at]) = (name.as_ptr(), value.value.cast_const());
        }
        let output_name = self.output.as_ptr();
        let mut written = output.value;
        // SAFETY: as many names and values as is said, all of which live until it returns;
        // an output that is there already is written to, or an error if it does not fit.
        unsafe {
            Error::result_from_status((ort::api().Run)(
                self.session.ptr_mut(),
                null(),
                names.as_ptr(),
                values.as_ptr(),
                inputs.len(),
                &output_name,
                1,
                &mut written,
            ))
        }
    }
}

/// Where tensors lie.
struct Memory(*mut sys::OrtMemoryInfo);

// SAFETY: a description that nobody changes.
unsafe impl Send for Memory {}

impl Memory {
    fn of_the_cpu() -> Result<Memory, Error> {
        let mut info = null_mut();
        let (kind, of) = (
            sys::OrtAllocatorType::OrtDeviceAllocator,
            sys::OrtMemType::OrtMemTypeDefault,
        );
        // SAFETY: it writes a pointer, or fails.
        unsafe {
            Error::result_from_status((ort::api().CreateCpuMemoryInfo)(kind, of, &mut info))?;
        }
        Ok(Memory(info))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody has it any more.
        unsafe { (ort::api().ReleaseMemoryInfo)(self.0) }
    }
}

pub(super) trait Element {
    const TYPE: sys::ONNXTensorElementDataType;
}

impl Element for f32 {
    const TYPE: sys::ONNXTensorElementDataType =
        sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

impl Element for i64 {
    const TYPE: sys::ONNXTensorElementDataType =
        sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}

/// A view of data as ONNX Runtime knows it.
pub(super) struct Tensor<'a> {
    value: *mut sys::OrtValue,
    data: PhantomData<&'a ()>,
}

impl<'a> Tensor<'a> {
    /// # Safety
    /// `data` are `len` elements that live for `'a`, and nobody else uses them then if they
    /// are written to.
    unsafe fn new<T: Element>(
        memory: &Memory,
        data: *mut T,
        len: usize,
        dims: &[usize],
    ) -> Result<Tensor<'a>, Error> {
        let mut shape = [1i64; 2];
        if dims.len() > shape.len() || dims.iter().product::<usize>() != len {
            return Err(Error::new("the data has another shape"));
        }
        for (to, &from) in shape.iter_mut().zip(dims) {
            *to = from as i64;
        }
        let mut value = null_mut();
        Error::result_from_status((ort::api().CreateTensorWithDataAsOrtValue)(
            memory.0,
            data.cast::<c_void>(),
            len * size_of::<T>(),
            shape.as_ptr(),
            dims.len(),
            T::TYPE,
            &mut value,
        ))?;
        Ok(Tensor {
            value,
            data: PhantomData,
        })
    }
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours; the data stays with its owner.
        unsafe { (ort::api().ReleaseValue)(self.value) }
    }
}
