//! What objects are to the language.

use octants::front::{Host, Intrinsic, Meaning};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple, PyType};

use super::{Object, PyHost, builtins};
use crate::arrays::buffer_view::BufferView;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::arrays::tree::Node;
use crate::host::func::Func;
use crate::host::template;
use crate::interop::numpy;
use crate::kernel::Kernel;
use crate::kernel::bound_kernel::BoundKernel;
use crate::values::dtype::{self, DataType, TypeLike};
use crate::values::expr::Expr;
use crate::values::{aggregate, host_only};

/// Modules whose functions are meant to run while compiling, so that no warning is due.
const KNOWN_MODULES: &[&str] =
    &["builtins", "math", "cmath", "operator", "numpy", "functools", "itertools", "octants"];

/// Builtins that the language gives a meaning to.
const BUILTINS: &[Intrinsic] = &[
    Intrinsic::Range,
    Intrinsic::Int,
    Intrinsic::Float,
    Intrinsic::Bool,
    Intrinsic::Len,
    Intrinsic::Print,
    Intrinsic::Any,
    Intrinsic::All,
    Intrinsic::Abs,
    Intrinsic::Min,
    Intrinsic::Max,
    Intrinsic::Pow,
    Intrinsic::Round,
    Intrinsic::Super,
];

/// The operators of numbers and strings.
const OPERATORS: &[&str] = &[
    "__add__",
    "__radd__",
    "__sub__",
    "__rsub__",
    "__mul__",
    "__rmul__",
    "__truediv__",
    "__rtruediv__",
    "__floordiv__",
    "__rfloordiv__",
    "__mod__",
    "__rmod__",
    "__pow__",
    "__rpow__",
    "__matmul__",
    "__rmatmul__",
    "__and__",
    "__rand__",
    "__or__",
    "__ror__",
    "__xor__",
    "__rxor__",
    "__lshift__",
    "__rlshift__",
    "__rshift__",
    "__rrshift__",
    "__neg__",
    "__pos__",
    "__invert__",
    "__abs__",
    "__bool__",
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
];

/// Whether a class derived from a number or a string gives operators a meaning of its own, so that its objects are no plain numbers. Numpy's numbers and
/// the members of enums calculate as numbers do.
#[cold]
fn has_own_operators(class: &Bound<'_, PyType>) -> bool {
    let module_of = |object: &Bound<'_, PyAny>| {
        object.getattr_opt("__module__").ok().flatten().map(|name| name.to_string()).unwrap_or_default()
    };
    let of_library = |module: &str| matches!(module.split('.').next(), Some("builtins" | "numpy" | "enum"));
    class.mro().iter().filter(|base| !of_library(&module_of(base))).any(|base| {
        let Ok(names) = base.getattr("__dict__") else { return false };
        let own = |name: &&str| names.get_item(*name).is_ok_and(|method| module_of(&method) != "enum");
        OPERATORS.iter().any(own)
    })
}

/// Whether a class derived from a container of Python's says itself what a loop gives, or how long it is. An `OrderedDict` only keeps an order.
#[cold]
fn has_own_items(class: &Bound<'_, PyType>) -> bool {
    let is_of_python = |base: &Bound<'_, PyAny>| {
        let module = base.getattr_opt("__module__").ok().flatten().map(|name| name.to_string());
        matches!(module.as_deref(), Some("builtins" | "collections"))
    };
    class.mro().iter().filter(|base| !is_of_python(base)).any(|base| {
        let has = |name: &str| base.getattr("__dict__").and_then(|names| names.contains(name));
        ["__iter__", "__len__"].into_iter().any(|name| has(name).unwrap_or(false))
    })
}

