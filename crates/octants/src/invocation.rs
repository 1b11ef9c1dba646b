//! A checked way to launch: arguments one by one, in the order of the parameters.

use std::sync::atomic::AtomicBool;

use octants_ir::Const;

use crate::array::NdArray;
use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};

/// Arguments for one launch, put together one by one. Borrows the arrays until the launch is over.
pub struct Invocation<'a> {
    kernel: &'a CompiledKernel,
    given: usize,
}

impl<'a> Invocation<'a> {
    pub fn new(kernel: &'a CompiledKernel) -> Self {
        Self { kernel, given: 0 }
    }

    /// The next argument is an array of the parameter's element type and rank.
    pub fn array(mut self, array: &'a NdArray) -> Result<Self, Error> {
        self.given += 1;
        array.address(self.kernel.session()).map(|_| self)
    }

    /// The next argument is a scalar of the parameter's type, or a tensor given by its entries.
    pub fn scalar(mut self, entries: &[Const]) -> Result<Self, Error> {
        self.given += entries.len();
        Ok(self)
    }

    /// Runs the kernel and returns its results: the entries of all of them, in order.
    pub fn launch(self, cancel: &AtomicBool) -> Result<Vec<Const>, LaunchError> {
        let _ = cancel;
        Err(LaunchError::Refused(Error::internal("launch", "no device runs yet")))
    }
}
