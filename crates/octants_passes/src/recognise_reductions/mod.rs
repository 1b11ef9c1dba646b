//! Finds assignments in parallel loops that mean a reduction, and makes them atomic updates; finds those that are races.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) {
//!   %1: f32 = load %a[%i]
//!   %2: f32 = load %m
//!   %3: u1 = gt %1, %2
//!   if %3 {
//!     %4: f32 = load %a[%i]
//!     store %m, %4
//!   }
//! }
//! ```
//! After (the `if` is left for `simplify`):
//! ```text
//! parallel_for (%i: i32) in (%0..%n) {
//!   %5: u1 = const true
//!   if %5 {
//!     %4: f32 = load %a[%i]
//!     %6: f32 = atomic_max %m, %4
//!   }
//! }
//! ```
//!
//! A cell is *shared* if neither its base nor its path depends on the iteration: a variable from before the loop, `x[None]`, `x[0]`, `x[k]`
//! with `k` from before the loop or from a serial loop inside. Of the plain stores to such a cell these are updates:
//! * what the cell holds, combined with something by `+`, `-`, `*`, `min`, `max`, `&`, `|`, `^`: [`forms`];
//! * a value under the condition that it is greater, or less, than what the cell holds;
//! * one of these chosen by `select` or an `if`, if the other choice is what the cell holds: [`conditional`];
//! * `and` and `or` of truths;
//! * a constant that absorbs what all other updates do, which is what `simplify` makes of `s = s & 0`: [`absorbing`].
//!
//! A store of what the cell holds, which is what `simplify` makes of `s = s + 0`, goes: [`drop_idle_stores`].
//!
//! An update is *observed* if the loop reads the cell besides, or combines it in another way: then iterations see what others did. That is a
//! race, and so is every other store, but for these: the same value by all iterations, to a cell that the loop does not read; and a store in the one
//! iteration that an `if` asks for. A loop with a race gets `in_order`: iterations that one thread runs are run one after the other.
//!
//! A maximum by comparison that begins as NaN stays NaN in order; atomically it becomes the greatest value. NaNs among the values are passed
//! over either way, unless the store stands where the comparison does *not* hold, which is where NaNs go: then they are stored, by an exchange.
//!
//! ```text
//! if v <= m: pass              %nan: u1 = is_nan %v
//! else: m = v           →      if %nan { %o: f32 = atomic_exchange %m, %v } else { %o: f32 = atomic_max %m, %v }
//! ```
//!
//! Expects scalars and promoted locals; structured phase.

mod absorbing;
mod cells;
mod conditional;
mod facts;
mod forms;
mod once;

use octants_ir::ops::{AtomicOp, MathUnary};
use octants_ir::rewrite::walk;
use octants_ir::{Builder, CellAccess, Const, Kernel, Loc, Op, OpKind, Region, SideTable, Value};

use crate::analysis::is_check;
use crate::assumptions::Assumptions;
use crate::eliminate_dead_code::eliminate_dead_code;
use cells::Cells;
use facts::{Cell, Facts};
use forms::Update;
use once::runs_once;

/// What becomes of values that are no numbers, where a minimum or a maximum would store them in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nans {
    Stored,
    /// A derivative has nothing to say of them.
    PassedOver,
}

/// Gives the places of the stores that are races, each loop's in order.
pub fn recognise_reductions(kernel: &mut Kernel, assumptions: Assumptions) -> Vec<Loc> {
    recognise(kernel, assumptions, Nans::Stored)
}

pub(crate) fn recognise(kernel: &mut Kernel, assumptions: Assumptions, nans: Nans) -> Vec<Loc> {
    let overlap = !assumptions.noalias;
    let loops: Vec<_> =
        kernel.top_ops().into_iter().filter(|&op| has_shared_store(kernel, op, overlap)).collect();
    let mut recognised = Recognised { atomics: SideTable::new(false), harmless: SideTable::new(false) };
    let mut moved = false;
    for &op in &loops {
        moved |= drop_idle_stores(kernel, kernel.ops[op].regions[0], overlap);
        moved |= conditional::store_in_branches(kernel, kernel.ops[op].regions[0], overlap);
    }
    if moved {
        // What chose is not used any more, and must not look as if it were.
        eliminate_dead_code(kernel);
    }
    for &op in &loops {
        let body = kernel.ops[op].regions[0];
        let facts = Facts::new(kernel, body, overlap);
        let stores = facts.shared_stores();
        let mut updates: Vec<_> =
            stores.iter().filter_map(|(store, cell)| forms::update_of(&facts, *store, cell)).collect();
        updates.extend(absorbing::absorbing_updates(&facts, &stores, &updates));
        for update in &mut updates {
            update.stores_nan &= nans == Nans::Stored;
        }
        apply(kernel, body, &updates, &mut recognised);
    }
    if !loops.is_empty() {
        eliminate_dead_code(kernel);
    }
    let mut races = Vec::new();
    for op in loops {
        let found = races_in(kernel, op, &recognised, overlap);
        if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
            attributes.in_order = !found.is_empty();
        }
        races.extend(found);
    }
    races
}

