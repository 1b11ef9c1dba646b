//! How far each op on reals may be from what is written, under `fast_math`.
//!
//! The flags of LLVM are chosen op by op. Laws:
//! * **A quotient is correctly rounded**, but for one by a square root, which may become a product with the root's reciprocal: `afn` on a quotient
//!   says that, to `octants_llvm_sys`. No instruction carries `arcp`.
//! * **What flows into `floor`, `ceil`, `round`, a conversion to an integer (so into an index), `//` or `%` is computed as written**: a product and a sum that were one
//!   operation would be just below a whole number where both roundings give that number. Values flow through arithmetic, roots, choices,
//!   variables and functions of the kernel; not through arrays, math functions, or from one iteration of a loop to the next.
//! * **Only running totals are taken in another order**: sums or products that a loop carries and nothing else in it looks at, and
//!   updates of a cell of memory. Nothing else carries `reassoc`: LLVM would distribute products over sums, `(i - 320) / 480` too. Sums of squares begin with a
//!   constant that is added to them ([`softened`](crate::softened)).
//! * **In kernels with exact choices, all that flows into [choices](octants_ir::choices) is computed as written**, through loops and memory, too: a derivative looks for
//!   the value that was the least or the greatest by computing each one again.
//! * **A sum of the own number and what another lane gives has the same bits on both**: it is computed as written, also where a choice, a loop or a function hands
//!   on what was given.
//! * Elsewhere a product and a sum may become one operation (`contract`), and a zero may lose its sign (`nsz`).
//!
//! What pays: `contract` everywhere (n-body, Julia sets), `reassoc` in totals (a sum over an array), reciprocals of roots (n-body).

use octants_ir::choices::ops_of_choices;
use octants_ir::ops::{ArithOp, ConvertOp, MathUnary};
use octants_ir::rewrite::{Parents, ops_in, uses, walk_all};
use octants_ir::{Func, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef};

/// What an op on reals may be replaced by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Rounding {
    /// One operation may do the work of a product and a sum.
    #[default]
    Contracted,
    /// Nothing.
    AsWritten,
    /// The same sum or product in another order, too.
    Total,
}

impl Rounding {
    /// The flags of sums, products and negations.
    pub fn flags(self) -> &'static str {
        match self {
            Self::Contracted => "nsz contract ",
            Self::AsWritten => "",
            Self::Total => "reassoc nsz contract ",
        }
    }

    /// The flag of quotients and roots: whether a quotient by a root may be a product with its reciprocal, and a GPU's root an approximation.
    pub fn of_roots(self) -> &'static str {
        if self == Self::AsWritten { "" } else { "afn " }
    }
}

/// The rounding of each op of a kernel; of use under `fast_math` alone.
pub(crate) fn roundings(kernel: &Kernel) -> SideTable<Op, Rounding> {
    if !kernel.options.fast_math {
        return SideTable::new(Rounding::default());
    }
    let mut finder = Finder::new(kernel);
    finder.mark_totals();
    finder.mark_what_is_truncated();
    finder.mark_what_is_exchanged();
    if kernel.options.exact_choices {
        let Some(ops) = ops_of_choices(kernel) else { return SideTable::new(Rounding::AsWritten) };
        for op in ops {
            finder.found.set(op, Rounding::AsWritten);
        }
    }
    finder.found
}

struct Finder<'k> {
    kernel: &'k Kernel,
    found: SideTable<Op, Rounding>,
    /// The ops that use each value, and as which operand.
    users: SideTable<Value, Vec<(Op, u32)>>,
    parents: Parents,
    calls: Vec<(Func, Op)>,
    ops: Vec<Op>,
}

