//! Whether a parallel loop is worth widening across its iterations, and how far.
//!
//! LLVM vectorises innermost loops only. A body without loops is left to it, unless it is whole vectors alone, math functions too: then it is shorter and
//! needs fewer passes. A body with loops runs for several neighbouring
//! iterations at once, each in a lane of vectors, if every op has a form for vectors and the inner loops gain by it: their
//! accesses are the same for all lanes or next to each other, or have enough arithmetic around them.

use octants_ir::ops::{ArithOp, AtomicOp, MathOp, MathUnary};
use octants_ir::plan::part_of_param;
use octants_ir::rewrite::{ops_in, walk};
use octants_ir::views::{ParallelLoop, Place};
use octants_ir::{Data, Kernel, Op, OpKind, Order, Region, Scalar, SideTable, Spacing, Type, Value};

use super::VectorFunction;
use super::library::c_name;
use super::written_out::is_written_out;
use crate::lanes::counted::is_close_by;
use crate::lanes::hoist::hoisted_loads;
use crate::lanes::offsets::{LaneValues, Offsets};
use crate::lanes::uniform::varying_values;
use crate::lowering::LibraryFunction;
use crate::ops::atomic::sums_lanes;
use crate::options::CpuOptions;

/// How a widened loop is written.
#[derive(Clone, Debug)]
pub(crate) struct Widening {
    /// How many neighbouring iterations of the last axis run at once.
    pub lanes: u32,
    pub varying: SideTable<Value, bool>,
    /// Whole vectors run without a mask, and what is left in a second copy of the body. Otherwise all run under a mask.
    pub unmasked_body: bool,
    /// What masks are held in.
    pub mask: Scalar,
    /// How many iterations of the rest run at once, where whole vectors run without a mask: one vector's, so that the second copy of the body is
    /// as short as can be. With the fewer passes of `straight` it saves a tenth of LLVM's time on a kernel of `benches/second_start.py`.
    pub rest_lanes: u32,
    /// The body has no loop and nothing that is done lane by lane: there is nothing left in it for LLVM's loop passes.
    pub straight: bool,
    /// Fewer iterations than this at the end of a row run one by one, in a scalar copy of the body; 0 if there is none.
    pub scalar_below: u32,
}

// The weights below are estimates of instructions, not measured one by one; `nbody`, `julia` and `lcg` of `benches/run.py` are the loops
// that show them together (1.3, 4.3 and 2.6 times as fast as C).

/// Arithmetic ops in inner loops that make up for one gather or scatter: about what its extra loads and stores take.
const WORK_PER_SCATTERED_ACCESS: u32 = 4;
/// Arithmetic ops per strided store from which vectors pay.
const WORK_PER_SCATTERED_STORE: u32 = 16;
/// Arithmetic ops that one call of a library function counts as: a gain with vector functions, a loss without.
const WORK_PER_CALL: u32 = 4;
/// Trips of an inner loop: how much more an op counts for each loop around it but the outermost.
const ASSUMED_TRIPS: u32 = 8;
/// Vector registers that one value may take, so that latencies overlap: the lanes of an iteration are this many vectors.
/// An addition takes four cycles.
const MAX_VECTORS: u32 = 4;
/// The same in a loop with a divergent exit: the more lanes, the longer the last one keeps the others.
const MAX_VECTORS_IN_DIVERGENT_LOOP: u32 = 2;
/// The same where variables are vectors or matrices: each entry is as many vectors on the stack.
const MAX_VECTORS_WITH_TENSORS: u32 = 1;
/// Bytes of the variables of all lanes: a third of a first-level cache of 48 KiB.
const MAX_BYTES_OF_VARIABLES: u32 = 16 << 10;
/// Bits of a cache line. Loops inside of a block's lanes go on to the next one, and what lanes leave of a line is loaded again.
const CACHE_LINE: u32 = 512;
/// Ops of a body that is vectorised, here or by LLVM. A widened one may be emitted twice, with and without a mask; LLVM's analysis of the
/// accesses takes longer than all its other passes above that. Chosen by compile time alone.
const MAX_VECTORISED_OPS: u32 = 3000;
/// Ops of a gradient's body that has a scalar copy for little more speed. `benches/gradient_growth.py`: the gradient of a loop with a sine, of 30 ops, takes 40 ms to
/// compile with the copy and 25 ms without.
const MAX_COPIED_OPS: u32 = 48;
/// Accesses of a body below which the loop's own instructions count, so that it runs two vectors at once.
const FEW_ACCESSES: u32 = 4;

