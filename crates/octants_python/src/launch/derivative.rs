//! Derivatives: which arrays have storage for theirs, and how these companions become inputs of a launch.
//!
//! A companion is read anew at each launch, from the array or field that it belongs to: code for arrays that have storage is not for others.

use std::ops::Range;

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::front::{Dependency, FieldParam, Origin, Role};
use octants::ir::plan::ArgSlot;
use octants::ir::{ArrayType, Kernel, Loc, Scalar, Type};
use octants::{CompiledKernel, FieldLeaf, Gradient, LoopMemory, Mode, Storage, total_bytes};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::array::ArrayInput;
use super::field::{FieldInput, LeafSlot, bound_field};
use super::input::{Check, Input};
use crate::arrays::buffer_view::BufferView;
use crate::arrays::exporter::Exporter;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::gateway::errors;
use crate::host::template::TemplateKey;
use crate::interop::foreign::is_torch_tensor;

/// Which derivative of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DerivativeKind {
    Forward,
    Reverse,
    /// The derivative in forward mode of that in reverse mode.
    ForwardOverReverse,
}

impl DerivativeKind {
    /// The derivative of the kernel itself.
    pub fn mode(self) -> Mode {
        match self {
            Self::Forward => Mode::Forward,
            Self::Reverse | Self::ForwardOverReverse => Mode::Reverse,
        }
    }

    /// What it needs beside each array.
    fn companions(self) -> &'static [CompanionKind] {
        match self {
            Self::Forward => &[CompanionKind::Dual],
            Self::Reverse => &[CompanionKind::Grad],
            Self::ForwardOverReverse => &[CompanionKind::Grad, CompanionKind::Dual, CompanionKind::GradDual],
        }
    }
}

/// What an array may have beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompanionKind {
    Grad,
    Dual,
    /// The dual of its gradients.
    GradDual,
}

/// What lies beside one parameter that holds reals.
pub struct Companion<'py> {
    param: usize,
    /// Which dependency the parameter is of.
    pub dependency: usize,
    part: Part,
    kind: CompanionKind,
    /// The array or field, if there is one.
    found: Option<Bound<'py, PyAny>>,
    /// Whether the annotation says that there is none, whatever the array has.
    pub is_ignored: bool,
}

/// What the parameter is of its dependency.
#[derive(Clone, Copy)]
enum Part {
    Leaf(usize),
    /// The elements of a leaf that may not be there.
    Cells(usize),
    /// Words of quantised fields of reals.
    Words(usize),
    Array(ArrayType),
    View(ArrayType),
}

/// Who finds out how much memory a derivative needs.
#[derive(Clone, Copy)]
pub enum Sizing {
    Threads,
    Host,
    Kernel,
}

/// What a derivative does, with the places of the user's text.
pub struct DerivativePlan {
    /// The parameters that have companions.
    derived: Vec<String>,
    /// The loops of which it keeps something in each iteration, and what.
    kept: Vec<(String, Vec<Scalar>)>,
    /// Where derivatives end that could have gone on.
    stops: Vec<String>,
    /// The parameters that are read again, to compute what is not kept.
    read_again: Vec<String>,
}

impl DerivativePlan {
    pub fn new(kernel: &Kernel, gradient: &Gradient, map: &SourceMap) -> Self {
        let place = |loc: Loc| kernel.locs[loc].span.map_or_else(String::new, |span| map.describe(span));
        let derived = gradient.companions().iter().map(|&(param, _)| kernel.params[param].name.clone());
        let kept = gradient.kept().iter().map(|kept| (place(kept.at), kept.scalars.clone()));
        let stops = gradient.stops().iter().map(|&stop| place(stop));
        let read_again = gradient.read_again().into_iter().map(|param| kernel.params[param].name.clone());
        Self {
            derived: derived.collect(),
            kept: kept.collect(),
            stops: stops.collect(),
            read_again: read_again.collect(),
        }
    }