/// Whether there may be something to recognise, or a race: a quick look that says yes too often.
pub fn may_have_races(kernel: &Kernel) -> bool {
    kernel.top_ops().into_iter().any(|op| may_store_shared(kernel, op))
}

/// Whether a loop whose iterations run at the same time stores plainly to a cell that they share.
fn has_shared_store(kernel: &Kernel, op: Op, overlap: bool) -> bool {
    may_store_shared(kernel, op)
        && !Facts::new(kernel, kernel.ops[op].regions[0], overlap).shared_stores().is_empty()
}

/// Most loops store where their indices say, or to variables of their own: those are seen without a look at all of the loop.
fn may_store_shared(kernel: &Kernel, op: Op) -> bool {
    let Some(parallel) = kernel.parallel_loop(op) else { return false };
    let known = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    let once = |(lo, hi)| known(lo).zip(known(hi)).is_some_and(|(lo, hi)| hi - lo <= 1);
    // Before loops over cells are expanded, nothing is known of how many there are.
    let ranges = parallel.bounds().len() > 0;
    // There threads look at what others wrote on purpose.
    if kernel.cooperates(op) {
        return false;
    }
    if parallel.attributes.keeps_order() || ranges && parallel.bounds().all(once) {
        return false;
    }
    let mut own = SideTable::new(false);
    let mut found = false;
    walk(kernel, parallel.body, &mut |op| match kernel.ops[op].kind {
        OpKind::Local | OpKind::Tape => own.set(kernel.ops[op].results[0], true),
        OpKind::Store => {
            found |= kernel.cell_access(op).is_some_and(|CellAccess { place, .. }| {
                !own[place.base()] && !place.path().iter().any(|index| parallel.indices().contains(index))
            });
        }
        _ => {}
    });
    found
}

/// Removes stores of what the cell holds: `s = s`, which `s = s + 0` became. Returns whether there were some.
fn drop_idle_stores(kernel: &mut Kernel, body: Region, overlap: bool) -> bool {
    let facts = Facts::new(kernel, body, overlap);
    let mut idle = SideTable::new(false);
    let mut regions = Vec::new();
    for (store, cell) in facts.shared_stores() {
        let value = kernel.ops[store].operands.last();
        if value.is_some_and(|&value| facts.fresh_load(value, &cell, store).is_some()) {
            idle.set(store, true);
            regions.extend(facts.region(store));
        }
    }
    for &region in &regions {
        kernel.regions[region].ops.retain(|&op| !idle[op]);
    }
    !regions.is_empty()
}

/// What was made of assignments.
struct Recognised {
    atomics: SideTable<Op, bool>,
    /// Loads that see what other iterations did, and exchanges by which they see it, that do no harm.
    harmless: SideTable<Op, bool>,
}

fn apply(kernel: &mut Kernel, body: Region, updates: &[Update], recognised: &mut Recognised) {
    if updates.is_empty() {
        return;
    }
    let mut number = SideTable::new(None);
    let mut guards: SideTable<Op, Vec<(usize, bool)>> = SideTable::new(Vec::new());
    for (index, update) in updates.iter().enumerate() {
        number.set(update.store, Some(index));
        update.harmless.iter().for_each(|&load| recognised.harmless.set(load, true));
        if let Some((user, operand, value)) = update.guard {
            guards.get_mut(user).push((operand, value));
        }
    }
    rewrite(kernel, body, updates, &number, &guards, recognised);
}

fn rewrite(
    kernel: &mut Kernel,
    region: Region,
    updates: &[Update],
    number: &SideTable<Op, Option<usize>>,
    guards: &SideTable<Op, Vec<(usize, bool)>>,
    recognised: &mut Recognised,
) {
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        let loc = kernel.ops[op].loc;
        for &(operand, value) in &guards[op] {
            let constant = Builder::at(kernel, region, loc).constant(Const::bool(value));
            kernel.ops[op].operands[operand] = constant;
        }
        let Some(update) = number[op].map(|index| &updates[index]) else {
            kernel.regions[region].ops.push(op);
            for inner in kernel.ops[op].regions.clone() {
                rewrite(kernel, inner, updates, number, guards, recognised);
            }
            continue;
        };
        let place = kernel.cell_access(op).expect("a store accesses a cell").place;
        let (base, path) = (place.base(), place.path().to_vec());
        let mut b = Builder::at(kernel, region, loc);
        let value = update.value.build(&mut b);
        if !update.stores_nan {
            let atomic = updated(kernel, region, (update.op, base, &path, value), loc);
            recognised.atomics.set(atomic, true);
            continue;
        }
        let is_nan = b.math_unary(MathUnary::IsNan, value);
        let sides = [AtomicOp::Exchange, update.op].map(|op| {
            let side = kernel.add_region();
            let atomic = updated(kernel, side, (op, base, &path, value), loc);
            Builder::at(kernel, side, loc).yields(&[]);
            (side, atomic)
        });
        recognised.harmless.set(sides[0].1, true);
        recognised.atomics.set(sides[1].1, true);
        Builder::at(kernel, region, loc).op(OpKind::If, [is_nan], [], sides.map(|(side, _)| side));
    }
}