/// What a math function takes as arithmetic, on a scalar and on the vectors of all lanes, and what a call of a library takes, in halves of what an addition
/// takes in a chain: what one iteration of a serial loop waits for. Lanes take little more than a scalar as long as it is arithmetic, since they wait for the same chain;
/// of a call or a root each vector takes as long again. From `benches/short_loops.py` with scalar code alone and with vectors alone: in double precision
/// one scalar and 16 lanes take 1.7 and 1.9 ns for a product, 7.9 and 21 for a root, 25 and 29 for an exponential, 20 and 75 for a logarithm. The gradient of
/// a square takes 8.5 and 8.4 as long as the lanes' tape fits into a cache.
const SCALAR_FUNCTION: u64 = 28;
const VECTOR_FUNCTION: u64 = 40;
const SCALAR_CALL: u64 = 20;

/// `None` leaves the loop to LLVM's vectoriser. `apart` says that arrays of two parameters never share memory.
pub(crate) fn widening(
    kernel: &Kernel,
    parallel: &ParallelLoop<'_>,
    options: CpuOptions,
    apart: bool,
) -> Option<Widening> {
    if parallel.attributes.keeps_order() || !can_widen(kernel, parallel) {
        return None;
    }
    let varying = varying_values(kernel, parallel.body, parallel.lane_params());
    let mut summary = BodySummary::new(kernel, &varying, parallel.last_index());
    summary.apart = apart;
    summary.region(parallel.body, 0);
    let reduces = !parallel.attributes.reductions.is_empty();
    let lanes = match options.force_lanes {
        Some(lanes) => lanes,
        None if summary.loops > 0 => summary.lanes_with_loops(options)?,
        None => summary.lanes_without_loops(options, reduces)?,
    };
    let unmasked_body = summary.gains_without_mask(options, reduces);
    let mask = summary.mask(options);
    let plain = summary.is_plain(options) && options.force_lanes.is_none();
    let straight = plain && !summary.has_loops;
    // Each lane of the whole vectors has an accumulator of its own.
    let rest_lanes = if straight && !reduces { lanes.min(options.vector_bits / summary.bits) } else { lanes };
    // Brief code is not optimised enough for scalars.
    let has_copy = options.force_lanes.is_none() && !parallel.attributes.brief;
    let scalar_below = if has_copy { summary.scalar_below(lanes, options) } else { 0 };
    Some(Widening { lanes, varying, unmasked_body, mask, rest_lanes, straight, scalar_below })
}

/// How LLVM is asked to compile the body of a loop that is not widened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScalarBody {
    /// LLVM may vectorise it.
    Vectorisable,
    /// Vectors are known to be slower, or the body is so long that LLVM would look at it for longer than for all else.
    Scalar,
    /// There is no loop in it, and nothing that vectors or further copies of it would gain; or it runs seldom.
    Straight,
}

pub(crate) fn scalar_body(kernel: &Kernel, parallel: &ParallelLoop<'_>) -> ScalarBody {
    let varying = varying_values(kernel, parallel.body, parallel.lane_params());
    let mut summary = BodySummary::new(kernel, &varying, parallel.last_index());
    summary.region(parallel.body, 0);
    if summary.accesses_lie_apart() {
        return ScalarBody::Straight;
    }
    let long = ops_in(kernel, parallel.body).len() > MAX_VECTORISED_OPS as usize;
    if long || strided_stores_dominate(kernel, parallel, &summary) {
        return ScalarBody::Scalar;
    }
    ScalarBody::Vectorisable
}

/// Whether a loop has strided stores to part of each cell, and does little else. The scatters of a vector would be partial writes of
/// cache lines that the next loads read whole, and these would wait; scalar code is faster.
fn strided_stores_dominate(kernel: &Kernel, parallel: &ParallelLoop<'_>, summary: &BodySummary<'_>) -> bool {
    // For each base whose cells lie apart: how far, and which different scalars are stored.
    let mut places: Vec<(Value, i64, Vec<&[Value]>)> = Vec::new();
    for op in ops_in(kernel, parallel.body) {
        let OpKind::Store = kernel.ops[op].kind else { continue };
        let Some(path) = kernel.addressed(op).map(Place::operands) else { continue };
        let Some(stride) = summary.stride(path).map(i64::abs).filter(|&stride| stride > 1) else { continue };
        match places.iter_mut().find(|place| place.0 == path[0] && place.1 == stride) {
            Some(place) if place.2.contains(&path) => {}
            Some(place) => place.2.push(path),
            None => places.push((path[0], stride, vec![path])),
        }
    }
    let parts = places.iter().filter(|(_, stride, stored)| (stored.len() as i64) < *stride).count() as u32;
    let (work, calls) = (summary.outside.work, summary.outside.calls);
    summary.loops == 0 && parts > 0 && calls == 0 && work < WORK_PER_SCATTERED_STORE * parts
}