    /// As the user sees it, with what parallel loops keep for some arguments.
    pub fn to_dict<'py>(
        &self,
        py: Python<'py>,
        memory: &[LoopMemory],
        sizing: Sizing,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut kept = Vec::with_capacity(self.kept.len());
        for (place, scalars) in &self.kept {
            let one = PyDict::new(py);
            one.set_item("loop", place)?;
            one.set_item("values", scalars.iter().map(|scalar| scalar.name()).collect::<Vec<_>>())?;
            one.set_item("bytes_per_iteration", scalars.iter().map(|scalar| scalar.bytes()).sum::<u32>())?;
            kept.push(one);
        }
        let plan = PyDict::new(py);
        plan.set_item("derived", &self.derived)?;
        plan.set_item("kept", kept)?;
        plan.set_item("stops", &self.stops)?;
        plan.set_item("read_again", &self.read_again)?;
        let mut loops = Vec::with_capacity(memory.len());
        for one in memory {
            let parallel = PyDict::new(py);
            parallel.set_item("iterations", one.points)?;
            parallel.set_item("bytes_per_iteration", one.bytes_of_iteration())?;
            parallel.set_item("at_once", one.slots)?;
            loops.push(parallel);
        }
        plan.set_item("parallel_loops", loops)?;
        plan.set_item("tape_bytes", total_bytes(memory))?;
        let sized = match sizing {
            _ if memory.is_empty() => "nothing is kept",
            Sizing::Threads => "threads take what they need",
            Sizing::Host => "the host computes it from the arguments",
            Sizing::Kernel => "a kernel computes it before the launch",
        };
        plan.set_item("sized", sized)?;
        Ok(plan)
    }
}

/// How a companion is reached at a launch.
pub struct CompanionPath {
    of: Owner,
    leaf: usize,
    kind: CompanionKind,
    /// Whether arrays of other libraries are let through.
    is_demand: bool,
}

/// Whose companion it is.
enum Owner {
    Input(usize),
    /// A field that no argument leads to.
    Captured(Py<PyAny>),
}

impl CompanionPath {
    /// The gradients that an ndarray must have that is an argument.
    pub fn of_argument(number: usize) -> Self {
        Self { of: Owner::Input(number), leaf: 0, kind: CompanionKind::Grad, is_demand: true }
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.of {
            Owner::Captured(field) => visit.call(field),
            Owner::Input(_) => Ok(()),
        }
    }

    /// The number of the input whose companion it is, and its name there.
    pub fn last_step(&self) -> Option<(usize, String)> {
        let name = match self.kind {
            CompanionKind::Grad => ".grad",
            CompanionKind::Dual => ".dual",
            CompanionKind::GradDual => ".grad.dual",
        };
        match self.of {
            Owner::Input(number) => Some((number, name.to_owned())),
            Owner::Captured(_) => None,
        }
    }

    /// The companion; `None` if there is none.
    pub fn read<'a, 'py: 'a>(
        &self,
        py: Python<'py>,
        known: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = match &self.of {
            Owner::Input(number)
                if self.is_demand && !tensor::unwrapped(&known(*number)).is_instance_of::<Ndarray>() =>
            {
                Some(known(*number).to_owned())
            }
            Owner::Input(number) => companion(&known(*number), self.leaf, self.kind)?,
            Owner::Captured(field) => companion(field.bind(py), self.leaf, self.kind)?,
        };
        Ok(found.unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// The array or field with the derivatives of one, or of one leaf of a field.
fn companion<'py>(
    object: &Bound<'py, PyAny>,
    leaf: usize,
    kind: CompanionKind,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let object = tensor::unwrapped(object);
    let name = match kind {
        CompanionKind::Dual => intern!(py, "dual"),
        CompanionKind::Grad | CompanionKind::GradDual => intern!(py, "grad"),
    };
    // Of an array or field of gradients that has duals only where somebody asks for second derivatives.
    let second = |found: Bound<'py, PyAny>| match kind {
        CompanionKind::GradDual => found.call_method0(intern!(py, "_second_derivatives")),
        CompanionKind::Grad | CompanionKind::Dual => Ok(found),
    };
    if object.is_instance_of::<Field>() {
        let found = object.call_method1(intern!(py, "_leaf_companion"), (name, leaf))?;
        return Some(found).filter(|found| !found.is_none()).map(second).transpose();
    }
    let of_array = |array: &Bound<'py, PyAny>| -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = array.getattr_opt(name)?.map(tensor::into_unwrapped);
        found.filter(PyAnyMethods::is_instance_of::<Ndarray>).map(second).transpose()
    };
    if object.is_instance_of::<Ndarray>() {
        return of_array(object);
    }
    if let Ok(view) = object.cast::<BufferView>() {
        let view = view.get();
        let Some(whole) = of_array(view.ndarray.bind(py).as_any())? else { return Ok(None) };
        let ndarray = whole.cast_into::<Ndarray>()?;
        require_same_shape(&ndarray, view.ndarray.bind(py))?;
        let part = BufferView { ndarray: ndarray.unbind(), offset: view.offset, size: view.size };
        return Ok(Some(Bound::new(py, Exporter::with(part))?.into_any()));
    }
    if kind != CompanionKind::Grad {
        return Ok(None);
    }
    if is_torch_tensor(object) {
        let module = py.import(intern!(py, "octants._arrays.torch_tensors"))?;
        let found = module.call_method1(intern!(py, "gradients_of"), (object,))?;
        return Ok(Some(found).filter(|found| !found.is_none()));
    }
    // Its gradients would silently be missing.
    let requires = object.getattr_opt(intern!(py, "requires_grad"))?;
    if requires.map_or(Ok(false), |requires| requires.is_truthy())? {
        let text = "gradients of tensors of this library are not supported: this one has requires_grad=True";
        let help = "pass an array without gradients to take it as a constant, or copy it to an ndarray with needs_grad=True";
        let diagnostic = Diagnostic::new(Code::DerivativeArguments, text).help(help);
        return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
    }
    Ok(None)
}

