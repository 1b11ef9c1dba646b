//! Differentiation: from a kernel to one that computes its derivative. The result is an ordinary kernel in the structured phase, which is
//! compiled, cached and launched like any other; no other pass, no device and no launch knows of gradients.
//!
//! Each real array that has storage for its derivative gets a *companion*, a parameter behind the kernel's own.
//!
//! *Forward mode* does what the kernel does, and beside each real value that depends on an input its tangent. Before:
//! ```text
//! %1: f32 = load %x[%i]
//! %2: f32 = mul %1, %1
//! store %y[%i], %2
//! ```
//! After (`%dx` and `%dy` are the companions):
//! ```text
//! %1: f32 = load %x[%i]
//! %3: f32 = load %dx[%i]
//! %2: f32 = mul %1, %1
//! %4: f32 = mul %3, %1
//! %5: f32 = mul %3, %1
//! %6: f32 = add %4, %5
//! store %y[%i], %2
//! store %dy[%i], %6
//! ```
//! *Reverse mode* runs after the kernel, on the memory that it left. It computes again what it needs of the kernel's values, without
//! writing the kernel's arrays, then goes backward. After:
//! ```text
//! %1: f32 = load %x[%i]
//! %3: f32 = load %dy[%i]
//! store %dy[%i], 0
//! %4: f32 = mul %3, %1
//! %5: f32 = mul %3, %1
//! %6: f32 = add %4, %5
//! %7: f32 = atomic_add %dx[%i], %6
//! ```
//! What is computed again from memory that was overwritten meanwhile would be wrong: [`stale_reads`] refuses it.

mod activity;
mod certain_dependence;
mod dependence;
mod forward;
mod forward_extremes;
mod forward_stores;
mod launch_order;
mod prepare;
mod primal;
mod question;
mod race_check;
mod record;
mod record_sizes;
mod refusal;
mod reverse;
mod rules;
mod separation;
mod size_once;
mod stale_reads;
mod storage;
mod told;
mod unforeseen;

use octants_ir::rewrite::ops_in;
use octants_ir::{Access, ArrayType, Kernel, Loc, Op, OpKind, Scalar, SideTable, Type, Value};

use crate::analysis::array_access;
use crate::simplify;
use activity::{Activity, Losses};
use dependence::Dependence;
pub use launch_order::LaunchOrder;
pub use question::Left;
use question::{Question, Wanted};
pub use race_check::{RaceCheck, possible_races};
pub use record::{RecordArray, Recording};
pub use record_sizes::{ArrayCopy, RecordSizes};
pub use refusal::{Refusal, RefusalKind};
pub use reverse::TapePlan;
use stale_reads::Leaving;
pub use storage::{Mode, Storage};
use told::Numbers;
pub use told::Told;

/// A kernel that computes a derivative.
#[derive(Clone, Debug)]
pub struct Derivative {
    /// Its parameters are those of the kernel, then the companions in the order of their parameters. In reverse mode it has no results.
    pub kernel: Kernel,
    /// Each parameter that has one, and its companion.
    pub companions: Vec<(usize, usize)>,
    /// What the kernel does with the memory of each of its parameters. The derivative holds where none that is written overlaps another one.
    pub access: Vec<Access>,
    /// What it keeps of loops, in reverse mode, if it keeps something.
    pub tapes: Option<TapePlan>,
    /// Where a derivative stops that could have gone on: conversions to integers, steps.
    pub stops: Vec<Loc>,
    /// The kernel that must run in the place of the one that was differentiated, if the derivative needs what that does not leave in memory.
    pub recording: Option<Recording>,
    /// What is lost by fields without storage.
    pub dropped: Vec<Refusal>,
    /// Parameters without storage in which the kernel stores what depends on an input. Whoever reads them later loses a derivative.
    pub sinks: Vec<usize>,
    /// Parameters without storage that results depend on.
    pub constants: Vec<usize>,
    /// What launches must find out before they use it, if there is something.
    pub order: Option<LaunchOrder>,
    /// Launches for which that does not hold may have another derivative, of a run that is recorded.
    pub is_conditional: bool,
}

/// The derivative of a kernel as the front end made it, with what lies beside each of its parameters.
///
/// It holds for arrays of which none that the kernel writes overlaps another one, and for launches of which [`Derivative::order`] says so.
///
/// # Errors
/// All that keeps it from being right, in the order of the text.
pub fn differentiate(kernel: &Kernel, mode: Mode, storage: &[Storage]) -> Result<Derivative, Vec<Refusal>> {
    let primal = Primal::new(kernel, mode, storage)?;
    let strict = primal.clone().tried(mode, None, (Left::Nothing, false));
    strict.or_else(|NotMade { refusals, .. }| match primal.tried(mode, None, (Left::Everything, false)) {
        // Of a launch more is known.
        Ok(made) if made.may_hold() => Ok(made),
        // What a tape keeps is said so.
        Err(NotMade { refusals: fewer, order: Some(order), .. }) if order.may_hold() => Err(fewer),
        _ => Err(refusals),
    })
}