/// Whether every op has a form for vectors whose results are exactly the scalar ones.
fn can_widen(kernel: &Kernel, parallel: &ParallelLoop<'_>) -> bool {
    has_vector_forms(kernel, parallel.body)
        && parallel.reductions().all(|r| {
            // Reals are summed lane by lane, in another order than one by one.
            let is_real = kernel.ty(r.accumulator).scalar().is_some_and(Scalar::is_real);
            !is_real || kernel.options.fast_math || matches!(r.op, AtomicOp::Min | AtomicOp::Max)
        })
}

pub(super) fn has_vector_forms(kernel: &Kernel, body: Region) -> bool {
    let mut can = true;
    let mut used = SideTable::new(false);
    walk(kernel, body, &mut |op| {
        for &operand in &kernel.ops[op].operands {
            used.set(operand, true);
        }
    });
    walk(kernel, body, &mut |op| {
        let data = &kernel.ops[op];
        can &= match &data.kind {
            // Whoever looks at the old value may wait for another iteration, which might be its neighbour.
            OpKind::Atomic(_) => !used[data.results[0]] && addresses_plainly(kernel, op),
            // A struct is moved scalar by scalar, by one lane.
            OpKind::Load | OpKind::VolatileLoad | OpKind::Store if holds_struct(kernel, op) => false,
            OpKind::Tensor(_) | OpKind::StructNew | OpKind::StructGet(_) => {
                part_of_param(kernel, data.results[0]).is_some()
            }
            OpKind::Store | OpKind::Assert(..) => true,
            // Its lanes are those of a vector.
            OpKind::ForLanes => false,
            kind => !kind.stays(),
        };
    });
    can
}

fn holds_struct(kernel: &Kernel, op: Op) -> bool {
    let place = kernel.addressed(op).and_then(|place| kernel.ty(place.base()).place());
    matches!(place, Some((Data::Struct(_), _)))
}

/// Whether the components of an update's place, if it has any, are constants inside the shape.
fn addresses_plainly(kernel: &Kernel, op: Op) -> bool {
    let Some(place) = kernel.addressed(op) else { return false };
    let Some((data, _)) = kernel.ty(place.base()).place() else { return false };
    let dims = data.tensor_shape().map_or_else(Vec::new, octants_ir::TensorShape::dims);
    place.components().iter().zip(dims).all(|(&component, dim)| {
        let component = kernel.as_const(component).and_then(octants_ir::Const::as_i128);
        component.is_some_and(|component| (0..i128::from(dim)).contains(&component))
    })
}

/// What a body does.
pub(crate) struct BodySummary<'k> {
    kernel: &'k Kernel,
    varying: &'k SideTable<Value, bool>,
    /// The index whose neighbours run at once.
    index: Value,
    /// How many of them are looked at to find how far apart they are.
    lanes: u32,
    /// Of the lanes of a block: by how much their values differ, where that is known.
    counted: Option<&'k SideTable<Value, Option<Offsets>>>,
    /// Whether arrays of two parameters never share memory.
    apart: bool,
    /// Loads that run before the innermost loop around them.
    hoisted: SideTable<Op, bool>,
    /// Loops that LLVM will not unroll.
    loops: u32,
    /// Whether there are any at all.
    has_loops: bool,
    /// Whether some loop has a divergent exit: lanes leave it one by one.
    diverges: bool,
    /// What stands outside all loops, and inside some.
    outside: OpCounts,
    inside: OpCounts,
    /// How deep the innermost loops are.
    depth: u32,
    /// The widest varying type in them.
    bits: u32,
    /// Most varying values that are alive at once.
    pressure: u32,
    ops: u32,
    /// Bytes of the variables of one lane that hold vectors or matrices.
    variables: u32,
    /// How many conditions that differ between lanes stand around.
    conditions: u32,
    /// Accesses outside of such conditions that differ between lanes.
    free_accesses: u32,
    /// Math functions that differ between lanes.
    functions: Vec<CalledFunction>,
}

/// A math function that a body calls.
#[derive(Clone, Copy, Debug)]
struct CalledFunction {
    /// `None` if it is none of a library.
    function: Option<LibraryFunction>,
    arguments: usize,
    /// Of a lane.
    scalar: Option<Scalar>,
}

