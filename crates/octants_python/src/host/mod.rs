//! The front end's view of Python: the trait `Host` over the live interpreter.

mod annotations;
pub mod evaluation;
pub mod func;
mod functions;
mod globals;
mod meanings;
pub mod memo;
mod numbers;
pub mod source;
pub mod template;

use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use octants::front::host::{BinaryOp, CompareOp, Renewal, UnaryOp};
use octants::front::{
    Annotation, ArgumentArray, ElementAnnotation, ExprId, FieldKind, FunctionSource, Host, HostException,
    HostResult, Meaning, SparseNode, Tracer,
};
use octants::ir::{ArrayType, Boundary, Data, Layout, Scalar, TensorShape, TensorType};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyCFunction, PyDict, PyFloat, PyInt, PyList, PyModule, PySlice, PyString, PyTuple, PyType,
};

use crate::arrays::buffer_view::BufferView;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::arrays::tree::Node;
use crate::gateway::stack;
use crate::host::evaluation::{LaunchEvaluations, Operation, Recorder};
use crate::host::func::Func;
use crate::interop::foreign::ForeignArray;
use crate::values::expr::{self, Expr};
use crate::values::{aggregate, dtype};

pub use annotations::any_array;
use annotations::field_annotation;
use functions::KnownFunction;
use globals::GlobalNames;
pub use globals::Globals;
use memo::Memo;
pub use numbers::number_of;

type Object<'py> = Bound<'py, PyAny>;
type DynTracer<'t, 'py> = &'t mut dyn Tracer<Object<'py>>;

/// Made for the lowering of one kernel: what it found out about an object holds until then.
pub struct PyHost<'py> {
    py: Python<'py>,
    /// Where the thread's stack ends, once someone has asked: of the main thread, the system reads that from a file.
    stack_end: OnceCell<usize>,
    functions: Memo<'py, Rc<KnownFunction<'py>>>,
    annotations: Memo<'py, Annotation>,
    /// Of what has one that says nothing of its contents.
    meanings: Memo<'py, Meaning<Object<'py>>>,
    definitions: Memo<'py, bool>,
    /// By class, as what follows.
    data_oriented: Memo<'py, Option<bool>>,
    encoded: Memo<'py, Option<Object<'py>>>,
    globals: GlobalNames<'py>,
    /// What Python evaluates for the kernel.
    recorder: Recorder<'py>,
}

impl<'py> PyHost<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self {
            py,
            stack_end: OnceCell::new(),
            functions: Memo::default(),
            annotations: Memo::default(),
            meanings: Memo::default(),
            definitions: Memo::default(),
            data_oriented: Memo::default(),
            encoded: Memo::default(),
            globals: GlobalNames::default(),
            recorder: Recorder::default(),
        }
    }

    /// As [`Self::new`], for a launch for which this was evaluated before. Names outside of functions stand for what they did when other code was made.
    pub fn sharing(
        py: Python<'py>,
        shared: Rc<RefCell<LaunchEvaluations<'py>>>,
        given: Option<Arc<Globals>>,
    ) -> Self {
        let (recorder, globals) = (Recorder::sharing(shared), GlobalNames::new(given));
        Self { globals, recorder, ..Self::new(py) }
    }

    /// What names outside of functions stood for.
    pub fn seen_globals(&self) -> PyResult<Arc<Globals>> {
        self.globals.seen(self.py)
    }

    /// Lets Python evaluate something, which a launch repeats where it must.
    fn evaluate(
        &self,
        operation: Operation,
        operands: &[&Object<'py>],
        tracer: DynTracer<'_, 'py>,
    ) -> PyResult<Object<'py>> {
        let operands: Vec<_> = operands.iter().map(|&operand| operand.clone()).collect();
        self.recorder.evaluate(operation, &operands, tracer)
    }

    /// A Python exception as the front end sees it.
    fn exception(&self, error: PyErr) -> HostException {
        exception(self.py, error)
    }

    fn result<T>(&self, result: PyResult<T>) -> HostResult<T> {
        result.map_err(|error| self.exception(error))
    }
}

