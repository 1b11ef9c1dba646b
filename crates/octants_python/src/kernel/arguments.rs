//! The arguments of a Python call: which parameter each is for, what kind it is, and what is wrong with it.

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::front::{
    Annotation, ArgSpec, ArrayAnnotation, ElementAnnotation, Host, LowerOptions, ParamSpec, ScalarAnnotation,
    Signature,
};
use octants::ir::{ArrayType, Data, Scalar, TensorType};
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::arrays::buffer_view::BufferView;
use crate::arrays::field::Field;
use crate::arrays::foreign_array;
use crate::arrays::ndarray::Ndarray;
use crate::gateway::errors;
use crate::host::{self, PyHost};
use crate::interop::foreign::Owner;
use crate::interop::foreign::Unwritable;
use crate::interop::numpy;
use crate::session::runtime::ActiveSession;
use crate::values::aggregate::{self, Layout};
use crate::values::{element, number};

/// The keyword that every kernel takes besides its own parameters.
const STREAM: &str = "qd_stream";

/// A parameter, as a call sees it.
pub struct Param {
    spec: ParamSpec,
    /// Its name, as a call has it.
    name: Py<PyString>,
    kind: Kind,
    /// Whether it may be `None` where its kind is a struct or a dataclass.
    is_optional: bool,
}

enum Kind {
    Scalar(ScalarAnnotation),
    Array(ArrayAnnotation),
    View(ArrayAnnotation),
    /// `oc.Tensor`
    AnyTensor,
    /// A vector, matrix or struct by value: its type, which may follow the session's defaults.
    Typed(Py<PyAny>),
    /// The class's name.
    Dataclass(String),
    /// Known while compiling; a method's receiver is too.
    Template,
}

/// What an argument of a call is to the compiler.
pub type Argument<'py> = ArgSpec<Bound<'py, PyAny>>;

fn resolve(annotation: ScalarAnnotation, options: &LowerOptions) -> Scalar {
    match annotation {
        ScalarAnnotation::Is(scalar) => scalar,
        ScalarAnnotation::DefaultInt => options.default_ip,
        ScalarAnnotation::DefaultFloat => options.default_fp,
        ScalarAnnotation::DefaultUnsigned => octants::front::host::unsigned_like(options.default_ip),
    }
}

impl Param {
    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.kind {
            Kind::Typed(ty) => visit.call(ty),
            Kind::Scalar(_)
            | Kind::Array(_)
            | Kind::View(_)
            | Kind::AnyTensor
            | Kind::Dataclass(_)
            | Kind::Template => Ok(()),
        }
    }

    /// `ty` is the annotation itself.
    pub fn new(py: Python<'_>, spec: &ParamSpec, ty: Option<Bound<'_, PyAny>>) -> Self {
        let (annotation, ty, is_optional) = match &spec.annotation {
            Some(Annotation::Optional(inner)) => {
                (Some(&**inner), ty.and_then(|ty| PyHost::new(py).optional(&ty)), true)
            }
            annotation => (annotation.as_ref(), ty, false),
        };
        let kind =
            match (annotation, ty) {
                (Some(Annotation::Tensor(..) | Annotation::Struct(_)), Some(ty)) => {
                    if Layout::of(&ty).is_some() { Kind::Typed(ty.unbind()) } else { Kind::Template }
                }
                (annotation, _) => Self::kind(annotation),
            };
        Self { spec: spec.clone(), name: PyString::intern(py, &spec.name).unbind(), kind, is_optional }
    }

    /// Its value among those that a call gives by keyword.
    #[inline]
    pub fn keyword<'py>(&self, kwargs: &Bound<'py, PyDict>) -> Option<Bound<'py, PyAny>> {
        kwargs.get_item(self.name.bind(kwargs.py())).ok().flatten()
    }

    fn kind(annotation: Option<&Annotation>) -> Kind {
        match annotation {
            Some(Annotation::Scalar(scalar)) => Kind::Scalar(*scalar),
            Some(Annotation::Array(array)) => Kind::Array(array.clone()),
            Some(Annotation::View(array)) => Kind::View(array.clone()),
            Some(Annotation::AnyTensor) => Kind::AnyTensor,
            Some(Annotation::Dataclass(class)) => Kind::Dataclass(class.clone()),
            _ => Kind::Template,
        }
    }

    pub fn unwritable(&self, py: Python<'_>, why: Unwritable, map: &SourceMap) -> PyErr {
        let (got, help) = match why {
            Unwritable::ReadOnly => (
                "a read-only one",
                "the kernel writes this array; pass a copy, or one whose flags.writeable is True",
            ),
            Unwritable::Repeats => (
                "one of stride 0, whose elements are one in memory",
                "the kernel writes this array; pass a copy, `x.copy()` or `x.clone()`",
            ),
            Unwritable::Overlaps => (
                "one whose elements overlap in memory",
                "the kernel writes this array; pass a copy, `x.copy()` or `x.clone()`",
            ),
        };
        let message =
            format!("Invalid value for argument {} - required a writeable array, got {got}", self.spec.name);
        errors::from_diagnostic(py, self.diagnostic(Code::ArrayMismatch, message).help(help), map)
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether arrays without gradients are refused.
    pub fn demands_gradients(&self) -> bool {
        matches!(&self.kind, Kind::Array(annotation) if annotation.needs_grad == Some(true))
    }

    /// A diagnostic that points at the parameter.
    pub fn diagnostic(&self, code: Code, message: String) -> Diagnostic {
        Diagnostic::new(code, message).at(self.spec.span).marked("the parameter")
    }
}

