//! What a derivative leaves to its launches: whether accesses touch one cell that only arguments and extents tell apart, as in `x[b, i] = f(x[a, i + 1])`.
//!
//! Law: **a derivative that was made on a condition is launched only where the condition holds.** The same tests decide, when a kernel is compiled and when it
//! is launched; at a launch they know its numbers. Where they do not hold, the launch is refused, or another derivative is taken that needs less.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use octants_ir::{Const, Kernel, OpKind, SideTable, Value};

use super::dependence::Dependence;
use super::told::{Numbers, Told, told_as};
use crate::differentiate::question::Question;
use crate::differentiate::question::Wanted;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;

/// Launches of which is remembered what was decided. Chosen: a time step in the arguments makes each launch a new one.
const MOST_REMEMBERED: usize = 256;
/// Numbers of imagined launches: what each begins with, and how far each is from the one before it.
const IMAGINED: [(i64, i64); 6] = [(24, 0), (3, 1009), (1, 1), (2000, -7), (0, 0), (64, 0)];
/// Extents of arrays there.
const IMAGINED_EXTENTS: [i64; 6] = [24, 24, 27, 24, 27, 27];

/// The condition that a derivative was made on.
#[derive(Debug)]
pub struct LaunchOrder {
    /// In the form that is differentiated, with the parameters of the one that was given first.
    kernel: Kernel,
    questions: Vec<Question>,
    /// What the answers depend on.
    told: Vec<Told>,
    decided: Mutex<HashMap<Vec<Option<Const>>, Option<Refusal>>>,
}

impl Clone for LaunchOrder {
    fn clone(&self) -> Self {
        Self::of(self.kernel.clone(), self.questions.clone())
    }
}

impl LaunchOrder {
    /// `None` if there is no condition.
    pub(super) fn new(kernel: &Kernel, mut questions: Vec<Question>) -> Option<Self> {
        questions.dedup();
        (!questions.is_empty()).then(|| Self::of(kernel.clone(), questions))
    }

    fn of(kernel: Kernel, questions: Vec<Question>) -> Self {
        let told = told_to(&kernel, &questions);
        Self { kernel, questions, told, decided: Mutex::default() }
    }

    /// The kernel that refusals are about.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Why the derivative is not right in a launch that tells this; `None` if it is.
    pub fn refusal(&self, tell: &dyn Fn(Told) -> Option<Const>) -> Option<Refusal> {
        let key: Vec<_> = self.told.iter().map(|&told| tell(told)).collect();
        let lock = || self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = lock().get(&key) {
            return known;
        }
        let found = self.decide(tell);
        let mut decided = lock();
        if decided.len() >= MOST_REMEMBERED {
            decided.clear();
        }
        decided.insert(key, found);
        found
    }

    /// Whether it is right in one of some imagined launches. Else nothing is gained by leaving it to launches.
    pub(super) fn may_hold(&self) -> bool {
        IMAGINED.iter().zip(IMAGINED_EXTENTS).any(|(&(first, step), extent)| {
            let tell = |told: Told| {
                let number = match told {
                    Told::Extent(..) => extent,
                    Told::Param(_) => {
                        let position = self.told.iter().position(|&other| other == told).unwrap_or(0);
                        first + step * position as i64
                    }
                };
                let scalar = match told {
                    Told::Extent(..) => octants_ir::Scalar::I32,
                    Told::Param(param) => {
                        let value = self.kernel.regions[self.kernel.body].params[param];
                        self.kernel.ty(value).scalar()?
                    }
                };
                Some(Const::from_i128(scalar, number.into()))
            };
            self.decide(&tell).is_none()
        })
    }

    fn decide(&self, tell: &dyn Fn(Told) -> Option<Const>) -> Option<Refusal> {
        let order = Dependence::new(&self.kernel, Numbers::of_launch(tell));
        self.questions.iter().find_map(|&Question { read, write, wanted }| {
            let fails = match wanted {
                Wanted::NotOverwritten => {
                    order.may_overwrite(read, write) && !order.are_parts_apart(read, write)
                }
                Wanted::PartsApart => !order.are_parts_apart(read, write),
                Wanted::NoRace => order.may_race(read, write),
                Wanted::NoCertainRace => order.must_race(read, write),
            };
            if !fails {
                return None;
            }
            let is_assignment = self.kernel.ops[read].kind == OpKind::Store;
            let kind = if is_assignment {
                RefusalKind::Race
            } else if wanted == Wanted::NoCertainRace || order.must_race(read, write) {
                RefusalKind::Crossed
            } else if wanted != Wanted::NoRace && !order.may_race(read, write) {
                RefusalKind::Overwritten
            } else {
                RefusalKind::Unkeepable
            };
            Some(Refusal {
                kind,
                at: self.kernel.ops[read].loc,
                other: Some(self.kernel.ops[write].loc),
                param: self.kernel.as_param(self.kernel.ops[read].operands[0]),
            })
        })
    }
}

/// What launches tell of the accesses, and of what stands around them.
fn told_to(kernel: &Kernel, questions: &[Question]) -> Vec<Told> {
    let order = Dependence::new(kernel, Numbers::unknown());
    let mut pending: Vec<Value> = Vec::new();
    for &Question { read, write, .. } in questions {
        for op in [read, write] {
            pending.extend(&kernel.ops[op].operands);
            pending.extend(order.around(op).iter().flat_map(|&(owner, _)| &kernel.ops[owner].operands));
        }
    }
    let (mut told, mut seen) = (Vec::new(), SideTable::new(false));
    while let Some(value) = pending.pop() {
        if seen[value] {
            continue;
        }
        seen.set(value, true);
        if let Some(one) = told_as(kernel, value) {
            told.push(one);
            continue;
        }
        if let Some(data) = kernel.def(value).filter(|data| !matches!(data.kind, OpKind::Local)) {
            pending.extend(&data.operands);
            // What an `if` gives is computed in its regions.
            for &region in &data.regions {
                pending.extend(kernel.terminator(region).into_iter().flat_map(|end| &end.operands));
            }
        }
    }
    told.sort_unstable();
    told.dedup();
    told
}