/// Whether an object's class is data-oriented, and then whether its numbers are compile-time constants.
pub fn data_oriented(object: &Bound<'_, PyAny>) -> Option<bool> {
    if object.is_instance_of::<PyType>() {
        return None;
    }
    object.get_type().getattr_opt(DATA_ORIENTED).ok()??.extract().ok()
}

/// Whether the dictionary of an object has a number, a vector, a text or the like under a name.
fn holds_plain(object: &Bound<'_, PyAny>, name: &str) -> bool {
    let Ok(Some(attributes)) = object.getattr_opt("__dict__") else { return false };
    attributes.get_item(name).is_ok_and(|value| {
        value.is_none()
            || value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
            || value.is_instance_of::<PyString>()
            || aggregate::is_tensor(&value)
    })
}

/// Whether a class is data-oriented.
pub fn is_data_oriented(class: &Bound<'_, PyType>) -> bool {
    class.hasattr(DATA_ORIENTED).unwrap_or(false)
}

/// What `@oc.data_oriented` gives a class: whether numbers of its objects are compile-time constants.
const DATA_ORIENTED: &str = "__octants_template_primitives__";

/// Whether a class, or one that it is derived from, has this name.
pub fn is_or_derives(class: &Bound<'_, PyType>, name: &str) -> bool {
    class
        .mro()
        .iter()
        .any(|base| base.cast::<PyType>().is_ok_and(|base| base.name().is_ok_and(|known| known == name)))
}

