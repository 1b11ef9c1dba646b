//! Calls: inlined funcs, functions of the kernel's own, host code, `print`. The language's own callables are in `intrinsic`.

pub(crate) mod array_argument;
pub(crate) mod call;
pub(crate) mod captures;
pub(crate) mod fill;
pub(crate) mod func;
pub(crate) mod host_only;
pub(crate) mod print;
pub(crate) mod real_func;
pub(crate) mod special_methods;
pub(crate) mod trace;
