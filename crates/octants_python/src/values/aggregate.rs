//! Vectors, matrices and structs: types and values of the Python package as the compiler sees them, and returned values as Python objects.

use octants::front::{Annotation, Meaning, Number, Returned, ScalarAnnotation, TensorConstant};
use octants::ir::{Const, Data, Scalar, TensorShape, TensorType};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyString, PyTuple};

use crate::gateway::errors;
use crate::values::dtype::scalar_annotation;
use crate::values::dtype::{self, DataType};
use crate::values::number;

type Object<'py> = Bound<'py, PyAny>;

/// The mark by which the package's own classes are known.
fn mark(object: &Object<'_>) -> Option<String> {
    let mark = object.getattr_opt("__octants__").ok()??;
    Some(mark.cast::<PyString>().ok()?.to_str().ok()?.to_owned())
}

fn is_class(object: &Object<'_>) -> bool {
    object.is_instance_of::<pyo3::types::PyType>()
}

/// The shape of a type of vectors or matrices.
fn tensor_shape(object: &Object<'_>) -> Option<TensorShape> {
    if is_class(object)
        || mark(object)? != "matrix_type"
        || object.getattr("unpacked").ok()?.is_truthy().ok()?
    {
        return None;
    }
    let n: u16 = object.getattr("n").ok()?.extract().ok()?;
    let m: u16 = object.getattr("m").ok()?.extract().ok()?;
    let ndim: u8 = object.getattr("ndim").ok()?.extract().ok()?;
    Some(if ndim == 1 { TensorShape::Vector(n) } else { TensorShape::Matrix(n, m) })
}

/// The entries and the shape of a type of vectors or matrices that says both.
pub fn tensor_type(object: &Object<'_>) -> Option<(Scalar, TensorShape)> {
    let shape = tensor_shape(object)?;
    let scalar = object.getattr("dtype").ok()?.cast::<DataType>().ok()?.get().scalar;
    Some((scalar, shape))
}

/// Likewise, as an annotation: a type may follow the session's defaults.
pub fn tensor_annotation(object: &Object<'_>) -> Option<(ScalarAnnotation, TensorShape)> {
    let (scalar, shape) = tensor_type(object)?;
    let kind = object.getattr_opt("default_kind").ok().flatten();
    let scalar = match kind.and_then(|kind| kind.extract::<String>().ok()).as_deref() {
        Some("real") => ScalarAnnotation::DefaultFloat,
        Some("integer") => ScalarAnnotation::DefaultInt,
        Some("unsigned") => ScalarAnnotation::DefaultUnsigned,
        _ => ScalarAnnotation::Is(scalar),
    };
    Some((scalar, shape))
}

/// What a type of vectors, matrices or structs says as an annotation.
pub fn annotation(object: &Object<'_>) -> Option<Annotation> {
    annotation_by(object, tensor_annotation)
}

/// What a type of vectors or matrices says.
type TensorSays = fn(&Object<'_>) -> Option<(ScalarAnnotation, TensorShape)>;

fn annotation_by(object: &Object<'_>, tensor: TensorSays) -> Option<Annotation> {
    if let Some((scalar, shape)) = tensor(object) {
        return Some(Annotation::Tensor(scalar, shape));
    }
    if let Some(shape) = tensor_shape(object) {
        return Some(Annotation::Shape(shape));
    }
    if is_class(object) || mark(object)? != "struct_type" {
        return None;
    }
    let members = object.getattr("members").ok()?.cast_into::<PyDict>().ok()?;
    let mut found = Vec::new();
    for (name, ty) in members {
        let member = match annotation_by(&ty, tensor) {
            Some(member) => member,
            None => Annotation::Scalar(scalar_annotation(&ty)?),
        };
        found.push((name.extract().ok()?, member));
    }
    Some(Annotation::Struct(found))
}

fn number_of(object: &Object<'_>) -> Option<Number> {
    if let Ok(value) = object.cast::<pyo3::types::PyBool>() {
        return Some(Number::Bool(value.is_true()));
    }
    if let Ok(value) = object.cast::<pyo3::types::PyFloat>() {
        return Some(Number::Float(value.value()));
    }
    object.extract().ok().map(Number::Int)
}

/// Whether it is a vector or a matrix.
pub fn is_tensor(object: &Object<'_>) -> bool {
    !is_class(object) && matches!(mark(object).as_deref(), Some("Matrix" | "Vector"))
}

/// The shape of a vector or a matrix, and the type that its entries were declared to have.
pub fn type_of_tensor<'py>(object: &Object<'py>) -> PyResult<Bound<'py, PyTuple>> {
    let py = object.py();
    let shape = object.getattr(intern!(py, "entries"))?.getattr(intern!(py, "shape"))?;
    (shape, object.getattr(intern!(py, "dt"))?).into_pyobject(py)
}

