//! A checked way to launch: arguments one by one, in the order of the parameters.

use std::sync::atomic::AtomicBool;

use octants_ir::{Const, TensorShape};
use octants_runtime::{ArgumentError, Invocation as Checked};

use crate::array::{NdArray, decode};
use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};
use crate::recipe::Recipe;

/// Arguments for one launch, put together one by one. Borrows the arrays until the launch is over.
pub struct Invocation<'a> {
    kernel: &'a CompiledKernel,
    checked: Checked<'a, Recipe>,
}

impl<'a> Invocation<'a> {
    pub fn new(kernel: &'a CompiledKernel) -> Self {
        Self { kernel, checked: Checked::new(kernel.plan()) }
    }

    /// The next argument is an array of the parameter's element type and rank.
    pub fn array(self, array: &'a NdArray) -> Result<Self, Error> {
        let checked = self.checked.array(array.memory(), array.element(), array.shape());
        Ok(Self { checked: checked.map_err(refused)?, ..self })
    }

    /// The next argument is a scalar of the parameter's type, or a tensor given by its entries.
    pub fn scalar(self, entries: &[Const]) -> Result<Self, Error> {
        Ok(Self { checked: self.checked.data(entries).map_err(refused)?, ..self })
    }

    /// Runs the kernel and returns its results: the entries of all of them, in order.
    pub fn launch(self, cancel: &AtomicBool) -> Result<Vec<Const>, LaunchError> {
        let layout = self.kernel.results();
        let mut block = vec![0; layout.bytes as usize];
        self.checked.launch(&mut block, cancel).map_err(refused)?.map_err(|f| self.kernel.explain(f))?;
        let mut entries = Vec::new();
        for slot in &layout.slots {
            let Some(scalar) = slot.data.elem() else {
                return Err(Error::invalid("a result is a struct, which has no entries").into());
            };
            let count = slot.data.tensor_shape().map_or(1, TensorShape::count) as usize;
            let bytes = block[slot.offset as usize..].chunks_exact(scalar.bytes() as usize);
            entries.extend(bytes.take(count).map(|one| decode(scalar, one)));
        }
        Ok(entries)
    }
}

fn refused(error: ArgumentError) -> Error {
    match error {
        ArgumentError::Stale => Error::Stale { what: "array" },
        ArgumentError::OtherSession => Error::OtherSession { what: "array" },
        other => Error::invalid(other.to_string()),
    }
}
