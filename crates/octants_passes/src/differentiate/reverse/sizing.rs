//! How much tape a reverse kernel needs, as a kernel: the forward sweep, in which each tape counts instead of being filled. What is
//! dead then is gone: of a loop whose bounds are known nothing stays but a product.
//!
//! Before (the kernel that is differentiated):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %2: i32 = load %rows[%i]
//!   %3: f32 = for %k: i32 in %zero..%2 carry (%v: f32 = %1) { … }
//!   store %y[%i], %3
//! }
//! ```
//! After (its reverse kernel has a tape of `%2` singles):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %2: i32 = load %rows[%i]
//!   %4: i64 = cast %2
//!   %5: i64 = max %4, 0
//!   %6: i64 = atomic_max %sizes[2], %5
//!   %7: u1 = gt %5, 0
//!   %8: i64 = select %7, 1, 0
//!   %9: i64 = atomic_add %sizes[1], %8
//! }
//! ```
//! The sizes of each parallel loop with tapes follow each other: how many points the loop has, then for each scalar type of [`TapePlan::scalars`]
//! how many cells of it one iteration needs at most. Between them stands how many iterations need any, where they differ. Tapes of a region live together; those of regions inside it do not, but one at a
//! time, on top. Those of a [nest](super::nests) count as the outermost loop's.

use octants_ir::ops::{ArithOp, AtomicOp, CompareOp};
use octants_ir::rewrite::ops_in;
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value,
};

use super::Reverse;
use super::places::Kept;
use crate::differentiate::size_once::size_once;
use crate::edit::slots::yielded;
use crate::eliminate_dead_code::eliminate_dead_code_again;

/// What a reverse kernel keeps.
#[derive(Clone, Debug)]
pub struct TapePlan {
    /// Each loop that keeps something, in the order of the text, and what it keeps in each of its iterations.
    pub loops: Vec<(Loc, Vec<Scalar>)>,
    /// The types of what is kept, each once.
    pub scalars: Vec<Scalar>,
    /// How many of the reverse kernel's parallel loops have tapes.
    pub tasks: usize,
    /// Of each, whether its iterations may need different amounts. Their number of those that need any stands among the sizes then, else zero.
    pub varies: Vec<bool>,
    /// Computes the sizes. Its parameters are those of the reverse kernel, then an array of 64-bit integers, zero at first, with
    /// [`TapePlan::stride`] of them for each task.
    pub sizing: Kernel,
}

impl TapePlan {
    /// Entries of the array of sizes for each task.
    pub fn stride(&self) -> usize {
        2 + self.scalars.len()
    }
}

/// Which tapes are left in the reverse kernel, by the loop that they belong to.
pub(super) struct LiveTapes {
    by_loop: SideTable<Op, Vec<Scalar>>,
    /// Outermost loops of nests: what loops inside keep lives as long as what they keep themselves.
    nests: SideTable<Op, bool>,
    scalars: Vec<Scalar>,
    loops: Vec<(Loc, Vec<Scalar>)>,
}

impl LiveTapes {
    pub fn find(primal: &Kernel, derivative: &Kernel, kept: &SideTable<Op, Kept>) -> Self {
        let mut alive = SideTable::new(false);
        for op in ops_in(derivative, derivative.body) {
            if derivative.ops[op].kind == OpKind::Tape {
                alive.set(derivative.ops[op].results[0], true);
            }
        }
        let mut found = Self {
            by_loop: SideTable::new(Vec::new()),
            nests: SideTable::new(false),
            scalars: Vec::new(),
            loops: Vec::new(),
        };
        for op in ops_in(primal, primal.body) {
            found.nests.set(op, kept[op].is_nest);
            let mut scalars = Vec::new();
            let tapes = kept[op].tapes.iter().map(|&tape| (tape, 1));
            for (tape, cells) in tapes.chain(kept[op].place_tapes.iter().map(|&(local, tape)| {
                let shape = primal.ty(local).place().and_then(|(data, _)| data.tensor_shape());
                (tape, shape.map_or(1, |shape| shape.count() as usize))
            })) {
                if let (true, Type::Tape(scalar)) = (alive[tape], derivative.ty(tape)) {
                    scalars.extend(std::iter::repeat_n(scalar, cells));
                }
            }
            if !scalars.is_empty() {
                found.loops.push((primal.ops[op].loc, scalars.clone()));
                found.scalars.extend(&scalars);
                found.by_loop.set(op, scalars);
            }
        }
        found.scalars.sort_unstable();
        found.scalars.dedup();
        found
    }

