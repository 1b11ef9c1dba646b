//! What is known of one parallel loop: which values differ between its iterations, which cells all iterations share, and in which
//! order one iteration does things.

use octants_ir::rewrite::{ops_in, walk};
use octants_ir::{
    Access, Boundary, Const, Func, Kernel, Op, OpKind, Region, SideTable, Type, Value, ValueDef,
};

use crate::analysis::{computing_functions, function_access};
use crate::edit::slots::yielded;

/// An index that takes more ops than this is not computed again in each branch. Chosen, not measured.
const MAX_REMATERIALISED_OPS: usize = 16;

/// A cell that is the same for all iterations.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cell {
    pub base: Value,
    pub path: Vec<Step>,
}

/// One index or component of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    Const(Const),
    Value(Value),
}

impl Cell {
    /// Whether two cells may be one: nowhere do both have a constant that differs.
    pub fn may_be(&self, other: &Self) -> bool {
        self.base == other.base
            && !self.path.iter().zip(&other.path).any(|pair| match pair {
                (Step::Const(a), Step::Const(b)) => a != b,
                _ => false,
            })
    }
}

/// What an op does to memory.
struct MemoryAccess<'k> {
    position: u32,
    base: Value,
    /// `None` for a call, which may touch all of it.
    path: Option<&'k [Value]>,
    writes: bool,
}

/// What the functions of the kernel do.
struct Functions {
    access: SideTable<Func, Vec<Access>>,
    /// Nobody sees more of it than its results and checks.
    computes: SideTable<Func, bool>,
}

pub(super) struct Facts<'k> {
    pub kernel: &'k Kernel,
    body: Region,
    /// All ops of the body, as one iteration runs them.
    pub ops: Vec<Op>,
    position: SideTable<Op, u32>,
    /// The region that an op stands in, and the op that a region belongs to.
    region_of: SideTable<Op, Option<Region>>,
    op_of: SideTable<Region, Option<Op>>,
    /// Users of values that the body defines.
    uses: SideTable<Value, Vec<Op>>,
    inside: SideTable<Value, bool>,
    varying: SideTable<Value, bool>,
    /// What ops of the body write and what calls read, in order.
    accesses: Vec<MemoryAccess<'k>>,
    /// Only where the body calls some.
    functions: Option<Functions>,
    /// Arrays may overlap.
    overlap: bool,
}

impl<'k> Facts<'k> {
    pub fn new(kernel: &'k Kernel, body: Region, overlap: bool) -> Self {
        let mut facts = Self {
            kernel,
            body,
            ops: ops_in(kernel, body),
            position: SideTable::new(0),
            region_of: SideTable::new(None),
            op_of: SideTable::new(None),
            uses: SideTable::new(Vec::new()),
            inside: SideTable::new(false),
            varying: SideTable::new(false),
            accesses: Vec::new(),
            functions: None,
            overlap,
        };
        facts.place_region(body);
        for (position, &op) in (0..).zip(&facts.ops) {
            let data = &kernel.ops[op];
            facts.position.set(op, position);
            data.results.iter().for_each(|&result| facts.inside.set(result, true));
            data.operands.iter().for_each(|&operand| facts.uses.get_mut(operand).push(op));
            if let OpKind::Call(function) = data.kind {
                let functions = facts.functions.get_or_insert_with(|| {
                    let access = function_access(kernel);
                    Functions { computes: computing_functions(kernel, &access), access }
                });
                for (&base, access) in data.operands.iter().zip(&functions.access[function]) {
                    if access.read || access.written {
                        facts.accesses.push(MemoryAccess {
                            position,
                            base,
                            path: None,
                            writes: access.written,
                        });
                    }
                }
            }
            if let Some(access) = kernel.cell_access(op).filter(|access| access.writes) {
                let (base, path) = (access.place.base(), Some(access.place.path()));
                facts.accesses.push(MemoryAccess { position, base, path, writes: true });
            }
        }
        facts.find_varying();
        facts
    }

    fn place_region(&mut self, region: Region) {
        for &param in &self.kernel.regions[region].params {
            self.inside.set(param, true);
        }
        for &op in &self.kernel.regions[region].ops {
            self.region_of.set(op, Some(region));
            for &inner in &self.kernel.ops[op].regions {
                self.op_of.set(inner, Some(op));
                self.place_region(inner);
            }
        }
    }