impl<'k> Finder<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        let mut finder = Self {
            kernel,
            found: SideTable::new(Rounding::default()),
            users: uses(kernel),
            parents: Parents::new(kernel),
            calls: Vec::new(),
            ops: Vec::new(),
        };
        walk_all(kernel, &mut |op| {
            if let OpKind::Call(function) = kernel.ops[op].kind {
                finder.calls.push((function, op));
            }
            finder.ops.push(op);
        });
        finder
    }

    /// Marks the sums to which another lane gives something. Two lanes that add the same numbers have the same bits then: a sum that is computed as written
    /// takes no product into itself, wherever the own number comes from.
    fn mark_what_is_exchanged(&mut self) {
        let mut pending = Vec::new();
        for &op in &self.ops {
            let data = &self.kernel.ops[op];
            if data.kind.asks_lane() {
                pending.push(data.results[0]);
            }
            // Where lanes are loops, it is loaded from an element that is not the lane's own.
            let is_task =
                self.kernel.parallel_loop(op).filter(|parallel| parallel.attributes.block_dim.is_none());
            if let Some(parallel) = is_task {
                let loads = ops_in(self.kernel, parallel.body);
                pending.extend(loads.into_iter().filter_map(|op| self.loaded_from_another(op)));
            }
        }
        pending.retain(|&value| self.is_real(value));
        let mut seen = SideTable::new(false);
        while let Some(value) = pending.pop() {
            if !seen[value] {
                seen.set(value, true);
                for (user, place) in self.users[value].clone() {
                    self.mark_sum(user, place as usize, &mut pending);
                }
            }
        }
    }

    /// What an op loads from the block's memory, unless its index is the number of the lane.
    fn loaded_from_another(&self, op: Op) -> Option<Value> {
        let data = &self.kernel.ops[op];
        let is_counter = |value: Value| self.kernel.def(value).is_none();
        let is_own = |value: Value| match self.kernel.def(value) {
            None => true,
            // Lanes of a subgroup count from its first one on.
            Some(def) => {
                def.kind == OpKind::Arith(ArithOp::Add) && def.operands.iter().any(|&v| is_counter(v))
            }
        };
        let loads = data.kind == OpKind::Load && self.kernel.def(data.operands[0])?.kind.makes_shared();
        (loads && !data.operands[1..].iter().all(|&index| is_own(index))).then(|| data.results[0])
    }

    /// Marks an op if it is a sum, and gives what else the operand becomes by it.
    fn mark_sum(&mut self, user: Op, place: usize, pending: &mut Vec<Value>) {
        let data = &self.kernel.ops[user];
        match &data.kind {
            OpKind::Arith(ArithOp::Add | ArithOp::Sub) => self.found.set(user, Rounding::AsWritten),
            OpKind::Arith(ArithOp::Neg) | OpKind::Convert(_) => pending.push(data.results[0]),
            OpKind::Select if place > 0 => pending.push(data.results[0]),
            OpKind::For if place >= 2 => {
                pending.push(data.results[place - 2]);
                pending.push(self.kernel.regions[data.regions[0]].params[place - 1]);
            }
            OpKind::While => pending.push(self.kernel.regions[data.regions[0]].params[place]),
            OpKind::Call(function) => {
                pending.push(self.kernel.regions[self.kernel.functions[*function].body].params[place]);
            }
            OpKind::Store if is_variable(self.kernel.ty(data.operands[0])) => {
                for &(load, _) in &self.users[data.operands[0]] {
                    let load = &self.kernel.ops[load];
                    if load.kind == OpKind::Load {
                        pending.push(load.results[0]);
                    }
                }
            }
            OpKind::Yield => self.hand_on(user, place, pending),
            _ => {}
        }
    }

    /// What an operand of a region's terminator becomes.
    fn hand_on(&self, end: Op, place: usize, pending: &mut Vec<Value>) {
        let Some(region) = self.parents.region(end) else { return };
        let Some(owner) = self.parents.op(region) else { return };
        let data = &self.kernel.ops[owner];
        let params = |number: usize| &self.kernel.regions[data.regions[number]].params;
        match data.kind {
            OpKind::If => pending.push(data.results[place]),
            OpKind::For => pending.extend([data.results[place], params(0)[place + 1]]),
            OpKind::While if region == data.regions[0] => {
                if let Some(carried) = place.checked_sub(1) {
                    pending.extend([data.results[carried], params(1)[carried]]);
                }
            }
            OpKind::While => pending.push(params(0)[place]),
            _ => {}
        }
    }

    fn is_real(&self, value: Value) -> bool {
        self.kernel.ty(value).elem().is_some_and(Scalar::is_real)
    }

    /// Marks sums and products that loops carry from one iteration to the next.
    fn mark_totals(&mut self) {
        for op in self.ops.clone() {
            let data = &self.kernel.ops[op];
            let carried = match &data.kind {
                OpKind::For => 1,
                OpKind::ParallelFor(parallel) => usize::from(parallel.axes),
                _ => continue,
            };
            let body = data.regions[0];
            let params = &self.kernel.regions[body].params[carried..];
            for (number, &param) in params.iter().enumerate() {
                if self.is_real(param) {
                    self.mark_total(op, param, number);
                }
            }
        }
    }

    /// Marks the ops that lead from what a loop carries to what it carries next, if all of them are sums, or all products, and nothing
    /// else uses what they give.
    fn mark_total(&mut self, of: Op, param: Value, number: usize) {
        for ops in [&[ArithOp::Add, ArithOp::Sub][..], &[ArithOp::Mul]] {
            if let Some(total) = self.total(of, param, number, ops) {
                for op in total {
                    self.found.set(op, Rounding::Total);
                }
                return;
            }
        }
    }

    /// The arithmetic on the way of a carried value through one iteration.
    fn total(&self, of: Op, param: Value, number: usize, ops: &[ArithOp]) -> Option<Vec<Op>> {
        let mut total = Vec::new();
        let mut pending = vec![param];
        let mut seen = SideTable::new(false);
        let mut comes_back = false;
        while let Some(value) = pending.pop() {
            if seen[value] {
                continue;
            }
            seen.set(value, true);
            for &(user, place) in &self.users[value] {
                let data = &self.kernel.ops[user];
                let place = place as usize;
                match &data.kind {
                    OpKind::Arith(arith) if ops.contains(arith) => {
                        // A sum of the total and itself is none of it and something else.
                        let is_running =
                            data.operands[0] != data.operands[1] && (*arith != ArithOp::Sub || place == 0);
                        is_running.then_some(())?;
                        total.push(user);
                        pending.push(data.results[0]);
                    }
                    OpKind::Select if place > 0 => pending.push(data.results[0]),
                    OpKind::For if place >= 2 => pending.push(data.results[place - 2]),
                    OpKind::Yield => {
                        let owner = self.parents.region(user).and_then(|region| self.parents.op(region))?;
                        let is_if = self.kernel.ops[owner].kind == OpKind::If;
                        if owner == of && place == number {
                            comes_back = true;
                        } else if owner != of && is_if {
                            pending.push(self.kernel.ops[owner].results[place]);
                        } else {
                            return None;
                        }
                    }
                    _ => return None,
                }
            }
        }
        comes_back.then_some(total)
    }

    /// Marks what values are computed by that become whole numbers.
    fn mark_what_is_truncated(&mut self) {
        let mut pending = Vec::new();
        for &op in &self.ops {
            let data = &self.kernel.ops[op];
            match data.kind {
                OpKind::MathUnary(MathUnary::Floor | MathUnary::Ceil | MathUnary::Round)
                | OpKind::Arith(ArithOp::FloorDiv | ArithOp::Mod | ArithOp::RawMod) => {
                    pending.extend_from_slice(&data.operands);
                }
                OpKind::Convert(ConvertOp::Cast) if self.is_whole(data.results[0]) => {
                    pending.extend_from_slice(&data.operands);
                }
                _ => {}
            }
        }
        pending.retain(|&value| self.is_real(value));
        let mut seen = SideTable::new(false);
        while let Some(value) = pending.pop() {
            if !seen[value] {
                seen.set(value, true);
                self.mark_origin(value, &mut pending);
            }
        }
    }

    fn is_whole(&self, value: Value) -> bool {
        self.kernel.ty(value).elem().is_some_and(|scalar| !scalar.is_real() && scalar != Scalar::U1)
    }

    /// Marks the op that gives a value, and gives the values that it flows from.
    fn mark_origin(&mut self, value: Value, pending: &mut Vec<Value>) {
        let (op, number) = match self.kernel.values[value].def {
            ValueDef::Result(op, number) => (op, number as usize),
            ValueDef::Param(region, number) => return self.arguments(region, number as usize, pending),
        };
        let data = &self.kernel.ops[op];
        match &data.kind {
            OpKind::Arith(_) | OpKind::MathUnary(MathUnary::Sqrt) => {
                self.found.set(op, Rounding::AsWritten);
                pending.extend_from_slice(&data.operands);
            }
            // Repeated products.
            OpKind::Math(octants_ir::ops::MathOp::Pow) if !self.is_real(data.operands[1]) => {
                self.found.set(op, Rounding::AsWritten);
                pending.push(data.operands[0]);
            }
            OpKind::Convert(ConvertOp::Cast) if self.is_real(data.operands[0]) => {
                pending.push(data.operands[0]);
            }
            OpKind::Select => pending.extend_from_slice(&data.operands[1..]),
            OpKind::If => {
                for &region in &data.regions {
                    pending.extend(self.kernel.terminator(region).and_then(|end| end.operands.get(number)));
                }
            }
            OpKind::Call(function) => {
                let end = self.kernel.terminator(self.kernel.functions[*function].body);
                pending.extend(end.and_then(|end| end.operands.get(number)));
            }
            OpKind::Load if is_variable(self.kernel.ty(data.operands[0])) => {
                for &(user, place) in &self.users[data.operands[0]] {
                    let user = &self.kernel.ops[user];
                    if user.kind == OpKind::Store && place == 0 {
                        pending.extend(user.operands.last());
                    }
                }
            }
            // What stands in arrays, what math functions give, and what loops leave is as near as it was.
            _ => {}
        }
    }

    /// The arguments of all calls, where a region is a function's body.
    fn arguments(&self, region: Region, number: usize, pending: &mut Vec<Value>) {
        for &(function, call) in &self.calls {
            if self.kernel.functions[function].body == region {
                pending.extend(self.kernel.ops[call].operands.get(number));
            }
        }
    }
}

/// Whether it is memory that a kernel has for itself.
fn is_variable(ty: Type) -> bool {
    matches!(ty, Type::Local(_) | Type::Temp(_) | Type::Tape(_))
}
