//! What annotations say.

use octants::front::{Annotation, ArrayAnnotation, ElementAnnotation, Host};
use octants::ir::{Boundary, TensorShape};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyString, PyTuple, PyType};

use super::{Object, PyHost};
use crate::arrays::buffer_view::BufferView;
use crate::arrays::tensor;
use crate::values::{aggregate, dtype};

impl<'py> PyHost<'py> {
    /// What an annotation says.
    pub(super) fn read_annotation(&self, object: &Object<'py>) -> Annotation {
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
        if let Some(inner) = self.not_none(object) {
            return match self.annotation(&inner) {
                Annotation::Array(array) => Annotation::Array(ArrayAnnotation { optional: true, ..array }),
                // These may be `None` in any case.
                annotation @ (Annotation::AnyTensor | Annotation::Template) => annotation,
                annotation @ (Annotation::Struct(_) | Annotation::Dataclass(_)) => {
                    Annotation::Optional(Box::new(annotation))
                }
                _ => other(),
            };
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

    /// What `T | None` and `typing.Optional[T]` say of T.
    pub(super) fn not_none(&self, object: &Object<'py>) -> Option<Object<'py>> {
        // The classes of unions, by version of Python.
        let class = object.get_type().name().ok()?;
        if !["UnionType", "_UnionGenericAlias", "Union"].iter().any(|&name| class == name) {
            return None;
        }
        let types = object.getattr("__args__").ok()?.cast_into::<PyTuple>().ok()?;
        let none = self.py.None().bind(self.py).get_type();
        let others: Vec<_> = types.iter().filter(|one| !one.is(&none)).collect();
        match <[_; 1]>::try_from(others) {
            Ok([only]) if types.len() == 2 => Some(only),
            _ => None,
        }
    }

    fn array_annotation(&self, object: &Object<'py>) -> PyResult<ArrayAnnotation> {
        let dtype = object.getattr("dtype")?;
        let (scalar, element) = if dtype.is_none() {
            (None, ElementAnnotation::Any)
        } else if let Some((scalar, shape)) = aggregate::tensor_annotation(&dtype) {
            (Some(scalar), ElementAnnotation::Is(shape))
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
            optional: object
                .getattr_opt("optional")?
                .is_some_and(|optional| optional.is_truthy().unwrap_or(false)),
        })
    }

    fn class_name(&self, class: &Object<'py>) -> String {
        class.getattr("__name__").map_or_else(|_| "class".to_owned(), |name| name.to_string())
    }
}

/// The type of a dataclass's field; a text is resolved where the class was defined.
pub(super) fn field_annotation<'py>(object: &Object<'py>, name: &str) -> PyResult<Option<Object<'py>>> {
    let Some(fields) = object.get_type().getattr_opt("__dataclass_fields__")? else { return Ok(None) };
    let Some(field) = fields.cast_into::<PyDict>()?.get_item(name)? else { return Ok(None) };
    let annotation = field.getattr("type")?;
    if !annotation.is_instance_of::<PyString>() {
        return Ok(Some(annotation));
    }
    let resolve = object.py().import("octants._language.data_oriented")?.getattr("field_type")?;
    resolve.call1((object.get_type(), name)).map(Some)
}

/// The annotation of an array of any kind.
pub fn any_array() -> ArrayAnnotation {
    ArrayAnnotation {
        scalar: None,
        element: ElementAnnotation::Any,
        ndim: None,
        boundary: Boundary::Unsafe,
        needs_grad: None,
        optional: false,
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
