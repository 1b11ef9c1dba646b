//! From the arguments of a Python call to what a launch needs.

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::front::{Annotation, ArrayAnnotation, LowerOptions, ParamSpec, ScalarAnnotation, Signature};
use octants::ir::{ArrayType, Const, Scalar};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::ndarray::Ndarray;
use crate::runtime::Current;
use crate::{errors, number, numpy};

/// A parameter, as a call sees it.
pub struct Param {
    spec: ParamSpec,
    kind: Kind,
}

enum Kind {
    Scalar(ScalarAnnotation),
    Array(ArrayAnnotation),
    /// Known while compiling; a method's receiver is too.
    Template,
}

/// One argument of a call.
pub enum Argument<'a, 'py> {
    /// The bits of the parameter's type.
    Scalar(u64),
    Array(ArrayArgument<'py>),
    Template(&'a Bound<'py, PyAny>),
}

pub struct ArrayArgument<'py> {
    pub ty: ArrayType,
    pub address: u64,
    pub shape: SmallVec<[i32; 4]>,
    pub writeable: bool,
    /// A dense copy that stands in for the argument, and the argument that gets it back.
    stand_in: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}

impl ArrayArgument<'_> {
    /// After the launch: gives the argument what its stand-in holds.
    pub fn copy_back(&self) -> PyResult<()> {
        if let Some((dense, original)) = &self.stand_in {
            if self.writeable {
                original.py().import("numpy")?.call_method1("copyto", (original, dense))?;
            }
        }
        Ok(())
    }
}

fn resolve(annotation: ScalarAnnotation, options: &LowerOptions) -> Scalar {
    match annotation {
        ScalarAnnotation::Is(scalar) => scalar,
        ScalarAnnotation::DefaultInt => options.default_ip,
        ScalarAnnotation::DefaultFloat => options.default_fp,
    }
}

impl Param {
    pub fn new(spec: &ParamSpec) -> Self {
        let kind = match &spec.annotation {
            Some(Annotation::Scalar(scalar)) => Kind::Scalar(*scalar),
            Some(Annotation::Array(array)) => Kind::Array(array.clone()),
            _ => Kind::Template,
        };
        Self { spec: spec.clone(), kind }
    }

    /// The type of a scalar parameter.
    pub fn scalar(&self, options: &LowerOptions) -> Scalar {
        match self.kind {
            Kind::Scalar(annotation) => resolve(annotation, options),
            _ => options.default_ip,
        }
    }

    pub fn read_only(&self, py: Python<'_>, map: &SourceMap) -> PyErr {
        let message = format!(
            "Invalid value for argument {} - required a writeable array, got a read-only one",
            self.spec.name
        );
        let help = "the kernel writes this array; pass a copy, or one whose flags.writeable is True";
        errors::from_diagnostic(py, self.diagnostic(Code::ArrayMismatch, message).help(help), map)
    }

    fn diagnostic(&self, code: Code, message: String) -> Diagnostic {
        Diagnostic::new(code, message).at(self.spec.span).marked("the parameter")
    }
}

/// Places and converts the arguments of one call.
pub struct Binder<'k> {
    pub signature: &'k Signature,
    pub params: &'k [Param],
    pub sources: &'k SourceMap,
}

type Objects<'py> = SmallVec<[Bound<'py, PyAny>; 8]>;

