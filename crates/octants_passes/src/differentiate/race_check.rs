//! Accesses by which iterations of a parallel loop may race for a cell that derivatives flow through, where only a run shows whether they do: `x[list[i]]`.
//! What is certain is refused, and what surely does not happen is left out; a check of the run watches the rest.

use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpKind, SideTable, Value};

use super::Primal;
use super::activity::Activity;
use super::dependence::Dependence;
use super::told::Numbers;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::storage::Mode;
use crate::differentiate::storage::Storage;

/// What a check of a run watches.
#[derive(Clone, Debug)]
pub struct RaceCheck {
    /// The kernel in the form that is differentiated, with the parameters of the one that was given.
    pub kernel: Kernel,
    /// Reads that a derivative flows through, of what another iteration may write.
    pub reads: Vec<Op>,
    /// Writes of what another iteration may read or write.
    pub writes: Vec<Op>,
    /// Those of the writes that assign something a derivative flows through.
    pub stores: Vec<Op>,
}

/// What is left to a run; `None` if nothing is.
///
/// # Errors
/// If there is no form that is differentiated.
pub fn possible_races(kernel: &Kernel, storage: &[Storage]) -> Result<Option<RaceCheck>, Vec<Refusal>> {
    let Primal { kernel, derived, companions, .. } = Primal::new(kernel, Mode::Reverse, storage)?;
    let params = derived.regions[derived.body].params.clone();
    let mut companion_of = SideTable::new(None);
    for &(param, companion) in &companions {
        companion_of.set(params[param], Some(params[companion]));
    }
    let activity = Activity::find(&derived, &companion_of);
    let dependence = Dependence::new(&kernel, Numbers::unknown());
    let base = |op: Op| kernel.ops[op].operands[0];
    let derives = |base: Value| companion_of[base].is_some();
    let written: Vec<Op> = dependence.writes.iter().copied().filter(|&op| derives(base(op))).collect();
    let may_race_with =
        |op: Op| written.iter().copied().filter(|&write| dependence.may_race(op, write)).collect::<Vec<_>>();
    let (mut reads, mut watched, mut stores) = (Vec::new(), Vec::new(), Vec::new());
    for op in ops_in(&kernel, kernel.body) {
        let data = &kernel.ops[op];
        match data.kind {
            OpKind::Load | OpKind::VolatileLoad
                if derives(base(op)) && activity.is_active(data.results[0]) =>
            {
                let raced = may_race_with(op);
                reads.extend((!raced.is_empty()).then_some(op));
                watched.extend(raced);
            }
            OpKind::Store if derives(base(op)) => {
                let values = kernel.cell_access(op).map(|access| access.values).unwrap_or_default();
                let is_active = values.iter().any(|&value| activity.is_active(value));
                let raced = if is_active { may_race_with(op) } else { Vec::new() };
                if !raced.is_empty() {
                    watched.extend(raced.into_iter().chain([op]));
                    stores.push(op);
                }
            }
            _ => {}
        }
    }
    watched.sort_unstable();
    watched.dedup();
    Ok((!watched.is_empty()).then_some(RaceCheck { kernel, reads, writes: watched, stores }))
}
