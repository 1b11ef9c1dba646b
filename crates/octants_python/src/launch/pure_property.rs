//! Properties that are functions of members of their object, and of nothing else.
//!
//! A launch asks an object for a property by running its code: 0.26 µs for a sum of two flags, as long as all else of a short launch. What the code reads can be told
//! from its instructions where it is simple; as long as those members are the same numbers, so is the property.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFunction, PyInt, PyString, PyTuple};

use super::instance_dict::{self, computes_no_attributes, static_attribute};

/// Builtins whose results follow from their arguments, where these are numbers, strings, and tuples and ranges of them.
const PURE_BUILTINS: &[&str] = &[
    "abs", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "range", "round", "str", "sum",
    "tuple",
];

/// How deep properties may ask for each other: such that one that asks for itself is found out. Chosen, not measured.
const MAX_DEPTH: usize = 8;

/// What a property follows from.
pub struct Sources {
    /// Names of members in the dictionary of its object.
    pub members: Vec<Py<PyString>>,
    /// The property itself, and those that it asks for.
    getters: Vec<Getter>,
    /// What their code calls.
    builtins: Vec<Builtin>,
}

/// A builtin that the code of a property calls. The function's module may come to have another of that name, and so may Python itself.
struct Builtin {
    name: Py<PyString>,
    /// Names of the function's module, which come first.
    globals: Py<PyDict>,
    value: Py<PyAny>,
}

/// A property of a class, and the code that gets it. Either may be replaced, by a program or by a tool that loads modules again.
struct Getter {
    name: Py<PyString>,
    property: Py<PyAny>,
    function: Py<PyFunction>,
    code: Py<PyAny>,
}

impl Sources {
    /// Those of a property of an object. `None` if it may depend on anything else.
    pub fn of(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<Self> {
        let mut sources = Self { members: Vec::new(), getters: Vec::new(), builtins: Vec::new() };
        sources.collect(object, name, MAX_DEPTH).unwrap_or(false).then_some(sources)
    }

    /// Whether the class of the object has the same properties, and leaves the members to its dictionary.
    pub fn are_those_of(&self, object: &Bound<'_, PyAny>) -> bool {
        let (py, class) = (object.py(), object.get_type());
        let is_kept = |getter: &Getter| {
            let found = static_attribute(&class, getter.name.bind(py));
            found.is_ok_and(|found| found.is_some_and(|property| property.is(&getter.property)))
        };
        computes_no_attributes(&class).unwrap_or(false)
            && self.getters.iter().all(is_kept)
            && self.members.iter().all(|name| instance_dict::holds(object, name.bind(py)))
    }

    /// Whether the properties have the same code, which calls the same functions.
    pub fn have_the_same_code(&self, py: Python<'_>) -> bool {
        let is_kept = |getter: &Getter| {
            let function = getter.property.bind(py).getattr(intern!(py, "fget"));
            let code = getter.function.bind(py).getattr(intern!(py, "__code__"));
            function.is_ok_and(|function| function.is(&getter.function))
                && code.is_ok_and(|code| code.is(&getter.code))
        };
        self.getters.iter().all(is_kept) && self.builtins.iter().all(|builtin| builtin.is_as_it_was(py))
    }

    fn collect(
        &mut self,
        object: &Bound<'_, PyAny>,
        name: &Bound<'_, PyString>,
        depth: usize,
    ) -> PyResult<bool> {
        let py = object.py();
        if instance_dict::holds(object, name) {
            let known = self.members.iter().any(|other| other.bind(py).as_any().eq(name).unwrap_or(false));
            if !known {
                self.members.push(name.clone().unbind());
            }
            return Ok(is_plain(&object.getattr(name)?));
        }
        let class = object.get_type();
        let builtins = py.import("builtins")?;
        let Some(property) = static_attribute(&class, name)? else { return Ok(false) };
        if depth == 0
            || !computes_no_attributes(&class)?
            || !property.get_type().is(&builtins.getattr("property")?)
        {
            return Ok(false);
        }
        let Ok(function) = property.getattr("fget")?.cast_into::<PyFunction>() else { return Ok(false) };
        let code = function.getattr("__code__")?;
        let takes_itself_alone = code.getattr("co_argcount")?.extract::<usize>()? == 1
            && code.getattr("co_kwonlyargcount")?.extract::<usize>()? == 0
            && function.getattr("__defaults__")?.is_none();
        if !takes_itself_alone {
            return Ok(false);
        }
        let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
        let itself = code.getattr("co_varnames")?.get_item(0)?;
        let mut is_itself = false;
        for instruction in py.import("dis")?.call_method1("get_instructions", (&code,))?.try_iter()? {
            let instruction = instruction?;
            let opname: String = instruction.getattr("opname")?.extract()?;
            let argument = instruction.getattr("argval")?;
            // The object itself is there to be asked for a member, and for nothing else: all that is done with it runs code of its class.
            if std::mem::take(&mut is_itself) && opname != "LOAD_ATTR" {
                return Ok(false);
            }
            if names_local(&argument, &itself)? {
                if !LOADS_OF_ONE.contains(&opname.as_str()) {
                    return Ok(false);
                }
                is_itself = true;
            }
            let fine = match opname.as_str() {
                "LOAD_GLOBAL" => {
                    let name = argument.cast_into::<PyString>()?;
                    let is_pure = PURE_BUILTINS.contains(&&*name.to_string()) && !globals.contains(&name)?;
                    if is_pure {
                        self.builtins.push(Builtin {
                            value: builtins.getattr(&name)?.unbind(),
                            name: name.unbind(),
                            globals: globals.clone().unbind(),
                        });
                    }
                    is_pure
                }
                // Of another object it is no member of ours, but that one is a value that has no others that change.
                "LOAD_ATTR" => {
                    let name = argument.cast_into::<PyString>()?;
                    self.collect(object, &name, depth - 1)?
                }
                "LOAD_CONST" | "RETURN_CONST" => {
                    is_plain(&argument) || argument.is_exact_instance_of::<PyTuple>()
                }
                other => calculates(other),
            };
            if !fine {
                return Ok(false);
            }
        }
        self.getters.push(Getter {
            name: name.clone().unbind(),
            property: property.unbind(),
            function: function.unbind(),
            code: code.unbind(),
        });
        Ok(true)
    }
}

impl Sources {
    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for getter in &self.getters {
            visit.call(&getter.property)?;
            visit.call(&getter.function)?;
            visit.call(&getter.code)?;
        }
        for builtin in &self.builtins {
            visit.call(&builtin.globals)?;
            visit.call(&builtin.value)?;
        }
        Ok(())
    }
}