    fn count(&self, op: Op, scalar: Scalar) -> i128 {
        self.by_loop[op].iter().filter(|&&kept| kept == scalar).count() as i128
    }

    /// The positions in [`LiveTapes::scalars`] of what ops inside the op keep.
    fn kept_inside(&self, kernel: &Kernel, op: Op) -> Vec<usize> {
        let inside: Vec<Op> =
            kernel.ops[op].regions.iter().flat_map(|&region| ops_in(kernel, region)).collect();
        let keeps = |scalar: Scalar| inside.iter().any(|&inner| self.by_loop[inner].contains(&scalar));
        (0..self.scalars.len()).filter(|&class| keeps(self.scalars[class])).collect()
    }

    /// Whether the op keeps something, or something inside it does.
    fn is_in(&self, kernel: &Kernel, op: Op) -> bool {
        !self.by_loop[op].is_empty()
            || kernel.ops[op].regions.iter().any(|&region| {
                ops_in(kernel, region).into_iter().any(|inner| !self.by_loop[inner].is_empty())
            })
    }
}

/// Cells of each scalar type that are in use together; `None` for none.
struct Demand {
    /// Until the region has run.
    own: Vec<Option<Value>>,
    /// At most, one after the other, on top of that.
    inner: Vec<Option<Value>>,
}

