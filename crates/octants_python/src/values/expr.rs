//! A value of the kernel being lowered, in the hands of Python code that runs at compile time.
//!
//! Each operator hands over to the front end's tracer, which appends to the kernel. The tracer is reached through a stack of this
//! thread: an entry lives exactly as long as the host call that it was given to.

// The macro that PyO3 expands inside ours does not write the blocks that this lint asks for.
#![allow(unsafe_op_in_unsafe_fn)]
// A cast cannot change the lifetimes inside a trait object; that is all that the two transmutes do.
#![allow(clippy::transmute_ptr_to_ptr, clippy::transmute_ptr_to_ref)]

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use octants::front::host::{BinaryOp, CompareOp, HostOnly, UnaryOp};
use octants::front::{ExprId, TraceError, Tracer};
use pyo3::basic::CompareOp as RichCompare;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::gateway::{errors, interrupt};

type Object<'py> = Bound<'py, PyAny>;
type DynTracer = dyn Tracer<Object<'static>>;

/// Who runs on this thread.
#[derive(Clone, Copy)]
enum Running {
    /// Python code that a compilation called, with the way back into it.
    Host(*mut DynTracer),
    /// The compiler, which Python code called back.
    Compiler,
}

thread_local! {
    /// Compilations of this thread that wait for Python code, and Python code that waits for a compilation; the newest is last.
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// How many entries the stacks of all threads have: while there are none, nobody looks for that of its thread.
static ENTRIES: AtomicUsize = AtomicUsize::new(0);

/// An entry of the stack, while this lives.
struct Entry;

impl Entry {
    fn push(running: Running) -> Self {
        ENTRIES.fetch_add(1, Ordering::Relaxed);
        RUNNING.with_borrow_mut(|stack| stack.push(running));
        Self
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
        ENTRIES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes the tracer the current one while `run` runs.
pub fn tracing<'py, R>(tracer: &mut dyn Tracer<Object<'py>>, run: impl FnOnce() -> R) -> R {
    let pointer: *mut (dyn Tracer<Object<'py>> + '_) = tracer;
    // SAFETY: only the lifetimes change. The pointer is popped before `tracer` ends, also when `run` panics, and is used only on
    // this thread, which stays attached to the interpreter.
    let pointer: *mut DynTracer = unsafe { std::mem::transmute(pointer) };
    let _entry = Entry::push(Running::Host(pointer));
    run()
}

/// Refuses what the host alone may do, if Python code runs that a compilation called.
#[inline]
pub fn refuse(py: Python<'_>, what: HostOnly<'_>) -> PyResult<()> {
    // A thread sees its own entries, whatever the order of those of others.
    if ENTRIES.load(Ordering::Relaxed) == 0 { Ok(()) } else { refuse_inside(py, what) }
}

#[cold]
fn refuse_inside(py: Python<'_>, what: HostOnly<'_>) -> PyResult<()> {
    match RUNNING.with_borrow(|stack| stack.last().copied()) {
        Some(Running::Host(_)) if interrupt::is_in_handler(py) => Ok(()),
        Some(Running::Host(_)) => with_tracer(py, |tracer| Err::<(), TraceError>(tracer.host_only(what))),
        Some(Running::Compiler) | None => Ok(()),
    }
}

/// Whether Python code runs that a compilation called.
#[pyfunction]
pub fn is_compiling(py: Python<'_>) -> bool {
    matches!(RUNNING.with_borrow(|stack| stack.last().copied()), Some(Running::Host(_)))
        && !interrupt::is_in_handler(py)
}

/// Calls the current tracer.
fn with_tracer<'py, R>(
    py: Python<'py>,
    run: impl FnOnce(&mut dyn Tracer<Object<'py>>) -> Result<R, TraceError>,
) -> PyResult<R> {
    let Some(Running::Host(pointer)) = RUNNING.with_borrow(|stack| stack.last().copied()) else {
        return Err(PyRuntimeError::new_err(
            "a value of a kernel outlived the compilation that it belongs to",
        ));
    };
    // SAFETY: the entry is alive (see `tracing`), and the front end does not touch the tracer while it waits for the host call.
    let tracer: &mut dyn Tracer<Object<'py>> = unsafe { std::mem::transmute::<*mut DynTracer, _>(pointer) };
    let _entry = Entry::push(Running::Compiler);
    run(tracer).map_err(|error| errors::trace_error(py, &error))
}

#[pyclass(frozen, module = "octants")]
pub struct Expr {
    pub id: ExprId,
}

/// If the argument is an expression, the call as part of the kernel.
pub fn call_in_trace<'py>(callee: &Object<'py>, argument: &Object<'py>) -> Option<PyResult<Object<'py>>> {
    argument
        .is_instance_of::<Expr>()
        .then(|| with_tracer(callee.py(), |tracer| tracer.call(callee, std::slice::from_ref(argument), &[])))
}

/// A call of the language's own function from compile-time Python code, some argument being an expression.
#[pyfunction]
pub fn trace_call<'py>(
    callee: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Object<'py>> {
    let args: Vec<_> = args.iter().collect();
    let kwargs: Vec<(String, Object<'py>)> =
        kwargs.iter().map(|(name, value)| Ok((name.extract()?, value))).collect::<PyResult<_>>()?;
    with_tracer(callee.py(), |tracer| tracer.call(callee, &args, &kwargs))
}

fn binary<'py>(op: BinaryOp, a: &Object<'py>, b: &Object<'py>) -> PyResult<Object<'py>> {
    with_tracer(a.py(), |tracer| tracer.binary(op, a, b))
}

fn unary<'py>(op: UnaryOp, a: &Object<'py>) -> PyResult<Object<'py>> {
    with_tracer(a.py(), |tracer| tracer.unary(op, a))
}

