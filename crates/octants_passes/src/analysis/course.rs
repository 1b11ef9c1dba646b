//! What a launch reads of what was there before it, and what it surely writes.
//!
//! ```text
//! parallel_for (%i) in (0..n) { store %force[%i], 0.0 }      surely written: force 0..n
//! parallel_for (%i) in (0..n) { load %force[link] … }        read: force, any index, behind that
//! ```
//!
//! A [`Footprint`](super::Footprint) says what may be touched; here is what surely is. A write is sure if all around it are loops and branches of which each one writes the same,
//! and its indices run through a box. What is left of a read when such writes are taken away holds what somebody else has written.

use octants_ir::ops::{ArithOp, AtomicOp, Domain};
use octants_ir::rewrite::Parents;
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Value, ValueDef};

use super::footprint::{Index, MAX_DEPTH, Search, accumulating, along};
use super::{ArrayUse, array_uses};
use crate::{promote_locals, simplify};

/// Reads and sure writes of a launch, of the arrays that are its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Course {
    pub reads: Vec<Read>,
    /// What is surely written, at least while some loop around it runs.
    pub sure: Vec<Part>,
    /// Which of these are surely written when the launch is over.
    pub written: Vec<usize>,
}

/// A read of what the same iteration has not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    pub part: Part,
    /// Only the derivative depends on what is there: a greatest value or a product, of which nobody asks for the old value.
    pub folded: bool,
    /// Numbers of what is surely written before it.
    pub behind: Vec<usize>,
}

/// A part of an array: a box of indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub param: usize,
    /// One for each axis; none if it may be all of the array.
    pub indices: Vec<Index>,
    /// Loops around that are no indices: without an iteration nothing is touched.
    pub loops: Vec<Index>,
}

impl Course {
    /// Of a kernel in its structured phase.
    pub fn of(kernel: &Kernel) -> Self {
        let mut kernel = kernel.clone();
        promote_locals(&mut kernel);
        simplify(&mut kernel);
        let text = Text::new(&kernel);
        let uses: Vec<_> = array_uses(&kernel, kernel.body)
            .into_iter()
            .filter_map(|used| Some((kernel.as_param(used.base)?, used)))
            .collect();
        let mut course = Self::default();
        let stores: Vec<_> = uses.iter().filter(|(_, used)| text.is_whole_store(used)).collect();
        for &&(param, ref store) in &stores {
            if let Some(part) = text.sure(param, store, kernel.body) {
                let number = course.number_of(part);
                if !course.written.contains(&number) {
                    course.written.push(number);
                }
            }
        }
        for (param, used) in &uses {
            let accumulates = text.accumulating[used.op];
            let folded = accumulates && is_folding(&kernel.ops[used.op].kind);
            if !folded && (!used.reads || accumulates) {
                continue;
            }
            let before = stores
                .iter()
                .filter(|(of, _)| of == param)
                .filter_map(|(_, store)| Some((store, text.region_before(store.op, used.op)?)));
            let before: Vec<_> = before.collect();
            if before.iter().any(|(store, region)| text.is_same_cell(store, used, *region)) {
                continue;
            }
            let mut behind = Vec::new();
            for (store, region) in before {
                if let Some(part) = text.sure(*param, store, region) {
                    let number = course.number_of(part);
                    if !behind.contains(&number) {
                        behind.push(number);
                    }
                }
            }
            let rank = kernel.ty(used.base).place().map_or(0, |(_, rank)| rank);
            let indices =
                used.path.iter().take(rank).map(|&index| text.search.index(index, MAX_DEPTH)).collect();
            let read = Read { part: Part { param: *param, indices, loops: Vec::new() }, folded, behind };
            if !course.reads.contains(&read) {
                course.reads.push(read);
            }
        }
        course
    }

    fn number_of(&mut self, part: Part) -> usize {
        self.sure.iter().position(|one| *one == part).unwrap_or_else(|| {
            self.sure.push(part);
            self.sure.len() - 1
        })
    }
}

/// Whether the derivative of an update depends on what was there.
fn is_folding(kind: &OpKind) -> bool {
    let folds = |op| match op {
        AtomicOp::Mul | AtomicOp::Min | AtomicOp::Max => true,
        AtomicOp::Add | AtomicOp::Sub | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
            false
        }
    };
    match kind {
        OpKind::Atomic(op) => folds(*op),
        OpKind::ParallelFor(attributes) => attributes.reductions.iter().any(|reduction| folds(reduction.op)),
        _ => false,
    }
}

