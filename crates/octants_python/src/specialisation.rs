//! Code for one kind of arguments, and how a call's arguments are compared with it and written into the block of a launch.
//!
//! Both happen in one walk: over the arguments, and over what compiling found behind them (members of dataclasses and of
//! compile-time objects), which is read anew at each launch. Nothing is keyed by the address of a temporary object.

use std::sync::Arc;

use octants::front::{Dependency, FieldParam, Origin, Returns, Role, Step};
use octants::ir::plan::ArgSlot;
use octants::ir::{Const, Data, Order, Scalar};
use octants::{CompiledKernel, FieldKind, FieldLeaf, Memory, Tree};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::aggregate::Layout;
use crate::buffer_view::BufferView;
use crate::field::{BoundField, Field};
use crate::ndarray::Ndarray;
use crate::stand_in::{self, StandIn};
use crate::template::TemplateKey;
use crate::{errors, number, numpy};

pub struct Specialisation {
    pub epoch: u64,
    pub compiled: Arc<CompiledKernel>,
    pub returns: Returns,
    inputs: Vec<Input>,
    /// Which of the inputs are arrays.
    arrays: Vec<usize>,
    /// Fields that no argument leads to, and where their addresses go. They live as long as the code does.
    captured: Vec<(FieldLeaf, usize)>,
}

/// Something that the code depends on.
struct Input {
    way: Way,
    check: Check,
}

enum Way {
    Argument,
    Attribute(usize, Py<PyString>),
    Item(usize, Py<PyAny>),
}

enum Check {
    Constant(TemplateKey),
    /// An object of exactly this type.
    Type(Py<PyType>),
    /// A tuple, list or dict of this length.
    Container(Py<PyType>, usize),
    Same(usize),
    Number {
        scalar: Scalar,
        at: usize,
        lifted: bool,
    },
    /// A vector, matrix or struct by value: where each of its scalars goes.
    Values(Layout, Vec<usize>),
    Array(ArrayCheck),
    View(ArrayCheck, Option<usize>),
    Field(Box<FieldCheck>),
}

/// A field: its kind, and where the addresses of its leaves go in the block.
struct FieldCheck {
    kind: Arc<FieldKind>,
    struct_type: Option<Py<PyAny>>,
    /// The code is for this one alone.
    pinned: Option<TemplateKey>,
    leaves: Vec<(usize, usize)>,
}

/// An array argument: its type, which parameter it is, and where it goes in the block.
struct ArrayCheck {
    elem: Data,
    rank: usize,
    order: Order,
    param: usize,
    at: usize,
    written: bool,
}

/// Whether the code is for these arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Fits,
    Differs,
    /// The code writes an array that may not be written: the number of the input.
    ReadOnly(usize),
}

/// Members that were read for a launch. Their memory must live until it is over, whatever happens to the objects that had them.
pub type Held<'py> = SmallVec<[Bound<'py, PyAny>; 16]>;

/// Trees whose fields a launch uses.
pub type Trees = SmallVec<[Arc<Tree>; 4]>;

/// What stands behind addresses in the block of arguments, apart from the arguments themselves.
#[derive(Default)]
pub struct Behind<'py> {
    pub stand_ins: Vec<StandIn<'py>>,
    pub trees: Trees,
}

impl Behind<'_> {
    pub fn clear(&mut self) {
        self.stand_ins.clear();
        self.trees.clear();
    }

    /// Keeps the memory of fields until a launch is over, whoever destroys them meanwhile: others run while it does.
    pub fn hold(&self, py: Python<'_>) -> PyResult<SmallVec<[Arc<Memory>; 4]>> {
        self.trees.iter().map(|tree| tree.memory().map_err(|error| errors::from_error(py, &error))).collect()
    }

    fn add_tree(&mut self, tree: &Arc<Tree>) {
        if !self.trees.iter().any(|known| Arc::ptr_eq(known, tree)) {
            self.trees.push(Arc::clone(tree));
        }
    }
}