    /// Marks what depends on the loop's indices, until nothing is new. What memory holds depends on them if the loop writes it.
    fn find_varying(&mut self) {
        for &param in &self.kernel.regions[self.body].params {
            self.varying.set(param, true);
        }
        let mut written = SideTable::new(false);
        for other in self.accesses.iter().filter(|other| other.writes) {
            written.set(other.base, true);
        }
        loop {
            let mut found = Vec::new();
            for &op in &self.ops {
                let data = &self.kernel.ops[op];
                let any = |values: &[Value]| values.iter().any(|&value| self.varying[value]);
                let mut mark = |value: Value, varies: bool| {
                    if varies && !self.varying[value] {
                        found.push(value);
                    }
                };
                match data.kind {
                    OpKind::If => {
                        for (index, &result) in data.results.iter().enumerate() {
                            let chosen =
                                data.regions.iter().any(|&r| any(&yielded(self.kernel, r)[index..=index]));
                            mark(result, any(&data.operands) || chosen);
                        }
                    }
                    OpKind::For => {
                        let body = data.regions[0];
                        let params = &self.kernel.regions[body].params;
                        let bounds = any(&data.operands[..2]);
                        mark(params[0], bounds);
                        for (slot, &result) in data.results.iter().enumerate() {
                            let next = yielded(self.kernel, body)[slot];
                            let varies = bounds || any(&[data.operands[2 + slot], next, params[1 + slot]]);
                            mark(params[1 + slot], varies);
                            mark(result, varies);
                        }
                    }
                    OpKind::While => {
                        let [cond, body] = data.regions[..] else { continue };
                        let decides = any(&yielded(self.kernel, cond)[..1]);
                        for (slot, &result) in data.results.iter().enumerate() {
                            let passed = yielded(self.kernel, cond)[slot + 1];
                            let next = yielded(self.kernel, body)[slot];
                            let varies = decides || any(&[data.operands[slot], passed, next]);
                            mark(self.kernel.regions[cond].params[slot], varies);
                            mark(self.kernel.regions[body].params[slot], varies);
                            mark(result, varies);
                        }
                    }
                    OpKind::Load => {
                        let base = data.operands[0];
                        let changes = written[base] || self.inside[base];
                        data.results.iter().for_each(|&result| mark(result, changes || any(&data.operands)));
                    }
                    OpKind::Extent(_) | OpKind::LaunchKey => {}
                    _ => {
                        let pure = data.kind.is_pure();
                        data.results.iter().for_each(|&result| mark(result, !pure || any(&data.operands)));
                    }
                }
            }
            if found.is_empty() {
                return;
            }
            for value in found {
                self.varying.set(value, true);
            }
        }
    }

    pub fn varies(&self, value: Value) -> bool {
        self.varying[value]
    }

    /// The cell that an op accesses, if all iterations share it: neither its base nor its path depends on the iteration.
    pub fn shared(&self, op: Op) -> Option<Cell> {
        let place = self.kernel.cell_access(op)?.place;
        if self.inside[place.base()] || place.path().iter().any(|&index| self.varying[index]) {
            return None;
        }
        // Two constants may be clamped to one.
        let apart = !self.clamps(place.base());
        let constant = |index| self.kernel.as_const(index).filter(|_| apart);
        let step = |&index: &Value| constant(index).map_or(Step::Value(index), Step::Const);
        Some(Cell { base: place.base(), path: place.path().iter().map(step).collect() })
    }

    fn clamps(&self, base: Value) -> bool {
        matches!(self.kernel.ty(base), Type::Array(array) if array.boundary == Boundary::Clamp)
    }

    /// Plain stores to cells that all iterations share.
    pub fn shared_stores(&self) -> Vec<(Op, Cell)> {
        let stores = self.ops.iter().filter(|&&op| self.kernel.ops[op].kind == OpKind::Store);
        stores.filter_map(|&op| Some((op, self.shared(op)?))).collect()
    }

    pub fn users(&self, value: Value) -> &[Op] {
        &self.uses[value]
    }

    pub fn region(&self, op: Op) -> Option<Region> {
        self.region_of[op]
    }

