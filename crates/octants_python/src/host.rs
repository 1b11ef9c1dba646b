//! The front end's view of Python: the trait `Host` over the live interpreter.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use octants::front::host::{BinaryOp, CompareOp, UnaryOp};
use octants::front::{
    Annotation, ArgumentArray, ArrayAnnotation, ElementAnnotation, ExprId, FieldKind, FunctionSource, Host,
    HostException, HostResult, Intrinsic, Meaning, ScalarAnnotation, SparseNode, Tracer,
};
use octants::ir::{ArrayType, Boundary, Data, Layout, Scalar, TensorShape, TensorType};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyCFunction, PyDict, PyEllipsis, PyFloat, PyFunction, PyInt, PyList, PyModule, PySlice, PyString,
    PyTuple, PyType,
};

use crate::bound_kernel::BoundKernel;
use crate::buffer_view::BufferView;
use crate::dtype::{self, DataType, TypeLike};
use crate::expr::{self, Expr};
use crate::field::Field;
use crate::foreign::ForeignArray;
use crate::func::Func;
use crate::kernel::Kernel;
use crate::ndarray::Ndarray;
use crate::tree::Node;
use crate::{aggregate, host_only, numpy, source, stack, tensor};

type Object<'py> = Bound<'py, PyAny>;
type DynTracer<'t, 'py> = &'t mut dyn Tracer<Object<'py>>;

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

#[derive(Clone)]
pub struct PyHost<'py> {
    py: Python<'py>,
    /// Where the thread's stack ends, once someone has asked: of the main thread, the system reads that from a file.
    stack_end: OnceCell<usize>,
}

