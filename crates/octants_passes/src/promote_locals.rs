//! Turns variables into values: a `local` that only its own thread of execution writes becomes SSA, carried by loops and given
//! by `if`s.
//!
//! Before:
//! ```text
//! %x: local<f32> = local
//! store %x, %a
//! if %c {
//!   %1: f32 = load %x
//!   %2: f32 = sin %1
//!   store %x, %2
//! }
//! %3: f32 = load %x
//! ```
//! After (uses of `%3` are uses of `%4`):
//! ```text
//! %0: f32 = const 0
//! %4: f32 = if %c {
//!   %2: f32 = sin %a
//!   yield %2
//! } else {
//!   yield %a
//! }
//! ```
//!
//! Stays a place: a local of tensor or struct type (those with fixed components are scalars by then), one that a `parallel_for` or a branch of a `fork`
//! writes though it was declared outside, and one that is read volatile, and one that is passed to a function. A `parallel_for` that only reads a local gets its
//! value, and so does a branch. Slots that nobody reads are left for `simplify` to drop.

use octants_ir::rewrite::ValueMap;
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Value};

use crate::edit::slots::{add_result, add_yielded};
use crate::edit::update::updated_by;

pub fn promote_locals(kernel: &mut Kernel) {
    let mut candidates = Candidates::find(kernel);
    if candidates.locals.is_empty() {
        return;
    }
    for body in kernel.bodies() {
        candidates.find_writes(kernel, body);
    }
    let current = vec![None; candidates.locals.len()];
    let mut promotion = Promotion { kernel, candidates, current, names: ValueMap::new() };
    for body in promotion.kernel.bodies() {
        promotion.region(body);
    }
}

/// The locals to promote, and who writes them.
struct Candidates {
    locals: Vec<(Value, Scalar)>,
    number: SideTable<Value, Option<usize>>,
    /// The region that declares each.
    declared_in: Vec<Option<Region>>,
    /// For an op with regions: the locals written inside and declared outside, ascending.
    written: SideTable<Op, Vec<usize>>,
}

impl Candidates {
    fn find(kernel: &Kernel) -> Self {
        let mut scan =
            LocalScan { found: Vec::new(), home: SideTable::new(None), barred: SideTable::new(false) };
        for body in kernel.bodies() {
            scan.region(kernel, body, None);
        }
        let mut number = SideTable::new(None);
        let locals: Vec<_> = scan.found.into_iter().filter(|&(local, _)| !scan.barred[local]).collect();
        for (index, &(local, _)) in locals.iter().enumerate() {
            number.set(local, Some(index));
        }
        let declared_in = vec![None; locals.len()];
        Self { locals, number, declared_in, written: SideTable::new(Vec::new()) }
    }

    /// The candidate that the op accesses, if it accesses one.
    fn accessed(&self, kernel: &Kernel, op: Op) -> Option<usize> {
        kernel.ops[op].operands.first().and_then(|&base| self.number[base])
    }

    fn find_writes(&mut self, kernel: &Kernel, region: Region) -> Vec<usize> {
        let mut written = Vec::new();
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            if let OpKind::Local = data.kind
                && let Some(local) = self.number[data.results[0]]
            {
                self.declared_in[local] = Some(region);
            }
            if kernel.cell_access(op).is_some_and(|access| access.writes) {
                written.extend(self.accessed(kernel, op));
            }
            if !data.regions.is_empty() {
                let mut inside: Vec<_> =
                    data.regions.iter().flat_map(|&inner| self.find_writes(kernel, inner)).collect();
                inside.sort_unstable();
                inside.dedup();
                written.extend(&inside);
                self.written.set(op, inside);
            }
        }
        written.sort_unstable();
        written.dedup();
        written.retain(|&local| self.declared_in[local] != Some(region));
        written
    }
}

/// Looks for locals, and for uses that keep one a place.
struct LocalScan {
    found: Vec<(Value, Scalar)>,
    /// The body of the task, or the branch, that declares a local.
    home: SideTable<Value, Option<Region>>,
    barred: SideTable<Value, bool>,
}

