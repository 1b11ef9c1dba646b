//! What a launch took from the host, kept for its derivative, or to launch it again.
//!
//! Law: **a derivative runs with what its kernel ran with.** Numbers, vectors and structs stand in the kept block; arrays and fields are the objects
//! that the launch found behind its arguments, whatever these lead to by now. Only what holds the derivatives is looked up anew. An array whose object has other
//! memory by now is refused.

use octants::ir::plan::ArgSlot;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::array::ArrayFit;
use super::derivative::check_apart;
use super::input::Check;
use super::instance_dict::InstanceDict;
use super::specialisation::{Specialisation, known};
use super::writer::LaunchArguments;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::interop::foreign::is_torch_tensor;

/// The arguments of a launch, and the members that it read.
pub struct KeptArguments {
    block: Vec<u8>,
    arguments: Vec<Py<PyAny>>,
    members: Vec<Option<Py<PyAny>>>,
}

/// Whether what was kept can be launched.
pub enum Rebound {
    Fits,
    /// The array of this parameter lies elsewhere or has another shape.
    Moved(usize),
    /// Something has no derivatives any more, or other ones than the code is for.
    OtherCompanions,
}

impl KeptArguments {
    /// Of a launch whose block was just written.
    pub fn new(arguments: &[Borrowed<'_, '_, PyAny>], launch: &LaunchArguments<'_>) -> Self {
        let members = launch.members().iter();
        Self {
            block: launch.bytes().to_vec(),
            arguments: arguments.iter().map(|one| Bound::clone(one).unbind()).collect(),
            members: members.map(|one| one.as_ref().map(|one| one.clone().unbind())).collect(),
        }
    }

    /// Of a launch of code, whose members may have been recalled in place of being read.
    pub fn of<'py>(
        py: Python<'py>,
        code: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &LaunchArguments<'py>,
    ) -> PyResult<Self> {
        let members = code.members_now(py, arguments)?;
        Ok(Self {
            block: launch.bytes().to_vec(),
            arguments: arguments.iter().map(|one| Bound::clone(one).unbind()).collect(),
            members: members.into_iter().map(|one| one.map(Bound::unbind)).collect(),
        })
    }

    /// The block of the launch.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.arguments.iter().try_for_each(|one| visit.call(one))?;
        self.members.iter().try_for_each(|one| visit.call(one))
    }

    fn object<'a, 'py>(&'a self, py: Python<'py>, index: usize) -> Option<&'a Bound<'py, PyAny>> {
        match index.checked_sub(self.arguments.len()) {
            None => Some(self.arguments[index].bind(py)),
            Some(member) => self.members.get(member)?.as_ref().map(|one| one.bind(py)),
        }
    }
}

impl Specialisation {
    /// Writes the block of a launch whose arguments were kept.
    pub fn bind_kept<'py>(
        &self,
        py: Python<'py>,
        kept: &KeptArguments,
        launch: &mut LaunchArguments<'py>,
    ) -> PyResult<Rebound> {
        let arguments: Vec<_> = kept.arguments.iter().map(|one| one.bind_borrowed(py)).collect();
        let (mut writer, read, _) = launch.writer(&self.compiled);
        writer.copy_block(&kept.block);
        for (leaf, at) in self.captured_leaves() {
            writer.put_leaf(py, *at, leaf)?;
        }
        let mut stored = InstanceDict::default();
        for (index, input) in self.inputs().iter().enumerate() {
            if index >= arguments.len() {
                let object = if input.is_companion() {
                    input.read(py, |at| known(py, &arguments, read, at), &mut stored)?
                } else {
                    kept.object(py, index).cloned()
                };
                read.push(object);
            }
            let read = &*read;
            let object = known(py, &arguments, read, index);
            let fits = match &input.check {
                Check::Array(array) => array.write(&object, &mut writer)? == ArrayFit::Fits,
                Check::View(..) | Check::Field(_) => input.check.write(&object, |_| object, &mut writer)?,
                Check::Constant(_) | Check::Present if input.is_companion() => {
                    input.check.write(&object, |_| object, &mut writer)?
                }
                // The block has them.
                _ => true,
            };
            match &input.check {
                _ if fits => {}
                _ if input.is_companion() => return Ok(Rebound::OtherCompanions),
                Check::Array(array) => return Ok(Rebound::Moved(array.param())),
                _ => return Ok(Rebound::OtherCompanions),
            }
        }
        if let Some(param) = self.moved(kept, launch) {
            return Ok(Rebound::Moved(param));
        }
        launch.check_overlaps(py, &self.compiled)?;
        if let Some(gradient) = self.derivative.as_ref().filter(|_| kept.block != launch.bytes()) {
            check_apart(py, gradient, launch.bytes())?;
        }
        Ok(Rebound::Fits)
    }

    /// The first parameter of the kernel whose array has other memory than then. Copies that stand for an array are made anew.
    fn moved(&self, kept: &KeptArguments, launch: &LaunchArguments<'_>) -> Option<usize> {
        let slots = &self.compiled.args().slots;
        let params = self.derivative.as_ref().map_or(slots.len(), |gradient| gradient.written().len());
        let slots = &slots[..params];
        let differs = |&(param, slot): &(usize, &ArgSlot)| {
            let Some(array) = slot.array().filter(|array| array.layout.is_none()) else { return false };
            let same = |begin: u32, bytes: u32| {
                let range = begin as usize..(begin + bytes) as usize;
                kept.block[range.clone()] == launch.bytes()[range]
            };
            let rank = u32::from(array.rank);
            let extents = (0..array.rank).all(|axis| same(slot.extent_offset(axis), 4));
            let strides = !array.has_strides() || same(slot.stride_offset(0), 8 * rank);
            !(extents && strides && (same(slot.offset, 8) || launch.is_staged(param)))
        };
        slots.iter().enumerate().find(differs).map(|(param, _)| param)
    }

    /// The arrays among kept arguments and members: those of the session and of torch.
    pub fn kept_arrays<'py>(&self, py: Python<'py>, kept: &KeptArguments) -> Vec<Bound<'py, PyAny>> {
        let mut found: Vec<Bound<'py, PyAny>> = Vec::new();
        for (index, input) in self.inputs().iter().enumerate().filter(|(_, input)| !input.is_companion()) {
            let Some(object) = kept.object(py, index) else { continue };
            let object = match &input.check {
                Check::Array(_) => tensor::unwrapped(object).clone(),
                Check::View(..) => match object.cast::<crate::arrays::buffer_view::BufferView>() {
                    Ok(view) => view.get().ndarray.bind(py).clone().into_any(),
                    Err(_) => continue,
                },
                _ => continue,
            };
            if object.is_instance_of::<Ndarray>() || is_torch_tensor(&object) {
                found.push(object);
            }
        }
        found
    }

    /// The parameters whose arrays are the host's, and of libraries that tell nobody what they write.
    pub fn untold_params(&self, py: Python<'_>, kept: &KeptArguments) -> Vec<usize> {
        let params = self.inputs().iter().enumerate().filter_map(|(index, input)| {
            let (Check::Array(array), Some(object)) = (&input.check, kept.object(py, index)) else {
                return None;
            };
            let object = tensor::unwrapped(object);
            let is_told =
                input.is_companion() || object.is_instance_of::<Ndarray>() || is_torch_tensor(object);
            (!is_told).then(|| array.param())
        });
        params.collect()
    }
}
