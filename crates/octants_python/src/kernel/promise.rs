//! What `fastcache=True` promises: that a kernel depends on its arguments alone.

use std::borrow::Cow;

use octants::front::LowerOptions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Kernel;
use crate::session::runtime::ActiveSession;

impl Kernel {
    /// What the kernel is lowered under. Arguments that break a promise are warned of, and a kernel that gives none is named if the session asks
    /// for that.
    pub(super) fn lower_options<'a>(
        &self,
        py: Python<'_>,
        current: &'a ActiveSession,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<Cow<'a, LowerOptions>> {
        if !self.pure {
            if current.fastcache.names_others {
                let tell = py.import("octants._session.fastcache")?.getattr("tell_not_pure")?;
                tell.call1((&self.signature.name,))?;
            }
            return Ok(if self.graph {
                Cow::Owned(LowerOptions { graph: true, ..current.lower.clone() })
            } else {
                Cow::Borrowed(&current.lower)
            });
        }
        let pure = LowerOptions { pure: true, graph: self.graph, ..current.lower.clone() };
        if !current.fastcache.checked {
            return Ok(Cow::Owned(pure));
        }
        let objects = PyTuple::new(py, arguments.iter().map(ToOwned::to_owned))?;
        let names = self.signature.params.iter().map(|param| param.name.clone()).collect::<Vec<_>>();
        let check = py.import("octants._session.fastcache")?.getattr("check_arguments")?;
        check.call1((&self.signature.qualname, names, objects))?;
        Ok(Cow::Owned(pure))
    }
}