/// What an object of Python's own kinds of data is to the language; `None` for any other.
pub(super) fn of_plain<'py>(object: &Object<'py>) -> Option<Meaning<Object<'py>>> {
    let is_derived = || {
        !object.is_exact_instance_of::<PyInt>()
            && !object.is_exact_instance_of::<PyFloat>()
            && !object.is_exact_instance_of::<PyString>()
            && has_own_operators(&object.get_type())
    };
    Some(if object.is_none() {
        Meaning::None
    } else if let Ok(value) = object.cast::<PyBool>() {
        Meaning::Bool(value.is_true())
    } else if (object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>())
        && is_derived()
    {
        Meaning::Other
    } else if object.is_instance_of::<PyInt>() {
        object.extract().map_or(Meaning::Other, Meaning::Int)
    } else if let Ok(value) = object.cast::<PyFloat>() {
        Meaning::Float(value.value())
    } else if let Ok(value) = object.cast::<PyString>() {
        value.to_str().map_or(Meaning::Other, |text| Meaning::Str(text.to_owned()))
    } else if template::is_derived(object) && has_own_items(&object.get_type()) {
        Meaning::Other
    } else if object.is_instance_of::<PyTuple>() {
        Meaning::Tuple
    } else if object.is_instance_of::<PyList>() {
        Meaning::List
    } else if object.is_instance_of::<PyDict>() {
        Meaning::Dict
    } else {
        return None;
    })
}

/// Whether an object stays what it is to the language, whatever is done to it: it is known by its class and its marks, not by what it holds.
pub(super) fn is_lasting(meaning: &Meaning<Object<'_>>) -> bool {
    match meaning {
        Meaning::Dtype(_)
        | Meaning::Intrinsic(_)
        | Meaning::Func { receiver: None }
        | Meaning::Kernel
        | Meaning::Callable { .. }
        | Meaning::HostOnly
        | Meaning::Module
        | Meaning::Ndarray
        | Meaning::Field
        | Meaning::Node
        | Meaning::Other => true,
        Meaning::None
        | Meaning::Bool(_)
        | Meaning::Int(_)
        | Meaning::Float(_)
        | Meaning::Str(_)
        | Meaning::Tuple
        | Meaning::List
        | Meaning::Dict
        | Meaning::Func { receiver: Some(_) }
        | Meaning::Partial { .. }
        | Meaning::HostArray
        | Meaning::Tensor(_)
        | Meaning::Struct { .. }
        | Meaning::Expr(_) => false,
    }
}

