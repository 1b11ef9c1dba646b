//! Functions of Python's whose results follow from their arguments, where these never change: there is no need to call them again.
//!
//! Of Python's own, of numpy's and of ours that is a matter of lists. Of a user's function it is told from its instructions: it may calculate, make and
//! fill containers of its own, and call functions that are such again. The names that it reads are noted, and compared at each launch.

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyFunction, PyModule, PyString, PyTuple, PyType};

use super::record::{has_no_attributes, is_own_handle, is_steady_value};
use crate::host::template;
use crate::interop::numpy;

/// Builtins that read or change more than they are given, and those that are asked what an object of the user's holds.
const IMPURE_BUILTINS: &[&str] = &[
    "__import__",
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "getattr",
    "globals",
    "hasattr",
    "id",
    "input",
    "locals",
    "next",
    "open",
    "setattr",
    "vars",
    "dir",
];

/// Modules whose functions only calculate with what they are given.
const PURE_MODULES: &[&str] = &[
    "math",
    "cmath",
    "operator",
    "_operator",
    "numpy",
    "itertools",
    "_functools",
    "functools",
    "octants",
    "numbers",
];

/// Methods of Python's containers that change them.
const MUTATING: &[&str] = &[
    "__setitem__",
    "__delitem__",
    "add",
    "append",
    "appendleft",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "extendleft",
    "insert",
    "intersection_update",
    "pop",
    "popitem",
    "popleft",
    "remove",
    "reverse",
    "rotate",
    "setdefault",
    "sort",
    "symmetric_difference_update",
    "update",
];

/// Functions and classes of numpy's that read files or settings, or change them.
const IMPURE_NUMPY: &[&str] = &[
    "DataSource",
    "array2string",
    "array_repr",
    "array_str",
    "errstate",
    "fromfile",
    "fromregex",
    "genfromtxt",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "load",
    "loadtxt",
    "memmap",
    "open_memmap",
    "printoptions",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
];

/// How deep functions may call each other. Chosen, not measured.
const MAX_DEPTH: usize = 8;

/// What is known of a callable.
pub enum Purity<'py> {
    Pure,
    /// As long as the receiver holds what it holds.
    Method(Bound<'py, PyAny>),
    /// A function of the user's.
    Unknown(Bound<'py, PyFunction>),
    Impure,
}

/// The name of the module that an object is from. A function that wraps another one takes over what that says of itself, but has names of its own.
fn module_of(object: &Bound<'_, PyAny>) -> Option<String> {
    let module = match object.cast::<PyFunction>() {
        Ok(function) => function.getattr("__globals__").ok()?.get_item("__name__").ok()?,
        Err(_) => object.getattr_opt("__module__").ok()??,
    };
    Some(module.cast::<PyString>().ok()?.to_string())
}

/// Whether one of numpy's reads or changes more than it is given, or calls a function of the user's.
fn is_impure_numpy(callee: &Bound<'_, PyAny>) -> bool {
    let name =
        |object: &Bound<'_, PyAny>| object.getattr("__name__").and_then(|name| name.extract::<String>());
    name(callee).is_ok_and(|name| IMPURE_NUMPY.contains(&&*name) || name.ends_with("(vectorized)"))
        || name(callee.get_type().as_any()).is_ok_and(|class| class == "vectorize")
}

pub fn is_pure_module(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    PURE_MODULES.contains(&first) && !name.contains("random")
}

/// Whether it gives something else each time, whatever it is given: the time, a random number.
pub fn is_unsteady(callee: &Bound<'_, PyAny>) -> bool {
    let unsteady = || {
        let receiver = callee.getattr_opt("__self__").ok().flatten();
        let of_receiver = receiver.as_ref().and_then(|receiver| {
            if let Ok(module) = receiver.cast::<PyModule>() {
                return module.name().ok().map(|name| name.to_string());
            }
            module_of(receiver.get_type().as_any())
        });
        let module = of_receiver.or_else(|| module_of(callee))?;
        let name: String = callee.getattr("__name__").ok()?.extract().ok()?;
        Some(match &*module {
            "random" | "_random" | "secrets" | "numpy.random" | "uuid" => true,
            "time" => !matches!(&*name, "sleep" | "strftime" | "gmtime" | "mktime" | "localtime"),
            "datetime" => matches!(&*name, "now" | "today" | "utcnow"),
            "os" | "posix" => matches!(&*name, "urandom" | "getpid" | "times"),
            "builtins" => is_of_clock(receiver.as_ref()?, &name),
            other => other.starts_with("numpy.random"),
        })
    };
    unsteady().unwrap_or(false)
}

/// `datetime.datetime.now`, whose receiver is a class.
fn is_of_clock(receiver: &Bound<'_, PyAny>, name: &str) -> bool {
    receiver.is_instance_of::<PyType>()
        && module_of(receiver).as_deref() == Some("datetime")
        && matches!(name, "now" | "today" | "utcnow")
}

/// A function or a class of ours.
pub fn is_own(callee: &Bound<'_, PyAny>) -> bool {
    module_of(callee).is_some_and(|module| module.split('.').next() == Some("octants"))
}

/// Python's `next`.
pub fn is_next(callee: &Bound<'_, PyAny>) -> bool {
    callee
        .py()
        .import("builtins")
        .and_then(|builtins| builtins.getattr("next"))
        .is_ok_and(|next| next.is(callee))
}

pub fn of<'py>(callee: &Bound<'py, PyAny>) -> Purity<'py> {
    if is_unsteady(callee) {
        // It is frozen, and the user was told.
        return Purity::Pure;
    }
    if is_impure_numpy(callee) {
        return match callee.cast::<PyFunction>() {
            Ok(function) if !module_of(callee).is_some_and(|module| is_pure_module(&module)) => {
                Purity::Unknown(function.clone())
            }
            _ => Purity::Impure,
        };
    }
    if callee.is_instance_of::<PyCFunction>() {
        return of_builtin(callee).unwrap_or(Purity::Impure);
    }
    if callee.is_instance_of::<PyType>() {
        let module = module_of(callee).unwrap_or_default();
        let is_known = module == "builtins" || module == "collections" || is_pure_module(&module);
        return if is_known { Purity::Pure } else { Purity::Impure };
    }
    if let Ok(function) = callee.cast::<PyFunction>() {
        let module = module_of(callee).unwrap_or_default();
        // Functions that are written in `functools` wrap others, and keep what they are told.
        return if module == "functools" {
            Purity::Impure
        } else if is_pure_module(&module) {
            Purity::Pure
        } else {
            Purity::Unknown(function.clone())
        };
    }
    if let Ok(Some(function)) = callee.getattr_opt("__func__")
        && let Ok(receiver) = callee.getattr("__self__")
    {
        let is_known = module_of(&function).is_some_and(|module| is_pure_module(&module));
        return if is_known { Purity::Method(receiver) } else { Purity::Impure };
    }
    // Functions of numpy's are objects of its classes, and so are callables of ours.
    let class = module_of(callee.get_type().as_any()).unwrap_or_default();
    if is_pure_module(&class) && class != "functools" && !holds_numbers(callee, &class) {
        return Purity::Pure;
    }
    Purity::Impure
}

