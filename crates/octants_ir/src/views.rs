//! Ops read by what their operands mean. An op stores its operands in one list; where a place ends and a value begins, and which
//! parameter of a parallel loop is an index and which an accumulator, is decided here and nowhere else.

use crate::ids::{Op, Region, Value};
use crate::kernel::Kernel;
use crate::ops::{AtomicOp, CellUse, Effects, OpKind, ParallelFor, Scope, whole_number_of};
use crate::rewrite::ops_in;

/// The operands that address a cell: a base, an index for each of its axes, and components if one scalar of a tensor is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'k> {
    operands: &'k [Value],
    rank: usize,
}

impl<'k> Place<'k> {
    fn new(kernel: &Kernel, operands: &'k [Value]) -> Self {
        let rank = operands.first().and_then(|&base| kernel.ty(base).place()).map_or(0, |(_, rank)| rank);
        Self { operands, rank }
    }

    pub fn base(self) -> Value {
        self.operands[0]
    }

    /// Indices, then components.
    pub fn path(self) -> &'k [Value] {
        &self.operands[1..]
    }

    pub fn indices(self) -> &'k [Value] {
        &self.path()[..self.rank]
    }

    pub fn components(self) -> &'k [Value] {
        &self.path()[self.rank..]
    }

    /// The base, then the path.
    pub fn operands(self) -> &'k [Value] {
        self.operands
    }
}

/// An op that reads or writes one cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellAccess<'k> {
    pub place: Place<'k>,
    /// What the op brings: what is stored or combined, or what a compare-and-swap expects and desires.
    pub values: &'k [Value],
    pub reads: bool,
    pub writes: bool,
}

/// A `parallel_for`.
#[derive(Clone, Copy, Debug)]
pub struct ParallelLoop<'k> {
    kernel: &'k Kernel,
    pub attributes: &'k ParallelFor,
    operands: &'k [Value],
    params: &'k [Value],
    pub body: Region,
}

/// One reduction of a parallel loop.
#[derive(Clone, Copy, Debug)]
pub struct ReductionView<'k> {
    pub op: AtomicOp,
    /// Where the total is combined into.
    pub place: Place<'k>,
    /// The body's parameter that holds what was accumulated so far.
    pub accumulator: Value,
}

impl<'k> ParallelLoop<'k> {
    pub fn axes(&self) -> usize {
        self.attributes.axes.into()
    }

    /// The operands that bound the axes.
    pub fn bound_operands(&self) -> &'k [Value] {
        &self.operands[..self.attributes.bound_operands()]
    }

    /// The operands that address what is reduced into.
    pub fn place_operands(&self) -> &'k [Value] {
        &self.operands[self.attributes.bound_operands()..]
    }

    /// `(lo, hi)` of each axis, the outermost first; none for a loop over a layout.
    pub fn bounds(&self) -> impl DoubleEndedIterator<Item = (Value, Value)> + ExactSizeIterator + use<'k> {
        self.bound_operands().chunks_exact(2).map(|bounds| (bounds[0], bounds[1]))
    }

    /// The body's parameters that say which iteration it is.
    pub fn indices(&self) -> &'k [Value] {
        &self.params[..self.axes()]
    }

    /// The index of the last axis, along which neighbouring iterations run in lanes.
    pub fn last_index(&self) -> Value {
        self.params[self.axes() - 1]
    }

    /// The body's parameters that differ between neighbouring iterations of the last axis: its index, and the accumulators.
    pub fn lane_params(&self) -> &'k [Value] {
        &self.params[self.axes() - 1..]
    }

    /// The body's parameters behind the indices, one for each reduction.
    pub fn accumulators(&self) -> &'k [Value] {
        &self.params[self.axes()..]
    }

    pub fn reductions(&self) -> impl Iterator<Item = ReductionView<'k>> + use<'k> {
        let kernel = self.kernel;
        let mut rest = self.place_operands();
        self.attributes.reductions.iter().zip(self.accumulators()).map(move |(reduction, &accumulator)| {
            let (place, after) = rest.split_at(reduction.operands.into());
            rest = after;
            ReductionView { op: reduction.op, place: Place::new(kernel, place), accumulator }
        })
    }
}