impl<'py> PyHost<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self { py, stack_end: OnceCell::new() }
    }

    /// A Python exception as the front end sees it.
    fn exception(&self, error: PyErr) -> HostException {
        exception(self.py, error)
    }

    fn result<T>(&self, result: PyResult<T>) -> HostResult<T> {
        result.map_err(|error| self.exception(error))
    }

    /// The plain function behind a kernel, a func or a bound method.
    fn plain_function(&self, object: &Object<'py>) -> PyResult<Bound<'py, PyFunction>> {
        if let Ok(func) = object.cast::<Func>() {
            return Ok(func.get().function.bind(self.py).clone());
        }
        if let Ok(kernel) = object.cast::<Kernel>() {
            return Ok(kernel.get().function.bind(self.py).clone());
        }
        // Else it is a bound method of Python's own.
        let function = match object.cast::<PyFunction>() {
            Ok(function) => function.clone(),
            Err(_) => object.getattr("__func__")?.cast_into::<PyFunction>()?,
        };
        // A function of ours whose host form is another one.
        match function.getattr_opt("__octants_text__")? {
            Some(text) => Ok(text.cast_into::<PyFunction>()?),
            None => Ok(function),
        }
    }

    fn annotation_object(&self, function: &Object<'py>, param: &str) -> PyResult<Option<Object<'py>>> {
        let function = self.plain_function(function)?;
        let annotations = function.getattr("__annotations__")?.cast_into::<PyDict>()?;
        let Some(annotation) = annotations.get_item(param)? else { return Ok(None) };
        if !annotation.is_instance_of::<PyString>() {
            return Ok(Some(annotation));
        }
        let globals = function.getattr("__globals__")?;
        let locals = PyDict::new(self.py);
        for (name, cell) in closure(&function)? {
            if let Ok(value) = cell.getattr("cell_contents") {
                locals.set_item(name, value)?;
            }
        }
        let eval = self.py.import("builtins")?.getattr("eval")?;
        Ok(Some(eval.call1((annotation, globals, locals))?))
    }

    fn array_annotation(&self, object: &Object<'py>) -> PyResult<ArrayAnnotation> {
        let dtype = object.getattr("dtype")?;
        let (scalar, element) = if dtype.is_none() {
            (None, ElementAnnotation::Any)
        } else if let Some((scalar, shape)) = aggregate::tensor_type(&dtype) {
            (Some(ScalarAnnotation::Is(scalar)), ElementAnnotation::Is(shape))
        } else {
            (dtype::scalar_annotation(&dtype), ElementAnnotation::Scalar)
        };
        let element = element_annotation(&object.getattr("element")?)?.unwrap_or(element);
        let boundary =
            if object.getattr("boundary")?.eq("clamp")? { Boundary::Clamp } else { Boundary::Unsafe };
        Ok(ArrayAnnotation {
            scalar,
            element,
            ndim: object.getattr("ndim")?.extract()?,
            boundary,
            needs_grad: object.getattr("needs_grad")?.extract()?,
        })
    }

    fn class_name(&self, class: &Object<'py>) -> String {
        class.getattr("__name__").map_or_else(|_| "class".to_owned(), |name| name.to_string())
    }

    fn global_object(&self, function: &Object<'py>, name: &str) -> PyResult<Option<Object<'py>>> {
        let function = self.plain_function(function)?;
        for (free, cell) in closure(&function)? {
            if free.to_str()? == name {
                // A cell that is still empty belongs to a name that is assigned later.
                return Ok(cell.getattr("cell_contents").ok());
            }
        }
        let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
        if let Some(value) = globals.get_item(name)? {
            return Ok(Some(value));
        }
        self.py.import("builtins")?.getattr_opt(name)
    }

    /// The language's own callables carry a mark; builtins are known by identity.
    fn intrinsic(&self, object: &Object<'py>) -> Option<Intrinsic> {
        if object.is_instance_of::<PyCFunction>() || object.is_instance_of::<PyType>() {
            let name = object.getattr("__name__").ok()?;
            let name = name.cast::<PyString>().ok()?.to_str().ok()?.to_owned();
            let known = BUILTINS.iter().copied().find(|intrinsic| intrinsic.name() == name);
            if let Some(intrinsic) = known {
                let builtin = self.py.import("builtins").ok()?.getattr(intrinsic.name()).ok()?;
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
}

/// Whether an object's class is data-oriented, and then whether its numbers are compile-time constants.
pub fn data_oriented(object: &Bound<'_, PyAny>) -> Option<bool> {
    if object.is_instance_of::<PyType>() {
        return None;
    }
    object.get_type().getattr_opt("__octants_template_primitives__").ok()??.extract().ok()
}

/// Whether an object is an instance of a class made by `dataclasses.dataclass`.
pub fn is_dataclass(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyType>() && object.get_type().hasattr("__dataclass_fields__").unwrap_or(false)
}

/// The type of a dataclass's field; a text is resolved where the class was defined.
fn field_annotation<'py>(object: &Object<'py>, name: &str) -> PyResult<Option<Object<'py>>> {
    let Some(fields) = object.get_type().getattr_opt("__dataclass_fields__")? else { return Ok(None) };
    let Some(field) = fields.cast_into::<PyDict>()?.get_item(name)? else { return Ok(None) };
    let annotation = field.getattr("type")?;
    if !annotation.is_instance_of::<PyString>() {
        return Ok(Some(annotation));
    }
    let resolve = object.py().import("octants._data_oriented")?.getattr("field_type")?;
    resolve.call1((object.get_type(), name)).map(Some)
}

/// A plain function, or a method, that `@oc.pyfunc` marked.
fn is_pyfunc(object: &Bound<'_, PyAny>) -> bool {
    let marked = || object.getattr_opt("__octants__").ok().flatten()?.extract::<String>().ok();
    object.is_callable() && !object.is_instance_of::<PyType>() && marked().as_deref() == Some("func")
}

pub fn exception(py: Python<'_>, error: PyErr) -> HostException {
    let type_name =
        error.get_type(py).name().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    let message = error.value(py).to_string();
    let traceback = error
        .traceback(py)
        .and_then(|traceback| traceback.format().ok())
        .map_or_else(String::new, |t| t.trim_end().to_owned());
    let cause: Arc<dyn Any + Send + Sync> = Arc::new(error);
    HostException { type_name, message, traceback, cause: Some(cause) }
}

/// The annotation of an array of any kind.
pub fn any_array() -> ArrayAnnotation {
    ArrayAnnotation {
        scalar: None,
        element: ElementAnnotation::Any,
        ndim: None,
        boundary: Boundary::Unsafe,
        needs_grad: None,
    }
}

/// What `element_dim` and `element_shape` say where there is no dtype of elements: a number of axes, or their extents.
fn element_annotation(object: &Bound<'_, PyAny>) -> PyResult<Option<ElementAnnotation>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(axes) = object.extract::<u8>() {
        return Ok(Some(match axes {
            0 => ElementAnnotation::Scalar,
            1 => ElementAnnotation::Vector,
            _ => ElementAnnotation::Matrix,
        }));
    }
    let extents: Vec<u16> = object.extract()?;
    Ok(Some(match *extents {
        [n] => ElementAnnotation::Is(TensorShape::Vector(n)),
        [n, m] => ElementAnnotation::Is(TensorShape::Matrix(n, m)),
        _ => ElementAnnotation::Scalar,
    }))
}

/// Names and cells that a function closes over.
fn closure<'py>(function: &Bound<'py, PyFunction>) -> PyResult<Vec<(Bound<'py, PyString>, Object<'py>)>> {
    let cells = function.getattr("__closure__")?;
    let Ok(cells) = cells.cast_into::<PyTuple>() else { return Ok(Vec::new()) };
    let names = function.getattr("__code__")?.getattr("co_freevars")?.cast_into::<PyTuple>()?;
    names.iter().zip(cells.iter()).map(|(name, cell)| Ok((name.cast_into::<PyString>()?, cell))).collect()
}

impl<'py> Host for PyHost<'py> {
    type Object = Object<'py>;

    fn stack_left(&self) -> usize {
        stack::left(*self.stack_end.get_or_init(stack::lowest_address))
    }

    fn check_interrupt(&self) -> HostResult<()> {
        self.result(self.py.check_signals())
    }

    fn begin_trace(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    fn function(&self, function: &Object<'py>) -> HostResult<FunctionSource> {
        self.result(self.plain_function(function).and_then(|function| source::of(&function)))
    }

    fn global(&self, function: &Object<'py>, name: &str) -> HostResult<Option<Object<'py>>> {
        let found = self.global_object(function, name).map(|found| found.map(tensor::into_unwrapped));
        self.result(found)
    }

    fn is_definition(&self, object: &Object<'py>) -> bool {
        let is =
            || self.py.import("octants._fastcache")?.getattr("is_definition")?.call1((object,))?.is_truthy();
        is().unwrap_or(false)
    }

    fn annotation_of(&self, function: &Object<'py>, param: &str) -> HostResult<Option<Object<'py>>> {
        self.result(self.annotation_object(function, param))
    }

    fn default_of(&self, function: &Object<'py>, param: &str) -> HostResult<Option<Object<'py>>> {
        let find = || {
            let function = self.plain_function(function)?;
            let Ok(defaults) = function.getattr("__defaults__")?.cast_into::<PyTuple>() else {
                return Ok(None);
            };
            let code = function.getattr("__code__")?;
            let count: usize = code.getattr("co_argcount")?.extract()?;
            let names = code.getattr("co_varnames")?.cast_into::<PyTuple>()?;
            for (position, name) in names.iter().take(count).enumerate() {
                if name.eq(param)? {
                    let first = count - defaults.len();
                    return if position >= first {
                        Ok(Some(defaults.get_item(position - first)?))
                    } else {
                        Ok(None)
                    };
                }
            }
            Ok(None)
        };
        self.result(find())
    }

    fn annotation(&self, object: &Object<'py>) -> Annotation {
        let other = || Annotation::Other(self.repr(object));
        if object.is_none() {
            return Annotation::None;
        }
        if let Some(scalar) = dtype::scalar_annotation(object) {
            return Annotation::Scalar(scalar);
        }
        if let Some(annotation) = aggregate::annotation(object) {
            return annotation;
        }
        if object.is_instance_of::<PyEllipsis>() {
            return Annotation::Ellipsis;
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Annotation::Tuple(tuple.iter().map(|item| self.annotation(&item)).collect());
        }
        let Ok(types) = self.py.import("octants.types") else { return other() };
        let class = |name: &str| types.getattr(name).and_then(|c| Ok(c.cast_into::<PyType>()?));
        if let Ok(array) = class("NdarrayType") {
            let instance = if object.is(&array) { array.call0() } else { Ok(object.clone()) };
            if let Ok(instance) = instance
                && instance.is_instance(&array).unwrap_or(false)
            {
                return self.array_annotation(&instance).map_or_else(|_| other(), Annotation::Array);
            }
        }
        if let Ok(class) = object.cast::<PyType>()
            && class.is_subclass_of::<tensor::Tensor>().unwrap_or(false)
        {
            return Annotation::AnyTensor;
        }
        if let Ok(reference) = class("Ref")
            && object.is_instance(&reference).unwrap_or(false)
        {
            return Annotation::Ref;
        }
        if let Ok(template) = class("Template")
            && (object.is(&template) || object.is_instance(&template).unwrap_or(false))
        {
            return Annotation::Template;
        }
        if object.is(self.py.get_type::<BufferView>()) {
            return Annotation::View(any_array());
        }
        if let Ok(view) = class("BufferViewType")
            && object.is_instance(&view).unwrap_or(false)
        {
            return self.array_annotation(object).map_or_else(|_| other(), Annotation::View);
        }
        if object.is_instance_of::<PyType>() && object.hasattr("__dataclass_fields__").unwrap_or(false) {
            return Annotation::Dataclass(self.class_name(object));
        }
        // `tuple[a, b]` and `typing.Tuple[a, b]`
        if let Ok(Some(origin)) = object.getattr_opt("__origin__")
            && origin.is(self.py.get_type::<PyTuple>())
            && let Ok(items) = object.getattr("__args__").and_then(|args| Ok(args.cast_into::<PyTuple>()?))
        {
            return Annotation::Tuple(items.iter().map(|item| self.annotation(&item)).collect());
        }
        other()
    }

    fn is_real_function(&self, func: &Object<'py>) -> bool {
        func.cast::<Func>().is_ok_and(|func| func.get().is_real)
    }

    fn same_function(&self, a: &Object<'py>, b: &Object<'py>) -> bool {
        match (self.plain_function(a), self.plain_function(b)) {
            (Ok(a), Ok(b)) => a.is(&b),
            _ => a.is(b),
        }
    }

    fn tensor_method(&self, name: &str) -> Option<Object<'py>> {
        let methods = self.py.import("octants._matrix_methods").ok()?.getattr("METHODS").ok()?;
        methods.get_item(name).ok()
    }

    fn array_method(&self, name: &str) -> Option<Object<'py>> {
        let methods = self.py.import("octants._array_methods").ok()?.getattr("METHODS").ok()?;
        methods.get_item(name).ok()
    }

    fn encoded_method(&self, object: &Object<'py>, name: &str) -> Option<Object<'py>> {
        object.get_type().getattr_opt(pyo3::intern!(self.py, "__octants_encoded__")).ok()??;
        let methods = self.py.import("octants._quantised").ok()?.getattr("METHODS").ok()?;
        methods.get_item(name).ok()
    }

    fn items(&self, object: &Object<'py>) -> Vec<Object<'py>> {
        if let Ok(items) = object.cast::<PyTuple>() {
            return items.iter().map(tensor::into_unwrapped).collect();
        }
        let items = object.cast::<PyList>().ok();
        items.map_or_else(Vec::new, |items| items.iter().map(tensor::into_unwrapped).collect())
    }

    fn pairs(&self, object: &Object<'py>) -> Vec<(Object<'py>, Object<'py>)> {
        object.cast::<PyDict>().map_or_else(|_| Vec::new(), |items| items.iter().collect())
    }

    fn meaning(&self, object: &Object<'py>) -> Meaning<Object<'py>> {
        if object.is_none() {
            return Meaning::None;
        }
        if let Ok(value) = object.cast::<PyBool>() {
            return Meaning::Bool(value.is_true());
        }
        if object.is_instance_of::<PyInt>() {
            return object.extract().map_or(Meaning::Other, Meaning::Int);
        }
        if let Ok(value) = object.cast::<PyFloat>() {
            return Meaning::Float(value.value());
        }
        if let Ok(value) = object.cast::<PyString>() {
            return value.to_str().map_or(Meaning::Other, |text| Meaning::Str(text.to_owned()));
        }
        if object.is_instance_of::<PyTuple>() {
            return Meaning::Tuple;
        }
        if object.is_instance_of::<PyList>() {
            return Meaning::List;
        }
        if object.is_instance_of::<PyDict>() {
            return Meaning::Dict;
        }
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

    fn repr(&self, object: &Object<'py>) -> String {
        object.repr().map_or_else(|_| "<object>".to_owned(), |text| text.to_string())
    }

    fn type_name(&self, object: &Object<'py>) -> String {
        object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
    }

    fn same(&self, a: &Object<'py>, b: &Object<'py>) -> bool {
        a.is(b)
    }

    fn argument_array(&self, object: &Object<'py>, element: ElementAnnotation) -> Option<ArgumentArray> {
        let of = |array: &octants::NdArray| {
            let ty = ArrayType::array(array.element(), array.shape().len() as u8, Boundary::Unsafe);
            ty.ordered(array.order())
        };
        if let Ok(array) = object.cast::<Ndarray>() {
            return Some(ArgumentArray::Array(of(&array.get().array)));
        }
        if let Ok(view) = object.cast::<BufferView>() {
            return Some(ArgumentArray::View(of(&view.get().ndarray.get().array)));
        }
        let foreign = ForeignArray::of_known_library(object).ok().flatten()?;
        let view = foreign.view().ok()?;
        let view = view.elements();
        let scalar = view.scalar;
        // An array that has no such elements is one of scalars: whoever wants elements says what is wrong.
        let shape = view.element_shape(element.rank());
        let inner = shape.map_or(0, TensorShape::rank);
        let (order, spacing) = view.placement(inner).seen();
        let rank = view.shape.len() - inner;
        let least = usize::from(shape.is_none());
        let rank = u8::try_from(rank).ok().filter(|_| (least..=12).contains(&rank))?;
        let elem = match shape {
            Some(shape) => Data::Tensor(TensorType { elem: scalar?, shape }),
            None => scalar?.into(),
        };
        let ty = ArrayType::array(elem, rank, Boundary::Unsafe);
        Some(ArgumentArray::Array(ty.ordered(order).spaced(spacing)))
    }

    fn field(&self, object: &Object<'py>) -> HostResult<Arc<FieldKind>> {
        let kind = object
            .cast::<Field>()
            .map_err(PyErr::from)
            .and_then(|field| Ok(Arc::clone(&Field::bound(field)?.kind)));
        self.result(kind)
    }

    fn field_type(&self, object: &Object<'py>) -> Option<Object<'py>> {
        let bound = Field::bound(object.cast::<Field>().ok()?).ok()?;
        bound.struct_type.as_ref().map(|ty| ty.bind(self.py).clone())
    }

    fn node(&self, object: &Object<'py>) -> HostResult<Arc<Layout>> {
        let node = object.cast::<Node>().map_err(PyErr::from);
        self.result(node.map(|node| node.get().loop_layout()))
    }

    fn sparse_node(&self, object: &Object<'py>) -> HostResult<Option<SparseNode>> {
        let find = || {
            // One that waits for its memory gets it now.
            object.getattr("_builder")?.call_method0("_materialise")?;
            let found = object.cast::<Node>()?.get().sparse(self.py)?;
            Ok(found.and_then(|(tree, node)| {
                let (shape, serial) = tree.sparse_tree()?;
                Some(SparseNode { tree: Arc::clone(shape), serial, node: node as usize })
            }))
        };
        self.result(find())
    }

    fn member_annotation(&self, object: &Object<'py>, name: &str) -> HostResult<Option<Object<'py>>> {
        self.result(field_annotation(object, name))
    }

    fn data_oriented(&self, object: &Object<'py>) -> Option<bool> {
        data_oriented(object)
    }

    fn plain_attributes(&self, object: &Object<'py>) -> Vec<String> {
        let Ok(Some(dict)) = object.getattr_opt("__dict__") else { return Vec::new() };
        let Ok(dict) = dict.cast_into::<PyDict>() else { return Vec::new() };
        let plain = dict.iter().filter(|(_, value)| {
            value.is_none()
                || value.is_instance_of::<PyInt>()
                || value.is_instance_of::<PyFloat>()
                || value.is_instance_of::<PyString>()
                || aggregate::is_tensor(value)
        });
        plain.filter_map(|(name, _)| name.extract().ok()).collect()
    }

    fn receiver(&self, object: &Object<'py>) -> Option<Object<'py>> {
        if object.is_instance_of::<PyCFunction>() {
            return None;
        }
        object.getattr_opt("__self__").ok()?.filter(|receiver| !receiver.is_none())
    }

    fn requires_top_level(&self, func: &Object<'py>) -> bool {
        func.cast::<Func>().is_ok_and(|func| func.get().requires_top_level)
    }

    fn make_none(&self) -> Object<'py> {
        self.py.None().into_bound(self.py)
    }

    fn make_bool(&self, value: bool) -> Object<'py> {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn make_int(&self, value: i128) -> Object<'py> {
        value.into_pyobject(self.py).expect("an integer becomes an object").into_any()
    }

    fn make_float(&self, value: f64) -> Object<'py> {
        PyFloat::new(self.py, value).into_any()
    }

    fn make_str(&self, value: &str) -> Object<'py> {
        PyString::new(self.py, value).into_any()
    }

    fn make_tuple(&self, items: Vec<Object<'py>>) -> Object<'py> {
        PyTuple::new(self.py, items).expect("a tuple can be made").into_any()
    }

    fn make_list(&self, items: Vec<Object<'py>>) -> Object<'py> {
        PyList::new(self.py, items).expect("a list can be made").into_any()
    }

    fn make_dict(&self, items: Vec<(Object<'py>, Object<'py>)>) -> HostResult<Object<'py>> {
        let dict = PyDict::new(self.py);
        for (key, value) in items {
            self.result(dict.set_item(key, value))?;
        }
        Ok(dict.into_any())
    }

    fn make_slice(&self, start: Object<'py>, stop: Object<'py>, step: Object<'py>) -> Object<'py> {
        let class = self.py.get_type::<PySlice>();
        class.call1((start, stop, step)).expect("a slice can be made")
    }

    fn make_dtype(&self, scalar: Scalar) -> Object<'py> {
        dtype::object_of(self.py, scalar).clone().into_any()
    }

    fn make_expr(&self, id: ExprId) -> Object<'py> {
        Bound::new(self.py, Expr { id }).expect("a small object can be allocated").into_any()
    }

    fn truth(&self, object: &Object<'py>, tracer: DynTracer<'_, 'py>) -> HostResult<bool> {
        self.result(expr::tracing(tracer, || object.is_truthy()))
    }

    fn iterate(&self, object: &Object<'py>, tracer: DynTracer<'_, 'py>) -> HostResult<Vec<Object<'py>>> {
        self.result(expr::tracing(tracer, || {
            object.try_iter()?.map(|item| item.map(tensor::into_unwrapped)).collect()
        }))
    }

    fn getattr(
        &self,
        object: &Object<'py>,
        name: &str,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || object.getattr(name).map(tensor::into_unwrapped)))
    }

    fn getitem(
        &self,
        object: &Object<'py>,
        index: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || object.get_item(index).map(tensor::into_unwrapped)))
    }

    fn binary(
        &self,
        op: BinaryOp,
        a: &Object<'py>,
        b: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || match op {
            BinaryOp::Add => a.add(b),
            BinaryOp::Sub => a.sub(b),
            BinaryOp::Mul => a.mul(b),
            BinaryOp::Div => a.div(b),
            BinaryOp::FloorDiv => a.floor_div(b),
            BinaryOp::Mod => a.rem(b),
            BinaryOp::Pow => a.pow(b, self.py.None()),
            BinaryOp::Shl => a.lshift(b),
            BinaryOp::Shr => a.rshift(b),
            BinaryOp::BitAnd => a.bitand(b),
            BinaryOp::BitOr => a.bitor(b),
            BinaryOp::BitXor => a.bitxor(b),
            BinaryOp::MatMul => a.matmul(b),
        }))
    }

    fn unary(&self, op: UnaryOp, a: &Object<'py>, tracer: DynTracer<'_, 'py>) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || match op {
            UnaryOp::Neg => a.neg(),
            UnaryOp::Pos => a.pos(),
            UnaryOp::Invert => a.bitnot(),
            UnaryOp::Not => Ok(self.make_bool(!a.is_truthy()?)),
        }))
    }

    fn compare(
        &self,
        op: CompareOp,
        a: &Object<'py>,
        b: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        use pyo3::basic::CompareOp as Rich;
        self.result(expr::tracing(tracer, || match op {
            CompareOp::Lt => a.rich_compare(b, Rich::Lt),
            CompareOp::Le => a.rich_compare(b, Rich::Le),
            CompareOp::Gt => a.rich_compare(b, Rich::Gt),
            CompareOp::Ge => a.rich_compare(b, Rich::Ge),
            CompareOp::Eq => a.rich_compare(b, Rich::Eq),
            CompareOp::Ne => a.rich_compare(b, Rich::Ne),
            CompareOp::Is => Ok(self.make_bool(a.is(b))),
            CompareOp::IsNot => Ok(self.make_bool(!a.is(b))),
            CompareOp::In => Ok(self.make_bool(b.contains(a)?)),
            CompareOp::NotIn => Ok(self.make_bool(!b.contains(a)?)),
        }))
    }

    fn call(
        &self,
        callee: &Object<'py>,
        args: &[Object<'py>],
        kwargs: &[(String, Object<'py>)],
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || {
            let args = PyTuple::new(self.py, args)?;
            if kwargs.is_empty() {
                return callee.call1(args).map(tensor::into_unwrapped);
            }
            let named = PyDict::new(self.py);
            for (name, value) in kwargs {
                named.set_item(name, value)?;
            }
            callee.call(args, Some(&named)).map(tensor::into_unwrapped)
        }))
    }

    fn format(&self, object: &Object<'py>, spec: &str, tracer: DynTracer<'_, 'py>) -> HostResult<String> {
        self.result(expr::tracing(tracer, || {
            let format = self.py.import("builtins")?.getattr("format")?;
            format.call1((object, spec))?.extract()
        }))
    }
}

impl<'py> PyHost<'py> {
    /// `functools.partial` of a func.
    fn partial(&self, object: &Object<'py>) -> Option<Meaning<Object<'py>>> {
        static PARTIAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = PARTIAL.import(self.py, "functools", "partial").ok()?;
        if !object.is_instance(class).ok()? {
            return None;
        }
        let function = object.getattr("func").ok()?;
        if !matches!(self.meaning(&function), Meaning::Func { .. }) {
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
