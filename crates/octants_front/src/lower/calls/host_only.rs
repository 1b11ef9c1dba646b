//! What must not run while a kernel is being compiled: the package's own functions and methods that touch data, fields' layouts or
//! the session, and launches of kernels. The host says which they are ([`Meaning::HostOnly`](crate::host::Meaning)); it is a closed list
//! that says which are *not*.

use octants_diag::{Code, Diagnostic, Span};

use crate::host::{Host, HostOnly};
use crate::lower::Lowerer;

impl<H: Host> Lowerer<'_, H> {
    /// The refusal of something that only the host may do.
    pub(crate) fn host_only(&self, what: HostOnly<'_>, span: Span) -> Box<Diagnostic> {
        let name = match what {
            HostOnly::Launch => return self.kernel_in_kernel(span),
            HostOnly::Call(name) => name,
        };
        let method = name.rsplit('.').next().unwrap_or_default();
        let help = match method {
            "fill" | "_fill" => {
                "call `fill` in the kernel itself or in an `@oc.func`: there it is part of the kernel"
            }
            "copy_from" => "copy in a loop: `for I in oc.grouped(x): x[I] = y[I]`",
            "to_numpy" | "from_numpy" | "to_torch" | "from_torch" | "to_list" | "to_dlpack" | "numpy" => {
                "call it before or after the kernel; in the kernel, read and write elements: `x[i]`"
            }
            "__getitem__" | "__setitem__" => {
                "make the function an `@oc.func`: then elements are read and written when the kernel runs"
            }
            "size" => {
                "pass the view as an argument annotated `oc.BufferView`, and use an `@oc.func`: then its size is the launch's"
            }
            "init" | "reset" | "sync" => "call it outside of kernels; launches are in order without it",
            "field" | "ndarray" | "Ndarray" | "place" | "dense" | "finalize" => {
                "make fields and arrays outside of kernels, and pass them as arguments"
            }
            _ => "call it outside of kernels, and pass what it gives as an argument",
        };
        let message = match method {
            "__getitem__" => {
                "an element is read by Python code that runs while the kernel is being compiled".to_owned()
            }
            "__setitem__" => {
                "an element is written by Python code that runs while the kernel is being compiled".to_owned()
            }
            "size" => {
                "the size of a view is read by Python code that runs while the kernel is being compiled"
                    .to_owned()
            }
            _ => format!(
                "`{name}` is for the host: it touches data or the session, and would run once, while the kernel is being compiled"
            ),
        };
        self.error_with_help(Code::HostOnly, span, message, help)
    }

    pub(crate) fn kernel_in_kernel(&self, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::KernelInKernel,
            span,
            "Kernels cannot call other kernels, also not through Python code that runs while compiling",
            "make the callee an `@oc.func`, or launch the kernels one after the other",
        )
    }
}