impl Binder<'_> {
    fn error(&self, py: Python<'_>, diagnostic: Diagnostic) -> PyErr {
        errors::from_diagnostic(py, diagnostic, self.sources)
    }

    /// The arguments in the order of the parameters.
    pub fn place<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Objects<'py>> {
        match kwargs {
            None if args.len() == self.params.len() => Ok(args.iter().collect()),
            _ => self.place_named(args, kwargs),
        }
    }

    fn place_named<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Objects<'py>> {
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
        for (name, value) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            let name: String = name.extract()?;
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

    /// One argument, as its parameter's annotation says.
    pub fn convert<'a, 'py>(
        &self,
        param: &Param,
        object: &'a Bound<'py, PyAny>,
        current: &Current,
    ) -> PyResult<Argument<'a, 'py>> {
        match &param.kind {
            Kind::Scalar(annotation) => {
                self.scalar(param, resolve(*annotation, &current.lower), object).map(Argument::Scalar)
            }
            Kind::Array(annotation) => self.array(param, annotation, object, current).map(Argument::Array),
            Kind::Template => self.template(param, object),
        }
    }

    fn scalar(&self, param: &Param, scalar: Scalar, object: &Bound<'_, PyAny>) -> PyResult<u64> {
        if scalar.is_real() {
            if let Some(value) = number::real(object) {
                return Ok(match scalar {
                    Scalar::F64 => value.to_bits(),
                    Scalar::F32 => (value as f32).to_bits().into(),
                    _ => Const::from_f64(scalar, value).bits(),
                });
            }
        } else if let Some(bits) = number::wrapped_integer(object) {
            return Ok(Const::from_bits(
                scalar,
                if scalar == Scalar::U1 { u64::from(bits? != 0) } else { bits? },
            )
            .bits());
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

    fn template<'a, 'py>(&self, param: &Param, object: &'a Bound<'py, PyAny>) -> PyResult<Argument<'a, 'py>> {
        if object.is_instance_of::<Ndarray>() {
            let message =
                format!("argument `{}`: an ndarray cannot be a compile-time argument", param.spec.name);
            let help = "annotate the parameter with oc.types.ndarray(...)";
            return Err(self.error(object.py(), param.diagnostic(Code::ArgumentType, message).help(help)));
        }
        Ok(Argument::Template(object))
    }

    fn array<'py>(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        object: &Bound<'py, PyAny>,
        current: &Current,
    ) -> PyResult<ArrayArgument<'py>> {
        if let Ok(ndarray) = object.cast::<Ndarray>() {
            let array = &ndarray.get().array;
            let ty =
                self.array_type(param, annotation, current, array.scalar(), array.shape().len(), object)?;
            let address =
                array.address(&current.session).map_err(|error| errors::from_error(object.py(), &error))?;
            let shape = SmallVec::from_slice(array.shape());
            return Ok(ArrayArgument { ty, address, shape, writeable: true, stand_in: None });
        }
        if let Some(view) = numpy::View::of(object) {
            return self.numpy_array(param, annotation, &view, current);
        }
        if is_torch_tensor(object) {
            return self.torch_tensor(param, annotation, object, current);
        }
        let found = object.get_type().name()?.to_string();
        let message =
            format!("Invalid type for argument `{}`: an array is required, got {found}", param.spec.name);
        let help = "pass an oc.ndarray or a numpy array";
        Err(self.error(object.py(), param.diagnostic(Code::ArgumentType, message).help(help)))
    }

    fn numpy_array<'py>(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        view: &numpy::View<'_, 'py>,
        current: &Current,
    ) -> PyResult<ArrayArgument<'py>> {
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
        let ty = self.array_type(param, annotation, current, scalar, view.shape().len(), object)?;
        let mut shape = SmallVec::new();
        for &extent in view.shape() {
            let Ok(extent) = i32::try_from(extent) else {
                let got = format!("shape {:?}", view.shape());
                return Err(refuse("extents below 2147483648", got, "pass a part of the array"));
            };
            shape.push(extent);
        }
        let writeable = view.is_writeable();
        if view.is_c_contiguous() && view.is_aligned() {
            return Ok(ArrayArgument { ty, address: view.data() as u64, shape, writeable, stand_in: None });
        }
        if !view.is_f_contiguous() {
            let help = "pass numpy.ascontiguousarray(array)";
            return Err(refuse("a contiguous array", "a strided one".to_owned(), help));
        }
        let dense = numpy::contiguous(object, scalar)?;
        let address = numpy::View::of(&dense).map_or(0, |view| view.data() as u64);
        Ok(ArrayArgument { ty, address, shape, writeable, stand_in: Some((dense, object.clone())) })
    }

    /// A tensor in the host's memory, seen as the numpy array that shares it.
    fn torch_tensor<'py>(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        object: &Bound<'py, PyAny>,
        current: &Current,
    ) -> PyResult<ArrayArgument<'py>> {
        let array = object.call_method0("detach")?.call_method0("numpy")?;
        let view = numpy::View::of(&array).ok_or_else(|| errors::bug("a tensor gave no numpy array"))?;
        // The tensor keeps the memory; the array object was only a look at it.
        self.numpy_array(param, annotation, &view, current)
    }

    fn array_type(
        &self,
        param: &Param,
        annotation: &ArrayAnnotation,
        current: &Current,
        scalar: Scalar,
        ndim: usize,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<ArrayType> {
        let name = &param.spec.name;
        if let Some((required, _)) = annotation.elem {
            let required = resolve(required, &current.lower);
            if required != scalar {
                let message = format!(
                    "Invalid value for argument {name} - required element type: {}, but {} is provided",
                    required.name(),
                    scalar.name()
                );
                let help = format!(
                    "pass an array of {}, or annotate the parameter with dtype=oc.{}",
                    required.name(),
                    scalar.name()
                );
                return Err(
                    self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message).help(help))
                );
            }
        }
        if let Some(required) = annotation.ndim {
            if usize::from(required) != ndim {
                let message = format!(
                    "Invalid value for argument {name} - required ndim={required}, but an array of ndim={ndim} is provided"
                );
                return Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message)));
            }
        }
        if ndim > 12 {
            let message = format!("Invalid value for argument {name} - required at most 12 axes, got {ndim}");
            return Err(self.error(object.py(), param.diagnostic(Code::ArrayMismatch, message)));
        }
        Ok(ArrayType { elem: scalar.into(), rank: ndim as u8, boundary: annotation.boundary })
    }
}

fn is_torch_tensor(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    class.name().is_ok_and(|name| name == "Tensor") && class.module().is_ok_and(|module| module == "torch")
}