pub type Objects<'a, 'py> = SmallVec<[Borrowed<'a, 'py, PyAny>; 8]>;

impl Specialisation {
    pub fn new(
        epoch: u64,
        compiled: Arc<CompiledKernel>,
        returns: Returns,
        dependencies: &[Dependency<Bound<'_, PyAny>>],
        fields: &[FieldParam],
    ) -> PyResult<Self> {
        let mut inputs = Vec::new();
        let mut captured = Vec::new();
        // Fields that no argument leads to are no inputs: the others are counted without them.
        let mut numbers = Vec::new();
        for (index, dependency) in dependencies.iter().enumerate() {
            numbers.push(inputs.len());
            let leaves = fields.iter().filter(|param| param.field == index);
            let leaves: Vec<_> = leaves.map(|param| place_of(param, &compiled)).collect();
            if let Origin::Captured = dependency.origin {
                let field = bound_field(&dependency.object)?;
                captured.extend(leaves.iter().map(|&(leaf, at)| (field.leaves[leaf].clone(), at)));
                continue;
            }
            inputs.push(input(dependency, &compiled, leaves, &numbers)?);
        }
        let is_array = |&index: &usize| matches!(inputs[index].check, Check::Array(_));
        let arrays = (0..inputs.len()).filter(is_array).collect();
        Ok(Self { epoch, compiled, returns, inputs, arrays, captured })
    }

    /// Whether it can ever fit again.
    pub fn is_alive(&self) -> bool {
        self.inputs.iter().all(|input| match &input.check {
            Check::Constant(key) => key.is_alive(),
            _ => true,
        })
    }

    /// Compares the arguments and writes the block.
    ///
    /// Arrays come last: converting a number or reading a member may run Python code, which may resize an array.
    #[inline]
    pub fn bind<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        block: &mut [u8],
        behind: &mut Behind<'py>,
        held: &mut Held<'py>,
    ) -> PyResult<Fit> {
        let (first, members) = self.inputs.split_at(arguments.len().min(self.inputs.len()));
        for (input, object) in first.iter().zip(arguments) {
            let other = |at: usize| arguments[at];
            if !self.check(&input.check, object, other, block, behind)? {
                return Ok(Fit::Differs);
            }
        }
        for (leaf, at) in &self.captured {
            self.put_leaf(leaf, *at, py, block, behind)?;
        }
        if !members.is_empty() && !self.bind_members(members, arguments, block, behind, held)? {
            return Ok(Fit::Differs);
        }
        for &index in &self.arrays {
            let Check::Array(array) = &self.inputs[index].check else { continue };
            let object = known(arguments, held, index);
            match self.array(array, &object, block, behind)? {
                Fit::Fits => {}
                Fit::ReadOnly(_) => return Ok(Fit::ReadOnly(index)),
                Fit::Differs => return Ok(Fit::Differs),
            }
        }
        Ok(Fit::Fits)
    }