/// Whether a callable of numpy's is none of its functions: a polynomial, whose coefficients may become others.
fn holds_numbers(callee: &Bound<'_, PyAny>, module: &str) -> bool {
    let is_function =
        || callee.get_type().name().is_ok_and(|name| name == "ufunc" || name == "_ArrayFunctionDispatcher");
    module.split('.').next() == Some("numpy") && !is_function()
}

fn of_builtin<'py>(callee: &Bound<'py, PyAny>) -> Option<Purity<'py>> {
    let receiver = callee.getattr("__self__").ok()?;
    let name: String = callee.getattr("__name__").ok()?.extract().ok()?;
    if receiver.is_none() {
        return Some(Purity::Impure);
    }
    if let Ok(module) = receiver.cast::<PyModule>() {
        let module = module.name().ok()?.to_string();
        let is_pure = match &*module {
            "builtins" => !IMPURE_BUILTINS.contains(&&*name),
            other => is_pure_module(other),
        };
        return Some(if is_pure { Purity::Pure } else { Purity::Impure });
    }
    if MUTATING.contains(&&*name) {
        return Some(Purity::Impure);
    }
    Some(Purity::Method(receiver))
}

/// What a function of the user's reads, if its results follow from that and its arguments.
#[derive(Default)]
pub struct Reads<'py> {
    pub functions: Vec<Bound<'py, PyFunction>>,
    /// Names that they read: the number of the function, whether it is asked of Python itself, and what it stands for.
    pub names: Vec<(usize, bool, Bound<'py, PyString>, Option<Bound<'py, PyAny>>)>,
}

impl<'py> Reads<'py> {
    /// Those of a function; `None` if it may depend on anything else.
    pub fn of(function: &Bound<'py, PyFunction>) -> Option<Self> {
        let mut reads = Self::default();
        reads.collect(function, MAX_DEPTH).unwrap_or(false).then_some(reads)
    }

    fn collect(&mut self, function: &Bound<'py, PyFunction>, depth: usize) -> PyResult<bool> {
        if self.functions.iter().any(|known| known.is(function)) {
            return Ok(true);
        }
        let defaults = function.getattr("__defaults__")?;
        let has_plain_defaults = match defaults.cast::<PyTuple>() {
            Ok(defaults) => defaults.iter().all(|value| is_steady_value(&value)),
            Err(_) => true,
        };
        if depth == 0
            || !has_plain_defaults
            || !function.getattr("__kwdefaults__")?.is_none()
            || !function.getattr("__closure__")?.is_none()
        {
            return Ok(false);
        }
        let number = self.functions.len();
        self.functions.push(function.clone());
        let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
        self.code(&function.getattr("__code__")?, (number, &globals), depth)
    }