#[derive(Default)]
struct OpCounts {
    /// Varying arithmetic.
    work: u32,
    /// Among it, square roots and quotients of reals, each of which counts as four.
    roots: u32,
    /// Accesses whose lanes lie apart, or what is done lane by lane.
    scattered: u32,
    /// Accesses of a block's lanes that lie apart by what is known: a load or a store for each lane.
    one_by_one: u32,
    /// Updates of a block's lanes, each by one lane after the other: one for each lane.
    updates: u32,
    /// Calls of the C library: lane by lane, or approximated by a function of vectors.
    calls: u32,
    /// Accesses that differ between lanes at all.
    lane_accesses: u32,
    /// Among these, of less than 32 bits.
    narrow_accesses: u32,
    /// Among these, of what a derivative keeps.
    tape_accesses: u32,
    /// Among these, at no fixed distance.
    apart: u32,
}

impl OpCounts {
    fn add(&mut self, other: &Self, times: u32) {
        self.work += other.work * times;
        self.roots += other.roots * times;
        self.scattered += other.scattered * times;
        self.one_by_one += other.one_by_one * times;
        self.updates += other.updates * times;
        self.calls += other.calls * times;
        self.lane_accesses += other.lane_accesses * times;
        self.narrow_accesses += other.narrow_accesses * times;
        self.tape_accesses += other.tape_accesses * times;
        self.apart += other.apart * times;
    }
}

impl<'k> BodySummary<'k> {
    pub(crate) fn new(kernel: &'k Kernel, varying: &'k SideTable<Value, bool>, index: Value) -> Self {
        Self {
            kernel,
            varying,
            index,
            lanes: 2,
            counted: None,
            apart: false,
            hoisted: SideTable::new(false),
            loops: 0,
            has_loops: false,
            diverges: false,
            outside: OpCounts::default(),
            inside: OpCounts::default(),
            depth: 0,
            bits: 32,
            pressure: 1,
            ops: 0,
            variables: 0,
            conditions: 0,
            free_accesses: 0,
            functions: Vec::new(),
        }
    }

    /// Of what is inside a loop over the lanes of a block.
    pub(super) fn of_block(kernel: &'k Kernel, body: Region, values: &'k LaneValues, apart: bool) -> Self {
        let mut summary = Self::new(kernel, &values.varying, kernel.regions[body].params[0]);
        (summary.apart, summary.lanes, summary.counted) = (apart, values.lanes, Some(&values.offsets));
        summary.region(body, 0);
        summary
    }

    /// How many lanes of a block run at once.
    pub(super) fn lanes_of_block(&self, options: CpuOptions) -> Option<u32> {
        let lanes = self.lanes_of_vectors(options, self.most_vectors())?;
        Some(lanes.max((CACHE_LINE / self.bits).min(2 * options.vector_bits / self.bits)))
    }

    /// Whether the lanes of a block gain by running at once. Accesses of cells that lie side by side gain, too.
    pub(super) fn block_gains(&self) -> bool {
        let calls = WORK_PER_CALL * self.sum(|t| t.calls);
        // What lies apart is no gain. Divisions that are done lane by lane are scattered, too, and no accesses.
        let apart = self.sum(|t| t.scattered + t.one_by_one);
        let (gain, loss) = (self.sum(|t| t.work + t.lane_accesses).saturating_sub(apart), self.loss());
        let (gain, loss) =
            if self.kernel.options.fast_math { (gain + calls, loss) } else { (gain, loss + calls) };
        gain > 0 && gain >= loss
    }

    /// What it takes that lanes of a block do one by one.
    pub(super) fn loss(&self) -> u32 {
        self.sum(|t| WORK_PER_SCATTERED_ACCESS * t.scattered + t.one_by_one + t.updates)
    }

    /// What the masks of lanes are held in.
    pub(super) fn mask(&self, options: CpuOptions) -> Scalar {
        match self.bits {
            _ if options.vector_bits >= 512 => Scalar::U1,
            64 => Scalar::I64,
            _ => Scalar::I32,
        }
    }

    /// Whether there is no loop, and lanes access cells at no fixed distance from each other's, with little arithmetic around: vectors would be taken apart
    /// for each access.
    fn accesses_lie_apart(&self) -> bool {
        let OpCounts { work, calls, lane_accesses, apart, .. } = self.outside;
        let vectors_gain = calls > 0 || work >= WORK_PER_SCATTERED_ACCESS * apart;
        !self.has_loops && apart > 0 && apart == lane_accesses && !vectors_gain
    }