    fn bind_members<'py>(
        &self,
        members: &[Input],
        arguments: &[Borrowed<'_, 'py, PyAny>],
        block: &mut [u8],
        behind: &mut Behind<'py>,
        held: &mut Held<'py>,
    ) -> PyResult<bool> {
        for (index, input) in members.iter().enumerate() {
            let object = match &input.way {
                Way::Attribute(of, name) => {
                    let parent = known(arguments, held, *of);
                    parent.getattr(name.bind(parent.py()))?
                }
                Way::Item(of, key) => {
                    let parent = known(arguments, held, *of);
                    // Without the key it is another container.
                    let Ok(item) = parent.get_item(key.bind(parent.py())) else {
                        return Ok(false);
                    };
                    item
                }
                Way::Argument => return Err(errors::bug("an argument among the members")),
            };
            held.push(object);
            let held = &*held;
            let other = |at: usize| known(arguments, held, at);
            if !self.check(&input.check, &held[index], other, block, behind)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an input is what the code is for. Arrays are left for later.
    #[inline]
    fn check<'a, 'py: 'a>(
        &self,
        check: &Check,
        object: &Bound<'py, PyAny>,
        known: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
        block: &mut [u8],
        behind: &mut Behind<'py>,
    ) -> PyResult<bool> {
        Ok(match check {
            Check::Array(_) => true,
            Check::Number { scalar, at, lifted } => match bits_of(*scalar, object) {
                Some(bits) => {
                    put(block, *at, *scalar, bits?);
                    true
                }
                None if *lifted && object.is_instance_of::<PyFloat>() => return Err(became_real(object)),
                None => false,
            },
            Check::Constant(key) => key.matches(object),
            Check::Type(class) => object.get_type_ptr().cast() == class.as_ptr(),
            Check::Container(class, length) => {
                object.get_type_ptr().cast() == class.as_ptr() && object.len()? == *length
            }
            Check::Same(other) => object.is(known(*other)),
            Check::Values(layout, places) => {
                let mut bits = Vec::with_capacity(places.len());
                let fits = layout.flatten(object, &mut bits)?.is_some() && bits.len() == places.len();
                if fits {
                    for ((scalar, bits), at) in bits.into_iter().zip(places) {
                        put(block, *at, scalar, bits);
                    }
                }
                fits
            }
            Check::View(array, offset) => self.view(array, *offset, object, block)?,
            Check::Field(check) => self.field(check, object, block, behind)?,
        })
    }

    #[inline]
    fn array<'py>(
        &self,
        check: &ArrayCheck,
        object: &Bound<'py, PyAny>,
        block: &mut [u8],
        behind: &mut Behind<'py>,
    ) -> PyResult<Fit> {
        let Ok(ndarray) = object.cast::<Ndarray>() else {
            return self.foreign_array(check, object, block, behind);
        };
        let array = &ndarray.get().array;
        if array.element() != check.elem
            || array.shape().len() != check.rank
            || check.order != Order::RowMajor
        {
            return Ok(Fit::Differs);
        }
        let address =
            array.address_for(&self.compiled).map_err(|error| errors::from_error(object.py(), &error))?;
        put_array(block, check.at, address, array.shape().iter().copied());
        Ok(Fit::Fits)
    }

    #[inline]
    fn field<'py>(
        &self,
        check: &FieldCheck,
        object: &Bound<'py, PyAny>,
        block: &mut [u8],
        behind: &mut Behind<'py>,
    ) -> PyResult<bool> {
        if object.cast::<Field>().is_err() {
            return Ok(false);
        }
        let field = bound_field(object)?;
        let same_type = match (&check.struct_type, &field.struct_type) {
            (None, None) => true,
            (Some(a), Some(b)) => a.is(b),
            _ => false,
        };
        if !Arc::ptr_eq(&check.kind, &field.kind)
            || !same_type
            || check.pinned.as_ref().is_some_and(|key| !key.matches(object))
        {
            return Ok(false);
        }
        for &(leaf, at) in &check.leaves {
            self.put_leaf(&field.leaves[leaf], at, object.py(), block, behind)?;
        }
        Ok(true)
    }

    #[inline]
    fn put_leaf(
        &self,
        leaf: &FieldLeaf,
        at: usize,
        py: Python<'_>,
        block: &mut [u8],
        behind: &mut Behind<'_>,
    ) -> PyResult<()> {
        let address = leaf.address_for(&self.compiled).map_err(|error| errors::from_error(py, &error))?;
        block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        behind.add_tree(leaf.tree());
        Ok(())
    }

    /// An array of another library.
    fn foreign_array<'py>(
        &self,
        check: &ArrayCheck,
        object: &Bound<'py, PyAny>,
        block: &mut [u8],
        behind: &mut Behind<'py>,
    ) -> PyResult<Fit> {
        let tensor;
        let object = if numpy::View::of(object).is_none() && crate::arguments::is_torch_tensor(object) {
            // The tensor keeps the memory; the array object is only a look at it.
            tensor = object.call_method0("detach")?.call_method0("numpy")?;
            &tensor
        } else {
            object
        };
        let Some(view) = numpy::View::of(object) else { return Ok(Fit::Differs) };
        if view.scalar() != check.elem.elem() {
            return Ok(Fit::Differs);
        }
        let shape = view.shape();
        let inner = check.elem.tensor_shape();
        let inner_rank = inner.map_or(0, octants::ir::TensorShape::rank);
        if shape.len() != check.rank + inner_rank {
            return Ok(Fit::Differs);
        }
        let (outer, entries) = shape.split_at(check.rank);
        if let Some(inner) = inner
            && !inner.dims().iter().zip(entries).all(|(&a, &b)| a as isize == b)
        {
            return Ok(Fit::Differs);
        }
        if outer.iter().any(|&extent| i32::try_from(extent).is_err()) {
            return Ok(Fit::Differs);
        }
        let placement = view.placement(inner_rank);
        if placement.order() != Some(check.order) {
            return Ok(Fit::Differs);
        }
        if check.written && !view.is_writeable() {
            return Ok(Fit::ReadOnly(0));
        }
        let address = match placement {
            numpy::Placement::InPlace(_) => view.data() as u64,
            numpy::Placement::Copied | numpy::Placement::Strided => {
                stand_in::add(&mut behind.stand_ins, &view, check.param)?
            }
        };
        put_array(block, check.at, address, outer.iter().map(|&extent| extent as i32));
        Ok(Fit::Fits)
    }

    fn view(
        &self,
        check: &ArrayCheck,
        offset: Option<usize>,
        object: &Bound<'_, PyAny>,
        block: &mut [u8],
    ) -> PyResult<bool> {
        let Ok(view) = object.cast::<BufferView>() else { return Ok(false) };
        let view = view.get();
        let array = &view.ndarray.get().array;
        if array.element() != check.elem || array.shape().len() != check.rank {
            return Ok(false);
        }
        let address =
            array.address_for(&self.compiled).map_err(|error| errors::from_error(object.py(), &error))?;
        let extents = std::iter::once(view.size).chain(array.shape()[1..].iter().copied());
        put_array(block, check.at, address + view.first_byte() as u64, extents);
        if let Some(at) = offset {
            put(block, at, Scalar::I32, u64::from(view.offset as u32));
        }
        Ok(true)
    }
}