/// Whether an object is an instance of a class made by `dataclasses.dataclass`.
pub fn is_dataclass(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyType>() && object.get_type().hasattr("__dataclass_fields__").unwrap_or(false)
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

/// The module of Python's own names.
fn builtins(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static BUILTINS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = BUILTINS.get_or_try_init(py, || py.import("builtins").map(Bound::unbind))?;
    Ok(module.bind(py))
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

    fn function(&self, function: &Object<'py>) -> HostResult<Arc<FunctionSource>> {
        self.result(self.known_function(function).and_then(|function| function.source()))
    }

    fn global(&self, function: &Object<'py>, name: &str) -> HostResult<Option<Object<'py>>> {
        let found = self
            .known_function(function)
            .and_then(|function| self.globals.get(function.function(), name, || function.global(name)));
        self.result(found).map(|found| found.map(tensor::into_unwrapped))
    }

    fn names(&self, function: &Object<'py>) -> Vec<String> {
        self.known_function(function).map(|function| function.names()).unwrap_or_default()
    }

    fn package_name(&self, name: &str) -> Option<String> {
        // Axes, `oc.i`, and archs are no part of kernels.
        let is_in = |module: &str| {
            let object = self.py.import(module)?.getattr(name)?;
            Ok::<_, PyErr>(object.is_callable() || object.is_instance_of::<PyFloat>())
        };
        if name.starts_with('_') {
            return None;
        }
        [("octants", "oc"), ("octants.math", "oc.math"), ("octants.types", "oc.types")]
            .into_iter()
            .find(|(module, _)| is_in(module).unwrap_or(false))
            .map(|(_, path)| format!("{path}.{name}"))
    }

    fn attributes(&self, object: &Object<'py>) -> Vec<String> {
        let names = object.dir().map(|names| names.iter().filter_map(|name| name.extract().ok()).collect());
        let mut names: Vec<String> = names.unwrap_or_default();
        names.retain(|name| !name.starts_with('_'));
        names
    }

    fn is_definition(&self, object: &Object<'py>) -> bool {
        let is = || {
            self.py
                .import("octants._session.fastcache")?
                .getattr("is_definition")?
                .call1((object,))?
                .is_truthy()
        };
        self.definitions.get_or_find(object, || is().unwrap_or(false))
    }

    fn annotation_of(&self, function: &Object<'py>, param: &str) -> HostResult<Option<Object<'py>>> {
        self.result(self.known_function(function).and_then(|function| function.annotation(param)))
    }

    fn default_of(&self, function: &Object<'py>, param: &str) -> HostResult<Option<Object<'py>>> {
        self.result(self.known_function(function).and_then(|function| function.default(param)))
    }

    fn annotation(&self, object: &Object<'py>) -> Annotation {
        self.annotations.get_or_find(object, || self.read_annotation(object))
    }

    fn optional(&self, annotation: &Object<'py>) -> Option<Object<'py>> {
        self.not_none(annotation)
    }

    fn meaning(&self, object: &Object<'py>) -> Meaning<Object<'py>> {
        if let Some(number) = meanings::of_plain(object) {
            return number;
        }
        if let Some(known) = self.meanings.get(object) {
            return known;
        }
        let found = self.find_meaning(object);
        if meanings::is_lasting(&found) {
            self.meanings.set(object, found.clone());
        }
        found
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
        let methods = self.py.import("octants._matrix.methods").ok()?.getattr("METHODS").ok()?;
        methods.get_item(name).ok()
    }

    fn array_method(&self, name: &str) -> Option<Object<'py>> {
        let methods = self.py.import("octants._arrays.methods").ok()?.getattr("METHODS").ok()?;
        methods.get_item(name).ok()
    }

    fn encoded_method(&self, object: &Object<'py>, name: &str) -> Option<Object<'py>> {
        let class = object.get_type();
        let find_methods = || {
            let module = class.getattr_opt(pyo3::intern!(self.py, "__octants_encoded__")).ok()??;
            self.py.import(module.cast::<PyString>().ok()?).ok()?.getattr("METHODS").ok()
        };
        let methods = self.encoded.get_or_find(class.as_any(), find_methods)?;
        methods.get_item(name).ok()
    }

    fn items(&self, object: &Object<'py>) -> Vec<Object<'py>> {
        let items: Vec<_> = if let Ok(items) = object.cast::<PyTuple>() {
            items.iter().map(tensor::into_unwrapped).collect()
        } else {
            let items = object.cast::<PyList>().ok();
            items.map_or_else(Vec::new, |items| items.iter().map(tensor::into_unwrapped).collect())
        };
        self.recorder.items(object, &items);
        items
    }

    fn pairs(&self, object: &Object<'py>) -> Vec<(Object<'py>, Object<'py>)> {
        if !object.is_instance_of::<PyDict>() {
            return Vec::new();
        }
        template::pairs_of(object).ok().flatten().unwrap_or_default()
    }

    fn repr(&self, object: &Object<'py>) -> String {
        object.repr().map_or_else(|_| "<object>".to_owned(), |text| text.to_string())
    }

    fn type_name(&self, object: &Object<'py>) -> String {
        object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
    }

    fn is_instance(&self, object: &Object<'py>, class: &str) -> bool {
        is_or_derives(&object.get_type(), class)
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
        if object.is_instance_of::<PyType>() {
            return None;
        }
        self.data_oriented.get_or_find(object.get_type().as_any(), || data_oriented(object))
    }

    fn has_plain_attribute(&self, object: &Object<'py>, name: &str) -> bool {
        // What an evaluation made is made anew by each launch.
        if self.recorder.is_fresh(object) {
            return false;
        }
        if let Ok(module) = object.cast::<PyModule>() {
            let is_known = |name: Bound<'_, PyString>| evaluation::is_pure_module(&name.to_string());
            return !module.name().is_ok_and(is_known) && holds_plain(object, name);
        }
        // What begins with underscores belongs to Python.
        let of_class = |class: Bound<'_, PyAny>| !name.starts_with("__") && holds_plain(&class, name);
        holds_plain(object, name) || object.get_type().mro().iter().any(of_class)
    }

    fn receiver(&self, object: &Object<'py>) -> Option<Object<'py>> {
        let receiver = object.getattr_opt("__self__").ok()?.filter(|receiver| !receiver.is_none())?;
        // A function of a compiled module is bound to that.
        let is_function = object.is_instance_of::<PyCFunction>() && receiver.is_instance_of::<PyModule>();
        (!is_function).then_some(receiver)
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
        let made = PyTuple::new(self.py, &items).expect("a tuple can be made").into_any();
        self.recorder.made(Operation::Tuple, &items, &made);
        made
    }

    fn make_list(&self, items: Vec<Object<'py>>) -> Object<'py> {
        let made = PyList::new(self.py, &items).expect("a list can be made").into_any();
        self.recorder.made(Operation::List, &items, &made);
        made
    }

    fn make_dict(&self, items: Vec<(Object<'py>, Object<'py>)>) -> HostResult<Object<'py>> {
        let dict = PyDict::new(self.py);
        for (key, value) in &items {
            self.result(dict.set_item(key, value))?;
        }
        let made = dict.into_any();
        let parts: Vec<_> = items.into_iter().flat_map(|(key, value)| [key, value]).collect();
        self.recorder.made(Operation::Dict, &parts, &made);
        Ok(made)
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
        let result = self.evaluate(Operation::Truth, &[object], tracer);
        self.result(result.and_then(|truth| truth.is_truthy()))
    }

    fn iterate(&self, object: &Object<'py>, tracer: DynTracer<'_, 'py>) -> HostResult<Vec<Object<'py>>> {
        let result = self.evaluate(Operation::Iterate, &[object], tracer);
        self.result(result).map(|items| self.items(&items))
    }

    fn getattr(
        &self,
        object: &Object<'py>,
        name: &str,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        let found = expr::tracing(tracer, || object.getattr(name).map(tensor::into_unwrapped));
        if let Ok(found) = &found {
            self.recorder.named(object, name, found);
        }
        self.result(found)
    }

    fn getitem(
        &self,
        object: &Object<'py>,
        index: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(expr::tracing(tracer, || object.get_item(index).map(tensor::into_unwrapped)))
    }

    fn evaluate_attribute(
        &self,
        object: &Object<'py>,
        name: &str,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        if object.is_instance_of::<PyModule>()
            && let Ok(found) = object.getattr(name)
            && evaluation::is_part_of_text(object, &found)
        {
            return Ok(tensor::into_unwrapped(found));
        }
        let name = PyString::intern(self.py, name).unbind();
        self.result(self.evaluate(Operation::Attribute(name), &[object], tracer))
    }

    fn evaluate_item(
        &self,
        object: &Object<'py>,
        index: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(self.evaluate(Operation::Item, &[object, index], tracer))
    }

    fn binary(
        &self,
        op: BinaryOp,
        a: &Object<'py>,
        b: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(self.evaluate(Operation::Binary(op), &[a, b], tracer))
    }

    fn unary(&self, op: UnaryOp, a: &Object<'py>, tracer: DynTracer<'_, 'py>) -> HostResult<Object<'py>> {
        self.result(self.evaluate(Operation::Unary(op), &[a], tracer))
    }

    fn compare(
        &self,
        op: CompareOp,
        a: &Object<'py>,
        b: &Object<'py>,
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        self.result(self.evaluate(Operation::Compare(op), &[a, b], tracer))
    }

    fn call(
        &self,
        callee: &Object<'py>,
        args: &[Object<'py>],
        kwargs: &[(String, Object<'py>)],
        tracer: DynTracer<'_, 'py>,
    ) -> HostResult<Object<'py>> {
        let names = kwargs.iter().map(|(name, _)| name.clone()).collect();
        let named = kwargs.iter().map(|(_, value)| value);
        let operands: Vec<_> = std::iter::once(callee).chain(args).chain(named).collect();
        self.result(self.evaluate(Operation::Call(names), &operands, tracer))
    }

    fn format(&self, object: &Object<'py>, spec: &str, tracer: DynTracer<'_, 'py>) -> HostResult<String> {
        let result = self.evaluate(Operation::Format(spec.to_owned()), &[object], tracer);
        self.result(result.and_then(|text| text.extract()))
    }

    fn observe(&self, object: &Object<'py>) {
        self.recorder.observe(object);
    }

    fn is_collection(&self, object: &Object<'py>) -> bool {
        template::is_collection(object)
    }

    fn guard(&self, object: &Object<'py>) {
        self.recorder.guard(object);
    }

    fn is_unsteady(&self, callee: &Object<'py>) -> bool {
        evaluation::is_unsteady(callee)
    }

    fn renewal(&self) -> Option<Renewal> {
        self.recorder.renewal()
    }

    fn evaluations(&self) -> HostResult<Option<Arc<dyn Any + Send + Sync>>> {
        let found = self.result(self.recorder.finish())?;
        Ok(if found.is_empty() { None } else { Some(Arc::new(found)) })
    }
}