    /// Whether whole vectors gain by a copy of the body without a mask. Without registers for masks a masked access is slow where it is not scalarised
    /// altogether. With them, a copy is not worth it for accesses that conditions mask anyway. Nowhere is it for those of tapes: LLVM takes 0.6 of the
    /// time for the gradients of loops (`loop` and `nest` of `benches/gradients.py`), which take 2 percent longer.
    fn gains_without_mask(&self, options: CpuOptions, reduces: bool) -> bool {
        match options.vector_bits {
            512.. if self.loops == 0 => reduces || self.free_accesses > 0 || self.outside.lane_accesses == 0,
            512.. => self.inside.lane_accesses > self.inside.tape_accesses,
            256.. => self.inside.lane_accesses > self.inside.tape_accesses || self.loops == 0,
            _ => true,
        }
    }

    /// The inner loops must gain. A call gains by a vector function, and costs a little without one.
    fn lanes_with_loops(&self, options: CpuOptions) -> Option<u32> {
        let OpCounts { work, scattered, calls, .. } = self.inside;
        let (calls, scattered) = (WORK_PER_CALL * calls, WORK_PER_SCATTERED_ACCESS * scattered);
        let (gain, loss) =
            if self.kernel.options.fast_math { (work + calls, scattered) } else { (work, scattered + calls) };
        if gain == 0 || gain < loss {
            return None;
        }
        self.lanes_of_vectors(options, self.most_vectors())
    }

    fn most_vectors(&self) -> u32 {
        match (self.variables > 0, self.diverges) {
            (true, _) => MAX_VECTORS_WITH_TENSORS,
            (false, true) => MAX_VECTORS_IN_DIVERGENT_LOOP,
            (false, false) => MAX_VECTORS,
        }
    }

    /// Fewer iterations than this take less time one by one than as lanes of whole vectors, which take as long however few lanes run. A body without loops
    /// is over so soon that a copy is not worth its compile time.
    fn scalar_below(&self, lanes: u32, options: CpuOptions) -> u32 {
        if self.loops == 0 {
            return 0;
        }
        let OpCounts { work, roots, calls, scattered, tape_accesses, .. } = self.inside;
        let is_call = |&&called: &&CalledFunction| !self.is_arithmetic(called, options);
        let library = calls * self.functions.iter().filter(is_call).count() as u32;
        let library = library.checked_div(self.functions.len() as u32).unwrap_or(0);
        let [work, roots, library, written_out, scattered, tape, lanes, bits] =
            [work, roots, library, calls - library, scattered, tape_accesses, lanes, self.bits]
                .map(u64::from);
        let vectors = (lanes * bits / u64::from(options.vector_bits.max(1))).max(1);
        let calls_of_all = if self.kernel.options.fast_math { 2 * vectors } else { lanes };
        let one = 2 * work + SCALAR_FUNCTION * written_out + SCALAR_CALL * library + scattered + tape;
        let all = 2 * (work - 4 * roots)
            + roots * vectors * bits / 6
            + VECTOR_FUNCTION * written_out
            + SCALAR_CALL * library * calls_of_all
            + scattered * lanes / 2
            + tape;
        // Lanes that wait for little more than a scalar are not worth the compile time of a copy, either: a sixth of that of `compile_julia`, half of that of
        // a gradient's. A function is: one sine takes half of the time that those of all lanes take.
        let is_short = tape > 0 && calls > 0 && self.ops <= MAX_COPIED_OPS;
        if 2 * all < 3 * one && !is_short {
            return 0;
        }
        (all / one.max(1) + 1).clamp(2, (lanes / 2).max(2)) as u32
    }

    /// LLVM would vectorise it too, but leave up to a whole vector's iterations to a scalar loop. It does better where lanes
    /// lie apart, where types are narrow, and where the loop is a plain copy or fill.
    fn lanes_without_loops(&self, options: CpuOptions, reduces: bool) -> Option<u32> {
        if !self.is_plain(options) || options.vector_bits < 256 {
            return None;
        }
        let most = match (reduces, self.sum(|t| t.lane_accesses) < FEW_ACCESSES) {
            // No vector register keeps its value over a call.
            _ if self.functions.iter().any(|&called| !self.is_arithmetic(called, options)) => 1,
            (true, _) => MAX_VECTORS,
            (false, true) => 2,
            (false, false) => 1,
        };
        self.lanes_of_vectors(options, most)
    }

    /// Of all ops: loops of a few iterations are unrolled, and then stand outside.
    fn sum(&self, count: fn(&OpCounts) -> u32) -> u32 {
        count(&self.outside) + count(&self.inside)
    }

    /// Whether it calculates, and does so with whole vectors alone.
    fn is_plain(&self, options: CpuOptions) -> bool {
        self.sum(|t| t.scattered + t.narrow_accesses) == 0
            && self.sum(|t| t.work + t.calls) > 0
            && self.functions.iter().all(|&function| self.has_vector_form(function, options))
    }

