//! Arrays and views as inputs of a launch.

use std::sync::OnceLock;

use octants::CompiledKernel;
use octants::ir::{ArrayType, Data, Order, Scalar, Spacing};
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::writer::ArgumentWriter;
use crate::arrays::buffer_view::BufferView;
use crate::arrays::foreign_array;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::gateway::errors;
use crate::interop::foreign::{Elements, Owner, Placement, Unwritable};
use crate::interop::{dlpack, foreign, numpy};

/// An array: its type, which parameter it is, and where it goes in the block.
pub struct ArrayInput {
    elem: Data,
    rank: usize,
    order: Order,
    spacing: Spacing,
    param: usize,
    at: usize,
    written: bool,
    /// The class of the session's arrays that the first launch saw: an object of it needs no look at the classes that it is made of.
    class: OnceLock<Py<PyType>>,
}

/// Whether an array is what the code is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArrayFit {
    Fits,
    Differs,
    /// The code writes it, but it may not be written.
    Unwritable(Unwritable),
    /// It has to be copied, which goes through numpy.
    Copied,
}

impl ArrayInput {
    pub fn new(compiled: &CompiledKernel, param: usize, ty: ArrayType) -> Self {
        Self {
            elem: ty.elem,
            rank: ty.rank.into(),
            order: ty.order,
            spacing: ty.spacing,
            param,
            at: compiled.args().slots[param].offset as usize,
            written: compiled.access()[param].written,
            class: OnceLock::new(),
        }
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.class.get())
    }

    /// Which parameter it is.
    pub fn param(&self) -> usize {
        self.param
    }

    #[inline]
    pub fn write<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        let known = self.class.get().is_some_and(|class| object.get_type_ptr().cast() == class.as_ptr());
        let object = if known { object } else { tensor::unwrapped(object) };
        let ndarray = if known {
            // SAFETY: an object of that class was an array.
            unsafe { object.cast_unchecked::<Ndarray>() }
        } else {
            let Ok(ndarray) = object.cast::<Ndarray>() else { return self.write_foreign(object, writer) };
            let _ = self.class.set(ndarray.as_any().get_type().unbind());
            ndarray
        };
        let array = &ndarray.get().array;
        if (array.element(), array.order()) != (self.elem, self.order)
            || array.shape().len() != self.rank
            || self.spacing != Spacing::Dense
        {
            return Ok(ArrayFit::Differs);
        }
        let address = writer.address_of(array).map_err(|error| errors::from_error(object.py(), &error))?;
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
            return self.write_elements(object, &view.elements(), Owner::Host, Some(&view), writer);
        }
        let fit = self.write_other(object, writer)?;
        if fit == ArrayFit::Fits && self.elem.elem().is_some_and(Scalar::is_real) {
            foreign::give_gradients(object)?;
        }
        Ok(fit)
    }

    /// An array of another library than numpy.
    fn write_other<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        let quickly = dlpack::look_at(object, |elements, owner| {
            self.write_elements(object, elements, owner, None, writer)
        })?;
        match quickly {
            Some(ArrayFit::Copied) | None => {}
            Some(fit) => return Ok(fit),
        }
        // Why one cannot be looked at is said where types of arguments are.
        let foreign = match foreign_array(object) {
            Err(error) if error.is_instance_of::<PyException>(object.py()) => None,
            foreign => foreign?,
        };
        match foreign {
            Some(foreign) => {
                let view = foreign.view()?;
                self.write_elements(object, &view.elements(), foreign.owner, Some(&view), writer)
            }
            None => Ok(ArrayFit::Differs),
        }
    }

    /// Elements of the host or of the device; `view` is numpy's array with them, by which they can be copied.
    #[inline]
    fn write_elements<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        elements: &Elements<'_>,
        owner: Owner,
        view: Option<&numpy::View<'_, 'py>>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<ArrayFit> {
        if elements.scalar != self.elem.elem() {
            return Ok(ArrayFit::Differs);
        }
        let inner = self.elem.tensor_shape();
        let inner_rank = inner.map_or(0, octants::ir::TensorShape::rank);
        if elements.shape.len() != self.rank + inner_rank {
            return Ok(ArrayFit::Differs);
        }
        let (outer, entries) = elements.shape.split_at(self.rank);
        if let Some(inner) = inner
            && !inner.dims().iter().zip(entries).all(|(&a, &b)| a as isize == b)
        {
            return Ok(ArrayFit::Differs);
        }
        if outer.iter().any(|&extent| i32::try_from(extent).is_err()) {
            return Ok(ArrayFit::Differs);
        }
        let placement = elements.placement(inner_rank);
        if placement.seen() != (self.order, self.spacing) {
            return Ok(ArrayFit::Differs);
        }
        if self.written
            && let Some(why) = elements.unwritable()
        {
            return Ok(ArrayFit::Unwritable(why));
        }
        let sees_host = writer.compiled.sees_host_memory();
        let address = match (placement, view) {
            (Placement::InPlace(..), _) => elements.data as u64,
            (Placement::Copied, None) => return Ok(ArrayFit::Copied),
            (Placement::Copied, Some(_)) if owner != Owner::Host => return Ok(ArrayFit::Differs),
            (Placement::Copied, Some(view)) => writer.copied(view, self.param)?,
        };
        if let Owner::Device { number, .. } = owner
            && !(writer.compiled.shares_device()
                && number.is_none_or(|number| number == writer.compiled.device_number()))
        {
            return Ok(ArrayFit::Differs);
        }
        writer.put_array(self.at, address, outer.iter().map(|&extent| extent as i32));
        if self.spacing != Spacing::Dense {
            let scalar = self.elem.elem().map_or(1, Scalar::bytes) as isize;
            let strides = (0..self.rank).map(|axis| elements.stride(axis) / scalar);
            writer.put_strides(self.param, strides);
        }
        match owner {
            Owner::Host if sees_host => writer.track_host(object),
            Owner::Host => {
                let in_place = placement != Placement::Copied;
                let range = if in_place { elements.range() } else { (address, elements.bytes()) };
                writer.mirror(self.at, address, range, self.written);
            }
            Owner::Device { stream, .. } => writer.track_foreign(object, stream),
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
        let address = writer.address_of(array).map_err(|error| errors::from_error(object.py(), &error))?;
        let extents = std::iter::once(view.size).chain(array.shape()[1..].iter().copied());
        writer.put_array(self.at, address + view.first_byte() as u64, extents);
        writer.track_array(view.ndarray.bind(object.py()));
        if let Some(at) = offset {
            writer.put(at, Scalar::I32, u64::from(view.offset as u32));
        }
        Ok(true)
    }
}