/// An update at the end of a region.
fn updated(
    kernel: &mut Kernel,
    region: Region,
    (op, base, path, value): (AtomicOp, Value, &[Value], Value),
    loc: Loc,
) -> Op {
    Builder::at(kernel, region, loc).atomic(op, base, path, value);
    *kernel.regions[region].ops.last().expect("it was just added")
}

/// One access of a shared cell.
struct Access {
    op: Op,
    cell: Cell,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Read,
    /// The kind of reduction.
    Update(AtomicOp),
    /// What every iteration stores, if it is the same.
    Store(Option<Value>),
    Other,
}

/// Which reduction an atomic op is part of.
fn reduction_of(op: AtomicOp) -> Option<AtomicOp> {
    match op {
        AtomicOp::Sub => Some(AtomicOp::Add),
        AtomicOp::Exchange => None,
        op => Some(op),
    }
}

fn kind_of(facts: &Facts<'_>, op: Op) -> Kind {
    let data = &facts.kernel.ops[op];
    match data.kind {
        OpKind::Load | OpKind::VolatileLoad => Kind::Read,
        OpKind::Atomic(op) => reduction_of(op).map_or(Kind::Other, Kind::Update),
        OpKind::Store => {
            let value = data.operands.last().copied();
            Kind::Store(value.filter(|&value| !facts.varies(value)))
        }
        _ => Kind::Other,
    }
}

fn races_in(kernel: &Kernel, op: Op, recognised: &Recognised, overlap: bool) -> Vec<Loc> {
    let facts = Facts::new(kernel, kernel.ops[op].regions[0], overlap);
    let mut accesses = Vec::new();
    for &inner in &facts.ops {
        let read = facts.read_by_call(inner).into_iter();
        accesses.extend(read.map(|cell| Access { op: inner, cell, kind: Kind::Read }));
        let Some(cell) = facts.shared(inner) else { continue };
        let kind = kind_of(&facts, inner);
        let passes = match kind {
            Kind::Read => {
                let only_sets = |region| only_sets(&facts, inner, region);
                recognised.harmless[inner]
                    || leads_only_to(&facts, inner, true, |region| only_reports(kernel, region))
                    || leads_only_to(&facts, inner, false, only_sets)
            }
            Kind::Store(_) => runs_once(&facts, op, inner),
            Kind::Other => recognised.harmless[inner],
            Kind::Update(_) => false,
        };
        if !passes {
            accesses.push(Access { op: inner, cell, kind });
        }
    }
    let mut cells = Cells::default();
    for access in &accesses {
        cells.add(kernel, access);
    }
    let mut races = Vec::new();
    for access in &accesses {
        let races_here = match access.kind {
            Kind::Read | Kind::Other => false,
            Kind::Update(_) => recognised.atomics[access.op] && cells.differ_from(kernel, access),
            Kind::Store(None) => true,
            Kind::Store(Some(_)) => cells.differ_from(kernel, access),
        };
        if races_here {
            races.push(kernel.ops[access.op].loc);
        }
    }
    races
}

/// Whether what a load gave only decides which regions of a kind run, and perhaps what assertions say.
fn leads_only_to(facts: &Facts<'_>, load: Op, asserts: bool, regions: impl Fn(Region) -> bool) -> bool {
    let mut pending = facts.kernel.ops[load].results.to_vec();
    let mut left = 64;
    while let Some(value) = pending.pop() {
        for &user in facts.users(value) {
            if left == 0 {
                return false;
            }
            left -= 1;
            let data = &facts.kernel.ops[user];
            match &data.kind {
                OpKind::Assert(..) if asserts => {}
                OpKind::If if data.results.is_empty() => {
                    if !data.regions.iter().all(|&region| regions(region)) {
                        return false;
                    }
                }
                kind if kind.is_pure() => pending.extend(data.results.iter().copied()),
                _ => return false,
            }
        }
    }
    true
}

/// Whether a region stores constants where a load reads, and does nothing else: whoever finds another value there sets it.
fn only_sets(facts: &Facts<'_>, load: Op, region: Region) -> bool {
    let kernel = facts.kernel;
    let place = &kernel.ops[load].operands;
    kernel.regions[region].ops.iter().all(|&op| match &kernel.ops[op].kind {
        OpKind::Yield | OpKind::Const(_) => true,
        OpKind::Store => {
            let operands = &kernel.ops[op].operands;
            let value = operands.last().copied();
            operands[..operands.len() - 1] == place[..]
                && value.is_some_and(|value| kernel.as_const(value).is_some())
        }
        _ => false,
    })
}

/// Whether a region holds messages of the compiler's own alone, such as of an overflow.
fn only_reports(kernel: &Kernel, region: Region) -> bool {
    kernel.regions[region].ops.iter().all(|&op| match &kernel.ops[op].kind {
        OpKind::Yield | OpKind::Const(_) => true,
        kind => is_check(kind),
    })
}
