//! Recording: what a derivative needs and the kernel does not leave in memory (elements that it overwrites, what atomic updates gave,
//! random numbers, the time) is kept in arrays while the kernel runs.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %2: f32 = mul %1, %1
//!   store %x[%i], %2
//! }
//! ```
//! After (`%kept` is a new parameter):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   store %kept[%zero, %i], %1
//!   %2: f32 = mul %1, %1
//!   store %x[%i], %2
//! }
//! ```
//! The kernel that is differentiated then loads from there what it loaded from memory. In both, a variable counts what an iteration has
//! kept so far: inside of loops it selects the row. An array has a row for each value that an iteration keeps, and a column for each iteration of a
//! parallel loop; what stands outside of these is one column. How many rows are needed is computed by a kernel, too, which runs before the
//! recording one: it counts, and writes nothing else ([`record_sizes`](super::record_sizes)).

use octants_ir::ops::{ArithOp, AssertKind, AtomicOp, CompareOp};
use octants_ir::rewrite::{Parents, ops_in, regions_in};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value,
};

use super::record_sizes::{RecordSizes, record_sizes};
use super::unforeseen::{outside, unforeseen};
use crate::differentiate::refusal::Refusal;
use crate::edit::iteration_number::column;
use crate::promote_locals;

/// A kernel that does what another one does, and keeps what its derivative needs.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its parameters are those of the kernel, then [`Recording::arrays`].
    pub kernel: Kernel,
    /// Where values are kept.
    pub arrays: Vec<RecordArray>,
    /// The places of what is kept.
    pub kept: Vec<(Loc, Scalar)>,
    /// Computes how large the arrays are.
    pub sizes: RecordSizes,
}

/// An array of two axes in which values are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordArray {
    pub scalar: Scalar,
    /// Its parameter of the recording kernel.
    pub param: usize,
    /// Its parameter of the derivative.
    pub derivative_param: usize,
}

/// What is kept by one parallel loop, or by what stands in a region outside of these, in one type.
pub(super) struct Log {
    /// The body of the loop, or the region.
    body: Region,
    owner: Option<Op>,
    scalar: Scalar,
    ops: Vec<Op>,
    /// Whether a run makes sure that it keeps no more than was counted.
    is_checked: bool,
}

/// What an op that is recorded gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A store behind it.
    Keep,
    /// A load before it.
    Load,
    /// Nothing; it is counted, in this array.
    Count(Value),
}

/// What is said where a run keeps more than was counted before it.
const MORE_THAN_COUNTED: &str = "the kernel keeps more for its derivative than was counted before it ran: what its loops read was written meanwhile, or differs from run to run";

/// The kernel that keeps the results of `ops`. Both kernels are the same but for parameters behind, of the second one; that gets loads
/// from what was kept, by the op that each stands for.
pub(super) fn record(
    kernel: &Kernel,
    derived: &mut Kernel,
    ops: &[Op],
) -> Result<(Recording, SideTable<Op, Option<Op>>), Vec<Refusal>> {
    let mut logs = logs(kernel, ops);
    let sizes = record_sizes(kernel, &logs)?;
    let parents = Parents::new(kernel);
    for log in &mut logs {
        log.is_checked = !sizes.copies.is_empty() || log.ops.iter().any(|&op| in_while(kernel, &parents, op));
    }
    let mut recording = kernel.clone();
    recording.name = format!("{}_recorded", kernel.name);
    let (params, _) = insert(&mut recording, &logs, Purpose::Keep);
    let (derivative_params, loads) = insert(derived, &logs, Purpose::Load);
    let arrays = logs.iter().zip(params.iter().zip(&derivative_params));
    let arrays = arrays.map(|(log, (&param, &derivative_param))| RecordArray {
        scalar: log.scalar,
        param,
        derivative_param,
    });
    let kept = logs.iter().flat_map(|log| log.ops.iter().map(|&op| (kernel.ops[op].loc, log.scalar)));
    Ok((Recording { kernel: recording, arrays: arrays.collect(), kept: kept.collect(), sizes }, loads))
}

