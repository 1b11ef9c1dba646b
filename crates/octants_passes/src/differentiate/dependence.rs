//! Which accesses of a kernel may be to the same cell, one after the other.
//!
//! Two accesses have loops around both. A write came later if it did so in the same iteration of all of these, or in a later one of
//! some loop (of a parallel loop: in any other one). In each case the indices are compared as sums: what is the same in both iterations
//! falls out, and the index of the loop differs by something that is not zero. What that does not tell apart, bounds and conditions may
//! ([`separation`](super::separation)), and numbers that a launch tells ([`launch_order`](super::launch_order)).

use std::cell::Cell;

use octants_ir::ops::ParallelFor;
use octants_ir::rewrite::{Parents, defining_region, ops_in};
use octants_ir::{Boundary, Const, Kernel, Op, OpKind, Region, SideTable, Type, Value, ValueDef};

use super::certain_dependence::CertainDependence;
use super::separation::{are_parts_apart, are_separate};
use super::told::{Numbers, told_as};
use crate::analysis::Affine;

/// Ops that are compared in a row where two indices are: a list of lists, with arithmetic in between. Chosen, not measured.
const LONGEST_INDEX: u32 = 8;
/// Pairs of accesses of a kernel that are looked at together with bounds and conditions, each in some 20 µs. Chosen, not measured.
const MOST_SYSTEMS: u32 = 4000;

/// The ops that write memory or variables.
pub(super) fn writes(kernel: &Kernel) -> Vec<Op> {
    ops_in(kernel, kernel.body)
        .into_iter()
        .filter(|&op| kernel.cell_access(op).is_some_and(|access| access.writes))
        .collect()
}

/// When accesses of a kernel come after each other.
pub(super) struct Dependence<'k> {
    pub kernel: &'k Kernel,
    pub parents: Parents,
    /// Accesses that write.
    pub writes: Vec<Op>,
    pub numbers: Numbers<'k>,
    /// How many systems were solved.
    systems: Cell<u32>,
    /// Whether bounds and conditions count.
    pub solves: Cell<bool>,
}

/// In which iterations two accesses run.
#[derive(Clone, Copy)]
pub(super) enum Direction<'k> {
    /// In the same ones of all loops around both.
    Same,
    /// The write in a later iteration of this `for`, whose index is that; in the same ones of loops around it.
    Later(Op, Value),
    /// In different iterations of this parallel loop.
    Different(Op, &'k [Value]),
    /// The write in a later iteration of this `while`.
    While(Op),
}

impl<'k> Dependence<'k> {
    pub fn new(kernel: &'k Kernel, numbers: Numbers<'k>) -> Self {
        let (parents, writes) = (Parents::new(kernel), writes(kernel));
        Self { kernel, parents, writes, numbers, systems: Cell::new(0), solves: Cell::new(true) }
    }
}

