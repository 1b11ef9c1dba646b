//! Arrays and views as inputs of a launch.

use octants::CompiledKernel;
use octants::ir::{ArrayType, Data, Order, Scalar};
use pyo3::prelude::*;

use super::writer::ArgumentWriter;
use crate::buffer_view::BufferView;
use crate::ndarray::Ndarray;
use crate::{errors, numpy};

/// An array: its type, which parameter it is, and where it goes in the block.
pub struct ArrayInput {
    elem: Data,
    rank: usize,
    order: Order,
    param: usize,
    at: usize,
    written: bool,
}

/// Whether an array is what the code is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArrayFit {
    Fits,
    Differs,
    /// The code writes it, but it may not be written.
    ReadOnly,
}

impl ArrayInput {
    pub fn new(compiled: &CompiledKernel, param: usize, ty: ArrayType) -> Self {
        Self {
            elem: ty.elem,
            rank: ty.rank.into(),
            order: ty.order,
            param,
            at: compiled.args().slots[param].offset as usize,
            written: compiled.access()[param].written,
        }
    }

    #[inline]
    pub fn write<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        let Ok(ndarray) = object.cast::<Ndarray>() else { return self.write_foreign(object, writer) };
        let array = &ndarray.get().array;
        if array.element() != self.elem || array.shape().len() != self.rank || self.order != Order::RowMajor {
            return Ok(ArrayFit::Differs);
        }
        let address =
            array.address_for(writer.compiled).map_err(|error| errors::from_error(object.py(), &error))?;
        writer.put_array(self.at, address, array.shape().iter().copied());
        writer.track_array(ndarray);
        Ok(ArrayFit::Fits)
    }

    /// An array of another library.
    fn write_foreign<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        if let Some(view) = numpy::View::of(object) {
            return self.write_seen(object, &view, numpy::Owner::Host, writer);
        }
        match numpy::ForeignArray::of(object)? {
            Some(foreign) => self.write_seen(object, &foreign.view()?, foreign.owner, writer),
            None => Ok(ArrayFit::Differs),
        }
    }

    /// An array that numpy sees, of the host or of the device.
    fn write_seen<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        view: &numpy::View<'_, 'py>,
        owner: numpy::Owner,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        if view.scalar() != self.elem.elem() {
            return Ok(ArrayFit::Differs);
        }
        let shape = view.shape();
        let inner = self.elem.tensor_shape();
        let inner_rank = inner.map_or(0, octants::ir::TensorShape::rank);
        if shape.len() != self.rank + inner_rank {
            return Ok(ArrayFit::Differs);
        }
        let (outer, entries) = shape.split_at(self.rank);
        if let Some(inner) = inner
            && !inner.dims().iter().zip(entries).all(|(&a, &b)| a as isize == b)
        {
            return Ok(ArrayFit::Differs);
        }
        if outer.iter().any(|&extent| i32::try_from(extent).is_err()) {
            return Ok(ArrayFit::Differs);
        }
        let placement = view.placement(inner_rank);
        if placement.order() != Some(self.order) {
            return Ok(ArrayFit::Differs);
        }
        if self.written && !view.is_writeable() {
            return Ok(ArrayFit::ReadOnly);
        }
        let in_place = matches!(placement, numpy::Placement::InPlace(_));
        let sees_host = writer.compiled.sees_host_memory();
        if owner != numpy::Owner::Host && (!in_place || sees_host) {
            return Ok(ArrayFit::Differs);
        }
        let address = if in_place { view.data() as u64 } else { writer.copied(view, self.param)? };
        writer.put_array(self.at, address, outer.iter().map(|&extent| extent as i32));
        match owner {
            numpy::Owner::Host if sees_host => writer.track_host(object),
            numpy::Owner::Host => writer.mirror(self.at, address, view.bytes(), self.written),
            numpy::Owner::Device { stream } => writer.track_foreign(object, stream),
        }
        Ok(ArrayFit::Fits)
    }

    /// A part of an array; `offset` is where its beginning in the array goes, if the kernel asks for it.
    pub fn write_view<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        offset: Option<usize>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<bool> {
        let Ok(view) = object.cast::<BufferView>() else { return Ok(false) };
        let view = view.get();
        let array = &view.ndarray.get().array;
        if array.element() != self.elem || array.shape().len() != self.rank {
            return Ok(false);
        }
        let address =
            array.address_for(writer.compiled).map_err(|error| errors::from_error(object.py(), &error))?;
        let extents = std::iter::once(view.size).chain(array.shape()[1..].iter().copied());
        writer.put_array(self.at, address + view.first_byte() as u64, extents);
        writer.track_array(view.ndarray.bind(object.py()));
        if let Some(at) = offset {
            writer.put(at, Scalar::I32, u64::from(view.offset as u32));
        }
        Ok(true)
    }
}
