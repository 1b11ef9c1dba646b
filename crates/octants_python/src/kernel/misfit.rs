//! The error for code that was made for arguments a moment ago and does not fit them.

use octants::diag::{Code, Diagnostic};
use pyo3::prelude::*;

use super::Kernel;
use crate::gateway::errors;
use crate::host::evaluation::ChangedMember;
use crate::launch::{Misfit, Specialisation};

/// Longer texts of values are not shown.
const MAX_SHOWN: usize = 60;

/// How often everything is read again: what alternates between two values fits every other time.
const MAX_READINGS: usize = 3;

impl Kernel {
    /// A member is not any more what the kernel was compiled for, whatever it was read for.
    #[cold]
    pub(super) fn changed_member(&self, py: Python<'_>, changed: &ChangedMember<'_>) -> PyErr {
        let text = format!(
            "Member `{}` changed while the kernel was compiled for it: it is now {}",
            changed.path,
            shown(&changed.now)
        );
        let mark = format!("the kernel `{}`", self.signature.name);
        let diagnostic = Diagnostic::new(Code::ArgumentType, text).at(self.signature.span).marked(mark).help(
            "a Python function that a kernel calls must not change what the kernel reads: call it before the launch",
        );
        errors::from_diagnostic(py, diagnostic, self.runtime.get().sources().map())
    }

    /// Names what is another thing each time that it is read, and the parameter that leads there.
    #[cold]
    pub(super) fn misfit<'py>(
        &self,
        py: Python<'py>,
        code: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
    ) -> PyResult<PyErr> {
        let at_kernel = |text| {
            let mark = format!("the kernel `{}`", self.signature.name);
            Diagnostic::new(Code::ArgumentType, text).at(self.signature.span).marked(mark)
        };
        let mut help =
            "a kernel is compiled for what it reads: take the value once, before the launch, and pass that";
        let mut found = Misfit::Passed;
        for _ in 0..MAX_READINGS {
            found = code.misfit(py, arguments)?;
            if !matches!(found, Misfit::Passed) {
                break;
            }
        }
        let diagnostic = match found {
            Misfit::Input { argument, steps, now } => {
                let param = argument.and_then(|argument| self.params.get(argument));
                let place = match param {
                    Some(param) => format!("`{}{steps}`", param.name()),
                    None => format!("`{}` of a captured object", steps.trim_start_matches('.')),
                };
                let now = now.map_or_else(|| "not there any more".to_owned(), |now| shown(&now));
                let text = if steps.is_empty() {
                    help = "pass a value of the type that the parameter is annotated with";
                    format!("Argument {place} does not fit the code that was made for it: it is now {now}")
                } else {
                    format!("Member {place} changed while the kernel was compiled for it: it is now {now}")
                };
                match param {
                    Some(param) => param.diagnostic(Code::ArgumentType, text),
                    None => at_kernel(text),
                }
            }
            Misfit::Passed => at_kernel(
                "something that the kernel reads changed while the kernel was compiled for it".to_owned(),
            ),
        };
        let sources = self.runtime.get().sources();
        Ok(errors::from_diagnostic(py, diagnostic.help(help), sources.map()))
    }
}

/// What an object is, in a few words: as Python writes it, or its class.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let text = object.repr().map(|text| text.to_string()).unwrap_or_default();
    let class = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let is_short = !text.is_empty() && !text.starts_with('<') && !text.contains('\n');
    if is_short && text.chars().count() <= MAX_SHOWN {
        format!("{text}, of type {class}")
    } else {
        format!("of type {class}")
    }
}
