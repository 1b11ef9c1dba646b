//! What the code of a specialisation was made for, object by object.

use octants::front::{Dependency, Origin, Role, Step};
use octants::ir::{ArrayType, Data, Scalar};
use octants::{CompiledKernel, FieldLeaf};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple, PyType};

use super::array::ArrayInput;
use super::class_version::ClassGuard;
use super::derivative::CompanionPath;
use super::field::{FieldInput, LeafSlots, bound_field};
use super::instance_dict::{self, InstanceDict, is_asked_plainly};
use super::writer::ArgumentWriter;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::gateway::errors;
use crate::host::template::{self, TemplateKey};
use crate::values::aggregate::{self, Layout};
use crate::values::number;

/// An argument, or a member that an argument leads to.
pub struct Input {
    path: Path,
    pub check: Check,
}

/// How an input is reached from those before it, by their numbers.
enum Path {
    Argument,
    Attribute(usize, Py<PyString>),
    /// An attribute that lies in the dictionary of its object.
    Stored(usize, Py<PyString>, ClassGuard),
    /// What the class of an object has under a name, unless the object itself has something there. Of a class that computes no attributes, whether it does by now.
    Method(usize, Py<PyString>, Option<ClassGuard>),
    Item(usize, Py<PyAny>),
    /// An object that the code stays with.
    Held(TemplateKey),
    /// What holds the derivatives of another; `None` if nothing does.
    Companion(CompanionPath),
}

/// What an input must be, and where it goes in the block.
pub enum Check {
    Constant(TemplateKey),
    /// Anything but `None`.
    Present,
    Anything,
    /// An object of exactly this type.
    Type(Py<PyType>),
    /// A tuple, list or dict of this length.
    Container(Py<PyType>, usize),
    /// A dict with these keys in this order.
    Keys(Py<PyType>, Vec<TemplateKey>),
    /// A vector or matrix of this class and [`aggregate::type_of_tensor`].
    Tensor(Py<PyType>, Py<PyTuple>),
    /// The same object as another input.
    Same(usize),
    Number {
        scalar: Scalar,
        at: usize,
        lifted: bool,
    },
    /// A vector, matrix or struct by value: where each of its scalars goes.
    Values(Layout, Vec<usize>),
    Array(ArrayInput),
    /// A view, and where its beginning goes.
    View(ArrayInput, Option<usize>),
    Field(Box<FieldInput>),
}

impl Input {
    /// `numbers` has the number of the input that each dependency is; `parent` is the object that it is a member of.
    pub fn new(
        dependency: &Dependency<Bound<'_, PyAny>>,
        compiled: &CompiledKernel,
        leaves: LeafSlots,
        numbers: &[usize],
        parent: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let object = &dependency.object;
        let path = match &dependency.origin {
            Origin::Argument(_) | Origin::Captured => Path::Argument,
            Origin::Held => Path::Held(TemplateKey::identity(object)),
            Origin::Member { of, step: Step::Attribute(name) } if dependency.role == Role::Method => {
                let class = parent.is_some_and(is_asked_plainly).then(ClassGuard::default);
                Path::Method(numbers[*of], PyString::intern(object.py(), name).unbind(), class)
            }
            Origin::Member { of, step: Step::Attribute(name) } => {
                let name = PyString::intern(object.py(), name);
                match parent {
                    Some(parent) if instance_dict::holds(parent, &name) => {
                        Path::Stored(numbers[*of], name.unbind(), ClassGuard::default())
                    }
                    _ => Path::Attribute(numbers[*of], name.unbind()),
                }
            }
            Origin::Member { of, step: Step::Item(key) } => Path::Item(numbers[*of], key.clone().unbind()),
        };
        let check = match (&path, parent) {
            (Path::Method(_, name, _), Some(parent)) => {
                Check::Constant(TemplateKey::of(&class_attribute(parent, name.bind(object.py()))?)?)
            }
            _ => Check::new(dependency.role, object, compiled, leaves, numbers)?,
        };
        Ok(Self { path, check })
    }