/// Whether how often the op runs may depend on computed values: the kernel that counts, which is compiled apart, may round them otherwise.
fn in_while(kernel: &Kernel, parents: &Parents, op: Op) -> bool {
    let around = |&op: &Op| parents.region(op).and_then(|region| parents.op(region));
    std::iter::successors(Some(op), around).any(|op| kernel.ops[op].kind == OpKind::While)
}

fn logs(kernel: &Kernel, ops: &[Op]) -> Vec<Log> {
    let parents = Parents::new(kernel);
    let mut logs: Vec<Log> = Vec::new();
    for op in ops_in(kernel, kernel.body).into_iter().filter(|op| ops.contains(op)) {
        let Some(scalar) = kernel.ops[op].results.first().and_then(|&result| kernel.ty(result).scalar())
        else {
            continue;
        };
        let (body, owner) = home(kernel, &parents, op);
        match logs.iter_mut().find(|log| log.body == body && log.scalar == scalar) {
            Some(log) => log.ops.push(op),
            None => logs.push(Log { body, owner, scalar, ops: vec![op], is_checked: false }),
        }
    }
    logs
}

/// The body of the parallel loop that the op stands in, or the region at the top.
fn home(kernel: &Kernel, parents: &Parents, op: Op) -> (Region, Option<Op>) {
    let mut region = parents.region(op).expect("the op stands in the kernel");
    let tops = kernel.top_regions();
    loop {
        let owner = parents.op(region);
        let parallel = owner.filter(|&owner| matches!(kernel.ops[owner].kind, OpKind::ParallelFor(_)));
        if parallel.is_some() || tops.contains(&region) {
            return (region, parallel);
        }
        region = owner.and_then(|owner| parents.region(owner)).expect("tops are around everything");
    }
}

/// Gives the numbers of the new parameters (none if it only counts) and the loads.
pub(super) fn insert(
    kernel: &mut Kernel,
    logs: &[Log],
    purpose: Purpose,
) -> (Vec<usize>, SideTable<Op, Option<Op>>) {
    let mut loads = SideTable::new(None);
    let mut params = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let array = (!matches!(purpose, Purpose::Count(_))).then(|| {
            params.push(kernel.params.len());
            let ty = ArrayType::array(log.scalar, 2, Boundary::Unsafe);
            kernel.add_param(format!("kept{number}.{}", log.scalar), Type::Array(ty))
        });
        let ifs = match purpose {
            Purpose::Count(_) => unforeseen(kernel, log.body, &log.ops),
            Purpose::Keep | Purpose::Load => Vec::new(),
        };
        let ops = outside(kernel, &log.ops, &ifs);
        let most_of = |op: Op| ifs.iter().find(|(counted, _)| *counted == op).map(|&(_, most)| most);
        let (used, column) = open(kernel, log);
        for region in regions_in(kernel, log.body) {
            if !kernel.regions[region].ops.iter().any(|&op| ops.contains(&op) || most_of(op).is_some()) {
                continue;
            }
            for op in std::mem::take(&mut kernel.regions[region].ops) {
                if !ops.contains(&op) {
                    kernel.regions[region].ops.push(op);
                    if let Some(most) = most_of(op) {
                        let loc = kernel.ops[op].loc;
                        let b = &mut Builder::at(kernel, region, loc);
                        let (row, most) = (b.load(used, &[]), b.i32(most));
                        let next = b.arith(ArithOp::Add, row, most);
                        b.store(used, &[], next);
                    }
                    continue;
                }
                if purpose == Purpose::Keep {
                    kernel.regions[region].ops.push(op);
                }
                let (result, loc) = (kernel.ops[op].results[0], kernel.ops[op].loc);
                let b = &mut Builder::at(kernel, region, loc);
                let row = b.load(used, &[]);
                match (purpose, array) {
                    (Purpose::Keep, Some(array)) => {
                        if log.is_checked {
                            let rows = b.extent(array, 0);
                            let fits = b.compare(CompareOp::Lt, row, rows);
                            b.assert(AssertKind::Tape, fits, MORE_THAN_COUNTED, &[]);
                        }
                        b.store(array, &[row, column], result);
                    }
                    (Purpose::Load, Some(array)) => {
                        b.load(array, &[row, column]);
                        let &load = b.kernel.regions[region].ops.last().expect("it was just added");
                        loads.set(op, Some(load));
                    }
                    _ => {}
                }
                let b = &mut Builder::at(kernel, region, loc);
                let one = b.i32(1);
                let next = b.arith(ArithOp::Add, row, one);
                b.store(used, &[], next);
                if purpose != Purpose::Keep {
                    kernel.regions[region].ops.push(op);
                }
            }
        }
        if let Purpose::Count(sizes) = purpose {
            note(kernel, log, number, used, sizes);
        }
    }
    promote_locals(kernel);
    (params, loads)
}

