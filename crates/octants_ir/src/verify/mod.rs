//! Checks a kernel against the laws of the IR, which stand in `laws`. A kernel that keeps them can be printed, interpreted and compiled; a pass that breaks one is wrong.
//!
//! Structure is checked in `regions`, ops by what they touch in `values`, `places` and `control`, and what holds only once a
//! kernel is split in `tasks`. Laws say nothing about what a program does: an index out of bounds breaks none.

mod block;
mod control;
mod laws;
mod places;
mod regions;
mod tasks;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;

pub use laws::Law;

use crate::ids::{Op, Value};
use crate::kernel::{Kernel, Phase};
use crate::ops::{Gives, OpKind};
use crate::text::OpLines;
use crate::types::{Scalar, Type};

/// A broken law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub law: Law,
    /// The op that breaks it; `None` for the kernel's own head.
    pub op: Option<Op>,
    /// The op's printed line, or the kernel's name.
    pub line: String,
    /// How.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (law, number) = (self.law, self.law.number());
        write!(f, "`{}`: {} (law {number}, {law:?}: {})", self.line, self.message, law.text())
    }
}

/// Checks every law, those of split kernels if the kernel says that it is one.
pub fn verify(kernel: &Kernel) -> Result<(), Vec<Violation>> {
    let mut verifier = Verifier { kernel, broken: Vec::new() };
    regions::check(&mut verifier);
    // Ops can be looked at only if the tree is one, and types only if their structs exist.
    let is_tree = |&(law, ..): &(Law, _, _)| !matches!(law, Law::Tree | Law::Regions | Law::KnownTypes);
    if verifier.broken.iter().all(is_tree) {
        verifier.ops();
        if kernel.phase == Phase::Tasks {
            tasks::check(&mut verifier);
        }
    }
    if verifier.broken.is_empty() {
        return Ok(());
    }
    let lines = OpLines::new(kernel);
    let describe = |(law, op, message): (Law, Option<Op>, String)| Violation {
        law,
        op,
        line: op.map_or_else(|| format!("kernel @{}", kernel.name), |op| lines.line(kernel, op)),
        message,
    };
    Err(verifier.broken.into_iter().map(describe).collect())
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    broken: Vec<(Law, Option<Op>, String)>,
}

impl<'k> Verifier<'k> {
    fn breaks(&mut self, law: Law, op: Op, message: impl Into<String>) {
        self.broken.push((law, Some(op), message.into()));
    }

