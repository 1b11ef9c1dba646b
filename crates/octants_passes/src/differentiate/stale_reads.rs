//! Whether memory still holds what the derivative reads again: a read of the kernel is refused if a write that came later may have been to the
//! same cell.

use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpData, SideTable, Type, Value};

use super::dependence::Dependence;
use super::question::{Left, Question, Wanted};
use super::refusal::{Refusal, RefusalKind};
use super::told::Numbers;

/// What a read of the derivative stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read {
    /// A read of the primal.
    Repeated(Op),
    /// What a cell holds once all iterations have made this update.
    Total(Op),
}

/// Refuses what the derivative may not read. `origin` says what its reads stand for. Gives the ops of the primal whose results would have to
/// be kept while the kernel runs, so that nothing is refused; none if that would not do.
pub(super) fn check(
    primal: &Kernel,
    derivative: &Kernel,
    origin: &SideTable<Op, Option<Read>>,
    has_companion: impl Fn(Value) -> bool,
    leaving: &mut Leaving,
    refusals: &mut Vec<Refusal>,
) -> Vec<Op> {
    let dependence = Dependence::new(primal, Numbers::unknown());
    let writes = &dependence.writes;
    let all = ops_in(primal, primal.body);
    let mut seen = SideTable::new(false);
    let (mut kept, mut lasting) = (Vec::new(), !refusals.is_empty());
    for op in ops_in(derivative, derivative.body) {
        let OpData { kind, loc, .. } = &derivative.ops[op];
        if let Some(refused) = RefusalKind::of_repeating(kind) {
            refusals.push(Refusal::new(refused, *loc));
            let is_it = |&&op: &&Op| primal.ops[op].kind == *kind && primal.ops[op].loc == *loc;
            kept.extend(all.iter().filter(is_it));
        }
        let (read, found) = match origin[op] {
            None => continue,
            Some(Read::Repeated(read) | Read::Total(read)) if seen[read] => continue,
            Some(Read::Repeated(read)) if primal.cell_access(read).is_some_and(|access| access.writes) => {
                seen.set(read, true);
                refusals.push(Refusal::new(RefusalKind::AtomicResult, primal.ops[read].loc));
                kept.push(read);
                continue;
            }
            Some(Read::Repeated(read)) => {
                // What lies between elements that are overwritten is kept with them: the next launch may overwrite it.
                dependence.solves.set(!leaving.in_tape);
                let wanted = match leaving.left {
                    Left::Nothing | Left::Races => None,
                    Left::Parts => Some(Wanted::PartsApart),
                    Left::Everything => Some(Wanted::NotOverwritten),
                };
                let overwrites = |&&write: &&Op| {
                    dependence.may_overwrite(read, write)
                        && !wanted.is_some_and(|wanted| leaving.leaves(&dependence, read, write, wanted))
                };
                let found = writes.iter().find(overwrites);
                dependence.solves.set(true);
                (read, found)
            }
            Some(Read::Total(read)) => {
                // Updates of the same kind by the same loop are part of it.
                let other = |write: Op| {
                    primal.ops[write].kind != primal.ops[read].kind
                        || dependence.task(write) != dependence.task(read)
                };
                let overwrites = |&&write: &&Op| other(write) && dependence.may_overwrite(read, write);
                (read, writes.iter().find(overwrites))
            }
        };
        seen.set(read, true);
        if let Some(&write) = found {
            // What iterations hand each other in an order that is left to chance has no derivative, whatever is kept.
            let base = primal.ops[read].operands[0];
            let is_array = matches!(primal.ty(base), Type::Array(_));
            let mut raced = || {
                let races = |&write: &Op| {
                    dependence.may_race(read, write)
                        && !dependence.is_own_cell(read, write)
                        && !(leaving.left != Left::Nothing
                            && leaving.leaves(&dependence, read, write, Wanted::NoRace))
                };
                writes.iter().any(races)
            };
            let kind = match origin[op] {
                Some(Read::Repeated(read)) if is_array && !(has_companion(base) && raced()) => {
                    kept.push(read);
                    RefusalKind::Overwritten
                }
                _ => {
                    lasting = true;
                    RefusalKind::Unkeepable
                }
            };
            refusals.push(Refusal {
                kind,
                at: primal.ops[read].loc,
                other: Some(primal.ops[write].loc),
                param: primal.as_param(primal.ops[read].operands[0]),
            });
        }
    }
    refusals.dedup();
    if lasting {
        kept.clear();
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// What a derivative leaves to its launches, which know more numbers.
pub(super) struct Leaving {
    pub left: Left,
    /// The run may be recorded.
    pub in_tape: bool,
    pub questions: Vec<Question>,
}

impl Leaving {
    /// Leaves it to launches that the two accesses are apart, if they may find that out.
    fn leaves(&mut self, dependence: &Dependence<'_>, read: Op, write: Op, wanted: Wanted) -> bool {
        let is_left = dependence.may_be_told(read, write)
            && (wanted == Wanted::NoRace || !dependence.surely_overwrites(read, write));
        if is_left {
            self.questions.push(Question { read, write, wanted });
        }
        is_left
    }
}