fn require_same_shape(companion: &Bound<'_, Ndarray>, of: &Bound<'_, Ndarray>) -> PyResult<()> {
    let (found, expected) = (companion.get().array.shape(), of.get().array.shape());
    if found == expected {
        return Ok(());
    }
    let text = format!("an array of shape {expected:?} has gradients of shape {found:?}");
    Err(errors::plain(companion.py(), Code::DerivativeArguments, text))
}

/// What lies beside the parameters of a kernel that hold reals.
pub fn companions<'py>(
    kernel: &Kernel,
    kind: DerivativeKind,
    dependencies: &[Dependency<Bound<'py, PyAny>>],
    fields: &[FieldParam],
    arguments: &[Borrowed<'_, 'py, PyAny>],
) -> PyResult<Vec<Companion<'py>>> {
    let of_fields = fields.iter().filter_map(|param| match param.view {
        None => Some((param.param, param.field, Part::Leaf(param.leaf))),
        Some(view) => view.elements.map(|(field, leaf)| (param.param, field, Part::Cells(leaf))),
    });
    let of_arrays = dependencies.iter().enumerate().filter_map(|(index, one)| match one.role {
        Role::Array { param, ty } => Some((param, index, Part::Array(ty))),
        Role::View { param, ty, .. } => Some((param, index, Part::View(ty))),
        Role::Constant
        | Role::Operand
        | Role::Holder
        | Role::Walked
        | Role::Keys
        | Role::Method
        | Role::Same(_)
        | Role::Data { .. }
        | Role::Values { .. }
        | Role::Lifted { .. }
        | Role::Field { .. } => None,
    });
    let params = &kernel.regions[kernel.body].params;
    let holds_reals = |param: usize| match kernel.ty(params[param]) {
        Type::Array(array) => array.elem.elem().is_some_and(Scalar::is_real),
        _ => false,
    };
    let mut companions = Vec::new();
    for (param, dependency, part) in of_fields.chain(of_arrays) {
        let part = match part {
            _ if holds_reals(param) => part,
            Part::Leaf(leaf) | Part::Cells(leaf) if holds_words(&dependencies[dependency].object)? => {
                Part::Words(leaf)
            }
            _ => continue,
        };
        let leaf = match part {
            Part::Leaf(leaf) | Part::Cells(leaf) | Part::Words(leaf) => leaf,
            Part::Array(_) | Part::View(_) => 0,
        };
        let Dependency { origin, object: recorded, .. } = &dependencies[dependency];
        let object = match origin {
            Origin::Argument(number) => &*arguments[*number],
            Origin::Member { .. } | Origin::Captured | Origin::Held => recorded,
        };
        let is_ignored =
            matches!(origin, Origin::Argument(_)) && matches!(part, Part::Array(_)) && recorded.is_none();
        for &kind in kind.companions() {
            let found = if is_ignored { None } else { companion(object, leaf, kind)? };
            if let (Some(found), Part::Cells(leaf)) = (&found, part) {
                let of = &bound_field(tensor::unwrapped(object))?.leaves[leaf];
                require_same_cells(found, of, &kernel.params[param].name)?;
            }
            companions.push(Companion { param, dependency, part, kind, found, is_ignored });
        }
    }
    Ok(companions)
}

/// Whether the elements of quantised fields of reals are bits of its elements.
fn holds_words(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let object = tensor::unwrapped(object);
    let told = object.getattr_opt(intern!(object.py(), "_holds_rounded_reals"))?;
    told.map_or(Ok(false), |told| told.is_truthy())
}

