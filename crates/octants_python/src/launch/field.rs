//! Fields as inputs of a launch.

use std::sync::{Arc, OnceLock};

use octants::front::FieldParam;
use octants::{CompiledKernel, FieldKind, FieldLeaf};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::writer::ArgumentWriter;
use crate::arrays::field::{BoundField, Field};
use crate::arrays::tensor;
use crate::arrays::tree::Node;
use crate::host::template::TemplateKey;

/// A field: its kind, and where the addresses of its leaves go in the block.
pub struct FieldInput {
    kind: Arc<FieldKind>,
    struct_type: Option<Py<PyAny>>,
    /// The code is for this one alone.
    pinned: Option<TemplateKey>,
    leaves: LeafSlots,
    /// The class of the field that the first launch saw: an object of it needs no look at the classes that it is made of.
    class: OnceLock<Py<PyType>>,
}

/// Which leaves of a field a kernel uses, and where the address of each goes.
pub type LeafSlots = Vec<LeafSlot>;

/// A leaf, or a view of its tree's memory from an offset on.
#[derive(Clone, Copy)]
pub struct LeafSlot {
    pub leaf: usize,
    pub view: Option<u64>,
    /// Where the address goes in the block.
    pub at: usize,
}

/// The leaves that the parameters of one field are.
pub fn leaf_slots(fields: &[FieldParam], field: usize, compiled: &CompiledKernel) -> LeafSlots {
    let of_field = fields.iter().filter(|param| param.field == field);
    let slot = |param: &FieldParam| LeafSlot {
        leaf: param.leaf,
        view: param.view.map(|view| view.offset),
        at: compiled.args().slots[param.param].offset as usize,
    };
    of_field.map(slot).collect()
}

/// The leaves and views of a field or a node that no argument leads to, and where their addresses go.
pub fn captured_leaves(object: &Bound<'_, PyAny>, slots: &LeafSlots) -> PyResult<Vec<(FieldLeaf, usize)>> {
    if let Ok(node) = object.cast::<Node>() {
        let Some((tree, _)) = node.get().sparse(object.py())? else { return Ok(Vec::new()) };
        let session = node.get().session();
        let view = |slot: &LeafSlot| (tree.view(&session, slot.view.unwrap_or(0)), slot.at);
        return Ok(slots.iter().map(view).collect());
    }
    let field = bound_field(object)?;
    let leaf = |slot: &LeafSlot| {
        let leaf = &field.leaves[slot.leaf];
        let leaf = slot.view.map_or_else(|| leaf.clone(), |offset| leaf.view(&field.session, offset));
        (leaf, slot.at)
    };
    Ok(slots.iter().map(leaf).collect())
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
            class: OnceLock::new(),
        })
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.struct_type)?;
        self.pinned.iter().try_for_each(|key| key.visit(visit))?;
        visit.call(self.class.get())
    }

    /// Whether one of its leaves goes there in the block.
    pub fn lies_at(&self, at: usize) -> bool {
        self.leaves.iter().any(|slot| slot.at == at)
    }

    #[inline]
    pub fn write(&self, object: &Bound<'_, PyAny>, writer: &mut ArgumentWriter<'_, '_>) -> PyResult<bool> {
        let known = self.class.get().is_some_and(|class| object.get_type_ptr().cast() == class.as_ptr());
        let field = if known {
            // SAFETY: an object of that class was a field.
            unsafe { object.cast_unchecked::<Field>() }
        } else {
            let Ok(field) = object.cast::<Field>() else {
                let inner = tensor::unwrapped(object);
                return if inner.is(object) { Ok(false) } else { self.write(inner, writer) };
            };
            let _ = self.class.set(field.as_any().get_type().unbind());
            field
        };
        let field = Field::bound(field)?;
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
        for &LeafSlot { leaf, view, at } in &self.leaves {
            match view {
                None => writer.put_leaf(object.py(), at, &field.leaves[leaf])?,
                Some(offset) => writer.put_view(object.py(), at, &field.leaves[leaf], offset)?,
            }
        }
        Ok(true)
    }
}