macro_rules! operators {
    ($($name:ident $reflected:ident $op:ident),* $(,)?) => {
        #[pymethods]
        impl Expr {
            $(
                fn $name<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
                    binary(BinaryOp::$op, slf.as_any(), other)
                }
                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
                    binary(BinaryOp::$op, other, slf.as_any())
                }
            )*

            fn __pow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Object<'py>,
                _modulo: &Object<'py>,
            ) -> PyResult<Object<'py>> {
                binary(BinaryOp::Pow, slf.as_any(), other)
            }

            fn __rpow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Object<'py>,
                _modulo: &Object<'py>,
            ) -> PyResult<Object<'py>> {
                binary(BinaryOp::Pow, other, slf.as_any())
            }

            fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
                unary(UnaryOp::Neg, slf.as_any())
            }

            fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
                unary(UnaryOp::Pos, slf.as_any())
            }

            fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
                unary(UnaryOp::Invert, slf.as_any())
            }

            fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
                let abs = slf.py().import("builtins")?.getattr("abs")?;
                with_tracer(slf.py(), |tracer| tracer.call(&abs, &[slf.as_any().clone()], &[]))
            }

            fn __richcmp__<'py>(
                slf: &Bound<'py, Self>,
                other: &Object<'py>,
                op: RichCompare,
            ) -> PyResult<Object<'py>> {
                let op = match op {
                    RichCompare::Lt => CompareOp::Lt,
                    RichCompare::Le => CompareOp::Le,
                    RichCompare::Eq => CompareOp::Eq,
                    RichCompare::Ne => CompareOp::Ne,
                    RichCompare::Gt => CompareOp::Gt,
                    RichCompare::Ge => CompareOp::Ge,
                };
                with_tracer(slf.py(), |tracer| tracer.compare(op, slf.as_any(), other))
            }

            fn __hash__(&self) -> u64 {
                self.id.trace ^ (u64::from(self.id.index) << 32)
            }

            fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Object<'py>> {
                with_tracer(slf.py(), |tracer| tracer.getattr(slf.as_any(), name))
            }

            fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Object<'py>) -> PyResult<Object<'py>> {
                with_tracer(slf.py(), |tracer| tracer.getitem(slf.as_any(), index))
            }

            fn __setitem__<'py>(slf: &Bound<'py, Self>, index: &Object<'py>, value: &Object<'py>) -> PyResult<()> {
                with_tracer(slf.py(), |tracer| tracer.setitem(slf.as_any(), index, value))
            }

            #[pyo3(signature = (*args, **kwargs))]
            fn __call__<'py>(
                slf: &Bound<'py, Self>,
                args: &Bound<'py, PyTuple>,
                kwargs: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Object<'py>> {
                let named = kwargs.map_or_else(|| PyDict::new(slf.py()), Bound::clone);
                trace_call(slf.as_any(), args, &named)
            }

            /// The entries of a vector. Without this, Python would index on and on, waiting for an `IndexError`.
            fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
                let text = with_tracer(slf.py(), |tracer| Ok(tracer.describe(slf.as_any())))?;
                if text.contains("array") || text.contains("view") {
                    let message = format!(
                        "{text} cannot be iterated over by Python code that runs while compiling: its length is known only when \
                         the kernel runs; write a loop over it in the kernel"
                    );
                    return Err(errors::exception(slf.py(), "OctantsTypeError", &message));
                }
                let count: usize = with_tracer(slf.py(), |tracer| tracer.getattr(slf.as_any(), "n"))?.extract()?;
                let entries = (0..count).map(|index| slf.get_item(index)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(slf.py(), entries)?.try_iter()?.into_any())
            }

            fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
                Err(errors::exception(
                    slf.py(),
                    "OctantsTypeError",
                    "a value that is known only when the kernel runs cannot decide an `if`, `while` or `and` in a Python \
                     function that runs while compiling; make that function an @oc.func",
                ))
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                with_tracer(slf.py(), |tracer| Ok(tracer.describe(slf.as_any())))
            }
        }
    };
}

operators! {
    __add__ __radd__ Add,
    __sub__ __rsub__ Sub,
    __mul__ __rmul__ Mul,
    __truediv__ __rtruediv__ Div,
    __floordiv__ __rfloordiv__ FloorDiv,
    __mod__ __rmod__ Mod,
    __lshift__ __rlshift__ Shl,
    __rshift__ __rrshift__ Shr,
    __and__ __rand__ BitAnd,
    __or__ __ror__ BitOr,
    __xor__ __rxor__ BitXor,
    __matmul__ __rmatmul__ MatMul,
}
