//! The code of a kernel's derivatives, and why there is none.

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::front::{Lowered, Returns};
use octants::ir::Scalar;
use octants::{Cancel, Gradient, Mode, Refusal, ir};
use pyo3::prelude::*;

use super::{CodeKind, Kernel};
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::gateway::under_way::Outside;
use crate::gateway::{errors, stack};
use crate::kernel::derivative_errors;
use crate::launch::{CompanionKind, DerivativeKind, DerivativePlan, Specialisation, companions, storage};
use crate::session::runtime::ActiveSession;

impl Kernel {
    /// The code of a derivative. `in_tape` says that the run is recorded, and that nothing of it can be kept.
    #[cold]
    #[expect(clippy::too_many_arguments)]
    pub(super) fn differentiate<'py>(
        &self,
        py: Python<'py>,
        current: &ActiveSession,
        kind: DerivativeKind,
        lowered: &Lowered<Bound<'py, PyAny>>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        in_tape: bool,
        cancel: &Cancel,
    ) -> PyResult<Specialisation> {
        let Lowered { kernel, dependencies, fields, returns, .. } = lowered;
        let companions = companions(kernel, kind, dependencies, fields, arguments)?;
        let storage = |of| storage(kernel, of, &companions);
        let (mode, session) = (kind.mode(), &current.session);
        let made = match kind {
            DerivativeKind::Forward | DerivativeKind::Reverse => {
                let of = if mode == Mode::Forward { CompanionKind::Dual } else { CompanionKind::Grad };
                let storage = storage(of)?;
                py.outside(|| stack::with_enough(|| session.differentiate(kernel, mode, &storage, cancel)))
            }
            DerivativeKind::ForwardOverReverse => {
                let (grads, duals) = (storage(CompanionKind::Grad)?, storage(CompanionKind::Dual)?);
                let grad_duals = storage(CompanionKind::GradDual)?;
                py.outside(|| {
                    stack::with_enough(|| {
                        session.differentiate_twice(kernel, &grads, &duals, &grad_duals, cancel)
                    })
                })
            }
        };
        let gradient = made.map_err(|error| errors::from_error(py, &error))?.map_err(|mut refusals| {
            if in_tape || kind == DerivativeKind::ForwardOverReverse {
                // The run was in a tape, and nothing of it was kept.
                refusals.iter_mut().for_each(Refusal::cannot_be_kept);
            }
            self.no_derivative(py, kernel, mode, &refusals)
        })?;
        self.tell_dropped(py, kernel, mode, &gradient)?;
        let returns = match mode {
            Mode::Forward => returns.clone(),
            Mode::Reverse => Returns::Nothing,
        };
        let plan = DerivativePlan::new(kernel, &gradient, self.runtime.get().sources().map());
        Specialisation::of_derivative(current.epoch, gradient, returns, lowered, &companions, plan)
    }

    /// Warns of what is lost by fields without memory for derivatives.
    pub(super) fn tell_dropped(
        &self,
        py: Python<'_>,
        kernel: &ir::Kernel,
        mode: Mode,
        gradient: &Gradient,
    ) -> PyResult<()> {
        let warnings = derivative_errors::dropped(kernel, mode, gradient.dropped());
        errors::warn(py, &warnings, self.runtime.get().sources().map())
    }

    /// Why there is no derivative that is right.
    pub(super) fn no_derivative(
        &self,
        py: Python<'_>,
        kernel: &ir::Kernel,
        mode: Mode,
        refusals: &[Refusal],
    ) -> PyErr {
        let diagnostics = derivative_errors::refused(kernel, mode, refusals);
        errors::from_diagnostics(py, &diagnostics, self.runtime.get().sources().map())
    }

    /// Refuses to compute the gradients of a call none of whose arrays has any.
    #[cold]
    pub(super) fn require_some_derivatives(
        &self,
        py: Python<'_>,
        what: CodeKind,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<()> {
        let holds_reals = |object: &Bound<'_, PyAny>| {
            let array = tensor::unwrapped(object).cast::<Ndarray>();
            array.is_ok_and(|array| array.get().array.element().elem().is_some_and(Scalar::is_real))
        };
        let without = self.params.iter().zip(arguments).filter(|(_, object)| holds_reals(object));
        let names: Vec<_> = without.map(|(param, _)| format!("`{}`", param.name())).collect();
        if names.is_empty() || what != CodeKind::Derivative(DerivativeKind::Reverse) {
            return Ok(());
        }
        let text = format!(
            "Gradients of {} are not allocated, so that `{}.grad` has nothing to compute",
            names.join(", "),
            self.signature.name
        );
        let diagnostic = Diagnostic::new(Code::DerivativeArguments, text).help(
            "make the ndarrays with `needs_grad=True`; what the kernel reads there are constants otherwise",
        );
        Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()))
    }
}