impl Kernel {
    /// The op as a parallel loop, if it is one.
    pub fn parallel_loop(&self, op: Op) -> Option<ParallelLoop<'_>> {
        let data = &self.ops[op];
        let OpKind::ParallelFor(attributes) = &data.kind else { return None };
        let body = data.regions[0];
        let params = &self.regions[body].params;
        Some(ParallelLoop { kernel: self, attributes, operands: &data.operands, params, body })
    }

    /// Whether a region only yields, without ops of its own but constants.
    pub fn is_bare(&self, region: Region) -> bool {
        let is_nothing = |kind: &OpKind| kind.is_terminator() || matches!(kind, OpKind::Const(_));
        self.regions[region].ops.iter().all(|&op| is_nothing(&self.ops[op].kind))
    }

    /// Whether an op of the region, or of those inside, has one of these effects itself.
    pub fn has_effects(&self, region: Region, effects: Effects) -> bool {
        ops_in(self, region).into_iter().any(|op| self.ops[op].kind.effects().intersects(effects))
    }

    /// Whether an op is a loop whose threads do something together: its iterations stay where they are.
    pub fn cooperates(&self, op: Op) -> bool {
        self.parallel_loop(op).is_some_and(|parallel| self.has_effects(parallel.body, Effects::CONVERGENT))
    }

    /// What the number of a loop's iterations must be a multiple of, if its threads do something together: threads of a block, or of a subgroup
    /// where no more meet.
    pub fn whole_blocks(&self, op: Op) -> Option<u32> {
        let parallel = self.parallel_loop(op).filter(|_| self.cooperates(op))?;
        let threads = parallel.attributes.block_dim?;
        let needs_block = ops_in(self, parallel.body).into_iter().any(|op| {
            let kind = &self.ops[op].kind;
            kind.makes_shared() || kind.meets() == Some(Scope::Block)
        });
        Some(whole_number_of(threads, needs_block))
    }

    /// The first op of some kind that every path through a region passes, if there is one. Where both sides of an `if` have one, that of the first side.
    pub fn on_every_path(&self, region: Region, is_meant: &dyn Fn(Op) -> bool) -> Option<Op> {
        self.regions[region].ops.iter().find_map(|&op| {
            let data = &self.ops[op];
            match (data.kind.is_loop(), &data.regions[..]) {
                (_, []) => is_meant(op).then_some(op),
                (true, &[body]) => {
                    let runs = self.constant_trips(op).is_some_and(|trips| trips > 0);
                    runs.then(|| self.on_every_path(body, is_meant)).flatten()
                }
                // The condition is asked at least once.
                (true, &[cond, _]) => self.on_every_path(cond, is_meant),
                (_, sides) => {
                    let found: Option<Vec<_>> =
                        sides.iter().map(|&side| self.on_every_path(side, is_meant)).collect();
                    found?.first().copied()
                }
            }
        })
    }

    /// How often the body of a `for` runs, if its bounds are constants.
    pub fn constant_trips(&self, op: Op) -> Option<i128> {
        let data = &self.ops[op];
        if !data.kind.is_counted_loop() {
            return None;
        }
        let bound = |index: usize| self.as_const(data.operands[index])?.as_i128();
        Some((bound(1)? - bound(0)?).max(0))
    }

    /// The op as an access of one cell, if it is one.
    pub fn cell_access(&self, op: Op) -> Option<CellAccess<'_>> {
        let data = &self.ops[op];
        let (values, reads, writes) = match data.kind.info().cell {
            CellUse::Nothing | CellUse::Addresses => return None,
            CellUse::Reads => (0, true, false),
            CellUse::Writes => (1, false, true),
            CellUse::Updates(values) => (values, true, true),
        };
        let (place, values) = data.operands.split_at(data.operands.len() - values);
        Some(CellAccess { place: Place::new(self, place), values, reads, writes })
    }

    /// The cell that an op addresses, to access it or to say where it lies.
    pub fn addressed(&self, op: Op) -> Option<Place<'_>> {
        match self.ops[op].kind.info().cell {
            CellUse::Addresses => Some(Place::new(self, &self.ops[op].operands)),
            CellUse::Nothing | CellUse::Reads | CellUse::Writes | CellUse::Updates(_) => {
                self.cell_access(op).map(|access| access.place)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn a_loop_and_an_access_are_taken_apart() {
        let text = r#"kernel @k(%x "x": array<tensor<f32, 2>, 1>, %s "s": array<f32, 1>, %n "n": i32) {
            %zero: i32 = const 0
            parallel_for (%i: i32, %j: i32) in (%zero..%n, %n..%n) reduce (%a: f32 = atomic_add %s[%n]) {
              %v: f32 = load %x[%i, %zero]
              %old: f32 = atomic_max %x[%j, %zero], %v
              yield %v
            }
            return
        }"#;
        let kernel = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let [x, s, n] = kernel.regions[kernel.body].params[..] else { panic!("three parameters") };
        let ops = &kernel.regions[kernel.body].ops;
        let zero = kernel.ops[ops[0]].results[0];
        let looped = kernel.parallel_loop(ops[1]).expect("it is a parallel loop");
        assert_eq!(looped.bounds().collect::<Vec<_>>(), [(zero, n), (n, n)]);
        let [i, j, a] = kernel.regions[looped.body].params[..] else { panic!("three parameters") };
        assert_eq!((looped.indices(), looped.accumulators()), (&[i, j][..], &[a][..]));
        let reductions: Vec<_> = looped.reductions().collect();
        let [sum] = reductions[..] else { panic!("one reduction") };
        assert_eq!((sum.op, sum.place.base(), sum.accumulator), (AtomicOp::Add, s, a));
        assert_eq!((sum.place.indices(), sum.place.components()), (&[n][..], &[][..]));
        let update = kernel.regions[looped.body].ops[1];
        let access = kernel.cell_access(update).expect("it is an access");
        assert_eq!((access.place.base(), access.place.indices()), (x, &[j][..]));
        assert_eq!((access.place.components(), access.values.len()), (&[zero][..], 1));
        assert!(access.reads && access.writes);
        assert!(kernel.cell_access(ops[0]).is_none() && kernel.parallel_loop(update).is_none());
    }
}
