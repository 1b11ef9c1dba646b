//! Loads of what was stored just before give the value itself, so that a derivative flows although the array has no storage for one.
//!
//! Before (`%v` has no storage):
//! ```text
//! store %v[%i], %1
//! %2: f32 = load %v[%i]
//! %3: f32 = mul %2, %4
//! ```
//! After:
//! ```text
//! store %v[%i], %1
//! %2: f32 = load %v[%i]
//! %3: f32 = mul %1, %4
//! ```
//! Only within an iteration, and only where the indices are the same values. No array that the kernel writes overlaps another.

use crate::differentiate::storage::Storage;
use octants_ir::rewrite::{ValueMap, ops_in, replace_values};
use octants_ir::{Kernel, Op, OpKind, Region, Type, Value};

/// Says whether anything changed.
pub(super) fn forward_stores(kernel: &mut Kernel, storage: &[Storage]) -> bool {
    let params = &kernel.regions[kernel.body].params;
    let is_missing = |storage: &Storage| matches!(storage, Storage::Missing | Storage::Dropped);
    let missing = params.iter().zip(storage).filter(|(_, storage)| is_missing(storage));
    let arrays: Vec<Value> = missing.map(|(&param, _)| param).collect();
    let mut forwarding = Forwarding { kernel, arrays, names: ValueMap::new() };
    forwarding.region(forwarding.kernel.body, Vec::new());
    let names = forwarding.names;
    if names.is_empty() {
        return false;
    }
    replace_values(kernel, kernel.body, &names);
    true
}

/// What a cell holds: its base and path, and the value.
type Known = (Vec<Value>, Value);

struct Forwarding<'k> {
    kernel: &'k Kernel,
    arrays: Vec<Value>,
    names: ValueMap,
}

impl Forwarding<'_> {
    fn region(&mut self, region: Region, mut known: Vec<Known>) {
        for &op in &self.kernel.regions[region].ops {
            let data = &self.kernel.ops[op];
            if data.regions.is_empty() {
                self.op(op, &mut known);
                continue;
            }
            let written = self.written(op);
            let outside = |(cell, _): &Known| !written.contains(&cell[0]);
            for &inner in &data.regions {
                let known = match data.kind {
                    // A side of it begins with what was known.
                    OpKind::If => known.clone(),
                    OpKind::For | OpKind::While => {
                        known.iter().filter(|&one| outside(one)).cloned().collect()
                    }
                    _ => Vec::new(),
                };
                self.region(inner, known);
            }
            known.retain(outside);
        }
    }

    fn op(&mut self, op: Op, known: &mut Vec<Known>) {
        let data = &self.kernel.ops[op];
        let Some(access) = self.kernel.cell_access(op) else { return };
        let cell = access.place.operands();
        if !self.arrays.contains(&cell[0]) {
            return;
        }
        if access.writes {
            known.retain(|(other, _)| other[0] != cell[0]);
        }
        match data.kind {
            OpKind::Store => {
                let value = self.names.map(access.values[0]);
                known.push((cell.to_vec(), value));
            }
            OpKind::Load => {
                let found = known.iter().find(|(other, _)| self.is_same(other, cell));
                if let Some(&(_, value)) = found {
                    self.names.insert(data.results[0], value);
                }
            }
            _ => {}
        }
    }

    fn is_same(&self, one: &[Value], other: &[Value]) -> bool {
        let equal = |&(&a, &b): &(&Value, &Value)| {
            let constant = self.kernel.as_const(a);
            a == b || constant.is_some() && constant == self.kernel.as_const(b)
        };
        one.len() == other.len() && one.iter().zip(other).all(|pair| equal(&pair))
    }

    /// Arrays that are written in the op's regions.
    fn written(&self, op: Op) -> Vec<Value> {
        let inside = self.kernel.ops[op].regions.iter().flat_map(|&region| ops_in(self.kernel, region));
        let accesses = inside.filter_map(|inner| self.kernel.cell_access(inner));
        let bases = accesses.filter(|access| access.writes).map(|access| access.place.base());
        bases.filter(|&base| matches!(self.kernel.ty(base), Type::Array(_))).collect()
    }
}