/// The derivative in reverse mode of a kernel whose run may be recorded: where the derivative needs what the kernel overwrites, it has a [`Recording`].
/// With [`Left::Parts`] as `left` it may have a condition in the place of that, and then [`Derivative::is_conditional`].
///
/// # Errors
/// As [`differentiate`].
pub fn differentiate_recorded(
    kernel: &Kernel,
    storage: &[Storage],
    left: Left,
) -> Result<Derivative, Vec<Refusal>> {
    let primal = Primal::new(kernel, Mode::Reverse, storage)?;
    let tried = |recorded: Option<&[Op]>, left| primal.clone().tried(Mode::Reverse, recorded, (left, true));
    let (refusals, unkept) = match tried(None, Left::Nothing) {
        Ok(made) => return Ok(made),
        Err(NotMade { refusals, unkept, .. }) => (refusals, unkept),
    };
    if left == Left::Parts
        && let Some(mut made) = tried(None, left).ok().filter(Derivative::may_hold)
    {
        made.is_conditional = true;
        return Ok(made);
    }
    if !unkept.is_empty() {
        return tried(Some(&unkept), Left::Nothing).map_err(|refused| refused.refusals);
    }
    let Err(NotMade { unkept, order, .. }) = tried(None, Left::Races) else { return Err(refusals) };
    if unkept.is_empty() {
        return Err(refusals);
    }
    // What is kept was read on the same condition.
    let order = order.map(|order| *order);
    let made = tried(Some(&unkept), Left::Races).ok().map(|made| Derivative { order, ..made });
    made.filter(Derivative::may_hold).ok_or(refusals)
}

/// Why there is no derivative.
struct NotMade {
    refusals: Vec<Refusal>,
    /// The ops of which the results would have to be recorded; none if that would not do.
    unkept: Vec<Op>,
    /// On what condition that would do.
    order: Option<Box<LaunchOrder>>,
}

impl Derivative {
    /// Whether there are launches that it is right for.
    fn may_hold(&self) -> bool {
        self.order.as_ref().is_none_or(LaunchOrder::may_hold)
    }
}

/// A kernel in the form that is differentiated, and what lies beside its parameters.
#[derive(Clone)]
struct Primal<'s> {
    /// Without companions.
    kernel: Kernel,
    /// With companions.
    derived: Kernel,
    storage: &'s [Storage],
    companions: Vec<(usize, usize)>,
    access: Vec<Access>,
    races: Vec<Loc>,
}

impl<'s> Primal<'s> {
    fn new(kernel: &Kernel, mode: Mode, storage: &'s [Storage]) -> Result<Self, Vec<Refusal>> {
        let access = array_access(kernel);
        let mut kernel = kernel.clone();
        let races = prepare::prepare(&mut kernel).map_err(|refusal| vec![refusal])?;
        if forward_stores::forward_stores(&mut kernel, storage) {
            simplify(&mut kernel);
        }
        let mut derived = kernel.clone();
        let companions = add_companions(&mut derived, mode, storage);
        Ok(Self { kernel, derived, storage, companions, access, races })
    }

    /// The derivative, with the results of some ops recorded.
    fn tried(
        self,
        mode: Mode,
        recorded: Option<&[Op]>,
        (left, in_tape): (Left, bool),
    ) -> Result<Derivative, NotMade> {
        let mut refusals = Vec::new();
        let (made, unkept) = self.derivative(mode, recorded, (left, in_tape), &mut refusals);
        if refusals.is_empty() {
            Ok(made)
        } else {
            Err(NotMade { refusals, unkept, order: made.order.map(Box::new) })
        }
    }