/// What the compiler is told of those of one kind.
pub fn storage(kernel: &Kernel, kind: CompanionKind, companions: &[Companion<'_>]) -> PyResult<Vec<Storage>> {
    let mut storage = vec![Storage::Constant; kernel.params.len()];
    for one in companions.iter().filter(|one| one.kind == kind) {
        storage[one.param] = match (&one.found, one.part) {
            (_, Part::Words(_)) => Storage::Rounded,
            (None, Part::Leaf(_) | Part::Cells(_)) => Storage::Dropped,
            (None, Part::Array(_) | Part::View(_)) => Storage::Missing,
            (Some(_), Part::Array(_) | Part::View(_)) => Storage::Companion(None),
            (Some(_), Part::Cells(_)) => {
                let Type::Array(array) = kernel.ty(kernel.regions[kernel.body].params[one.param]) else {
                    return Err(errors::bug("elements of a field are an array"));
                };
                Storage::Companion(array.layout.map(|layout| kernel.layouts[layout].clone()))
            }
            (Some(found), Part::Leaf(_)) => {
                let [leaf] = &*bound_field(found)?.leaves else {
                    let text = format!(
                        "the entries of `{}` lie side by side, and those of its derivatives apart: place both in the same way",
                        kernel.params[one.param].name
                    );
                    return Err(errors::plain(found.py(), Code::DerivativeArguments, text));
                };
                Storage::Companion(Some((**leaf.layout()).clone()))
            }
        };
    }
    Ok(storage)
}

/// Refuses derivatives of a sparse field that come and go with other cells than its elements.
fn require_same_cells(companion: &Bound<'_, PyAny>, of: &FieldLeaf, name: &str) -> PyResult<()> {
    if let [leaf] = &*bound_field(companion)?.leaves
        && leaf.shares_cells(of)
    {
        return Ok(());
    }
    let text = format!("the derivatives of `{name}` do not lie in the same cells as its elements");
    let diagnostic = Diagnostic::new(Code::DerivativeArguments, text)
        .help("place them in the same node: `node.place(x, x.grad)`, or call `oc.root.lazy_grad()`");
    Err(errors::from_diagnostic(companion.py(), diagnostic, &SourceMap::new()))
}

impl Companion<'_> {
    /// As an input of the derivative. `number` is that of the input that it belongs to, if that is one.
    pub fn input(
        &self,
        gradient: &Gradient,
        of: &Bound<'_, PyAny>,
        number: Option<usize>,
    ) -> PyResult<Input> {
        let py = of.py();
        let compiled: &CompiledKernel = gradient.kernel();
        let beside = |pairs: &[(usize, usize)], of: usize| {
            pairs.iter().find(|(param, _)| *param == of).map(|&(_, companion)| companion)
        };
        let pair = match self.kind {
            CompanionKind::Dual if !gradient.is_second() => beside(gradient.companions(), self.param),
            CompanionKind::Dual => beside(gradient.duals(), self.param),
            CompanionKind::Grad => beside(gradient.companions(), self.param),
            CompanionKind::GradDual => beside(gradient.companions(), self.param)
                .and_then(|gradients| beside(gradient.duals(), gradients)),
        };
        let check = match (&self.found, pair) {
            (Some(found), Some(param)) => match self.part {
                Part::Array(ty) => Check::Array(ArrayInput::new(compiled, param, ty)),
                Part::View(ty) => Check::View(ArrayInput::new(compiled, param, ty), None),
                Part::Leaf(_) | Part::Cells(_) | Part::Words(_) => {
                    let view = bound_field(found)?.leaves[0].sparse_offset();
                    let at = compiled.args().slots[param].offset as usize;
                    Check::Field(Box::new(FieldInput::new(
                        found,
                        false,
                        vec![LeafSlot { leaf: 0, view, at }],
                    )?))
                }
            },
            (None, None) => Check::Constant(TemplateKey::of(&py.None().into_bound(py))?),
            (Some(_), None) | (None, Some(_)) => {
                return Err(errors::bug("a derivative has other companions than it was asked for"));
            }
        };
        Ok(Input::companion(self.path(of, number), check))
    }

    /// As an input that is there, or is not, as now.
    pub fn presence(&self, of: &Bound<'_, PyAny>, number: Option<usize>) -> PyResult<Input> {
        let check = match self.found {
            Some(_) => Check::Present,
            None => Check::Constant(TemplateKey::of(&of.py().None().into_bound(of.py()))?),
        };
        Ok(Input::companion(self.path(of, number), check))
    }

    fn path(&self, of: &Bound<'_, PyAny>, number: Option<usize>) -> CompanionPath {
        let leaf = match self.part {
            Part::Leaf(leaf) | Part::Cells(leaf) | Part::Words(leaf) => leaf,
            Part::Array(_) | Part::View(_) => 0,
        };
        let of = match number {
            Some(number) => Owner::Input(number),
            None => Owner::Captured(of.clone().unbind()),
        };
        CompanionPath { of, leaf, kind: self.kind, is_demand: false }
    }
}