    /// The `if` or loop whose region it is; `None` for the body of the parallel loop.
    pub fn owner(&self, region: Region) -> Option<Op> {
        self.op_of[region]
    }

    /// The innermost serial loop around an op.
    fn innermost_loop(&self, op: Op) -> Option<Op> {
        let mut owner = self.region(op).and_then(|region| self.owner(region));
        while let Some(op) = owner {
            if self.kernel.ops[op].kind.is_loop() {
                return Some(op);
            }
            owner = self.region(op).and_then(|region| self.owner(region));
        }
        None
    }

    /// Whether an iteration may write a place between two ops that run equally often. Of a place without a path, all is meant.
    fn written_between(&self, base: Value, path: &[Value], first: Op, second: Op) -> bool {
        let constant = |value: &Value| self.kernel.as_const(*value);
        let distinct = |written: &[Value]| {
            let pairs = written.iter().map(constant).zip(path.iter().map(constant));
            !self.clamps(base) && pairs.into_iter().any(|(a, b)| a.is_some() && b.is_some() && a != b)
        };
        self.accesses_between(first, second).filter(|other| other.writes).any(|other| match other.path {
            Some(written) if other.base == base => !distinct(written),
            None if other.base == base => true,
            _ => self.may_overlap(other.base, base),
        })
    }

    /// Whether a function that may read or write the base is called between two ops that run equally often.
    fn passed_between(&self, base: Value, first: Op, second: Op) -> bool {
        self.accesses_between(first, second).any(|other| other.path.is_none() && other.base == base)
    }