impl Reverse<'_> {
    /// The kernel that computes sizes. `tasks` are the ops of the primal that became loops with tapes, in the order of the reverse kernel. Nothing was put
    /// into the body yet.
    pub(super) fn size_tapes(mut self, template: Region, live: LiveTapes, tasks: &[Op]) -> TapePlan {
        self.kernel.name = format!("{}_sizes", self.kernel.name);
        let sizes = Type::Array(ArrayType::array(Scalar::I64, 1, Boundary::Unsafe));
        let sizes = self.kernel.add_param("sizes", sizes);
        let sizing = Sizing { live: &live, tasks, sizes };
        self.size_top(template, &sizing);
        self.b().returns(&[]);
        self.kernel.results.clear();
        eliminate_dead_code_again(self.kernel);
        size_once(self.kernel, &|kernel, op| is_count(kernel, op, sizes));
        let stride = 2 + live.scalars.len();
        let varies = (0..tasks.len()).map(|task| counts_keepers(self.kernel, sizes, task * stride + 1));
        let varies = varies.collect();
        let sizing = self.kernel.clone();
        TapePlan { loops: live.loops, scalars: live.scalars, tasks: tasks.len(), varies, sizing }
    }

    fn size_top(&mut self, region: Region, sizing: &Sizing<'_>) {
        for op in self.kernel.regions[region].ops.clone() {
            let data = self.kernel.ops[op].clone();
            if data.kind.is_terminator() {
                continue;
            }
            self.loc = data.loc;
            match data.kind {
                OpKind::Fork => {
                    let mut regions = Vec::new();
                    for &branch in &data.regions {
                        regions.push(self.fill(&[], |reverse, _| {
                            reverse.size_top(branch, sizing);
                            Vec::new()
                        }));
                    }
                    self.b().op(OpKind::Fork, [], [], regions);
                }
                OpKind::ParallelFor(_) if sizing.live.is_in(self.kernel, op) => {
                    self.size_parallel(op, sizing);
                    self.forward_structure(op);
                }
                OpKind::If | OpKind::For | OpKind::While if sizing.live.is_in(self.kernel, op) => {
                    self.at_top = false;
                    let demand = self.size_op(op, sizing);
                    self.at_top = true;
                    let one = self.b().constant(Const::from_i128(Scalar::I64, 1));
                    self.note_points(op, one, sizing);
                    let total = self.total(&[demand], sizing);
                    self.note(op, &total, sizing);
                }
                _ => self.forward(op, false),
            }
        }
    }

    fn size_parallel(&mut self, op: Op, sizing: &Sizing<'_>) {
        let data = self.kernel.ops[op].clone();
        let bounds = self.map(&data.operands);
        let mut points = self.b().constant(Const::from_i128(Scalar::I64, 1));
        for axis in bounds.chunks_exact(2) {
            let extent = self.extent(axis[0], axis[1]);
            points = self.b().arith(ArithOp::Mul, points, extent);
        }
        self.note_points(op, points, sizing);
        let body = data.regions[0];
        let types = self.param_types(body);
        let outer = (self.task.replace(body), std::mem::replace(&mut self.at_top, false));
        let region = self.fill(&types, |reverse, values| {
            reverse.set_params(body, values);
            let total = reverse.size_region(body, sizing);
            reverse.note(op, &total, sizing);
            reverse.count_keeper(op, &total, sizing);
            Vec::new()
        });
        (self.task, self.at_top) = outer;
        self.b().op(data.kind, bounds, [], [region]);
    }

    /// How many integers there are from the first to before the second, as an `i64`.
    pub(super) fn extent(&mut self, lo: Value, hi: Value) -> Value {
        let b = &mut self.b();
        let (lo, hi) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
        let difference = b.arith(ArithOp::Sub, hi, lo);
        let zero = b.constant(Const::from_i128(Scalar::I64, 0));
        b.arith(ArithOp::Max, difference, zero)
    }

    fn note_points(&mut self, op: Op, points: Value, sizing: &Sizing<'_>) {
        let Some(first) = sizing.first_entry(op) else { return };
        let b = &mut self.b();
        let at = b.i32(first);
        b.store(sizing.sizes, &[at], points);
    }

    fn note(&mut self, op: Op, total: &[Option<Value>], sizing: &Sizing<'_>) {
        let Some(first) = sizing.first_entry(op) else { return };
        for (at, &cells) in (first + 2..).zip(total) {
            let Some(cells) = cells else { continue };
            let b = &mut self.b();
            let at = b.i32(at);
            b.atomic(AtomicOp::Max, sizing.sizes, &[at], cells);
        }
    }

    /// Counts an iteration if it keeps something.
    fn count_keeper(&mut self, op: Op, total: &[Option<Value>], sizing: &Sizing<'_>) {
        let Some(first) = sizing.first_entry(op) else { return };
        let b = &mut self.b();
        let most = total.iter().copied().flatten().reduce(|most, cells| b.arith(ArithOp::Max, most, cells));
        let Some(most) = most else { return };
        let [zero, one] = [0, 1].map(|number| b.constant(Const::from_i128(Scalar::I64, number)));
        let needs = b.compare(CompareOp::Gt, most, zero);
        let keeps = b.select(needs, one, zero);
        let at = b.i32(first + 1);
        b.atomic(AtomicOp::Add, sizing.sizes, &[at], keeps);
    }

    /// What a region needs: its own tapes together, and the most of what is on top of them.
    fn total(&mut self, demands: &[Demand], sizing: &Sizing<'_>) -> Vec<Option<Value>> {
        let b = &mut self.b();
        let mut total = Vec::with_capacity(sizing.live.scalars.len());
        for class in 0..sizing.live.scalars.len() {
            let own = demands.iter().filter_map(|demand| demand.own[class]);
            let own = own.reduce(|sum, own| b.arith(ArithOp::Add, sum, own));
            let inner = demands.iter().filter_map(|demand| demand.inner[class]);
            let inner = inner.reduce(|most, inner| b.arith(ArithOp::Max, most, inner));
            total.push(match (own, inner) {
                (Some(own), Some(inner)) => Some(b.arith(ArithOp::Add, own, inner)),
                (own, inner) => own.or(inner),
            });
        }
        total
    }

    /// The region's ops forward, and what they keep.
    fn size_region(&mut self, region: Region, sizing: &Sizing<'_>) -> Vec<Option<Value>> {
        let mut demands = Vec::new();
        for op in self.kernel.regions[region].ops.clone() {
            let kind = self.kernel.ops[op].kind.clone();
            if kind.is_terminator() {
                continue;
            }
            self.loc = self.kernel.ops[op].loc;
            let controls = kind.is_control();
            if controls && sizing.live.is_in(self.kernel, op) {
                demands.push(self.size_op(op, sizing));
            } else {
                self.forward(op, false);
            }
        }
        self.total(&demands, sizing)
    }

    /// An `if` or a loop that keeps something, forward: it also carries what its regions keep.
    fn size_op(&mut self, op: Op, sizing: &Sizing<'_>) -> Demand {
        let data = self.kernel.ops[op].clone();
        let operands = self.map(&data.operands);
        let inside = sizing.live.kept_inside(self.kernel, op);
        let zero = self.b().constant(Const::from_i128(Scalar::I64, 0));
        let (mut types, mut regions) = (Vec::new(), Vec::new());
        match data.kind {
            OpKind::If => {
                for &region in &data.regions {
                    regions.push(self.fill(&[], |reverse, _| {
                        let total = reverse.size_region(region, sizing);
                        let results = yielded(reverse.kernel, region).to_vec();
                        let kept = inside.iter().map(|&class| total[class].unwrap_or(zero));
                        reverse.map(&results).into_iter().chain(kept).collect()
                    }));
                }
                types.extend(data.results.iter().map(|&result| self.kernel.ty(result)));
                types.extend(std::iter::repeat_n(Type::I64, inside.len()));
                let copy = self.finish_loop(op, operands, &types, regions);
                let inner = self.inner(copy, data.results.len(), &inside, sizing);
                Demand { own: vec![None; sizing.live.scalars.len()], inner }
            }
            OpKind::For => {
                let (lo, hi, body) = (operands[0], operands[1], data.regions[0]);
                types.extend(self.param_types(body));
                let count = types.len();
                types.extend(std::iter::repeat_n(Type::I64, inside.len()));
                let region = self.fill(&types, |reverse, values| {
                    reverse.set_params(body, &values[..count]);
                    let total = reverse.size_region(body, sizing);
                    let next = yielded(reverse.kernel, body).to_vec();
                    let most = reverse.most(&values[count..], &total, &inside);
                    reverse.map(&next).into_iter().chain(most).collect()
                });
                let operands = operands.into_iter().chain(vec![zero; inside.len()]).collect();
                let copy = self.finish_loop(op, operands, &types[1..], vec![region]);
                let inner = self.inner(copy, data.results.len(), &inside, sizing);
                let trips = self.extent(lo, hi);
                if sizing.live.nests[op] {
                    // It has a cell for what runs now.
                    let one = self.one(trips);
                    let b = &mut self.b();
                    let runs = b.compare(CompareOp::Gt, trips, zero);
                    let more = b.arith(ArithOp::Add, trips, one);
                    let cells = b.select(runs, more, zero);
                    let demand = Demand { own: self.kept_by(op, cells, sizing), inner };
                    let own = self.total(&[demand], sizing);
                    return Demand { own, inner: vec![None; sizing.live.scalars.len()] };
                }
                let own = self.kept_by(op, trips, sizing);
                Demand { own, inner }
            }
            _ => {
                types.extend(self.param_types(data.regions[1]));
                let count = types.len();
                types.extend(std::iter::repeat_n(Type::I64, 1 + inside.len()));
                regions.push(self.fill(&types, |reverse, values| {
                    reverse.set_params(data.regions[0], &values[..count]);
                    reverse.forward_region(data.regions[0], false);
                    let next = yielded(reverse.kernel, data.regions[0]).to_vec();
                    reverse.map(&next).into_iter().chain(values[count..].iter().copied()).collect()
                }));
                regions.push(self.fill(&types, |reverse, values| {
                    reverse.set_params(data.regions[1], &values[..count]);
                    let total = reverse.size_region(data.regions[1], sizing);
                    let next = yielded(reverse.kernel, data.regions[1]).to_vec();
                    let one = reverse.one(values[count]);
                    let number = reverse.b().arith(ArithOp::Add, values[count], one);
                    let most = reverse.most(&values[count + 1..], &total, &inside);
                    reverse.map(&next).into_iter().chain([number]).chain(most).collect()
                }));
                let operands = operands.into_iter().chain(vec![zero; 1 + inside.len()]).collect();
                let copy = self.finish_loop(op, operands, &types, regions);
                let trips = self.kernel.ops[copy].results[data.results.len()];
                let inner = self.inner(copy, data.results.len() + 1, &inside, sizing);
                Demand { own: self.kept_by(op, trips, sizing), inner }
            }
        }
    }

    /// By class: the op's results from a number on.
    fn inner(&self, op: Op, first: usize, inside: &[usize], sizing: &Sizing<'_>) -> Vec<Option<Value>> {
        let mut inner = vec![None; sizing.live.scalars.len()];
        for (&class, &result) in inside.iter().zip(&self.kernel.ops[op].results[first..]) {
            inner[class] = Some(result);
        }
        inner
    }

    /// Of the classes inside, the greater of what was needed so far and of what is needed now.
    fn most(&mut self, so_far: &[Value], total: &[Option<Value>], inside: &[usize]) -> Vec<Value> {
        let b = &mut self.b();
        let each = inside.iter().zip(so_far);
        each.map(|(&class, &most)| total[class].map_or(most, |now| b.arith(ArithOp::Max, most, now)))
            .collect()
    }

    /// Cells of each type that the loop keeps in so many iterations.
    fn kept_by(&mut self, op: Op, trips: Value, sizing: &Sizing<'_>) -> Vec<Option<Value>> {
        let b: &mut Builder<'_> = &mut self.b();
        let mut kept = Vec::with_capacity(sizing.live.scalars.len());
        for &scalar in &sizing.live.scalars {
            kept.push(match sizing.live.count(op, scalar) {
                0 => None,
                1 => Some(trips),
                count => {
                    let count = b.constant(Const::from_i128(Scalar::I64, count));
                    Some(b.arith(ArithOp::Mul, trips, count))
                }
            });
        }
        kept
    }
}

/// Whether the op counts an iteration that keeps something.
fn is_count(kernel: &Kernel, op: Op, sizes: Value) -> bool {
    let data = &kernel.ops[op];
    data.kind == OpKind::Atomic(AtomicOp::Add) && data.operands[0] == sizes
}

/// Whether iterations that keep something are counted in this entry.
fn counts_keepers(kernel: &Kernel, sizes: Value, entry: usize) -> bool {
    ops_in(kernel, kernel.body).into_iter().any(|op| {
        let is_entry = |index: Value| kernel.as_const(index).and_then(Const::as_i128) == Some(entry as i128);
        is_count(kernel, op, sizes) && is_entry(kernel.ops[op].operands[1])
    })
}

struct Sizing<'s> {
    live: &'s LiveTapes,
    tasks: &'s [Op],
    sizes: Value,
}

impl Sizing<'_> {
    /// Where the sizes of the task begin that the op became.
    fn first_entry(&self, op: Op) -> Option<i32> {
        let task = self.tasks.iter().position(|&task| task == op)?;
        Some((task * (2 + self.live.scalars.len())) as i32)
    }
}