/// What a vector, a matrix, a struct, or a function marked as part of the language is.
pub fn meaning<'py>(object: &Object<'py>) -> Option<Meaning<Object<'py>>> {
    if is_class(object) {
        return None;
    }
    let mark = mark(object)?;
    match &*mark {
        "func" => {
            let receiver = object.getattr_opt("__self__").ok()?;
            Some(Meaning::Func { receiver: receiver.filter(|receiver| !receiver.is_none()) })
        }
        "Matrix" | "Vector" => {
            let parts = object.call_method0("constant").ok()?.cast_into::<PyTuple>().ok()?;
            let shape: Vec<u16> = parts.get_item(0).ok()?.extract().ok()?;
            let shape = match *shape {
                [n] => TensorShape::Vector(n),
                [n, m] => TensorShape::Matrix(n, m),
                _ => return None,
            };
            let dtype = parts.get_item(1).ok()?;
            let dtype = dtype.cast::<DataType>().ok().map(|dtype| dtype.get().scalar);
            let entries = parts.get_item(2).ok()?.cast_into::<PyList>().ok()?;
            let entries = entries.iter().map(|entry| number_of(&entry)).collect::<Option<Vec<_>>>()?;
            Some(Meaning::Tensor(TensorConstant { shape, dtype, entries }))
        }
        "Struct" => {
            let entries = object.getattr("entries").ok()?.cast_into::<PyDict>().ok()?;
            let members = entries
                .iter()
                .map(|(name, value)| Some((name.extract::<String>().ok()?, value)))
                .collect::<Option<Vec<_>>>()?;
            let ty = object.getattr("_type").ok()?;
            Some(Meaning::Struct { members, ty: Some(ty).filter(|ty| !ty.is_none()) })
        }
        _ => None,
    }
}

/// A parameter by value that is more than one number: its scalars in the order of the kernel's parameters.
#[derive(Clone, Debug)]
pub enum Layout {
    Scalar(Scalar),
    Tensor(Scalar, TensorShape),
    Struct(Vec<(String, Layout)>),
}

impl Layout {
    /// The layout of a type of vectors, matrices or structs, in the session as it is.
    pub fn of(ty: &Object<'_>) -> Option<Self> {
        let now: TensorSays =
            |ty| tensor_type(ty).map(|(scalar, shape)| (ScalarAnnotation::Is(scalar), shape));
        Self::new(&annotation_by(ty, now)?)
    }

    pub fn new(annotation: &Annotation) -> Option<Self> {
        match annotation {
            Annotation::Scalar(ScalarAnnotation::Is(scalar)) => Some(Self::Scalar(*scalar)),
            Annotation::Tensor(ScalarAnnotation::Is(scalar), shape) => Some(Self::Tensor(*scalar, *shape)),
            Annotation::Struct(members) => {
                let members = members.iter().map(|(name, member)| Some((name.clone(), Self::new(member)?)));
                members.collect::<Option<_>>().map(Self::Struct)
            }
            _ => None,
        }
    }