    fn accesses_between(&self, first: Op, second: Op) -> impl Iterator<Item = &MemoryAccess<'k>> {
        let (first, second) = (self.position[first], self.position[second]);
        let (first, second) = (first.min(second), first.max(second));
        let start = self.accesses.partition_point(|other| other.position <= first);
        self.accesses[start..].iter().take_while(move |other| other.position < second)
    }

    fn may_overlap(&self, a: Value, b: Value) -> bool {
        let is_array = |value: Value| matches!(self.kernel.ty(value), Type::Array(_));
        self.overlap && is_array(a) && is_array(b)
    }

    /// Whether ops behind `first`, and before `second` in the same region, access the base, or pass it to a function.
    pub fn accessed_between(&self, base: Value, first: Op, second: Op) -> bool {
        let Some(region) = self.region(first) else { return true };
        // A region's ops stand in the order of their positions.
        let ops = &self.kernel.regions[region].ops;
        let behind = ops[ops.partition_point(|&op| self.position[op] <= self.position[first])..].iter();
        let mut touched = false;
        for &op in behind.take_while(|&&op| op != second) {
            let mut look = |op: Op| {
                let data = &self.kernel.ops[op];
                let is_call = matches!(data.kind, OpKind::Call(_));
                let is_base = |operand: Value| operand == base || is_call && self.may_overlap(operand, base);
                touched |= data.operands.iter().any(|&operand| is_base(operand));
            };
            look(op);
            for &inner in &self.kernel.ops[op].regions {
                walk(self.kernel, inner, &mut look);
            }
        }
        touched
    }

    /// The load of the cell that a value is, if what it read is still there when `at` runs.
    pub fn fresh_load(&self, value: Value, cell: &Cell, at: Op) -> Option<Op> {
        let value = self.chosen(value, at);
        let ValueDef::Result(load, _) = self.kernel.values[value].def else { return None };
        let is_load = self.kernel.ops[load].kind == OpKind::Load && self.inside[value];
        let fresh = is_load
            && self.shared(load).is_some_and(|of| self.same_cell(&of, cell))
            && self.innermost_loop(load) == self.innermost_loop(at)
            && !self.passed_between(cell.base, load, at)
            && !self.changed_between(load, load, at);
        fresh.then_some(load)
    }

    /// Whether an iteration may write what a load reads between two ops that run equally often.
    fn changed_between(&self, load: Op, first: Op, second: Op) -> bool {
        let Some(read) = self.kernel.cell_access(load).map(|access| access.place) else { return true };
        self.written_between(read.base(), read.path(), first, second)
    }

    /// What an `if` gave, where the side that ran is known: `at` stands under the same condition.
    fn chosen(&self, value: Value, at: Op) -> Value {
        let ValueDef::Result(choice, index) = self.kernel.values[value].def else { return value };
        let data = &self.kernel.ops[choice];
        if data.kind != OpKind::If || !self.inside[value] {
            return value;
        }
        let mut region = self.region(at);
        while let Some(guard) = region.and_then(|region| self.owner(region)) {
            let around = &self.kernel.ops[guard];
            if around.kind == OpKind::If && around.operands[0] == data.operands[0] {
                let side = usize::from(region != around.regions.first().copied());
                return yielded(self.kernel, data.regions[side])[index as usize];
            }
            region = self.region(guard);
        }
        value
    }

    fn same_cell(&self, a: &Cell, b: &Cell) -> bool {
        let same = |(a, b): (&Step, &Step)| match (a, b) {
            (Step::Value(a), Step::Value(b)) => self.equal(*a, *b),
            _ => a == b,
        };
        a.base == b.base && a.path.len() == b.path.len() && a.path.iter().zip(&b.path).all(same)
    }

    /// Adds the ops that must run again, in this order, to have the value where `op` stands; `false` if they are no pure ops, or many.
    pub fn missing(&self, value: Value, op: Op, found: &mut Vec<Op>) -> bool {
        let ValueDef::Result(def, _) = self.kernel.values[value].def else { return true };
        if !self.inside[value] || self.position[def] < self.position[op] || found.contains(&def) {
            return true;
        }
        let data = &self.kernel.ops[def];
        if found.len() == MAX_REMATERIALISED_OPS || !data.kind.is_pure() {
            return false;
        }
        let whole = data.operands.iter().all(|&operand| self.missing(operand, op, found));
        found.push(def);
        whole
    }

    /// Whether two values of one iteration are equal for sure.
    pub fn equal(&self, a: Value, b: Value) -> bool {
        self.equal_within(a, b, &mut 64)
    }

    fn equal_within(&self, a: Value, b: Value, left: &mut u32) -> bool {
        if a == b {
            return true;
        }
        let (ValueDef::Result(first, index), ValueDef::Result(second, other)) =
            (self.kernel.values[a].def, self.kernel.values[b].def)
        else {
            return false;
        };
        let (one, two) = (&self.kernel.ops[first], &self.kernel.ops[second]);
        if *left == 0 || one.kind != two.kind || one.operands.len() != two.operands.len() {
            return false;
        }
        *left -= 1;
        let again = || self.innermost_loop(first) == self.innermost_loop(second);
        let same_work = index == other
            && match one.kind {
                OpKind::Load => again() && !self.changed_between(first, first, second),
                OpKind::Call(_) => {
                    let places = one.operands.iter().filter(|&&operand| self.kernel.ty(operand).is_place());
                    self.only_computes(first)
                        && again()
                        && places.into_iter().all(|&base| !self.written_between(base, &[], first, second))
                }
                // The conditions are equal, as the operands are.
                OpKind::If => one.regions.iter().zip(&two.regions).all(|(&one, &two)| {
                    let of = |region: Region| yielded(self.kernel, region)[index as usize];
                    self.equal_within(of(one), of(two), left)
                }),
                _ => one.kind.is_pure(),
            };
        same_work && one.operands.iter().zip(&two.operands).all(|(&a, &b)| self.equal_within(a, b, left))
    }

    /// Whether an op calls a function of which nobody sees more than its results and checks.
    pub fn only_computes(&self, op: Op) -> bool {
        let OpKind::Call(function) = self.kernel.ops[op].kind else { return false };
        self.functions.as_ref().is_some_and(|functions| functions.computes[function])
    }

    /// The places without indices whose value a call reads and leaves as it is.
    pub fn read_by_call(&self, op: Op) -> Vec<Cell> {
        let OpKind::Call(function) = self.kernel.ops[op].kind else { return Vec::new() };
        let Some(functions) = &self.functions else { return Vec::new() };
        let operands = self.kernel.ops[op].operands.iter().zip(&functions.access[function]);
        let whole = |base: Value| {
            !self.inside[base]
                && self.kernel.ty(base).place().is_some_and(|(data, rank)| rank + data.component_rank() == 0)
        };
        let read = operands.filter(|&(&base, access)| access.read && !access.written && whole(base));
        read.map(|(&base, _)| Cell { base, path: Vec::new() }).collect()
    }
}