    fn code(
        &mut self,
        code: &Bound<'py, PyAny>,
        (function, globals): (usize, &Bound<'py, PyDict>),
        depth: usize,
    ) -> PyResult<bool> {
        let py = code.py();
        let builtins = py.import("builtins")?.dict();
        for instruction in py.import("dis")?.call_method1("get_instructions", (code,))?.try_iter()? {
            let instruction = instruction?;
            let opname: String = instruction.getattr("opname")?.extract()?;
            let fine = match opname.as_str() {
                "LOAD_GLOBAL" => {
                    let name = instruction.getattr("argval")?.cast_into::<PyString>()?;
                    let of_module = globals.get_item(&name)?;
                    self.names.push((function, false, name.clone(), of_module.clone()));
                    if let Some(value) = of_module {
                        self.is_steady(&value, depth)?
                    } else {
                        let value = builtins.get_item(&name)?;
                        self.names.push((function, true, name.clone(), value.clone()));
                        let name = name.to_string();
                        value.is_some() && name != "print" && !IMPURE_BUILTINS.contains(&&*name)
                    }
                }
                // `numpy.random`, files, and objects that are asked for what Python keeps of them.
                "LOAD_ATTR" | "LOAD_METHOD" => {
                    let name: String = instruction.getattr("argval")?.extract()?;
                    name != "random" && !name.starts_with("__") && !IMPURE_NUMPY.contains(&&*name)
                }
                "LOAD_CONST" | "RETURN_CONST" => {
                    let value = instruction.getattr("argval")?;
                    !value.hasattr("co_code")? || self.code(&value, (function, globals), depth)?
                }
                other => calculates(other),
            };
            if !fine {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether what a name stands for gives the same whenever it is used.
    fn is_steady(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<bool> {
        if is_steady_value(value) {
            return Ok(true);
        }
        let is_value = template::is_value(value) || value.is_exact_instance_of::<PyTuple>();
        if is_value || numpy::View::of(value).is_some() {
            return Ok(false);
        }
        if let Ok(module) = value.cast::<PyModule>() {
            return Ok(is_pure_module(&module.name()?.to_string()));
        }
        match of(value) {
            _ if is_unsteady(value) => Ok(false),
            Purity::Pure => Ok(!is_own_handle(value) || has_no_attributes(value)),
            Purity::Unknown(function) => Ok(has_no_attributes(value) && self.collect(&function, depth - 1)?),
            Purity::Method(_) | Purity::Impure => Ok(false),
        }
    }
}

/// Whether an instruction calculates with what others have loaded, or makes and fills a container: told by its name, in any version of Python. What
/// is not known does neither. Handling an exception does more: it tells that something is not there, which may be there later.
fn calculates(opname: &str) -> bool {
    const EXACTLY: &[&str] = &[
        "CACHE",
        "COMPARE_OP",
        "CONTAINS_OP",
        "COPY",
        "COPY_FREE_VARS",
        "DICT_MERGE",
        "DICT_UPDATE",
        "DUP_TOP",
        "DUP_TOP_TWO",
        "END_FOR",
        "EXTENDED_ARG",
        "FORMAT_SIMPLE",
        "FORMAT_VALUE",
        "FORMAT_WITH_SPEC",
        "FOR_ITER",
        "GEN_START",
        "GET_ITER",
        "GET_LEN",
        "IS_OP",
        "KW_NAMES",
        "LIST_APPEND",
        "LIST_EXTEND",
        "LIST_TO_TUPLE",
        "LOAD_ASSERTION_ERROR",
        "LOAD_CLOSURE",
        "LOAD_DEREF",
        "LOAD_SMALL_INT",
        "MAKE_CELL",
        "MAKE_FUNCTION",
        "MAP_ADD",
        "NOP",
        "NOT_TAKEN",
        "POP_ITER",
        "POP_TOP",
        "PRECALL",
        "PUSH_NULL",
        "RAISE_VARARGS",
        "RERAISE",
        "RESUME",
        "RETURN_GENERATOR",
        "RETURN_VALUE",
        "ROT_FOUR",
        "ROT_THREE",
        "ROT_TWO",
        "SET_ADD",
        "SET_FUNCTION_ATTRIBUTE",
        "SET_UPDATE",
        "STORE_DEREF",
        "STORE_SUBSCR",
        "SWAP",
        "TO_BOOL",
        "UNPACK_EX",
        "UNPACK_SEQUENCE",
        "YIELD_VALUE",
        "CALL_INTRINSIC_1",
    ];
    const BEGINNING: &[&str] =
        &["BINARY_", "BUILD_", "CALL", "INPLACE_", "JUMP_", "LOAD_FAST", "POP_JUMP_", "STORE_FAST", "UNARY_"];
    EXACTLY.contains(&opname) || BEGINNING.iter().any(|begin| opname.starts_with(begin))
}