impl<'py> PyHost<'py> {
    /// What an object that is none of Python's own kinds of data is to the language.
    pub(super) fn find_meaning(&self, object: &Object<'py>) -> Meaning<Object<'py>> {
        if let Ok(dtype) = object.cast::<DataType>() {
            return Meaning::Dtype(dtype.get().scalar);
        }
        if let Ok(expr) = object.cast::<Expr>() {
            return Meaning::Expr(expr.get().id);
        }
        if let Ok(func) = object.cast::<Func>() {
            return Meaning::Func { receiver: func.get().receiver.as_ref().map(|r| r.bind(self.py).clone()) };
        }
        if object.is_instance_of::<Kernel>() || object.is_instance_of::<BoundKernel>() {
            return Meaning::Kernel;
        }
        if object.is_instance_of::<Field>() {
            return Meaning::Field;
        }
        if object.is_instance_of::<Node>() {
            return Meaning::Node;
        }
        if object.is_instance_of::<Ndarray>() || object.is_instance_of::<BufferView>() {
            return Meaning::Ndarray;
        }
        if numpy::View::of(object).is_some() {
            return self.scalar_of_library(object).unwrap_or(Meaning::HostArray);
        }
        if object.is_instance_of::<PyModule>() {
            return Meaning::Module;
        }
        if let Some(meaning) = aggregate::meaning(object) {
            return meaning;
        }
        if let Some(intrinsic) = self.intrinsic(object) {
            return Meaning::Intrinsic(intrinsic);
        }
        if is_pyfunc(object) {
            return Meaning::Func { receiver: self.receiver(object) };
        }
        if let Some(partial) = self.partial(object) {
            return partial;
        }
        if let Some(TypeLike::Is(scalar)) = dtype::type_like(object) {
            return Meaning::Dtype(scalar);
        }
        if let Some(number) = self.scalar_of_library(object) {
            return number;
        }
        if object.is_callable() {
            if host_only::is_host_only(object) {
                return Meaning::HostOnly;
            }
            return Meaning::Callable { known: self.is_known_callable(object) };
        }
        Meaning::Other
    }

    /// The language's own callables carry a mark; builtins are known by identity.
    fn intrinsic(&self, object: &Object<'py>) -> Option<Intrinsic> {
        if object.is_instance_of::<PyCFunction>() || object.is_instance_of::<PyType>() {
            let name = object.getattr("__name__").ok()?;
            let name = name.cast::<PyString>().ok()?.to_str().ok()?.to_owned();
            let known = BUILTINS.iter().copied().find(|intrinsic| intrinsic.name() == name);
            if let Some(intrinsic) = known {
                let builtin = builtins(self.py).ok()?.getattr(intrinsic.name()).ok()?;
                if object.is(&builtin) {
                    return Some(intrinsic);
                }
            }
        }
        if !object.is_callable() {
            return None;
        }
        let mark = object.getattr_opt("__octants__").ok()??;
        Intrinsic::from_name(mark.cast::<PyString>().ok()?.to_str().ok()?)
    }

    fn is_known_callable(&self, object: &Object<'py>) -> bool {
        if object.is_instance_of::<PyCFunction>() {
            return true;
        }
        let Ok(module) = object.getattr("__module__") else { return true };
        let Ok(module) = module.cast::<PyString>() else { return true };
        let name = module.to_string();
        KNOWN_MODULES.contains(&name.split('.').next().unwrap_or_default())
    }

    /// `functools.partial` of a func, or of another callable of the language.
    fn partial(&self, object: &Object<'py>) -> Option<Meaning<Object<'py>>> {
        static PARTIAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = PARTIAL.import(self.py, "functools", "partial").ok()?;
        if !object.is_instance(class).ok()? {
            return None;
        }
        let function = object.getattr("func").ok()?;
        if !matches!(
            self.meaning(&function),
            Meaning::Func { .. } | Meaning::Intrinsic(_) | Meaning::Dtype(_)
        ) {
            return None;
        }
        let args = object.getattr("args").ok()?.cast_into::<PyTuple>().ok()?;
        let keywords = object.getattr("keywords").ok()?.cast_into::<PyDict>().ok()?;
        let named =
            |(name, value): (Object<'py>, _)| Some((name.extract().ok()?, tensor::into_unwrapped(value)));
        let args = args.iter().map(tensor::into_unwrapped).collect();
        Some(Meaning::Partial {
            function,
            args,
            keywords: keywords.iter().map(named).collect::<Option<_>>()?,
        })
    }

    /// Scalars of array libraries (`numpy.float32(1)`, a 0-d tensor) as the number that they are.
    fn scalar_of_library(&self, object: &Object<'py>) -> Option<Meaning<Object<'py>>> {
        if object.is_instance_of::<PyType>() || object.is_instance_of::<Ndarray>() {
            return None;
        }
        let shape = object.getattr_opt("shape").ok()??;
        if shape.len().ok()? != 0 {
            return None;
        }
        let item = object.call_method0("item").ok()?;
        if item.get_type().is(object.get_type()) {
            // `numpy.longdouble` has no type of Python's that it is an item of.
            return object.extract().ok().map(Meaning::Float);
        }
        match self.meaning(&item) {
            number @ (Meaning::Bool(_) | Meaning::Int(_) | Meaning::Float(_)) => Some(number),
            _ => None,
        }
    }
}

/// A plain function, or a method, that `@oc.pyfunc` marked.
fn is_pyfunc(object: &Bound<'_, PyAny>) -> bool {
    let marked = || object.getattr_opt("__octants__").ok().flatten()?.extract::<String>().ok();
    object.is_callable() && !object.is_instance_of::<PyType>() && marked().as_deref() == Some("func")
}
