//! Cuts the body of a block into what each lane runs for itself and where lanes meet.

use octants_ir::ops::{SUBGROUP, Scope};
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpKind, Region, Value, ValueDef};

/// A piece of a body.
#[derive(Debug)]
pub(super) enum Part {
    /// An op that makes memory of the block's, also one from inside of the ops that follow.
    Shared(Op),
    /// Ops that a lane runs one behind the other. It looks at nothing of others but what they had before, by shuffles.
    Lanes(Vec<Op>),
    /// An op that all lanes of the scope run together, and that takes them all to have done what stands before.
    Meeting(Op),
    /// A branch or a loop with such ops inside: the parts of each of its regions.
    Control(Op, Vec<Vec<Part>>),
    /// Parts of which only subgroups meet.
    Subgroups(Vec<Part>),
}

impl Part {
    /// Whether an op of the part, or one inside of it, names the value.
    pub fn names(&self, kernel: &Kernel, value: Value) -> bool {
        let names = |op: Op| {
            let inner = kernel.ops[op].regions.iter().flat_map(|&region| ops_in(kernel, region));
            std::iter::once(op).chain(inner).any(|op| kernel.ops[op].operands.contains(&value))
        };
        match self {
            Self::Shared(_) => false,
            Self::Lanes(ops) => ops.iter().any(|&op| names(op)),
            Self::Meeting(op) | Self::Control(op, _) => names(*op),
            Self::Subgroups(parts) => parts.iter().any(|part| part.names(kernel, value)),
        }
    }
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
    // Memory of the block is there from the start.
    let own = data.kind.meets();
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
    let mut open: Vec<Op> = Vec::new();
    for &op in ops {
        let here = scope_of(kernel, op);
        let asks = kernel.ops[op].kind.asks_lane() && scope == Scope::Subgroup;
        if here == Some(scope) && !asks {
            close(kernel, &mut open, scope, &mut found);
            found.push(part(kernel, op, scope));
            continue;
        }
        // What a lane asks another one for, that one has computed before.
        if asks && is_made_by(kernel, kernel.ops[op].operands[0], &open) {
            close(kernel, &mut open, scope, &mut found);
        }
        open.push(op);
    }
    close(kernel, &mut open, scope, &mut found);
    found
}

/// Whether one of the ops gives the value, unless it is a constant.
fn is_made_by(kernel: &Kernel, value: Value, ops: &[Op]) -> bool {
    match kernel.values[value].def {
        ValueDef::Result(op, _) => !matches!(kernel.ops[op].kind, OpKind::Const(_)) && ops.contains(&op),
        ValueDef::Param(..) => false,
    }
}

/// Ops without a meeting of the scope between them become a part.
fn close(kernel: &Kernel, ops: &mut Vec<Op>, scope: Scope, found: &mut Vec<Part>) {
    let ops = std::mem::take(ops);
    if scope == Scope::Block {
        let regions = |&op: &Op| kernel.ops[op].regions.clone();
        let inner = ops.iter().flat_map(regions).flat_map(|region| ops_in(kernel, region));
        let all = ops.iter().copied().chain(inner);
        found.extend(all.filter(|&op| kernel.ops[op].kind.makes_shared()).map(Part::Shared));
    }
    if scope == Scope::Block && ops.iter().any(|&op| scope_of(kernel, op).is_some()) {
        found.push(Part::Subgroups(pieces(kernel, &ops, Scope::Subgroup)));
        return;
    }
    let own: Vec<_> = ops.into_iter().filter(|&op| !kernel.ops[op].kind.makes_shared()).collect();
    if !own.is_empty() {
        found.push(Part::Lanes(own));
    }
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
