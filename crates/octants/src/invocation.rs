//! A checked way to launch: arguments one by one, in the order of the parameters.

use std::sync::Arc;

use octants_hal::Cancel;
use octants_ir::Const;
use octants_runtime::{ArgumentError, Invocation as Checked, LiveStream, Memory};

use crate::array::NdArray;
use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};
use crate::gradient::Gradient;
use crate::kernel_source::KernelSource;
use crate::output::Locate;
use crate::recording::{Record, Recorder};
use crate::tape_memory::LoopMemory;

/// Arguments for one launch, put together one by one. Borrows the arrays until the launch is over.
pub struct Invocation<'a> {
    kernel: &'a CompiledKernel,
    checked: Checked<'a, KernelSource>,
    stream: Option<&'a LiveStream>,
    memories: Vec<&'a Memory>,
}

impl<'a> Invocation<'a> {
    pub fn new(kernel: &'a CompiledKernel) -> Self {
        Self { kernel, checked: Checked::new(kernel.plan()), stream: None, memories: Vec::new() }
    }

    /// Launches in this stream instead of the default one.
    #[must_use]
    pub fn on(self, stream: &'a LiveStream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The next argument is an array of the parameter's element type, rank and order.
    pub fn array(mut self, array: &'a NdArray) -> Result<Self, Error> {
        self.memories.push(array.memory());
        let checked =
            self.checked.ordered_array(array.memory(), array.element(), array.shape(), array.order());
        Ok(Self { checked: checked.map_err(refused)?, ..self })
    }

    /// The next argument is a scalar of the parameter's type, or a tensor or struct given by its scalars in the order of memory.
    pub fn scalar(self, entries: &[Const]) -> Result<Self, Error> {
        Ok(Self { checked: self.checked.data(entries).map_err(refused)?, ..self })
    }

    /// Runs the derivative that the arguments are for; gives the bytes of what it kept in arrays.
    pub fn launch_gradient(self, gradient: &Gradient, cancel: &Cancel) -> Result<u64, LaunchError> {
        let Self { kernel, checked, stream, memories } = self;
        if !std::ptr::eq(kernel, Arc::as_ptr(gradient.kernel())) {
            return Err(Error::invalid("these arguments are for another kernel").into());
        }
        if let Some(stream) = stream {
            for memory in &memories {
                kernel.before_launch(stream, memory)?;
            }
        }
        let ended = checked.with_arguments(gradient.params(), |args| gradient.launch(args, stream, cancel));
        let noted = stream.map_or(Ok(()), |stream| kernel.after_launch(stream, memories));
        let bytes = ended.map_err(refused)??;
        noted?;
        Ok(bytes)
    }

    /// What each parallel loop of the derivative keeps with these arguments; waits for it.
    pub fn kept_memory(self, gradient: &Gradient, cancel: &Cancel) -> Result<Vec<LoopMemory>, LaunchError> {
        let Self { checked, stream, .. } = self;
        checked
            .with_arguments(gradient.params(), |args| gradient.kept_memory(args, stream, cancel))
            .map_err(refused)?
    }

    /// Makes room for what a run with these arguments keeps, which the recorder's kernel does.
    pub fn begin_record(self, recorder: &Recorder, cancel: &Cancel) -> Result<Record, LaunchError> {
        let Self { checked, stream, .. } = self;
        let begun = checked.with_arguments(recorder.params(), |args| recorder.begin(args, stream, cancel));
        begun.map_err(refused)?
    }

    /// Runs the kernel and returns its results: the scalars of all of them, in order. What it prints is lost.
    pub fn launch(self, cancel: &Cancel) -> Result<Vec<Const>, LaunchError> {
        self.launch_printing(cancel, &|_| String::new()).1
    }

    /// Likewise, with what the kernel printed, also if it failed.
    pub fn launch_printing(
        self,
        cancel: &Cancel,
        locate: Locate<'_>,
    ) -> (String, Result<Vec<Const>, LaunchError>) {
        let Self { kernel, checked, stream, memories } = self;
        let layout = kernel.results();
        let mut block = vec![0; layout.bytes as usize];
        if let Some(stream) = stream {
            for memory in &memories {
                if let Err(error) = kernel.before_launch(stream, memory) {
                    return (String::new(), Err(error.into()));
                }
            }
        }
        let (text, mut ended) = kernel.launch_checked(checked, &mut block, stream, cancel, locate);
        if let Some(stream) = stream {
            let noted = kernel.after_launch(stream, memories);
            ended = ended.and(noted.map_err(Into::into));
        }
        let places = layout.slots.iter().zip(&layout.leaves).flat_map(|(slot, leaves)| {
            leaves.iter().map(|&(offset, scalar)| ((slot.offset + offset) as usize, scalar))
        });
        let scalars = || places.map(|(offset, scalar)| Const::from_bytes(scalar, &block[offset..])).collect();
        (text, ended.map(|()| scalars()))
    }
}

pub(crate) fn refused(error: ArgumentError) -> Error {
    match error {
        ArgumentError::Stale => Error::Stale { what: "array" },
        ArgumentError::OtherSession => Error::OtherSession { what: "array" },
        other => Error::invalid(other.to_string()),
    }
}