    /// What holds the derivatives of another input.
    pub fn companion(path: CompanionPath, check: Check) -> Self {
        Self { path: Path::Companion(path), check }
    }

    /// Whether it can ever be what the code is for again.
    pub fn is_alive(&self) -> bool {
        let is_held = match &self.path {
            Path::Held(key) => key.is_alive(),
            Path::Argument
            | Path::Attribute(..)
            | Path::Stored(..)
            | Path::Method(..)
            | Path::Item(..)
            | Path::Companion(_) => true,
        };
        is_held
            && match &self.check {
                Check::Constant(key) => key.is_alive(),
                _ => true,
            }
    }

    /// The number of the input in whose dictionary it is, and its name there.
    pub fn stored(&self, py: Python<'_>) -> Option<(usize, Py<PyString>)> {
        match &self.path {
            Path::Stored(of, name, _) => Some((*of, name.clone_ref(py))),
            Path::Argument
            | Path::Attribute(..)
            | Path::Method(..)
            | Path::Item(..)
            | Path::Held(_)
            | Path::Companion(_) => None,
        }
    }

    /// The number of the input that it is asked for as an attribute, and its name there: one that is not in its dictionary.
    pub fn attribute(&self, py: Python<'_>) -> Option<(usize, Py<PyString>)> {
        match &self.path {
            Path::Attribute(of, name) => Some((*of, name.clone_ref(py))),
            Path::Argument
            | Path::Stored(..)
            | Path::Method(..)
            | Path::Item(..)
            | Path::Held(_)
            | Path::Companion(_) => None,
        }
    }

    /// The number of the input whose class has it, and its name there.
    pub fn method(&self, py: Python<'_>) -> Option<(usize, Py<PyString>)> {
        match &self.path {
            Path::Method(of, name, _) => Some((*of, name.clone_ref(py))),
            Path::Argument
            | Path::Stored(..)
            | Path::Attribute(..)
            | Path::Item(..)
            | Path::Held(_)
            | Path::Companion(_) => None,
        }
    }

    /// The number of the input that it is read from, and how, as the user writes it.
    pub fn last_step(&self, py: Python<'_>) -> Option<(usize, String)> {
        match &self.path {
            Path::Attribute(of, name) | Path::Stored(of, name, _) | Path::Method(of, name, _) => {
                Some((*of, format!(".{}", name.bind(py))))
            }
            Path::Item(of, key) => {
                let key = key.bind(py).repr().map_or_else(|_| "…".to_owned(), |key| key.to_string());
                Some((*of, format!("[{key}]")))
            }
            Path::Companion(path) => path.last_step(),
            Path::Argument | Path::Held(_) => None,
        }
    }

    /// Whether it holds the derivatives of another.
    pub fn is_companion(&self) -> bool {
        matches!(self.path, Path::Companion(_))
    }

    /// The number of the input that it is read from.
    pub fn parent(&self) -> Option<usize> {
        match &self.path {
            Path::Stored(of, ..) | Path::Attribute(of, _) | Path::Method(of, ..) | Path::Item(of, _) => {
                Some(*of)
            }
            Path::Argument | Path::Held(_) | Path::Companion(_) => None,
        }
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.path {
            Path::Item(_, key) => visit.call(key)?,
            Path::Held(key) => key.visit(visit)?,
            Path::Companion(path) => path.visit(visit)?,
            Path::Argument | Path::Attribute(..) | Path::Stored(..) | Path::Method(..) => {}
        }
        match &self.check {
            Check::Constant(key) => key.visit(visit),
            Check::Keys(class, keys) => {
                visit.call(class)?;
                keys.iter().try_for_each(|key| key.visit(visit))
            }
            Check::Type(class) | Check::Container(class, _) => visit.call(class),
            Check::Tensor(class, ty) => {
                visit.call(class)?;
                visit.call(ty)
            }
            Check::Present | Check::Anything | Check::Same(_) | Check::Number { .. } | Check::Values(..) => {
                Ok(())
            }
            Check::Array(array) | Check::View(array, _) => array.visit(visit),
            Check::Field(field) => field.visit(visit),
        }
    }

