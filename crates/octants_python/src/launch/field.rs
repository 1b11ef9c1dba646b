//! Fields as inputs of a launch.

use std::sync::Arc;

use octants::front::FieldParam;
use octants::{CompiledKernel, FieldKind};
use pyo3::prelude::*;

use super::writer::ArgumentWriter;
use crate::field::{BoundField, Field};
use crate::template::TemplateKey;
use crate::tensor;

/// A field: its kind, and where the addresses of its leaves go in the block.
pub struct FieldInput {
    kind: Arc<FieldKind>,
    struct_type: Option<Py<PyAny>>,
    /// The code is for this one alone.
    pinned: Option<TemplateKey>,
    leaves: LeafSlots,
}

/// Which leaves of a field a kernel uses, and where the address of each goes.
pub type LeafSlots = Vec<(usize, usize)>;

/// The leaves that the parameters of one field are.
pub fn leaf_slots(fields: &[FieldParam], field: usize, compiled: &CompiledKernel) -> LeafSlots {
    let of_field = fields.iter().filter(|param| param.field == field);
    of_field.map(|param| (param.leaf, compiled.args().slots[param.param].offset as usize)).collect()
}

/// A field that has its memory.
pub fn bound_field<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a BoundField> {
    Field::bound(object.cast::<Field>()?)
}

impl FieldInput {
    pub fn new(object: &Bound<'_, PyAny>, pinned: bool, leaves: LeafSlots) -> PyResult<Self> {
        let field = bound_field(object)?;
        Ok(Self {
            kind: Arc::clone(&field.kind),
            struct_type: field.struct_type.as_ref().map(|ty| ty.clone_ref(object.py())),
            pinned: if pinned { Some(TemplateKey::of(object)?) } else { None },
            leaves,
        })
    }

    #[inline]
    pub fn write(&self, object: &Bound<'_, PyAny>, writer: &mut ArgumentWriter<'_, '_>) -> PyResult<bool> {
        if object.cast::<Field>().is_err() {
            let inner = tensor::unwrapped(object);
            return if inner.is(object) { Ok(false) } else { self.write(inner, writer) };
        }
        let field = bound_field(object)?;
        let same_type = match (&self.struct_type, &field.struct_type) {
            (None, None) => true,
            (Some(a), Some(b)) => a.is(b),
            _ => false,
        };
        if !Arc::ptr_eq(&self.kind, &field.kind)
            || !same_type
            || self.pinned.as_ref().is_some_and(|key| !key.matches(object))
        {
            return Ok(false);
        }
        for &(leaf, at) in &self.leaves {
            writer.put_leaf(object.py(), at, &field.leaves[leaf])?;
        }
        Ok(true)
    }
}