    fn kernel_breaks(&mut self, law: Law, message: impl Into<String>) {
        self.broken.push((law, None, message.into()));
    }

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    fn operands(&self, op: Op) -> &'k [Value] {
        &self.kernel.ops[op].operands
    }

    fn results(&self, op: Op) -> &'k [Value] {
        &self.kernel.ops[op].results
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&v| self.ty(v)).collect()
    }

    /// What the region's terminator hands on.
    fn yielded(&self, region: crate::Region) -> Vec<Type> {
        self.kernel.terminator(region).map(|t| self.types(&t.operands)).unwrap_or_default()
    }

    /// Exactly this many operands; whether it is so.
    fn takes_operands(&mut self, op: Op, count: usize) -> bool {
        let found = self.operands(op).len();
        if found != count {
            self.breaks(Law::OperandCount, op, format!("takes {count} operands, has {found}"));
        }
        found == count
    }

    fn takes_at_least(&mut self, op: Op, count: usize) -> bool {
        let found = self.operands(op).len();
        if found < count {
            self.breaks(Law::OperandCount, op, format!("takes at least {count} operands, has {found}"));
        }
        found >= count
    }

    fn gives(&mut self, op: Op, count: usize) -> bool {
        let found = self.results(op).len();
        if found != count {
            self.breaks(Law::ResultCount, op, format!("gives {count} results, has {found}"));
        }
        found == count
    }

    fn nullary(&mut self, op: Op, scalar: Scalar) {
        self.takes_operands(op, 0);
        if self.gives(op, 1) {
            self.is_type(Law::Nullary, op, "the result", self.results(op)[0], scalar);
        }
    }

    /// One result, of this type.
    fn gives_type(&mut self, op: Op, ty: impl Into<Type>) {
        if self.gives(op, 1) {
            self.is_type(Law::ResultType, op, "the result", self.results(op)[0], ty);
        }
    }

    fn is_type(&mut self, law: Law, op: Op, what: &str, value: Value, ty: impl Into<Type>) {
        let (found, ty) = (self.ty(value), ty.into());
        if found != ty {
            self.breaks(law, op, format!("{what} is {found}, not {ty}"));
        }
    }

    fn ops(&mut self) {
        let kernel = self.kernel;
        for body in kernel.bodies() {
            for op in crate::rewrite::ops_in(kernel, body) {
                self.place_uses(op);
                self.op(op);
            }
        }
    }

    fn op(&mut self, op: Op) {
        match &self.kernel.ops[op].kind {
            OpKind::Const(c) => {
                self.takes_operands(op, 0);
                self.gives_type(op, c.ty());
            }
            OpKind::Arith(arith) => self.arith(op, *arith),
            OpKind::Bit(bit) => self.bit(op, *bit),
            OpKind::BitUnary(bit) => self.bit_unary(op, *bit),
            OpKind::Compare(compare) => self.compare(op, *compare),
            OpKind::Select => self.select(op),
            OpKind::Math(math) => self.math(op, *math),
            OpKind::MathUnary(math) => self.math_unary(op, *math),
            OpKind::Convert(convert) => self.convert(op, *convert),
            OpKind::Tensor(tensor) => self.tensor(op, *tensor),
            OpKind::StructNew => self.struct_new(op),
            OpKind::StructGet(member) => self.struct_get(op, *member),
            OpKind::StructSet(member) => self.struct_set(op, *member),
            OpKind::Local | OpKind::Temp => self.variable(op),
            OpKind::Tape => self.tape(op),
            OpKind::Load | OpKind::VolatileLoad => self.load(op),
            OpKind::Store => self.store(op),
            OpKind::Atomic(atomic) => self.atomic(op, *atomic),
            OpKind::AtomicCas => self.atomic_cas(op),
            OpKind::GrowPool => self.grow_pool(op),
            OpKind::Extent(axis) => self.extent(op, *axis),
            OpKind::Address => self.address(op),
            OpKind::If => self.if_op(op),
            OpKind::For => self.for_op(op),
            OpKind::ForLanes => {
                self.takes_operands(op, 2);
                self.for_op(op);
            }
            OpKind::ForCells(layout) => self.for_cells(op, *layout),
            OpKind::While => self.while_op(op),
            OpKind::ParallelFor(attributes) => self.parallel_for(op, attributes),
            OpKind::Serial => {
                self.takes_operands(op, 0);
                self.gives(op, 0);
                let body = self.kernel.ops[op].regions[0];
                self.carries(op, "yielded", &self.yielded(body), &[]);
            }
            OpKind::Fork => self.fork(op),
            OpKind::Yield => {
                self.gives(op, 0);
            }
            OpKind::Return => self.return_op(op),
            OpKind::StoreResult(number) => self.store_result(op, *number),
            OpKind::Assert(_, message) => self.assert_op(op, message),
            OpKind::Print(spec) => self.print_op(op, spec),
            OpKind::Random => self.random(op),
            OpKind::Call(function) => self.call(op, *function),
            OpKind::Shared => self.shared(op),
            OpKind::Barrier(scope) => self.barrier(op, *scope),
            OpKind::Fence(scope) => self.fence(op, *scope),
            OpKind::BarrierCount => self.vote(op, Scalar::I32),
            OpKind::Ballot => self.vote(op, Scalar::U64),
            OpKind::Shuffle(_) => self.shuffle(op),
            // Their rows say it all.
            kind => match kind.info().gives {
                Gives::Nullary(scalar) => self.nullary(op, scalar),
                Gives::Own => panic!("the verifier has no rule for `{}`", kind.name()),
            },
        }
    }
}