    pub fn is_argument(&self) -> bool {
        matches!(self.path, Path::Argument)
    }

    /// Whether it is read from another input, or compared with it.
    pub fn depends_on(&self, other: usize) -> bool {
        let is_read = match &self.path {
            Path::Stored(of, ..) | Path::Attribute(of, _) | Path::Method(of, ..) | Path::Item(of, _) => {
                *of == other
            }
            Path::Companion(_) => true,
            Path::Argument | Path::Held(_) => false,
        };
        is_read || matches!(self.check, Check::Same(of) if of == other)
    }

    /// Reads a member; nothing if its container has no such item any more.
    pub fn read<'a, 'py: 'a>(
        &self,
        py: Python<'py>,
        known: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
        stored: &mut InstanceDict<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.path {
            Path::Stored(of, name, class) => {
                let parent = known(*of);
                match stored.get(*of, &parent, name, class) {
                    Some(member) => Ok(Some(member)),
                    None => parent.getattr(name.bind(py)).map(Some),
                }
            }
            Path::Companion(path) => path.read(py, known).map(Some),
            Path::Held(key) => Ok(key.held(py)),
            Path::Attribute(of, name) => {
                let parent = known(*of);
                parent.getattr(name.bind(parent.py())).map(Some)
            }
            Path::Method(of, name, class) => {
                let parent = known(*of);
                if let Some(class) = class {
                    let version = stored.class_version(*of, &parent);
                    if !class.is_as_it_was(version, &parent, || is_asked_plainly(&parent)) {
                        return Ok(None);
                    }
                }
                let is_hidden =
                    !parent.is_instance_of::<PyType>() && stored.item(*of, &parent, name).is_some();
                Ok(if is_hidden { None } else { class_attribute(&parent, name.bind(py)).ok() })
            }
            Path::Item(of, key) => {
                let parent = known(*of);
                Ok(parent.get_item(key.bind(parent.py())).ok())
            }
            Path::Argument => Err(errors::bug("an argument among the members")),
        }
    }
}

impl Check {
    fn new(
        role: Role,
        object: &Bound<'_, PyAny>,
        compiled: &CompiledKernel,
        leaves: LeafSlots,
        numbers: &[usize],
    ) -> PyResult<Self> {
        let at = |param: usize| compiled.args().slots[param].offset as usize;
        let array = |param: usize, ty: ArrayType| ArrayInput::new(compiled, param, ty);
        let number = |param: usize, data: Data, lifted: bool| match data {
            Data::Scalar(scalar) => Ok(Self::Number { scalar, at: at(param), lifted }),
            Data::Tensor(_) | Data::Struct(_) => Err(errors::bug("a parameter by value is not a scalar")),
        };
        Ok(match role {
            Role::Constant => Self::Constant(TemplateKey::of(object)?),
            Role::Operand => Self::Type(object.get_type().unbind()),
            Role::Holder => Self::Anything,
            Role::Walked => {
                let class = object.get_type().unbind();
                let is_container = object.is_instance_of::<PyTuple>()
                    || object.is_instance_of::<PyList>()
                    || object.is_instance_of::<PyDict>();
                if is_container {
                    Self::Container(class, object.len()?)
                } else if aggregate::is_tensor(object) {
                    Self::Tensor(class, aggregate::type_of_tensor(object)?.unbind())
                } else {
                    Self::Type(class)
                }
            }
            Role::Keys => {
                let keys = object.try_iter()?.map(|key| TemplateKey::of(&key?));
                Self::Keys(object.get_type().unbind(), keys.collect::<PyResult<_>>()?)
            }
            Role::Method => return Err(errors::bug("a method of no object")),
            Role::Same(other) => Self::Same(numbers[other]),
            Role::Data { param, data } => number(param, data, false)?,
            Role::Lifted { param, data } => number(param, data, true)?,
            Role::Values { first, count } => {
                let layout = Layout::of(object).ok_or_else(|| errors::bug("a value has no layout"))?;
                Self::Values(layout, (first..first + count).map(at).collect())
            }
            Role::Field { pinned } => Self::Field(Box::new(FieldInput::new(object, pinned, leaves)?)),
            Role::Array { param, ty } => Self::Array(array(param, ty)),
            Role::View { param, ty, offset } => Self::View(array(param, ty), offset.map(at)),
        })
    }

