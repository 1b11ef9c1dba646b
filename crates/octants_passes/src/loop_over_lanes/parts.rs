//! Cuts the body of a block into what each lane runs for itself and where lanes meet.

use octants_ir::ops::{Effects, Scope, SUBGROUP};
use octants_ir::{Kernel, Op, OpKind, Region};

/// A piece of a body.
#[derive(Debug)]
pub(super) enum Part {
    /// Ops that a lane runs one behind the other, without looking at others.
    Lanes(Vec<Op>),
    /// An op that all lanes of the scope run together, and that takes them all to have done what stands before.
    Meeting(Op),
    /// A branch or a loop with such ops inside: the parts of each of its regions.
    Control(Op, Vec<Vec<Part>>),
    /// Parts of which only subgroups meet.
    Subgroups(Vec<Part>),
}

/// The parts of a body, in order.
pub(super) struct Parts(pub Vec<Part>);

impl Parts {
    pub fn of(kernel: &Kernel, body: Region) -> Self {
        Self(parts(kernel, body, Scope::Block))
    }
}

/// Among which threads an op, or one inside of it, is run together.
fn scope_of(kernel: &Kernel, op: Op) -> Option<Scope> {
    let data = &kernel.ops[op];
    let own = match data.kind {
        OpKind::Barrier(scope) => Some(scope),
        OpKind::BarrierCount => Some(Scope::Block),
        OpKind::Shuffle(_) | OpKind::Ballot => Some(Scope::Subgroup),
        // It is the block's from the start.
        OpKind::Shared => None,
        ref kind => {
            debug_assert!(!kind.effects().contains(Effects::CONVERGENT), "{} is convergent", kind.name());
            None
        }
    };
    let inner = data.regions.iter().flat_map(|&region| &kernel.regions[region].ops);
    inner.filter_map(|&op| scope_of(kernel, op)).chain(own).max_by_key(|scope| *scope as u8)
}

/// The parts of a region that all threads of the scope run together.
fn parts(kernel: &Kernel, region: Region, scope: Scope) -> Vec<Part> {
    let ops = &kernel.regions[region].ops;
    let end = ops.len() - 1;
    pieces(kernel, &ops[..end], scope)
}

fn pieces(kernel: &Kernel, ops: &[Op], scope: Scope) -> Vec<Part> {
    let mut found = Vec::new();
    let mut rest = ops;
    while let Some((&op, behind)) = rest.split_first() {
        let here = scope_of(kernel, op);
        if here == Some(scope) {
            found.push(part(kernel, op, scope));
            rest = behind;
            continue;
        }
        let length = rest.iter().take_while(|&&op| scope_of(kernel, op) != Some(scope)).count();
        let (own, behind) = rest.split_at(length);
        rest = behind;
        let meets = own.iter().any(|&op| scope_of(kernel, op).is_some());
        if scope == Scope::Block && meets {
            found.push(Part::Subgroups(pieces(kernel, own, Scope::Subgroup)));
        } else {
            let own: Vec<_> = own.iter().copied().filter(|&op| kernel.ops[op].kind != OpKind::Shared).collect();
            if !own.is_empty() {
                found.push(Part::Lanes(own));
            }
        }
    }
    found
}

fn part(kernel: &Kernel, op: Op, scope: Scope) -> Part {
    let data = &kernel.ops[op];
    if data.regions.is_empty() {
        return Part::Meeting(op);
    }
    Part::Control(op, data.regions.iter().map(|&region| parts(kernel, region, scope)).collect())
}

/// The lanes of a subgroup, at most.
pub(super) fn lanes_of_subgroup(threads: u32) -> u32 {
    threads.min(SUBGROUP)
}
