//! Loads an element once where nothing changes it in between, and stores it once where nothing reads it in between.
//!
//! Before:
//! ```text
//! %1: f32 = load %x[%i]
//! %2: f32 = load %x[%i]
//! %3: f32 = load %a[%i]
//! %4: f32 = add %3, %1
//! store %a[%i], %4
//! %5: f32 = load %a[%i]
//! %6: f32 = add %5, %2
//! store %a[%i], %6
//! ```
//! After:
//! ```text
//! %1: f32 = load %x[%i]
//! %3: f32 = load %a[%i]
//! %4: f32 = add %3, %1
//! %6: f32 = add %4, %1
//! store %a[%i], %6
//! ```
//! LLVM does the same, but not where a derivative can use it: an element that is read once is added to once. And where a body branches, LLVM
//! leaves stores that a later one makes useless.
//!
//! Acts inside of parallel loops, on elements of arrays that are named by the same values. What an iteration may learn from another one it may
//! learn after an atomic update whose old value is used, a compare-and-swap or a volatile load; nothing is remembered across these, nor across a call. A store
//! inside of an `if` or a loop makes no earlier one useless. Another array is another element only if arguments do not alias.
//!
//! Expects scalars, and equal indices as equal values: it stands behind `simplify`. Structured phase.

use octants_ir::rewrite::{ValueMap, ops_in, use_counts};
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Value};

use crate::analysis::{Change, change_of, plain_place};
use crate::assumptions::Assumptions;
use crate::eliminate_dead_code::eliminate_dead_code;

/// Elements that are remembered at a time: a bound on compile time. Chosen, not measured.
const MOST_KNOWN: usize = 256;

pub fn merge_accesses(kernel: &mut Kernel, assumptions: Assumptions) {
    let uses = use_counts(kernel);
    let mut merged = false;
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                let body = kernel.ops[op].regions[0];
                let mut merging = Merging { uses: &uses, assumptions, names: ValueMap::new() };
                merging.region(kernel, body, Vec::new());
                merged |= !merging.names.is_empty();
            }
        }
    }
    if merged {
        eliminate_dead_code(kernel);
    }
}

struct Merging<'m> {
    uses: &'m SideTable<Value, u32>,
    assumptions: Assumptions,
    /// What stands for loads that are gone.
    names: ValueMap,
}

/// An element whose value is known.
#[derive(Clone)]
struct Element {
    /// The array, then the path.
    place: Vec<Value>,
    value: Value,
    /// The store of this region that nothing has read since.
    store: Option<Op>,
}

impl Merging<'_> {
    /// Merges accesses of a region at whose beginning these elements are known.
    fn region(&mut self, kernel: &mut Kernel, region: Region, mut known: Vec<Element>) {
        let mut kept: Vec<Op> = Vec::new();
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            for operand in &mut kernel.ops[op].operands {
                *operand = self.names.resolve(*operand);
            }
            if let Some(place) = plain_place(kernel, op) {
                let element = known.iter().find(|element| element.place == place);
                match (&kernel.ops[op].kind, element) {
                    (OpKind::Load, Some(element)) => {
                        self.names.insert(kernel.ops[op].results[0], element.value);
                        continue;
                    }
                    (OpKind::Store, Some(Element { store: Some(useless), .. })) => {
                        let at = kept.iter().rposition(|other| other == useless);
                        kept.remove(at.expect("a store of this region is still in it"));
                    }
                    _ => {}
                }
                self.remember(kernel, &mut known, op, place.to_vec());
            } else if kernel.ops[op].kind.has_regions() {
                self.control(kernel, &mut known, op);
            } else {
                self.change(&mut known, &change_of(kernel, self.uses, op));
            }
            kept.push(op);
        }
        kernel.regions[region].ops = kept;
    }

    /// What a load or a store makes known.
    fn remember(&self, kernel: &Kernel, known: &mut Vec<Element>, op: Op, place: Vec<Value>) {
        let data = &kernel.ops[op];
        let writes = data.kind == OpKind::Store;
        self.forget(known, place[0], writes);
        if known.len() == MOST_KNOWN {
            known.remove(0);
        }
        let value = if writes { data.operands[data.operands.len() - 1] } else { data.results[0] };
        known.push(Element { place, value, store: writes.then_some(op) });
    }

    /// A side of an `if` begins with what is known before it, a loop with what none of its iterations changes.
    fn control(&mut self, kernel: &mut Kernel, known: &mut Vec<Element>, op: Op) {
        let regions = kernel.ops[op].regions.clone();
        let inside: Vec<_> = regions.iter().flat_map(|&region| ops_in(kernel, region)).collect();
        let changes: Vec<_> = inside.iter().map(|&op| change_of(kernel, self.uses, op)).collect();
        let mut entering = known.clone();
        if kernel.ops[op].kind != OpKind::If {
            for change in &changes {
                self.change(&mut entering, change);
            }
        }
        for element in &mut entering {
            element.store = None;
        }
        for region in regions {
            self.region(kernel, region, entering.clone());
        }
        for change in &changes {
            self.change(known, change);
        }
    }

    fn change(&self, known: &mut Vec<Element>, change: &Change) {
        match *change {
            Change::Nothing => {}
            Change::Elements { base, writes } => self.forget(known, base, writes),
            Change::Anything => known.clear(),
        }
    }

    /// Elements of the array are read or written, and so are those of others, if they may lie in the same memory.
    fn forget(&self, known: &mut Vec<Element>, base: Value, writes: bool) {
        let meets = |element: &Element| element.place[0] == base || !self.assumptions.noalias;
        if writes {
            known.retain(|element| !meets(element));
        } else {
            for element in known.iter_mut().filter(|element| meets(element)) {
                element.store = None;
            }
        }
    }
}