/// Where ops stand.
struct Text<'k> {
    search: Search<'k>,
    positions: SideTable<Op, usize>,
    /// Ops that add to memory, and of which nobody asks what was there.
    accumulating: SideTable<Op, bool>,
}

/// A loop around a write.
struct Around {
    index: Value,
    bounds: Index,
    is_used: bool,
}

impl<'k> Text<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        let mut positions = SideTable::new(0);
        for body in kernel.bodies() {
            for region in octants_ir::rewrite::regions_in(kernel, body) {
                for (position, &op) in kernel.regions[region].ops.iter().enumerate() {
                    positions.set(op, position);
                }
            }
        }
        let search = Search { kernel, parents: Parents::new(kernel) };
        Self { search, positions, accumulating: accumulating(kernel) }
    }

    fn kernel(&self) -> &'k Kernel {
        self.search.kernel
    }

    /// Whether it assigns a whole element: what was there is lost.
    fn is_whole_store(&self, used: &ArrayUse) -> bool {
        let rank = self.kernel().ty(used.base).place().map(|(_, rank)| rank);
        self.assigns(used.op) && Some(used.path.len()) == rank
    }

    fn assigns(&self, op: Op) -> bool {
        matches!(self.kernel().ops[op].kind, OpKind::Store) && !self.accumulating[op]
    }

    /// The regions around an op, the innermost first, with the op in each of them that it is or stands in.
    fn around(&self, op: Op) -> impl Iterator<Item = (Region, Op)> {
        std::iter::successors(self.search.parents.region(op).map(|region| (region, op)), |&(region, _)| {
            let op = self.search.parents.op(region)?;
            Some((self.search.parents.region(op)?, op))
        })
    }

    /// The innermost region that both stand in, if the first one, or what it stands in, is over there before the other begins.
    fn region_before(&self, first: Op, second: Op) -> Option<Region> {
        let others: Vec<_> = self.around(second).collect();
        self.around(first).find_map(|(region, op)| {
            let &(_, other) = others.iter().find(|(one, _)| *one == region)?;
            Some((self.positions[op] < self.positions[other]).then_some(region))
        })?
    }

    /// Whether a read is surely of the cell that a store in `region`, before it, has written.
    fn is_same_cell(&self, store: &ArrayUse, read: &ArrayUse, region: Region) -> bool {
        let same = read.path.len() >= store.path.len()
            && store.path.iter().zip(&read.path).all(|(&a, &b)| self.is_same(a, b, MAX_DEPTH));
        same && self.around(store.op).take_while(|&(inside, _)| inside != region).all(|(inside, _)| {
            let Some(op) = self.search.parents.op(inside) else { return false };
            matches!(self.kernel().ops[op].kind, OpKind::If) && self.others_store(op, inside, store)
        })
    }

    /// The box that a store surely writes each time that `region` is run.
    fn sure(&self, param: usize, store: &ArrayUse, region: Region) -> Option<Part> {
        let kernel = self.kernel();
        let mut loops: Vec<Around> = Vec::new();
        let inside: Vec<_> = self.around(store.op).take_while(|&(inside, _)| inside != region).collect();
        for (inside, _) in inside {
            let op = self.search.parents.op(inside)?;
            let data = &kernel.ops[op];
            let mut push = |axis: usize, bounds: Index| {
                let index = kernel.regions[inside].params[axis];
                loops.push(Around { index, bounds, is_used: false });
            };
            match &data.kind {
                kind if kind.is_counted_loop() => push(0, self.between(data.operands[0], data.operands[1])?),
                OpKind::ForCells(layout) if data.operands.is_empty() => {
                    let layout = &kernel.layouts[*layout];
                    (0..layout.shape.len()).for_each(|axis| push(axis, along(layout, axis)));
                }
                OpKind::ParallelFor(attributes) => match attributes.domain {
                    Domain::Ranges => {
                        for axis in 0..usize::from(attributes.axes) {
                            push(axis, self.between(data.operands[2 * axis], data.operands[2 * axis + 1])?);
                        }
                    }
                    Domain::Cells(layout) => {
                        let layout = &kernel.layouts[layout];
                        (0..usize::from(attributes.axes)).for_each(|axis| push(axis, along(layout, axis)));
                    }
                },
                OpKind::If if self.others_store(op, inside, store) => {}
                OpKind::Fork | OpKind::Serial => {}
                _ => return None,
            }
        }
        let indices =
            store.path.iter().map(|&index| self.through(index, &mut loops)).collect::<Option<_>>()?;
        let loops = loops.into_iter().filter(|one| !one.is_used).map(|one| one.bounds).collect();
        Some(Part { param, indices, loops })
    }

    /// All that an index of a write is, by a loop that is no other index, or by none.
    fn through(&self, index: Value, loops: &mut [Around]) -> Option<Index> {
        let known = self.search.index(index, MAX_DEPTH);
        if is_told(&known) {
            return Some(known);
        }
        let mut bounds_of = |value: Value| {
            let one = loops.iter_mut().find(|one| one.index == value && !one.is_used)?;
            one.is_used = true;
            Some(one.bounds.clone())
        };
        if let Some(bounds) = bounds_of(index) {
            return Some(bounds);
        }
        let ValueDef::Result(op, _) = self.kernel().values[index].def else { return None };
        let data = &self.kernel().ops[op];
        let OpKind::Arith(arith @ (ArithOp::Add | ArithOp::Sub)) = data.kind else { return None };
        let &[a, b] = &data.operands[..] else { return None };
        let ty = self.kernel().ty(index).scalar()?;
        let told = |value| Some(self.search.index(value, MAX_DEPTH)).filter(is_told);
        let both = match (told(a), told(b)) {
            (None, Some(b)) => [bounds_of(a)?, b],
            (Some(a), None) if arith == ArithOp::Add => [a, bounds_of(b)?],
            _ => return None,
        };
        Some(Index::Arith(arith, ty, Box::new(both)))
    }

    /// From the first on, up to before the second, if arguments tell them.
    fn between(&self, lo: Value, hi: Value) -> Option<Index> {
        let bounds = [lo, hi].map(|bound| self.search.index(bound, MAX_DEPTH));
        bounds.iter().all(is_told).then(|| Index::Between(Box::new(bounds)))
    }

    /// Whether all regions of a branch but one assign the cell of a store, too.
    fn others_store(&self, branch: Op, but: Region, store: &ArrayUse) -> bool {
        let regions = &self.kernel().ops[branch].regions;
        regions.len() > 1
            && regions.iter().all(|&region| region == but || self.stores(region, store, MAX_DEPTH))
    }

    fn stores(&self, region: Region, wanted: &ArrayUse, depth: usize) -> bool {
        let kernel = self.kernel();
        depth > 0
            && kernel.regions[region].ops.iter().any(|&op| match kernel.ops[op].kind {
                OpKind::Store => {
                    self.assigns(op)
                        && kernel.cell_access(op).is_some_and(|access| {
                            access.place.base() == wanted.base
                                && access.place.path().len() == wanted.path.len()
                                && access
                                    .place
                                    .path()
                                    .iter()
                                    .zip(&wanted.path)
                                    .all(|(&a, &b)| self.is_same(a, b, MAX_DEPTH))
                        })
                }
                OpKind::If => {
                    let regions = &kernel.ops[op].regions;
                    regions.len() > 1 && regions.iter().all(|&inner| self.stores(inner, wanted, depth - 1))
                }
                _ => false,
            })
    }

    /// Whether two values are the same number, computed twice.
    fn is_same(&self, a: Value, b: Value, depth: usize) -> bool {
        if a == b {
            return true;
        }
        let kernel = self.kernel();
        let (ValueDef::Result(a, _), ValueDef::Result(b, _)) = (kernel.values[a].def, kernel.values[b].def)
        else {
            return false;
        };
        let (a, b) = (&kernel.ops[a], &kernel.ops[b]);
        let is_pure = matches!(
            a.kind,
            OpKind::Const(_) | OpKind::Arith(_) | OpKind::Bit(_) | OpKind::Convert(_) | OpKind::Extent(_)
        );
        depth > 0
            && is_pure
            && a.kind == b.kind
            && a.operands.len() == b.operands.len()
            && a.operands.iter().zip(&b.operands).all(|(&a, &b)| self.is_same(a, b, depth - 1))
    }
}

/// Whether arguments and extents tell which integer it is.
fn is_told(index: &Index) -> bool {
    match index {
        Index::Const(_) | Index::Param(_) | Index::Extent(..) => true,
        Index::Arith(_, _, operands) => operands.iter().all(is_told),
        Index::Any | Index::Between(_) | Index::Either(_) => false,
    }
}