impl LocalScan {
    fn region(&mut self, kernel: &Kernel, region: Region, task: Option<Region>) {
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            if data.kind == OpKind::Local {
                let local = data.results[0];
                self.home.set(local, task);
                match kernel.ty(local).place().and_then(|(data, _)| data.scalar()) {
                    Some(scalar) => self.found.push((local, scalar)),
                    None => self.barred.set(local, true),
                }
            }
            let only_base = match data.kind {
                OpKind::Load => true,
                OpKind::Store | OpKind::Atomic(_) | OpKind::AtomicCas => self.home[data.operands[0]] == task,
                _ => false,
            };
            for &operand in &data.operands {
                if !only_base {
                    self.barred.set(operand, true);
                }
            }
            let is_task = data.kind.holds_tasks();
            for &inner in &data.regions {
                self.region(kernel, inner, if is_task { Some(inner) } else { task });
            }
        }
    }
}

struct Promotion<'k> {
    kernel: &'k mut Kernel,
    candidates: Candidates,
    /// The value of each local at this point.
    current: Vec<Option<Value>>,
    names: ValueMap,
}

impl Promotion<'_> {
    fn region(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.kernel.regions[region].ops);
        for op in ops {
            for operand in &mut self.kernel.ops[op].operands {
                *operand = self.names.resolve(*operand);
            }
            if !self.promoted(region, op) {
                self.kernel.regions[region].ops.push(op);
                self.inner(op);
            }
        }
    }

    /// Whether the op declared or accessed a promoted local, and is gone.
    fn promoted(&mut self, region: Region, op: Op) -> bool {
        let loc = self.kernel.ops[op].loc;
        if self.kernel.ops[op].kind == OpKind::Local {
            let Some(local) = self.candidates.number[self.kernel.ops[op].results[0]] else { return false };
            let zero = Const::from_bits(self.candidates.locals[local].1, 0);
            self.current[local] = Some(Builder::at(self.kernel, region, loc).constant(zero));
            return true;
        }
        let Some(local) = self.candidates.accessed(self.kernel, op) else { return false };
        let old = self.value(local);
        match self.kernel.ops[op].kind {
            OpKind::Load => self.names.insert(self.kernel.ops[op].results[0], old),
            OpKind::Store => self.current[local] = Some(self.kernel.ops[op].operands[1]),
            _ => {
                let new = updated_by(&mut Builder::at(self.kernel, region, loc), op, old);
                self.current[local] = Some(new);
                self.names.insert(self.kernel.ops[op].results[0], old);
            }
        }
        true
    }

    fn value(&self, local: usize) -> Value {
        self.current[local].expect("a local is declared before it is used")
    }

    fn values(&self, locals: &[usize]) -> Vec<Value> {
        locals.iter().map(|&local| self.value(local)).collect()
    }

    fn set_values(&mut self, locals: &[usize], values: &[Value]) {
        for (&local, &value) in locals.iter().zip(values) {
            self.current[local] = Some(value);
        }
    }

    /// The op's regions, with what they write passed in, around and out.
    fn inner(&mut self, op: Op) {
        let regions = self.kernel.ops[op].regions.clone();
        if regions.is_empty() {
            return;
        }
        let written = std::mem::take(self.candidates.written.get_mut(op));
        match self.kernel.ops[op].kind {
            OpKind::If => {
                let before = self.values(&written);
                for inner in regions {
                    self.set_values(&written, &before);
                    self.region(inner);
                    self.yield_values(inner, &written);
                }
                self.set_results(op, &written);
            }
            OpKind::For | OpKind::While => {
                let before = self.values(&written);
                self.kernel.ops[op].operands.extend(before);
                for inner in regions {
                    for &local in &written {
                        let ty = self.candidates.locals[local].1.into();
                        self.current[local] = Some(self.kernel.add_region_param(inner, ty));
                    }
                    self.region(inner);
                    self.yield_values(inner, &written);
                }
                self.set_results(op, &written);
            }
            _ => {
                debug_assert!(written.is_empty(), "what a task writes from outside stays a place");
                for inner in regions {
                    self.region(inner);
                }
            }
        }
    }

    fn yield_values(&mut self, region: Region, locals: &[usize]) {
        for &local in locals {
            add_yielded(self.kernel, region, self.value(local));
        }
    }

    fn set_results(&mut self, op: Op, locals: &[usize]) {
        for &local in locals {
            let result = add_result(self.kernel, op, self.candidates.locals[local].1.into());
            self.current[local] = Some(result);
        }
    }
}