impl Builtin {
    fn is_as_it_was(&self, py: Python<'_>) -> bool {
        static NAMES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
        let names = NAMES.get_or_try_init(py, || Ok::<_, PyErr>(py.import("builtins")?.dict().unbind()));
        let name = self.name.bind(py);
        let found = names.and_then(|names| names.bind(py).get_item(name));
        found.is_ok_and(|found| found.is_some_and(|found| found.is(&self.value)))
            && self.globals.bind(py).get_item(name).is_ok_and(|shadow| shadow.is_none())
    }
}

/// Whether a member is a value that nothing can change, so that the same object is the same value.
pub fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyString>()
}

/// Instructions that load a local, and no other one.
const LOADS_OF_ONE: &[&str] = &["LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"];

/// Whether a local of this name is an argument of an instruction, of which some have two.
fn names_local(argument: &Bound<'_, PyAny>, local: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(two) = argument.cast::<PyTuple>() { two.contains(local) } else { argument.eq(local) }
}

/// Whether an instruction only calculates with what others have loaded: told by its name, in any version of Python. What is not known is none.
fn calculates(opname: &str) -> bool {
    const EXACTLY: &[&str] = &[
        "BUILD_TUPLE",
        "CACHE",
        "CALL",
        "CALL_FUNCTION",
        "COMPARE_OP",
        "CONTAINS_OP",
        "COPY",
        "DUP_TOP",
        "DUP_TOP_TWO",
        "EXTENDED_ARG",
        "IS_OP",
        "LOAD_SMALL_INT",
        "NOP",
        "NOT_TAKEN",
        "POP_TOP",
        "PRECALL",
        "PUSH_NULL",
        "RESUME",
        "RETURN_VALUE",
        "ROT_THREE",
        "ROT_TWO",
        "SWAP",
        "TO_BOOL",
    ];
    const BEGINNING: &[&str] =
        &["BINARY_", "INPLACE_", "JUMP_", "LOAD_FAST", "POP_JUMP_", "STORE_FAST", "UNARY_"];
    EXACTLY.contains(&opname) || BEGINNING.iter().any(|begin| opname.starts_with(begin))
}