/// An argument, or a member that was read.
fn known<'a, 'py>(
    arguments: &[Borrowed<'a, 'py, PyAny>],
    held: &'a Held<'py>,
    at: usize,
) -> Borrowed<'a, 'py, PyAny> {
    match arguments.get(at) {
        Some(argument) => *argument,
        None => held[at - arguments.len()].as_borrowed(),
    }
}

/// A field that has its memory.
fn bound_field<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a BoundField> {
    Field::bound(object.cast::<Field>()?)
}

/// Which leaf a parameter is, and where its address goes.
fn place_of(param: &FieldParam, compiled: &CompiledKernel) -> (usize, usize) {
    (param.leaf, compiled.args().slots[param.param].offset as usize)
}

fn input(
    dependency: &Dependency<Bound<'_, PyAny>>,
    compiled: &CompiledKernel,
    leaves: Vec<(usize, usize)>,
    numbers: &[usize],
) -> PyResult<Input> {
    let object = &dependency.object;
    let slot = |param: usize| -> ArgSlot { compiled.args().slots[param] };
    let array = |param: usize, ty: octants::ir::ArrayType| ArrayCheck {
        elem: ty.elem,
        rank: ty.rank.into(),
        order: ty.order,
        param,
        at: slot(param).offset as usize,
        written: compiled.access()[param].written,
    };
    let number = |param: usize, data: Data, lifted: bool| match data {
        Data::Scalar(scalar) => Ok(Check::Number { scalar, at: slot(param).offset as usize, lifted }),
        Data::Tensor(_) | Data::Struct(_) => Err(errors::bug("a parameter by value is not a scalar")),
    };
    let check = match dependency.role {
        Role::Constant => Check::Constant(TemplateKey::of(object)?),
        Role::Walked => {
            let class = object.get_type().unbind();
            let is_container = object.is_instance_of::<PyTuple>()
                || object.is_instance_of::<PyList>()
                || object.is_instance_of::<PyDict>();
            if is_container { Check::Container(class, object.len()?) } else { Check::Type(class) }
        }
        Role::Same(other) => Check::Same(numbers[other]),
        Role::Data { param, data } => number(param, data, false)?,
        Role::Lifted { param, data } => number(param, data, true)?,
        Role::Values { first, count } => {
            let places = (first..first + count).map(|param| slot(param).offset as usize).collect();
            let layout = Layout::of(object).ok_or_else(|| errors::bug("a value has no layout"))?;
            Check::Values(layout, places)
        }
        Role::Field { pinned } => {
            let field = bound_field(object)?;
            Check::Field(Box::new(FieldCheck {
                kind: Arc::clone(&field.kind),
                struct_type: field.struct_type.as_ref().map(|ty| ty.clone_ref(object.py())),
                pinned: if pinned { Some(TemplateKey::of(object)?) } else { None },
                leaves,
            }))
        }
        Role::Array { param, ty } => Check::Array(array(param, ty)),
        Role::View { param, ty, offset } => {
            Check::View(array(param, ty), offset.map(|param| slot(param).offset as usize))
        }
    };
    let way = match &dependency.origin {
        Origin::Argument(_) | Origin::Captured => Way::Argument,
        Origin::Member { of, step: Step::Attribute(name) } => {
            Way::Attribute(numbers[*of], PyString::intern(object.py(), name).unbind())
        }
        Origin::Member { of, step: Step::Item(key) } => Way::Item(numbers[*of], key.clone().unbind()),
    };
    Ok(Input { way, check })
}