    /// For a message.
    pub fn describe(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.name().to_owned(),
            Self::Tensor(scalar, TensorShape::Vector(n)) => format!("vector({n}, {})", scalar.name()),
            Self::Tensor(scalar, TensorShape::Matrix(n, m)) => format!("matrix({n}, {m}, {})", scalar.name()),
            Self::Struct(members) => {
                let members: Vec<_> =
                    members.iter().map(|(name, member)| format!("{name}={}", member.describe())).collect();
                format!("struct({})", members.join(", "))
            }
        }
    }

    /// Appends the bits of each scalar of a Python value. `None` if the value does not fit: a real is no integer.
    pub fn flatten(&self, object: &Object<'_>, bits: &mut Vec<(Scalar, u64)>) -> PyResult<Option<()>> {
        self.walk(object, bits, push)
    }

    /// As [`Self::flatten`], with reals truncated where integers are wanted.
    pub fn convert(&self, object: &Object<'_>, bits: &mut Vec<(Scalar, u64)>) -> PyResult<Option<()>> {
        self.walk(object, bits, push_converted)
    }

    fn walk(
        &self,
        object: &Object<'_>,
        bits: &mut Vec<(Scalar, u64)>,
        push: PushLeaf,
    ) -> PyResult<Option<()>> {
        match self {
            Self::Scalar(scalar) => Ok(push(*scalar, object, bits)),
            Self::Tensor(scalar, shape) => {
                let dims = shape.dims();
                let list = if let Ok(list) =
                    object.call_method0("to_list").or_else(|_| object.call_method0("tolist"))
                {
                    list
                } else {
                    object.clone()
                };
                let Some(rows) = ordered(&list) else { return Ok(None) };
                let mut count = 0;
                for row in rows {
                    let row = row?;
                    count += 1;
                    if let [_] = *dims {
                        if push(*scalar, &row, bits).is_none() {
                            return Ok(None);
                        }
                    } else {
                        let Some(entries) = ordered(&row) else { return Ok(None) };
                        let mut columns = 0;
                        for entry in entries {
                            columns += 1;
                            if push(*scalar, &entry?, bits).is_none() {
                                return Ok(None);
                            }
                        }
                        if columns != dims[1] {
                            return Ok(None);
                        }
                    }
                }
                Ok((count == dims[0]).then_some(()))
            }
            Self::Struct(members) => {
                let by_name = match object.cast::<PyDict>() {
                    Ok(dict) => dict.clone(),
                    Err(_) => {
                        match object.getattr("entries").and_then(|entries| Ok(entries.cast_into::<PyDict>()?))
                        {
                            Ok(entries) => entries,
                            Err(_) => return Ok(None),
                        }
                    }
                };
                if by_name.len() != members.len() {
                    return Ok(None);
                }
                for (name, member) in members {
                    let Some(value) = by_name.get_item(name)? else { return Ok(None) };
                    if member.walk(&value, bits, push)?.is_none() {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            }
        }
    }
}

type PushLeaf = fn(Scalar, &Object<'_>, &mut Vec<(Scalar, u64)>) -> Option<()>;

fn push(scalar: Scalar, object: &Object<'_>, bits: &mut Vec<(Scalar, u64)>) -> Option<()> {
    if scalar.is_integral() && number::wrapped_integer(object).is_none() && number::real(object).is_some() {
        return None;
    }
    push_converted(scalar, object, bits)
}

fn push_converted(scalar: Scalar, object: &Object<'_>, bits: &mut Vec<(Scalar, u64)>) -> Option<()> {
    let constant = dtype::constant_from(object, scalar).ok()?;
    bits.push((scalar, constant.bits()));
    Some(())
}

/// What the elements of an array are, for a message.
pub fn name_of(data: Data) -> String {
    match data {
        Data::Scalar(scalar) => scalar.name().to_owned(),
        Data::Tensor(tensor) => Layout::Tensor(tensor.elem, tensor.shape).describe(),
        Data::Struct(_) => "a struct".to_owned(),
    }
}

/// The package's type of such vectors or matrices.
pub fn type_object(py: Python<'_>, tensor: TensorType) -> PyResult<Object<'_>> {
    let types = py.import("octants._matrix.types")?;
    let scalar = dtype::object_of(py, tensor.elem);
    match tensor.shape {
        TensorShape::Vector(n) => types.getattr("vector")?.call1((n, scalar)),
        TensorShape::Matrix(n, m) => types.getattr("matrix")?.call1((n, m, scalar)),
    }
}

/// A returned value as a Python object; `next` gives the kernel's results one by one. `ty` is the annotation, for structs.
pub fn returned<'py>(
    py: Python<'py>,
    what: &Returned,
    ty: Option<&Object<'py>>,
    next: &mut impl FnMut() -> PyResult<Const>,
) -> PyResult<Object<'py>> {
    match what {
        Returned::Scalar(_) => dtype::constant_to(py, next()?),
        Returned::Tensor(tensor) => {
            let mut entries = Vec::with_capacity(tensor.shape.count() as usize);
            for _ in 0..tensor.shape.count() {
                entries.push(dtype::constant_to(py, next()?)?);
            }
            type_object(py, *tensor)?.call_method1("from_numbers", (PyList::new(py, entries)?,))
        }
        Returned::Struct(members) => {
            let types = ty.and_then(|ty| ty.getattr("members").ok());
            let dict = PyDict::new(py);
            for (name, member) in members {
                let ty = types.as_ref().and_then(|types| types.get_item(name).ok());
                dict.set_item(name, returned(py, member, ty.as_ref(), next)?)?;
            }
            match ty {
                Some(ty) => ty.call_method1("cast", (dict,)),
                None => Err(errors::bug("a struct was returned without a type")),
            }
        }
    }
}

/// The items of something that has an order: a set has none.
fn ordered<'py>(object: &Object<'py>) -> Option<Bound<'py, PyIterator>> {
    if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        return None;
    }
    object.try_iter().ok()
}
