//! Random numbers.

use octants_diag::{Code, Span};
use octants_ir::Scalar;

use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// `random(dtype=float)`: a real in `[0, 1)`, or an integer of all values of its type.
    pub(crate) fn random_call(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [dtype] = self.parameters(Intrinsic::Random, arguments, ["dtype"], 0, span)?;
        let scalar = match dtype {
            Some(dtype) if !matches!(dtype.term, Term::None) => self.dtype(&dtype.term, dtype.span)?,
            _ => self.options.default_fp,
        };
        if scalar == Scalar::U1 {
            return Err(self.error_with_help(
                Code::NotADtype,
                span,
                "`random` does not give booleans",
                "compare a real: `oc.random() < 0.5`",
            ));
        }
        Ok(Term::Value(self.at(span).random(scalar)))
    }
}