/// A number in the bits of a parameter's type; `None` if it cannot be one without loss of meaning.
#[inline]
fn bits_of(scalar: Scalar, object: &Bound<'_, PyAny>) -> Option<PyResult<u64>> {
    if scalar.is_real() {
        let value = number::real(object)?;
        return Some(Ok(match scalar {
            Scalar::F64 => value.to_bits(),
            Scalar::F32 => (value as f32).to_bits().into(),
            _ => Const::from_f64(scalar, value).bits(),
        }));
    }
    let bits = number::wrapped_integer(object)?;
    Some(bits.map(|bits| if scalar == Scalar::U1 { u64::from(bits != 0) } else { bits }))
}

#[inline]
fn put(block: &mut [u8], at: usize, scalar: Scalar, bits: u64) {
    match scalar.bytes() {
        1 => block[at] = bits as u8,
        2 => block[at..at + 2].copy_from_slice(&(bits as u16).to_le_bytes()),
        4 => block[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes()),
        _ => block[at..at + 8].copy_from_slice(&bits.to_le_bytes()),
    }
}

#[inline]
fn put_array(block: &mut [u8], at: usize, address: u64, extents: impl Iterator<Item = i32>) {
    block[at..at + 8].copy_from_slice(&address.to_le_bytes());
    for (axis, extent) in extents.enumerate() {
        let at = at + 8 + 4 * axis;
        block[at..at + 4].copy_from_slice(&extent.to_le_bytes());
    }
}

#[cold]
fn became_real(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a member that was an integer when the kernel was compiled is now the float {object}; members of a class with \
         template_primitives=False keep their kind"
    ))
}