/// Refuses arguments that the derivative is not right for: memory that the kernel writes under two names, gradients that are arguments themselves, and
/// those of another shape than their array.
pub fn check_apart(py: Python<'_>, gradient: &Gradient, block: &[u8]) -> PyResult<()> {
    let all = || gradient.companions().iter().chain(gradient.duals());
    // Those of the kernel and their companions. Arrays of a record may stand in between, which are still empty.
    let count = all().map(|&(_, companion)| companion + 1).max().unwrap_or(0).max(gradient.written().len());
    let slots = &gradient.kernel().args().slots[..count];
    let primal = |param: usize| all().find(|(_, companion)| *companion == param);
    // What is beside gradients is written, as they are.
    let written = |param: usize| gradient.written().get(param).is_none_or(|&written| written);
    for &(param, companion) in all() {
        let Some(array) = slots[param].array().filter(|array| array.layout.is_none()) else { continue };
        let extent = |of: &ArgSlot, axis| word::<4>(block, of.extent_offset(axis));
        if (0..array.rank).any(|axis| extent(&slots[param], axis) != extent(&slots[companion], axis)) {
            let name = gradient.kernel().param_name(param);
            let text = format!("the gradients of `{name}` have another shape than the array");
            return Err(errors::plain(py, Code::DerivativeArguments, text));
        }
    }
    for (second, slot) in slots.iter().enumerate() {
        for (first, other) in slots[..second].iter().enumerate() {
            let matters = match (primal(first), primal(second)) {
                (None, None) => written(first) || written(second),
                (Some(&(p, _)), Some(&(q, _))) => written(p) || written(q),
                (None, Some(_)) | (Some(_), None) => true,
            };
            if matters && overlap(other, slot, block) {
                let [one, other] = [first, second].map(|param| gradient.kernel().param_name(param));
                if let (None, Some(_)) = (primal(first), primal(second)) {
                    let text = format!(
                        "Cannot automatically differentiate through a grad tensor: the kernel uses `{other}`, in which its derivative is computed"
                    );
                    let help = "call the kernel outside of the tape, or in a function that `oc.ad.no_grad` decorates; or pass a copy";
                    let diagnostic = Diagnostic::new(Code::DerivativeArguments, text).help(help);
                    return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
                }
                let text = format!(
                    "the derivative of a kernel needs arrays apart from each other: `{one}` and `{other}` share memory"
                );
                let help = "the derivative reads again what the kernel read, which another name must not have overwritten; pass a copy";
                let diagnostic = Diagnostic::new(Code::DerivativeArguments, text).help(help);
                return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
            }
        }
    }
    Ok(())
}

/// The bytes of an array, or of a field's first element: others may lie between its elements, but no byte belongs to two.
pub fn first_bytes(slot: &ArgSlot, block: &[u8]) -> Range<u64> {
    let begin = u64::from_le_bytes(word(block, slot.offset));
    let Some(array) = slot.array() else { return begin..begin };
    if array.has_strides() {
        let (begin, end) = slot.spaced_range(block);
        return begin..end;
    }
    let bytes = match array.layout {
        Some(_) => u64::from(slot.bytes),
        None => (0..array.rank).fold(slot.span, |bytes, axis| {
            bytes * u64::from(u32::from_le_bytes(word(block, slot.extent_offset(axis))))
        }),
    };
    begin..begin + bytes
}

/// Whether two arguments share memory.
fn overlap(one: &ArgSlot, other: &ArgSlot, block: &[u8]) -> bool {
    let (Some(a), Some(b)) = (one.array(), other.array()) else { return false };
    // Elements of fields may lie between each other's. They overlap if the first ones do.
    let both_fields = a.layout.is_some() && b.layout.is_some();
    let range = |slot: &ArgSlot, array: ArrayType| {
        if array.has_strides() {
            return slot.spaced_range(block);
        }
        let begin = u64::from_le_bytes(word(block, slot.offset));
        let bytes = match array.layout {
            Some(_) if both_fields => u64::from(slot.bytes),
            Some(_) => slot.span,
            None => (0..array.rank).fold(slot.span, |bytes, axis| {
                bytes * u64::from(u32::from_le_bytes(word(block, slot.extent_offset(axis))))
            }),
        };
        (begin, begin + bytes)
    };
    let ((begin, end), (other_begin, other_end)) = (range(one, a), range(other, b));
    begin < other_end && other_begin < end
}

fn word<const N: usize>(block: &[u8], offset: u32) -> [u8; N] {
    let offset = offset as usize;
    block[offset..offset + N].try_into().expect("a slice of that length")
}