    /// Whether a function is called on whole vectors, as many lanes as the widest type leaves room for.
    fn has_vector_form(&self, called: CalledFunction, options: CpuOptions) -> bool {
        let CalledFunction { function, arguments, scalar } = called;
        let (Some(name), Some(scalar)) = (function.and_then(c_name), scalar) else { return false };
        let (bits, find) = (scalar.bits(), options.vector_library.0);
        let lanes = options.vector_bits / self.bits.max(bits);
        self.kernel.options.fast_math
            && matches!(scalar, Scalar::F32 | Scalar::F64)
            && (self.is_arithmetic(called, options)
                || find(VectorFunction { name, arguments, bits, lanes }).is_some())
    }

    /// Whether a function is written out, and nothing is called.
    fn is_arithmetic(&self, called: CalledFunction, options: CpuOptions) -> bool {
        let CalledFunction { function, scalar, .. } = called;
        let (Some(function), Some(scalar)) = (function, scalar) else { return false };
        self.kernel.options.fast_math && is_written_out(options, function, scalar)
    }

    fn lanes_of_vectors(&self, options: CpuOptions, most: u32) -> Option<u32> {
        let lanes = options.vector_bits / self.bits;
        let registers = if options.vector_bits >= 512 { 32 } else { 16 };
        let vectors = (registers / self.pressure.max(1)).clamp(1, most);
        // A power of two.
        let lanes = Some(lanes << vectors.ilog2()).filter(|_| lanes >= 2)?;
        (self.ops <= MAX_VECTORISED_OPS && self.variables * lanes <= MAX_BYTES_OF_VARIABLES).then_some(lanes)
    }