/// The variable that counts what was kept, and the column of the iteration, at the beginning of the log's body.
fn open(kernel: &mut Kernel, log: &Log) -> (Value, Value) {
    let ops = std::mem::take(&mut kernel.regions[log.body].ops);
    let loc = log.owner.or(log.ops.first().copied()).map(|op| kernel.ops[op].loc);
    let loc = loc.unwrap_or_else(|| Builder::new(kernel).loc);
    let column = match log.owner {
        Some(owner) => column(kernel, owner, log.body),
        None => Builder::at(kernel, log.body, loc).i32(0),
    };
    let used = Builder::at(kernel, log.body, loc).local(Scalar::I32.into());
    kernel.regions[log.body].ops.extend(ops);
    (used, column)
}

/// Writes how much an iteration has kept, and how many there are.
fn note(kernel: &mut Kernel, log: &Log, number: usize, used: Value, sizes: Value) {
    let (rows, columns) = (2 * number as i32, 2 * number as i32 + 1);
    let end = kernel.regions[log.body].ops.pop().expect("a region has a terminator");
    let loc = kernel.ops[end].loc;
    let b = &mut Builder::at(kernel, log.body, loc);
    let count = b.load(used, &[]);
    let (count, at) = (b.cast(count, Scalar::I64), b.i32(rows));
    b.atomic(AtomicOp::Max, sizes, &[at], count);
    kernel.regions[log.body].ops.push(end);
    let Some(owner) = log.owner else {
        let end = kernel.regions[log.body].ops.pop().expect("a region has a terminator");
        let b = &mut Builder::at(kernel, log.body, loc);
        let (one, at) = (b.constant(Const::from_i128(Scalar::I64, 1)), b.i32(columns));
        b.store(sizes, &[at], one);
        kernel.regions[log.body].ops.push(end);
        return;
    };
    let around = Parents::new(kernel).region(owner).expect("the loop stands somewhere");
    let bounds: Vec<_> = kernel.parallel_loop(owner).map(|l| l.bounds().collect()).unwrap_or_default();
    let ops = std::mem::take(&mut kernel.regions[around].ops);
    for op in ops {
        if op == owner {
            let b = &mut Builder::at(kernel, around, loc);
            let (zero, mut points) =
                (b.constant(Const::from_i128(Scalar::I64, 0)), b.constant(Const::from_i128(Scalar::I64, 1)));
            for &(lo, hi) in &bounds {
                let (lo, hi) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
                let extent = b.arith(ArithOp::Sub, hi, lo);
                let extent = b.arith(ArithOp::Max, extent, zero);
                points = b.arith(ArithOp::Mul, points, extent);
            }
            let at = b.i32(columns);
            b.store(sizes, &[at], points);
        }
        kernel.regions[around].ops.push(op);
    }
}
