//! Arguments of funcs and real functions whose parameters are annotated as arrays or views: checked as a kernel's are.

use octants_diag::{Code, Diagnostic};
use octants_ir::{Boundary, Type, Value};

use crate::ast::Param;
use crate::host::{Annotation, ArrayAnnotation, Host};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// An array, view or, for `oc.Tensor`, any of these or a field, as the annotation says.
    pub(crate) fn array_argument(
        &mut self,
        argument: Argument<H::Object>,
        annotation: &Annotation,
        param: &Param,
    ) -> Fallible<Term<H::Object>> {
        let span = argument.span;
        let term = self.rvalue(argument.term, span)?;
        match (annotation, &term) {
            (Annotation::Array(wanted), Term::Array(array)) => {
                self.check_passed_array(*array, wanted, param, span)?;
            }
            (Annotation::View(wanted), Term::View(view)) => {
                self.check_passed_array(view.array, wanted, param, span)?;
            }
            (Annotation::Array(wanted), Term::None) if wanted.optional => {}
            (Annotation::AnyTensor, Term::Array(_) | Term::None) => {}
            (Annotation::AnyTensor, field) if self.is_field_or_node(field) => {}
            _ => return Err(self.not_such_an_array(&term, annotation, param, span)),
        }
        Ok(term)
    }

    fn check_passed_array(
        &self,
        array: Value,
        wanted: &ArrayAnnotation,
        param: &Param,
        span: octants_diag::Span,
    ) -> Fallible<()> {
        let Type::Array(ty) = self.kernel.ty(array) else { return Ok(()) };
        let annotated = |error: Diagnostic| Box::new(error.label(param.span, "annotated here"));
        self.check_array(ty, wanted, &param.name, span).map_err(|error| annotated(*error))?;
        if wanted.boundary == Boundary::Clamp && ty.boundary != Boundary::Clamp {
            let message = format!("argument '{}' must be an array whose indices are clamped", param.name);
            return Err(annotated(
                self.diagnostic(Code::ArrayMismatch, span, message)
                    .help("write `boundary=\"clamp\"` in the annotation of the kernel's parameter, too"),
            ));
        }
        Ok(())
    }

    fn not_such_an_array(
        &mut self,
        term: &Term<H::Object>,
        annotation: &Annotation,
        param: &Param,
        span: octants_diag::Span,
    ) -> Box<Diagnostic> {
        let what = self.describe(term);
        let wanted = match annotation {
            Annotation::View(_) => "a BufferView",
            Annotation::AnyTensor => "an array, a field or None",
            Annotation::Array(wanted) if wanted.optional => "an array or None",
            _ => "an array",
        };
        let help = match (annotation, term) {
            (Annotation::View(_), Term::Array(_)) => {
                "write `oc.BufferView(a, 0, a.shape[0])` for a view of all of it"
            }
            (Annotation::View(_), field) if self.is_field_or_node(field) => {
                "a field has no views: annotate the parameter `oc.template()`, or leave the annotation out"
            }
            (_, Term::View(_)) => "annotate the parameter `oc.BufferView`, or leave the annotation out",
            (_, field) if self.is_field_or_node(field) => {
                "annotate the parameter `oc.template()`, or leave the annotation out"
            }
            _ => "pass what the annotation says, or change it",
        };
        let message = format!("argument '{}' must be {wanted}, not {what}", param.name);
        let error = self.diagnostic(Code::ArgumentKind, span, message);
        Box::new(error.label(param.span, "annotated here").help(help))
    }
}