    fn region(&mut self, region: Region, depth: u32) {
        let kernel = self.kernel;
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            let inner = match &data.kind {
                kind if kind.is_counted_loop() => {
                    self.loops += u32::from(!crate::ops::loop_length::is_short(kernel, op));
                    self.diverges |= data.operands[..2].iter().any(|&bound| self.varying[bound]);
                    for load in hoisted_loads(kernel, op, self.varying, self.apart) {
                        self.hoisted.set(load, true);
                    }
                    depth + 1
                }
                OpKind::While => {
                    self.loops += 1;
                    let decision =
                        kernel.terminator(data.regions[0]).map(|terminator| terminator.operands[0]);
                    self.diverges |= decision.is_some_and(|decision| self.varying[decision]);
                    depth + 1
                }
                _ => depth,
            };
            self.has_loops |= inner > depth;
            let diverges = data.kind == OpKind::If && self.varying[data.operands[0]];
            self.conditions += u32::from(diverges);
            for &region in &data.regions {
                self.region(region, inner);
            }
            self.conditions -= u32::from(diverges);
            self.ops += 1;
            if let (OpKind::Local, Type::Local(Data::Tensor(held))) =
                (&data.kind, data.results.first().map_or(Type::U1, |&local| kernel.ty(local)))
            {
                self.variables += held.elem.bytes() * held.shape.count();
            }
            let counts = self.count(op);
            if counts.calls > 0 {
                self.functions.push(CalledFunction {
                    function: LibraryFunction::of(kernel, op),
                    arguments: data.operands.len(),
                    scalar: kernel.ty(data.operands[0]).elem(),
                });
            }
            self.free_accesses += if self.conditions == 0 { counts.lane_accesses } else { 0 };
            let depth = depth - u32::from(self.hoisted[op]);
            if depth == 0 {
                self.outside.add(&counts, 1);
            } else {
                self.inside.add(&counts, ASSUMED_TRIPS.pow(depth.min(4) - 1));
            }
            self.widest(op, depth);
        }
        if depth > 0 || self.loops == 0 {
            self.pressure = self.pressure.max(self.pressure_in(region));
        }
    }

    /// Values of the innermost loops say how wide lanes are; others may take several registers.
    fn widest(&mut self, op: Op, depth: u32) {
        for &result in &self.kernel.ops[op].results {
            if !self.varying[result] || self.is_counted(result) {
                continue;
            }
            let bits = self.kernel.ty(result).scalar().map_or(0, Scalar::bits);
            if depth > self.depth {
                (self.depth, self.bits) = (depth, 32);
            }
            if depth == self.depth {
                self.bits = self.bits.max(bits);
            }
        }
    }

    fn count(&self, op: Op) -> OpCounts {
        let data = &self.kernel.ops[op];
        let mut counts = OpCounts::default();
        let varies = data.operands.iter().any(|&operand| self.varying[operand]);
        match &data.kind {
            OpKind::Load | OpKind::Store => {
                let path = self.kernel.addressed(op).map_or(&[][..], Place::operands);
                let elem = self.kernel.ty(path[0]).place().and_then(|(data, _)| data.elem());
                let narrow = u32::from(elem.is_some_and(|elem| elem.bits() < 32));
                counts.tape_accesses += u32::from(matches!(self.kernel.ty(path[0]), Type::Tape(_)));
                let stride = self.stride(path);
                let offsets = self.counted.and_then(|_| self.offsets(path));
                let close_by =
                    data.kind == OpKind::Load && offsets.as_ref().is_some_and(|offsets| is_close_by(offsets));
                counts.apart += u32::from(stride.is_none());
                match stride {
                    Some(0) if !matches!(self.kernel.ty(path[0]), Type::Local(_) | Type::Tape(_)) => {}
                    Some(0 | 1) => {
                        counts.lane_accesses += 1;
                        counts.narrow_accesses += narrow;
                    }
                    _ => {
                        counts.lane_accesses += 1;
                        counts.narrow_accesses += narrow;
                        let is_known = offsets.is_some() && self.conditions == 0;
                        counts.one_by_one += u32::from(!close_by && is_known);
                        counts.scattered += u32::from(!close_by && !is_known);
                    }
                }
            }
            OpKind::Atomic(atomic) => {
                let path = self.kernel.addressed(op).map_or(&[][..], Place::operands);
                let elem = self.kernel.ty(path[0]).place().and_then(|(data, _)| data.elem());
                if self.stride(path) == Some(0)
                    && elem.is_some_and(|elem| sums_lanes(self.kernel, *atomic, elem))
                {
                    // Once for all lanes.
                    counts.scattered += 1;
                } else if self.counted.is_some() && matches!(self.kernel.ty(path[0]), Type::Local(_)) {
                    // Of all lanes at once.
                    counts.work += 1;
                } else if self.counted.is_some() {
                    counts.updates += self.lanes;
                } else {
                    // One lane after the other.
                    counts.scattered += 16;
                }
            }
            _ if !varies || data.results.iter().all(|&result| self.is_counted(result)) => {}
            OpKind::Arith(arith) => {
                let elem = self.kernel.ty(data.operands[0]).elem();
                let (real, bits) = (elem.is_some_and(Scalar::is_real), elem.map_or(0, Scalar::bits));
                let divides = matches!(
                    arith,
                    ArithOp::Div | ArithOp::FloorDiv | ArithOp::Mod | ArithOp::RawDiv | ArithOp::RawMod
                );
                let by_constant = data.operands.get(1).is_some_and(|&b| self.kernel.as_const(b).is_some());
                match (divides, real) {
                    // No vector instruction divides integers; it is made of several, or done lane by lane.
                    (true, false) if !by_constant && bits == 64 => counts.scattered += 1,
                    (true, false) if !by_constant => counts.work += 1,
                    (true, true) if *arith == ArithOp::RawMod => counts.calls += 1,
                    (true, _) => (counts.work, counts.roots) = (4, 1),
                    (false, _) => counts.work += 1,
                }
            }
            OpKind::Math(MathOp::Pow) if self.is_constant_integer(data.operands[1]) => counts.work += 2,
            OpKind::Math(MathOp::Pow | MathOp::Atan2) => counts.calls += 1,
            OpKind::MathUnary(unary) => match unary {
                MathUnary::Sqrt | MathUnary::Rsqrt => (counts.work, counts.roots) = (4, 1),
                MathUnary::Floor | MathUnary::Ceil | MathUnary::Round => counts.work += 1,
                MathUnary::IsNan | MathUnary::IsInf => counts.work += 1,
                MathUnary::FrexpMantissa | MathUnary::FrexpExponent => counts.work += 4,
                // Functions of the C library.
                MathUnary::Exp
                | MathUnary::Log
                | MathUnary::Log2
                | MathUnary::Sin
                | MathUnary::Cos
                | MathUnary::Tan
                | MathUnary::Tanh
                | MathUnary::Asin
                | MathUnary::Acos
                | MathUnary::Erf => counts.calls += 1,
            },
            OpKind::Bit(_)
            | OpKind::BitUnary(_)
            | OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Convert(_) => {
                counts.work += 1;
            }
            _ => {}
        }
        counts
    }

    /// Whether the lanes of a block count a value: it takes no vectors of its own.
    fn is_counted(&self, value: Value) -> bool {
        self.counted.is_some_and(|counted| counted[value].is_some())
    }

    fn is_constant_integer(&self, value: Value) -> bool {
        self.kernel.as_const(value).is_some_and(|c| !c.ty().is_real())
    }

    /// How far apart in memory the accesses of neighbouring lanes are, in scalars; `None` if that is not fixed.
    pub(crate) fn stride(&self, path: &[Value]) -> Option<i64> {
        let offsets = self.offsets(path)?;
        let stride = offsets.get(1).copied().unwrap_or_default();
        let mut lanes = offsets.iter().zip(0..);
        lanes.all(|(&offset, lane)| offset == stride * lane).then_some(stride)
    }

    /// Where in memory the accesses of lanes are, in scalars from the first one's; `None` if that is not fixed.
    fn offsets(&self, path: &[Value]) -> Option<Vec<i64>> {
        let (&base, path) = path.split_first()?;
        let (data, rank) = self.kernel.ty(base).place()?;
        let (indices, components) = path.split_at(rank);
        if components.iter().any(|&component| self.varying[component]) {
            return None;
        }
        let none = || vec![0; self.lanes as usize];
        if let Type::Array(array) = self.kernel.ty(base)
            && let Some(layout) = self.kernel.layout(array)
        {
            let bytes = u64::from(array.elem.elem()?.bytes());
            let mut sum = none();
            for digit in layout.digits() {
                let index = self.index_offsets(indices[usize::from(digit.axis)])?;
                sum = combined(&sum, &times(&index, (digit.stride / bytes) as i64)?, i64::checked_add)?;
            }
            return Some(sum);
        }
        let order = match self.kernel.ty(base) {
            Type::Array(array) if array.spacing == Spacing::Strided => {
                let fixed = indices.iter().all(|&index| !self.varying[index]);
                return fixed.then(none);
            }
            Type::Array(array) => array.order,
            Type::Local(_) | Type::Temp(_) | Type::Tape(_) | Type::Data(_) => Order::ROW_MAJOR,
        };
        let mut outer: Vec<_> = order.axes(rank).map(|axis| indices[axis]).collect();
        let Some(last) = outer.pop() else { return Some(none()) };
        if outer.iter().any(|&index| self.varying[index]) {
            return None;
        }
        let scalars = match data {
            Data::Tensor(tensor) => i64::from(tensor.shape.count()),
            _ => 1,
        };
        times(&self.index_offsets(last)?, scalars)
    }

    fn index_offsets(&self, value: Value) -> Option<Vec<i64>> {
        if !self.varying[value] {
            return Some(vec![0; self.lanes as usize]);
        }
        if value == self.index {
            return Some((0..i64::from(self.lanes)).collect());
        }
        if let Some(offsets) = self.counted.and_then(|counted| counted[value].as_ref()) {
            return Some(offsets.beyond_first().to_vec());
        }
        let def = self.kernel.def(value)?;
        let factor = |value: Value| i64::try_from(self.kernel.as_const(value)?.as_i128()?).ok();
        let operand = |number: usize| self.index_offsets(def.operands[number]);
        match def.kind {
            OpKind::Arith(ArithOp::Add) => combined(&operand(0)?, &operand(1)?, i64::checked_add),
            OpKind::Arith(ArithOp::Sub) => combined(&operand(0)?, &operand(1)?, i64::checked_sub),
            OpKind::Arith(ArithOp::Mul) => match (factor(def.operands[0]), factor(def.operands[1])) {
                (_, Some(factor)) => times(&operand(0)?, factor),
                (Some(factor), None) => times(&operand(1)?, factor),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Most varying values alive at once while the region runs once, what it carries and takes from outside among them.
    fn pressure_in(&self, region: Region) -> u32 {
        let kernel = self.kernel;
        let mut alive: SideTable<Value, bool> = SideTable::new(false);
        let mut count = 0_u32;
        let mut most = 0;
        for &op in kernel.regions[region].ops.iter().rev() {
            let data = &kernel.ops[op];
            for &result in &data.results {
                if alive[result] {
                    alive.set(result, false);
                    count -= 1;
                }
            }
            let mut uses = data.operands.to_vec();
            for &inner in &data.regions {
                walk(kernel, inner, &mut |op| uses.extend(&kernel.ops[op].operands));
            }
            for operand in uses {
                if self.varying[operand] && !self.is_counted(operand) && !alive[operand] {
                    alive.set(operand, true);
                    count += 1;
                }
            }
            most = most.max(count);
        }
        most
    }
}

fn combined(a: &[i64], b: &[i64], of: fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    a.iter().zip(b).map(|(&a, &b)| of(a, b)).collect()
}

fn times(offsets: &[i64], factor: i64) -> Option<Vec<i64>> {
    offsets.iter().map(|offset| offset.checked_mul(factor)).collect()
}