    /// Whether this object puts the same into the block at every launch, and nothing beside it.
    pub fn is_fixed_for(&self, object: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Constant(key) => key.is_lasting(),
            // An array without axes is taken as a number, and may be written.
            Self::Number { .. } => template::is_value(object),
            Self::Present | Self::Anything | Self::Type(_) | Self::Same(_) => true,
            Self::Array(_) => tensor::unwrapped(object).is_instance_of::<Ndarray>(),
            Self::Field(_) => bound_field(tensor::unwrapped(object))
                .is_ok_and(|field| field.leaves.iter().all(FieldLeaf::is_fixed)),
            Self::Container(..) | Self::Keys(..) | Self::Tensor(..) | Self::Values(..) | Self::View(..) => {
                false
            }
        }
    }

    /// Whether an object is what the code is for; if so, it is written. Arrays are left for later.
    #[inline]
    pub fn write<'a, 'py: 'a>(
        &self,
        object: &Bound<'py, PyAny>,
        known: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<bool> {
        Ok(match self {
            Self::Array(_) | Self::Anything => true,
            Self::Number { scalar, at, lifted } => match number::bits_of(*scalar, object) {
                Some(bits) => {
                    writer.put(*at, *scalar, bits?);
                    true
                }
                None if *lifted && object.is_instance_of::<PyFloat>() => return Err(became_real(object)),
                None => false,
            },
            Self::Constant(key) => key.matches(object) || key.matches(tensor::unwrapped(object)),
            Self::Present => !object.is_none(),
            Self::Type(class) => object.get_type_ptr().cast() == class.as_ptr(),
            Self::Container(class, length) => {
                object.get_type_ptr().cast() == class.as_ptr() && object.len()? == *length
            }
            Self::Keys(class, keys) => {
                let mut now = if object.get_type_ptr().cast() == class.as_ptr() {
                    object.try_iter()?
                } else {
                    return Ok(false);
                };
                let are_same = keys
                    .iter()
                    .all(|key| now.next().is_some_and(|now| now.is_ok_and(|now| key.matches(&now))));
                are_same && now.next().is_none()
            }
            Self::Tensor(class, ty) => {
                object.get_type_ptr().cast() == class.as_ptr() && aggregate::type_of_tensor(object)?.eq(ty)?
            }
            Self::Same(other) => tensor::unwrapped(object).is(tensor::unwrapped(&known(*other))),
            Self::Values(layout, places) => {
                let mut bits = Vec::with_capacity(places.len());
                let fits = layout.flatten(object, &mut bits)?.is_some() && bits.len() == places.len();
                if fits {
                    for ((scalar, bits), at) in bits.into_iter().zip(places) {
                        writer.put(*at, scalar, bits);
                    }
                }
                fits
            }
            Self::View(array, offset) => array.write_view(object, *offset, writer)?,
            Self::Field(field) => field.write(object, writer)?,
        })
    }
}

/// What an object finds under a name in its class, or what the object itself finds, if it is a class.
#[inline]
pub fn class_attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    if object.is_instance_of::<PyType>() {
        return object.getattr(name);
    }
    let class = object.get_type();
    if class.get_type().is(class.py().get_type::<PyType>()) {
        return class.getattr(name);
    }
    // The class of the class may have something of this name, which a class finds and its objects do not.
    let found = instance_dict::static_attribute(&class, name)?;
    found.ok_or_else(|| PyAttributeError::new_err(name.clone().unbind()))
}

#[cold]
fn became_real(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a member that was an integer when the kernel was compiled is now the float {object}; members of a class with \
         template_primitives=False keep their kind"
    ))
}