/// Places and converts the arguments of one call.
pub struct Binder<'k> {
    pub signature: &'k Signature,
    pub params: &'k [Param],
    pub sources: &'k SourceMap,
}

impl Binder<'_> {
    fn error(&self, py: Python<'_>, diagnostic: Diagnostic) -> PyErr {
        errors::from_diagnostic(py, diagnostic, self.sources)
    }

    /// The value of the keyword for the launch's stream, if it is given and no parameter has its name.
    pub fn stream<'py>(&self, kwargs: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match kwargs.get_item(intern!(kwargs.py(), "qd_stream"))? {
            Some(value) if !self.has_stream_parameter() => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    fn has_stream_parameter(&self) -> bool {
        self.params.iter().any(|param| param.spec.name == STREAM)
    }

    /// The arguments in the order of the parameters.
    pub fn place<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = args.py();
        let mut problems = Vec::new();
        let refuse = |code, message: String| Diagnostic::new(code, message).at(self.signature.span);
        let mut placed: Vec<Option<Bound<'py, PyAny>>> = args.iter().map(Some).collect();
        if placed.len() > self.params.len() {
            let (given, taken) = (placed.len(), self.params.len());
            let text = format!(
                "Too many arguments: `{}` takes {taken}, and {given} were given",
                self.signature.name
            );
            problems.push(refuse(Code::TooManyArguments, text));
        }
        placed.resize(self.params.len(), None);
        for (name, value) in kwargs.into_iter().flat_map(pyo3::types::PyDictMethods::iter) {
            let name: String = name.extract()?;
            if name == STREAM && !self.has_stream_parameter() {
                continue;
            }
            match self.params.iter().position(|param| param.spec.name == name) {
                None => {
                    let text =
                        format!("Unexpected argument '{name}' in the call of `{}`", self.signature.name);
                    problems.push(refuse(Code::UnexpectedArgument, text));
                }
                Some(position) if placed[position].is_some() => {
                    let text = format!(
                        "Multiple values for argument '{name}' in the call of `{}`",
                        self.signature.name
                    );
                    problems.push(self.params[position].diagnostic(Code::MultipleValues, text));
                }
                Some(position) => placed[position] = Some(value),
            }
        }
        for (param, value) in self.params.iter().zip(&placed) {
            if value.is_none() {
                let text = format!(
                    "Missing argument '{}' in the call of `{}`",
                    param.spec.name, self.signature.name
                );
                problems.push(param.diagnostic(Code::MissingArgument, text));
            }
        }
        if !problems.is_empty() {
            return Err(errors::from_diagnostics(py, &problems, self.sources));
        }
        Ok(placed.into_iter().flatten().collect())
    }

    /// What an argument is, as its parameter's annotation says; refuses one that is something else.
    pub fn describe<'py>(
        &self,
        param: &Param,
        object: &Bound<'py, PyAny>,
        current: &ActiveSession,
    ) -> PyResult<Argument<'py>> {
        if param.is_optional && object.is_none() {
            return Ok(ArgSpec::Template(object.clone()));
        }
        match &param.kind {
            Kind::Scalar(annotation) => {
                let scalar = resolve(*annotation, &current.lower);
                self.scalar(param, scalar, object).map(|()| ArgSpec::Scalar(scalar))
            }
            Kind::Typed(ty) => {
                let ty = ty.bind(object.py());
                let layout = Layout::of(ty).ok_or_else(|| errors::bug("a type of values has no layout"))?;
                self.typed(param, &layout, object)?;
                Ok(ArgSpec::Typed(ty.clone()))
            }
            Kind::Array(annotation) if annotation.optional && object.is_none() => {
                Ok(ArgSpec::Template(object.clone()))
            }
            Kind::Array(annotation) => {
                let ty = self.array(param, annotation, object, current)?;
                self.gradients(param, annotation, object)?;
                // An array whose gradients are left alone leads to none.
                let leads_on = annotation.needs_grad != Some(false);
                Ok(ArgSpec::Array(ty, leads_on.then(|| object.clone())))
            }
            Kind::AnyTensor if object.is_none() || object.is_instance_of::<Field>() => {
                Ok(ArgSpec::Template(object.clone()))
            }
            Kind::AnyTensor => {
                let ty = self.array(param, &host::any_array(), object, current)?;
                Ok(ArgSpec::Array(ty, Some(object.clone())))
            }
            Kind::View(annotation) => self.view(param, annotation, object, current).map(ArgSpec::View),
            Kind::Dataclass(class) => self.dataclass(param, class, object),
            Kind::Template => self.template(param, object, current),
        }
    }

    /// A vector, matrix or struct of the annotated type.
    fn typed(&self, param: &Param, layout: &Layout, object: &Bound<'_, PyAny>) -> PyResult<()> {
        if layout.flatten(object, &mut Vec::new())?.is_some() {
            return Ok(());
        }
        let found = object.get_type().name()?.to_string();
        let shape = element::shape_of(object).map_or_else(String::new, |shape| format!(" of shape {shape}"));
        let message = format!(
            "Argument `{}`: a value of type {found}{shape} cannot be converted into required type {}",
            param.spec.name,
            layout.describe()
        );
        Err(self.error(object.py(), param.diagnostic(Code::ArgumentType, message)))
    }

    fn scalar(&self, param: &Param, scalar: Scalar, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let fits = if scalar.is_real() {
            number::real(object).is_some()
        } else {
            number::wrapped_integer(object).transpose()?.is_some()
        };
        if fits {
            return Ok(());
        }
        let found = object.get_type().name()?.to_string();
        let position = self.params.iter().position(|p| std::ptr::eq(p, param)).unwrap_or(0);
        let message = format!(
            "Argument ({position},) `{}`: a value of type {found} cannot be converted into required type {}",
            param.spec.name,
            scalar.name()
        );
        let mut diagnostic = param.diagnostic(Code::ArgumentType, message);
        if scalar.is_integral() && number::real(object).is_some() {
            diagnostic = diagnostic.help(
                "a real is not truncated silently: pass int(x), or annotate the parameter with a real type",
            );
        }
        Err(self.error(object.py(), diagnostic))
    }

    fn template<'py>(
        &self,
        param: &Param,
        object: &Bound<'py, PyAny>,
        current: &ActiveSession,
    ) -> PyResult<Argument<'py>> {
        let py = object.py();
        // The receiver of a class method is the class itself.
        let class = object.cast::<PyType>().cloned().unwrap_or_else(|_| object.get_type());
        if param.spec.is_receiver && !host::is_data_oriented(&class) {
            let message = format!("Please decorate class {} with @oc.data_oriented", class.name()?);
            return Err(self.error(py, param.diagnostic(Code::NotDataOriented, message)));
        }
        if object.is_instance_of::<Ndarray>() || object.is_instance_of::<BufferView>() {
            let (what, help) = if object.is_instance_of::<BufferView>() {
                ("a BufferView", "annotate the parameter with oc.BufferView")
            } else {
                ("an ndarray", "annotate the parameter with oc.types.ndarray(...)")
            };
            let message = format!("argument `{}`: {what} cannot be a compile-time argument", param.spec.name);
            return Err(self.error(py, param.diagnostic(Code::ArgumentType, message).help(help)));
        }
        if object.is_instance_of::<pyo3::types::PyFloat>() && current.raise_on_templated_floats {
            let message = format!(
                "argument `{}`: a real cannot be a compile-time argument with raise_on_templated_floats=True",
                param.spec.name
            );
            let help = "annotate the parameter with a real type, such as oc.f32";
            return Err(self.error(py, param.diagnostic(Code::TemplatedFloat, message).help(help)));
        }
        if !param.spec.is_receiver && host::is_dataclass(object) && host::data_oriented(object).is_none() {
            let message = format!(
                "argument `{}`: a dataclass passed through oc.template() is deprecated; annotate the parameter with its class",
                param.spec.name
            );
            let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
            py.import("warnings")?.getattr("warn")?.call1((message, category, 2))?;
        }
        Ok(ArgSpec::Template(object.clone()))
    }

    fn dataclass<'py>(
        &self,
        param: &Param,
        class: &str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Argument<'py>> {
        let found = object.get_type().name()?.to_string();
        if host::is_dataclass(object) && host::is_or_derives(&object.get_type(), class) {
            let module = object.py().import(intern!(object.py(), "octants._language.data_oriented"))?;
            module.call_method1(intern!(object.py(), "require_frozen"), (object.get_type(),))?;
            return Ok(ArgSpec::Dataclass(object.clone()));
        }
        let message =
            format!("argument `{}` must be an instance of {class}, not of {found}", param.spec.name);
        Err(self.error(object.py(), param.diagnostic(Code::DataclassMismatch, message)))
    }

    fn view(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        object: &Bound<'_, PyAny>,
        current: &ActiveSession,
    ) -> PyResult<ArrayType> {
        let Ok(view) = object.cast::<BufferView>() else {
            let found = object.get_type().name()?.to_string();
            let message = format!(
                "Invalid type for argument `{}`: a BufferView is required, got {found}",
                param.spec.name
            );
            let help = if object.is_instance_of::<Field>() {
                "a field has no views: annotate the parameter with oc.template() to take a field"
            } else if object.is_instance_of::<Ndarray>() {
                "pass a part of the array, `array[a:b]`, or `array[:]` for all of it"
            } else {
                "pass a part of an ndarray, `array[a:b]`"
            };
            return Err(self.error(object.py(), param.diagnostic(Code::ArgumentType, message).help(help)));
        };
        self.octants_array(param, annotation, &view.get().ndarray.get().array, object, current)
    }

    fn octants_array(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        array: &octants::NdArray,
        object: &Bound<'_, PyAny>,
        current: &ActiveSession,
    ) -> PyResult<ArrayType> {
        // Says what is wrong with an array of another session.
        array.address(&current.session).map_err(|error| errors::from_error(object.py(), &error))?;
        let ty = self.array_type(param, annotation, current, array.element(), array.shape().len(), object)?;
        Ok(ty.ordered(array.order()))
    }

    fn array(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        object: &Bound<'_, PyAny>,
        current: &ActiveSession,
    ) -> PyResult<ArrayType> {
        if let Ok(ndarray) = object.cast::<Ndarray>() {
            return self.octants_array(param, annotation, &ndarray.get().array, object, current);
        }
        let foreign = foreign_array(object).map_err(|cause| self.not_looked_at(param, object, cause))?;
        if let Some(foreign) = foreign {
            if foreign.owner != Owner::Host && !current.session.shares_device() {
                let name = &param.spec.name;
                let message = format!(
                    "Invalid value for argument {name} - required an array in the host's memory, got one on a GPU"
                );
                let help = if current.session.sees_host_memory() {
                    "copy it to the host, or start the session on the GPU: oc.init(arch=oc.cuda)"
                } else {
                    "copy it to the host: the session's GPU is opened by another process, since a kernel of this one has failed or \
                     device_process=True"
                };
                let diagnostic = param.diagnostic(Code::ArrayMismatch, message).help(help);
                return Err(self.error(object.py(), diagnostic));
            }
            let own = current.session.options().device;
            if let Owner::Device { number: Some(number), .. } = foreign.owner
                && number != own
            {
                let name = &param.spec.name;
                let message =
                    format!("argument {name} is an array on GPU {number}, and the session runs on GPU {own}");
                let help = format!(
                    "copy it there first, as with tensor.to(\"cuda:{own}\"), or call oc.init(device_id={number})"
                );
                return Err(self.error(object.py(), param.diagnostic(Code::OtherDevice, message).help(help)));
            }
            return self.numpy_array(param, annotation, &foreign.view()?, current);
        }
        let found = object.get_type().name()?.to_string();
        let message =
            format!("Invalid type for argument `{}`: an array is required, got {found}", param.spec.name);
        let help = if object.is_instance_of::<BufferView>() {
            "annotate the parameter with oc.BufferView to take a part of an array"
        } else if object.is_instance_of::<Field>() {
            "annotate the parameter with oc.template() to take a field, or with oc.Tensor to take fields and arrays"
        } else {
            "pass an oc.ndarray or a numpy array"
        };
        Err(self.error(object.py(), param.diagnostic(Code::ArgumentType, message).help(help)))
    }

    /// The error for an array whose library does not say where its elements lie: some have none, or of types that only the library knows.
    fn not_looked_at(&self, param: &Param, object: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
        let py = object.py();
        if !cause.is_instance_of::<PyException>(py) {
            return cause;
        }
        let dtype = object.getattr("dtype").and_then(|dtype| Ok(dtype.str()?.to_string()));
        let of_dtype = dtype.map_or(String::new(), |dtype| format!(" of {dtype}"));
        let kind = object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
        let message = format!(
            "Invalid value for argument {} - required an array with elements that kernels have, got a {kind}{of_dtype}: {}",
            param.spec.name,
            cause.value(py)
        );
        let help = "convert it to a dense array of one of the types of oc.types";
        let error = self.error(py, param.diagnostic(Code::ArrayMismatch, message).help(help));
        error.set_cause(py, Some(cause));
        error
    }

    /// Refuses an array without gradients where the annotation demands some.
    fn gradients(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if annotation.needs_grad != Some(true)
            || !object.is_instance_of::<Ndarray>()
            || !object.getattr(intern!(object.py(), "grad"))?.is_none()
        {
            return Ok(());
        }
        let message = format!(
            "Invalid value for argument {} - required needs_grad=True, but an array without gradients is provided",
            param.spec.name
        );
        let help = "make the array with `needs_grad=True`, or take `needs_grad=True` out of the annotation";
        Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message).help(help)))
    }

    fn numpy_array(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        view: &numpy::View<'_, '_>,
        current: &ActiveSession,
    ) -> PyResult<ArrayType> {
        let object = view.object();
        let name = &param.spec.name;
        let refuse = |required: &str, got: String, help: &str| {
            let message = format!("Invalid value for argument {name} - required {required}, got {got}");
            self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message).help(help))
        };
        let Some(scalar) = view.scalar() else {
            let got = object.getattr("dtype")?.to_string();
            let help = "convert it with array.astype(...) to one of the types of oc.types";
            return Err(refuse("an element type that kernels have", got, help));
        };
        let mut elem = Data::Scalar(scalar);
        let mut ndim = view.shape().len();
        // The last axes are those of the elements.
        let inner = annotation.element.rank();
        if inner > 0 {
            let shape = view.elements().element_shape(inner);
            let Some(shape) = shape.filter(|&shape| annotation.element.admits(Some(shape))) else {
                let required = format!("{} in the last axes", element_name(annotation.element));
                let got = format!("an array of shape {:?}", view.shape());
                return Err(refuse(
                    &required,
                    got,
                    "the last axes of the array hold the entries of each element",
                ));
            };
            elem = Data::Tensor(TensorType { elem: scalar, shape });
            ndim -= inner;
        }
        let ty = self.array_type(param, annotation, current, elem, ndim, object)?;
        if view.shape().iter().any(|&extent| i32::try_from(extent).is_err()) {
            let got = format!("shape {:?}", view.shape());
            return Err(refuse("extents below 2147483648", got, "pass a part of the array"));
        }
        let (order, spacing) = view.elements().placement(inner).seen();
        Ok(ty.ordered(order).spaced(spacing))
    }

    fn array_type(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        current: &ActiveSession,
        elem: Data,
        ndim: usize,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<ArrayType> {
        let name = &param.spec.name;
        let scalar = annotation.scalar.map(|scalar| resolve(scalar, &current.lower));
        if scalar.is_some_and(|scalar| elem.elem() != Some(scalar))
            || !annotation.element.admits(elem.tensor_shape())
        {
            let required = match (scalar, annotation.element) {
                (Some(scalar), ElementAnnotation::Any | ElementAnnotation::Scalar) => {
                    aggregate::name_of(scalar.into())
                }
                (Some(elem), ElementAnnotation::Is(shape)) => {
                    aggregate::name_of(Data::Tensor(TensorType { elem, shape }))
                }
                (Some(scalar), element) => format!("{} of {}", element_name(element), scalar.name()),
                (None, element) => element_name(element),
            };
            let message = format!(
                "Invalid value for argument {name} - required element type: {required}, but {} is provided",
                aggregate::name_of(elem)
            );
            let help = format!("pass an array of {required}, or annotate the parameter with another dtype");
            return Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message).help(help)));
        }
        if let Some(required) = annotation.ndim
            && usize::from(required) != ndim
        {
            let message = format!(
                "Invalid value for argument {name} - required ndim={required}, but an array of ndim={ndim} is provided"
            );
            return Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message)));
        }
        if ndim > 12 {
            let message = format!("Invalid value for argument {name} - required at most 12 axes, got {ndim}");
            return Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message)));
        }
        Ok(ArrayType::array(elem, ndim as u8, annotation.boundary))
    }
}

/// As a message says it.
fn element_name(element: ElementAnnotation) -> String {
    match element {
        ElementAnnotation::Any | ElementAnnotation::Scalar => "a scalar".to_owned(),
        ElementAnnotation::Vector => "a vector".to_owned(),
        ElementAnnotation::Matrix => "a matrix".to_owned(),
        ElementAnnotation::Is(shape) => format!("element shape {:?}", shape.dims()),
    }
}