impl Dependence<'_> {
    /// Whether other iterations of a parallel loop around both may access the same cell.
    pub fn may_race(&self, read: Op, write: Op) -> bool {
        self.direction_in_parallel(read, write)
            .is_some_and(|direction| !self.disjoint(read, write, direction))
    }

    /// Likewise, if that is certain but for how many iterations there are.
    pub fn must_race(&self, read: Op, write: Op) -> bool {
        let Some(direction @ Direction::Different(task, _)) = self.direction_in_parallel(read, write) else {
            return false;
        };
        if self.disjoint(read, write, direction) {
            return false;
        }
        let inside = |op: Op| -> Vec<_> {
            self.around(op).into_iter().skip_while(|&(outer, _)| outer != task).skip(1).collect()
        };
        let crossing =
            CertainDependence { kernel: self.kernel, parents: &self.parents, numbers: &self.numbers, task };
        crossing.is_sure((read, &inside(read)), (write, &inside(write)))
    }

    /// Whether a launch may know more about the two: something that it tells decides which cells they access, and whether they run.
    pub fn may_be_told(&self, read: Op, write: Op) -> bool {
        if !matches!(self.kernel.ty(self.kernel.ops[read].operands[0]), Type::Array(_)) {
            return false;
        }
        let (mut pending, mut seen) = (Vec::new(), SideTable::new(false));
        for op in [read, write] {
            pending.extend(self.kernel.cell_access(op).into_iter().flat_map(|access| access.place.path()));
            let around = self.around(op);
            pending.extend(around.iter().flat_map(|&(owner, _)| &self.kernel.ops[owner].operands));
        }
        while let Some(value) = pending.pop() {
            if told_as(self.kernel, value).is_some() {
                return true;
            }
            if seen[value] {
                continue;
            }
            seen.set(value, true);
            if let Some(data) = self.kernel.def(value).filter(|data| data.kind.is_pure()) {
                pending.extend(&data.operands);
            }
        }
        false
    }

    /// Whether the write comes after the read in one iteration, to the same cell.
    pub fn surely_overwrites(&self, read: Op, write: Op) -> bool {
        let (around_read, around_write) = (self.around(read), self.around(write));
        let common = around_read.iter().zip(&around_write).take_while(|(a, b)| a == b).count();
        if !self.is_after(read, write, &around_read, &around_write, common) {
            return false;
        }
        let (Some(one), Some(other)) = (self.kernel.cell_access(read), self.kernel.cell_access(write)) else {
            return false;
        };
        let mut positions = one.place.path().iter().zip(other.place.path());
        positions.all(|(&first, &second)| {
            let difference = self.difference(first, second, [read, write], Direction::Same);
            difference.is_some_and(|difference| difference.constant == 0)
        })
    }

    /// Whether both accesses are of one cell in an iteration of the parallel loop around them, which follows from its number: `x[list[i]]`. Iterations of a program
    /// that means something have cells of their own there, although nothing proves it.
    pub fn is_own_cell(&self, read: Op, write: Op) -> bool {
        let Some(Direction::Different(_, indices)) = self.direction_in_parallel(read, write) else {
            return false;
        };
        let (Some(one), Some(other)) = (self.kernel.cell_access(read), self.kernel.cell_access(write)) else {
            return false;
        };
        let mut positions = one.place.path().iter().zip(other.place.path());
        let same = positions.all(|(&first, &second)| self.is_alike(first, second, LONGEST_INDEX));
        same && one.place.path().iter().any(|&index| self.follows_from(index, indices))
    }

    /// Whether two values of an iteration are computed alike, in so many steps at most, from memory that the kernel does not write.
    fn is_alike(&self, first: Value, second: Value, steps: u32) -> bool {
        if first == second {
            return true;
        }
        let (kernel, defined) = (self.kernel, |value: Value| self.kernel.values[value].def);
        let (ValueDef::Result(one, number), ValueDef::Result(other, same)) =
            (defined(first), defined(second))
        else {
            return false;
        };
        let (one, other) = (&kernel.ops[one], &kernel.ops[other]);
        let is_written = |base: Value| self.writes.iter().any(|&write| kernel.ops[write].operands[0] == base);
        let repeats = match one.kind {
            OpKind::Load => !is_written(one.operands[0]),
            _ => one.kind.is_pure(),
        };
        repeats
            && steps > 0
            && number == same
            && one.kind == other.kind
            && kernel.ty(first) == kernel.ty(second)
            && one.operands.len() == other.operands.len()
            && one.operands.iter().zip(&other.operands).all(|(&a, &b)| self.is_alike(a, b, steps - 1))
    }

    /// Whether a value is computed from one of others, through memory, too.
    fn follows_from(&self, value: Value, of: &[Value]) -> bool {
        let (mut pending, mut seen) = (vec![value], SideTable::new(false));
        while let Some(value) = pending.pop() {
            if of.contains(&value) {
                return true;
            }
            if seen[value] {
                continue;
            }
            seen.set(value, true);
            let made_by = match self.kernel.values[value].def {
                ValueDef::Result(op, _) => Some(op),
                ValueDef::Param(region, _) => self.parents.op(region),
            };
            if let Some(op) = made_by {
                pending.extend(&self.kernel.ops[op].operands);
            }
        }
        false
    }

    /// How two accesses of one array are apart in different iterations of the parallel loop around both, if there is one.
    fn direction_in_parallel(&self, read: Op, write: Op) -> Option<Direction<'_>> {
        let base = |op: Op| self.kernel.ops[op].operands[0];
        let same = base(read) == base(write) && matches!(self.kernel.ty(base(read)), Type::Array(_));
        let (around_read, around_write) = (self.around(read), self.around(write));
        let common = around_read.iter().zip(&around_write).take_while(|(a, b)| a == b);
        let mut loops = common.filter_map(|(&(op, region), _)| match &self.kernel.ops[op].kind {
            OpKind::ParallelFor(attributes) => {
                self.parallel(op, attributes, &self.kernel.regions[region].params)
            }
            _ => None,
        });
        loops.next().filter(|direction| same && matches!(direction, Direction::Different(..)))
    }

    /// Whether the write may be to the cell that was read, after it was.
    pub fn may_overwrite(&self, read: Op, write: Op) -> bool {
        let base = |op: Op| self.kernel.ops[op].operands[0];
        if base(read) != base(write) {
            return false;
        }
        let (around_read, around_write) = (self.around(read), self.around(write));
        let common = around_read.iter().zip(&around_write).take_while(|(a, b)| a == b).count();
        if !matches!(self.kernel.ty(base(read)), Type::Array(_)) {
            // A variable has what it had then, unless iterations share it: those of one loop see each other's writes.
            let parallel =
                |&&(op, _): &&(Op, Region)| matches!(self.kernel.ops[op].kind, OpKind::ParallelFor(_));
            let Some(&(_, body)) = around_read[..common].iter().find(parallel) else { return false };
            let declared = defining_region(self.kernel, &self.parents, base(read));
            return !declared.is_some_and(|region| self.parents.is_within(region, body));
        }
        let is_after = self.is_after(read, write, &around_read, &around_write, common);
        if is_after && !self.disjoint(read, write, Direction::Same) {
            return true;
        }
        around_read[..common].iter().any(|&(op, region)| {
            let params = &self.kernel.regions[region].params[..];
            let direction = match &self.kernel.ops[op].kind {
                OpKind::For => Direction::Later(op, params[0]),
                OpKind::While => Direction::While(op),
                OpKind::ParallelFor(attributes) => match self.parallel(op, attributes, params) {
                    Some(direction) => direction,
                    None => return false,
                },
                _ => return false,
            };
            !self.disjoint(read, write, direction)
        })
    }

    /// How accesses in a parallel loop may be apart; `None` if it surely has no more than one iteration.
    fn parallel<'k>(&self, op: Op, attributes: &ParallelFor, params: &'k [Value]) -> Option<Direction<'k>> {
        let indices = &params[..attributes.axes.into()];
        let known = |value: Value| self.numbers.integer(self.kernel, value);
        let bounds: Vec<_> = self.kernel.parallel_loop(op)?.bounds().collect();
        let is_one = |&(lo, hi): &_| known(lo).zip(known(hi)).is_some_and(|(lo, hi)| hi - lo <= 1);
        if !bounds.is_empty() && bounds.iter().all(is_one) {
            return None;
        }
        Some(match indices {
            &[index] if attributes.max_threads == Some(1) => Direction::Later(op, index),
            indices => Direction::Different(op, indices),
        })
    }

    /// The op at the top that the op stands in.
    pub fn task(&self, op: Op) -> Option<Op> {
        let around = self.around(op);
        let parallel = |&&(op, _): &&(Op, Region)| matches!(self.kernel.ops[op].kind, OpKind::ParallelFor(_));
        around.iter().find(parallel).map(|&(op, _)| op)
    }

    /// The ops around an op with the region of each that it stands in, the outermost first.
    pub fn around(&self, op: Op) -> Vec<(Op, Region)> {
        let mut around = Vec::new();
        let mut inner = op;
        while let Some(region) = self.parents.region(inner) {
            let Some(owner) = self.parents.op(region) else { break };
            around.push((owner, region));
            inner = owner;
        }
        around.reverse();
        around
    }

    /// Whether the write may come after the read in the same iteration of everything around both.
    fn is_after(
        &self,
        read: Op,
        write: Op,
        around_read: &[(Op, Region)],
        around_write: &[(Op, Region)],
        common: usize,
    ) -> bool {
        let step = |around: &[(Op, Region)], op: Op| around.get(common).map_or(op, |&(op, _)| op);
        let (first, second) = (step(around_read, read), step(around_write, write));
        if first == second {
            // Two regions of one op: branches run at the same time, sides of an `if` never both, and a `while` asks first.
            return self.kernel.ops[first].kind != OpKind::If;
        }
        let region = self.parents.region(first);
        let ops = region.map(|region| &self.kernel.regions[region].ops[..]).unwrap_or_default();
        let position = |op: Op| ops.iter().position(|&other| other == op);
        position(second) > position(first)
    }

    /// Whether the two accesses, apart like that, are of different cells.
    fn disjoint(&self, read: Op, write: Op, direction: Direction<'_>) -> bool {
        let Some(positions) = self.positions(read, write) else { return false };
        let differences: Vec<_> = positions
            .iter()
            .filter_map(|&(first, second)| self.difference(first, second, [read, write], direction))
            .collect();
        self.differ(&differences, direction) || self.are_separate([read, write], direction, &positions)
    }

    /// Whether the two are of parts of the array between other indices.
    pub fn are_parts_apart(&self, read: Op, write: Op) -> bool {
        let positions = self.positions(read, write);
        positions.is_some_and(|positions| are_parts_apart(self, [read, write], &positions))
    }

    /// Their indices and components, pair by pair.
    fn positions(&self, read: Op, write: Op) -> Option<Vec<(Value, Value)>> {
        let (Some(read_access), Some(write_access)) =
            (self.kernel.cell_access(read), self.kernel.cell_access(write))
        else {
            return None;
        };
        let clamps = matches!(
            self.kernel.ty(read_access.place.base()),
            Type::Array(array) if array.boundary == Boundary::Clamp
        );
        let positions = read_access.place.path().iter().zip(write_access.place.path());
        let positions = positions
            .enumerate()
            // Components are never clamped.
            .filter(|&(position, _)| !clamps || position >= read_access.place.indices().len())
            .map(|(_, (&first, &second))| (first, second));
        Some(positions.collect())
    }

    fn are_separate(&self, ops: [Op; 2], direction: Direction<'_>, positions: &[(Value, Value)]) -> bool {
        let solved = self.systems.get();
        self.systems.set(solved + 1);
        self.solves.get() && solved < MOST_SYSTEMS && are_separate(self, ops, direction, positions)
    }

    /// Whether one of the differences of the indices is never zero.
    fn differ(&self, differences: &[Difference], direction: Direction<'_>) -> bool {
        match direction {
            Direction::Same | Direction::While(_) => differences.iter().any(|found| found.constant != 0),
            Direction::Later(..) => differences.iter().any(|found| {
                let (step, constant) = (found.steps[0], found.constant);
                match step {
                    0 => constant != 0,
                    1.. => step.saturating_add(constant) > 0 || constant % step != 0,
                    _ => step.saturating_add(constant) < 0 || constant % step != 0,
                }
            }),
            Direction::Different(op, indices) => {
                let never =
                    |found: &Difference| found.steps.iter().all(|&step| step == 0) && found.constant != 0;
                let mut told = vec![false; indices.len()];
                for found in differences.iter().filter(|found| found.constant == 0) {
                    for axis in self.axes_told_apart(op, &found.steps) {
                        told[axis] = true;
                    }
                }
                differences.iter().any(never) || told.into_iter().all(|told| told)
            }
        }
    }

    /// The axes of a parallel loop along which a sum of steps is never zero, unless no axis differs: those of one step alone, or of steps
    /// as of digits, each of which is larger than all that the smaller ones can make up.
    fn axes_told_apart(&self, op: Op, steps: &[i64]) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..steps.len()).filter(|&axis| steps[axis] != 0).collect();
        axes.sort_by_key(|&axis| steps[axis].unsigned_abs());
        let bounds: Vec<_> = self.kernel.parallel_loop(op).map(|l| l.bounds().collect()).unwrap_or_default();
        let known = |value: Value| self.kernel.as_const(value).and_then(Const::as_i128);
        let mut reach: u128 = 0;
        for (number, &axis) in axes.iter().enumerate() {
            let step = u128::from(steps[axis].unsigned_abs());
            if step <= reach {
                return Vec::new();
            }
            if number + 1 < axes.len() {
                let bounds = bounds.get(axis).and_then(|&(lo, hi)| known(lo).zip(known(hi)));
                let Some((lo, hi)) = bounds else { return Vec::new() };
                reach += step * (hi - lo - 1).max(0).unsigned_abs();
            }
        }
        axes
    }

    /// The second index minus the first, if all that is not the same in both iterations is the index of the loop that they are apart in.
    fn difference(
        &self,
        first: Value,
        second: Value,
        ops: [Op; 2],
        direction: Direction<'_>,
    ) -> Option<Difference> {
        let (first, second) = (Affine::of(self.kernel, first)?, Affine::of(self.kernel, second)?);
        let indices: &[Value] = match &direction {
            Direction::Same | Direction::While(_) => &[],
            Direction::Later(_, index) => std::slice::from_ref(index),
            Direction::Different(_, indices) => indices,
        };
        let mut steps = Vec::with_capacity(indices.len());
        for &index in indices {
            // The index itself falls out only where both have it alike.
            if first.coefficient(index) != second.coefficient(index) {
                return None;
            }
            steps.push(second.coefficient(index));
        }
        for &(term, _) in first.terms.iter().chain(&second.terms) {
            if indices.contains(&term) {
                continue;
            }
            if first.coefficient(term) != second.coefficient(term) || !self.is_same(term, ops, direction) {
                return None;
            }
        }
        Some(Difference { steps, constant: second.constant.wrapping_sub(first.constant) })
    }

    /// Whether both iterations see one and the same value.
    pub fn is_same(&self, value: Value, ops: [Op; 2], direction: Direction<'_>) -> bool {
        let Some(region) = defining_region(self.kernel, &self.parents, value) else { return false };
        let sees =
            |op: Op| self.parents.region(op).is_some_and(|inner| self.parents.is_within(inner, region));
        match direction {
            Direction::Same => ops.into_iter().all(sees),
            Direction::Later(op, _) | Direction::Different(op, _) | Direction::While(op) => sees(op),
        }
    }
}

/// `constant` plus, for each index that differs, a step times the distance of the iterations.
struct Difference {
    steps: Vec<i64>,
    constant: i64,
}
