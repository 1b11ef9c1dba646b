//! What `fastcache=True` promises: that a kernel depends on its arguments alone.

use std::borrow::Cow;

use octants::front::LowerOptions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Kernel;

impl Kernel {
    /// What the kernel is lowered under. Arguments that break a promise are warned of.
    pub(super) fn lower_options<'a>(
        &self,
        py: Python<'_>,
        session: &'a LowerOptions,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<Cow<'a, LowerOptions>> {
        if !self.pure {
            return Ok(Cow::Borrowed(session));
        }
        let objects = PyTuple::new(py, arguments.iter().map(ToOwned::to_owned))?;
        let names = self.signature.params.iter().map(|param| param.name.clone()).collect::<Vec<_>>();
        let check = py.import("octants._fastcache")?.getattr("check_arguments")?;
        check.call1((&self.signature.qualname, names, objects))?;
        Ok(Cow::Owned(LowerOptions { pure: true, ..session.clone() }))
    }
}