    /// The derivative, if nothing is refused, with the results of some ops recorded; and the ops of which that would be needed.
    fn derivative(
        self,
        mode: Mode,
        recorded: Option<&[Op]>,
        (left, in_tape): (Left, bool),
        refusals: &mut Vec<Refusal>,
    ) -> (Derivative, Vec<Op>) {
        let Self { kernel: primal, derived: mut kernel, storage, companions, access, races } = self;
        let mut loads = SideTable::new(None);
        let mut recording = None;
        if let Some(ops) = recorded {
            match record::record(&primal, &mut kernel, ops) {
                Ok((made, found)) => (recording, loads) = (Some(made), found),
                Err(refused) => refusals.extend(refused),
            }
        }
        // What questions are about, before it is made its own derivative.
        let derived = if mode == Mode::Reverse { kernel.clone() } else { Kernel::new("") };
        let params = kernel.regions[kernel.body].params.clone();
        let mut companion_of: SideTable<Value, Option<Value>> = SideTable::new(None);
        for &(param, companion) in &companions {
            companion_of.set(params[param], Some(params[companion]));
        }
        let activity = Activity::find(&kernel, &companion_of);
        let losses = activity.losses(&kernel, mode, storage);
        refusals.extend(&losses.refused);
        refusals.extend(Activity::rounded(&kernel, &companion_of, storage));
        refusals.extend(raced(&kernel, &companion_of, &races));
        let mut leaving = Leaving { left, in_tape, questions: Vec::new() };
        if mode == Mode::Reverse {
            refusals.extend(crossed(&kernel, &companion_of, &activity, &mut leaving.questions));
        }
        let stops = activity.stops(&kernel);
        let (mut tapes, mut unkept) = (None, Vec::new());
        if refusals.is_empty() {
            match mode {
                Mode::Forward => forward::add_tangents(&mut kernel, &activity, companion_of, refusals),
                Mode::Reverse => {
                    let made = reverse::reverse(
                        &mut kernel,
                        &activity,
                        companion_of,
                        &loads,
                        &mut leaving,
                        refusals,
                    );
                    (tapes, unkept) = (made.tapes, made.unkept);
                }
            }
        }
        let Losses { dropped, sinks, constants, .. } = losses;
        let order = LaunchOrder::new(&derived, leaving.questions);
        let made = Derivative {
            kernel,
            companions,
            access,
            tapes,
            stops,
            recording,
            dropped,
            sinks,
            constants,
            order,
            is_conditional: false,
        };
        (made, unkept)
    }
}

/// Assignments of reals with a derivative that are races.
fn raced(kernel: &Kernel, companion_of: &SideTable<Value, Option<Value>>, races: &[Loc]) -> Vec<Refusal> {
    let mut raced = Vec::new();
    for op in ops_in(kernel, kernel.body) {
        let data = &kernel.ops[op];
        let base = data.operands.first().filter(|_| data.kind == OpKind::Store);
        let Some(&base) = base.filter(|&&base| companion_of[base].is_some()) else { continue };
        if races.contains(&data.loc) {
            raced.push(Refusal { param: kernel.as_param(base), ..Refusal::new(RefusalKind::Race, data.loc) });
        }
    }
    raced.dedup();
    raced
}

/// Reads through which a derivative flows, of what other iterations of the same parallel loop surely write, and assignments of two iterations to one element. What
/// launches decide is a question to them.
fn crossed(
    kernel: &Kernel,
    companion_of: &SideTable<Value, Option<Value>>,
    activity: &Activity,
    questions: &mut Vec<Question>,
) -> Vec<Refusal> {
    let writes = dependence::writes(kernel);
    let mut crossed = Vec::new();
    let mut order = None;
    for op in ops_in(kernel, kernel.body) {
        let data = &kernel.ops[op];
        let (kind, flows) = match data.kind {
            OpKind::Load | OpKind::VolatileLoad => {
                (RefusalKind::Crossed, activity.is_active(data.results[0]))
            }
            OpKind::Store => {
                (RefusalKind::Race, data.operands.last().is_some_and(|&value| activity.is_active(value)))
            }
            _ => continue,
        };
        if !flows || companion_of[data.operands[0]].is_none() {
            continue;
        }
        let is_met = |write: &Op| {
            let other = &kernel.ops[*write];
            other.operands[0] == data.operands[0]
                && (kind == RefusalKind::Crossed || other.kind == OpKind::Store)
        };
        for &write in writes.iter().filter(|write| is_met(write)) {
            let order = order.get_or_insert_with(|| Dependence::new(kernel, Numbers::unknown()));
            if !order.may_race(op, write) {
                continue;
            }
            if order.must_race(op, write) {
                crossed.push(Refusal {
                    kind,
                    at: data.loc,
                    other: Some(kernel.ops[write].loc),
                    param: kernel.as_param(data.operands[0]),
                });
            } else if order.may_be_told(op, write) {
                questions.push(Question { read: op, write, wanted: Wanted::NoCertainRace });
            }
        }
    }
    crossed.dedup();
    crossed
}

fn add_companions(kernel: &mut Kernel, mode: Mode, storage: &[Storage]) -> Vec<(usize, usize)> {
    let suffix = match mode {
        Mode::Forward => "dual",
        Mode::Reverse => "grad",
    };
    kernel.name = format!("{}_{suffix}", kernel.name);
    let params = kernel.regions[kernel.body].params.to_vec();
    let mut companions = Vec::new();
    for (index, (&param, storage)) in params.iter().zip(storage).enumerate() {
        let layout = match storage {
            Storage::Companion(layout) => layout,
            Storage::Constant | Storage::Missing | Storage::Dropped | Storage::Rounded => continue,
        };
        let Type::Array(array) = kernel.ty(param) else { continue };
        if !array.elem.elem().is_some_and(Scalar::is_real) {
            continue;
        }
        let layout = layout.clone().map(|layout| kernel.intern_layout(layout)).or(array.layout);
        let name = format!("{}.{suffix}", kernel.params[index].name);
        companions.push((index, kernel.params.len()));
        kernel.add_param(name, Type::Array(ArrayType { layout, ..array }));
    }
    companions
}
