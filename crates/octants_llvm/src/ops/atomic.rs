//! Updates of memory that other threads may see: one instruction where LLVM has one, else a loop of compare-and-exchange.
//!
//! **A truth value in memory is any byte; all but 0 are true.** Arrays of other libraries hold such bytes, so no instruction here works on the bits of the
//! byte unless that gives the right truth for each of them.

use octants_ir::ops::{ArithOp, AtomicOp};
use octants_ir::{Kernel, Scalar, Value};

use crate::address::{Address, Target};
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::rounding::Rounding;
use crate::value::{Ptr, Ty, Typed, Val, bits_of, in_memory};

impl Emitter<'_> {
    /// Gives the old value.
    pub(crate) fn atomic(&mut self, op: AtomicOp, path: &[Value], value: Val) -> Val {
        let address = self.address(path);
        self.update_inside(address, |e, address| e.atomic_at(op, address, value))
    }

    /// An update with components outside their shape changes nothing.
    fn update_inside(&mut self, address: Address, update: impl FnOnce(&mut Self, Address) -> Val) -> Val {
        let Some(inside) = address.inside else { return update(self, address) };
        let address = Address { inside: None, ..address };
        let old = self.load_at(address);
        let before = self.f.block();
        let (write, done) = (self.f.new_label(), self.f.new_label());
        self.f.branch(inside, write, done);
        self.f.begin(write);
        let updated = update(self, address);
        let end = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        self.f.join(old.ty(), &[(old, before), (updated, end)])
    }

    /// In widened code: one lane after the other, as iterations would. Nobody asks for the old values there.
    pub(crate) fn atomic_by_lane(&mut self, op: AtomicOp, path: &[Value], value: Val) {
        let address = self.address(path);
        if address.class == Class::Local {
            self.atomic_at(op, address, value);
            return;
        }
        if matches!(address.target, Target::One(_)) && sums_lanes(self.kernel, op, address.scalar) {
            self.atomic_of_all_lanes(op, address, value);
            return;
        }
        let lanes = self.lanes.count;
        let address = self.each_cell(address);
        self.update_each_lane(|e, lane| {
            let pointer = e.cell_of_lane(address, lane, lanes);
            let value = e.lane_at(value, lane);
            e.atomic_at(op, Address { target: Target::One(pointer), ..address }, value);
        });
    }

    /// In widened code: one update of a cell by what all lanes add to it, if any runs.
    fn atomic_of_all_lanes(&mut self, op: AtomicOp, address: Address, value: Val) {
        let mut value = self.spread(value, self.lanes.count);
        let mask = self.lanes.mask;
        if let Some(mask) = mask {
            let nothing = self.identity(AtomicOp::Add, value.ty);
            let nothing = self.spread(nothing, self.lanes.count);
            value = self.choose(mask, value, nothing);
        }
        let total = self.reduce_lanes(AtomicOp::Add, value);
        let Some(mask) = mask else {
            self.as_scalar(|e| {
                e.atomic_at(op, address, total);
            });
            return;
        };
        let any = self.any_lane(mask);
        let (update, done) = (self.f.new_label(), self.f.new_label());
        self.f.branch(any, update, done);
        self.f.begin(update);
        self.as_scalar(|e| {
            e.atomic_at(op, address, total);
        });
        self.f.jump(done);
        self.f.begin(done);
    }

    /// The cell that one lane of a widened access means.
    pub(crate) fn cell_of_lane(&mut self, address: Address, lane: Val, lanes: u32) -> Ptr {
        let ty = Ty::new(in_memory(address.scalar), 1);
        match address.target {
            Target::One(pointer) => pointer,
            Target::Run(first) => {
                self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {first}, {}", Typed(lane)))
            }
            Target::Offsets(..) => unreachable!("each cell has an address"),
            Target::Each(cells) => {
                self.f.pointer(format_args!("extractelement <{lanes} x ptr> {cells}, {}", Typed(lane)))
            }
        }
    }

    pub(crate) fn atomic_at(&mut self, op: AtomicOp, address: Address, value: Val) -> Val {
        if address.exclusive {
            return self.in_order(|e| {
                let old = e.load_at(address);
                let new = e.combine(op, old, value);
                e.store_at(address, new);
                old
            });
        }
        let pointer = address.one_cell();
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let align = address.scalar.bytes();
        let extreme = self.lowering.has_atomic_extremes().then(|| extreme(op, address.scalar)).flatten();
        let Some(instruction) = extreme.or_else(|| instruction(op, address.scalar)) else {
            return self.exchange_loop(op, address, value);
        };
        let value = match (op, address.scalar) {
            // All bits, so that what is true stays so, whichever bits it has.
            (AtomicOp::Mul | AtomicOp::Min | AtomicOp::And, Scalar::U1) => {
                self.f.value(Ty::new(Scalar::U8, 1), format_args!("sext {} to i8", Typed(value)))
            }
            // Targets add to reals in memory, and subtract by a loop.
            (AtomicOp::Sub, scalar) if scalar.is_real() => self.arith(ArithOp::Neg, value, value),
            _ => self.memory_form(value),
        };
        let old = self.f.value(
            value.ty(),
            format_args!(
                "atomicrmw {instruction} ptr {pointer}, {} monotonic, align {align}{suffix}",
                Typed(value)
            ),
        );
        self.read_memory(old, address.scalar)
    }

    /// Emits accesses that depend on those of other iterations.
    pub(crate) fn in_order<R>(&mut self, emit: impl FnOnce(&mut Self) -> R) -> R {
        let group = self.scopes.leave_independent();
        let result = emit(self);
        self.scopes.return_to(group);
        result
    }

    /// Tries until no other thread was faster. Where the cell would stay as it is, nothing is written.
    fn exchange_loop(&mut self, op: AtomicOp, address: Address, value: Val) -> Val {
        let pointer = address.one_cell();
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let scalar = address.scalar;
        let cell = Ty::new(bits_of(in_memory(scalar)), 1);
        let align = scalar.bytes();
        let first = self
            .f
            .value(cell, format_args!("load atomic {cell}, ptr {pointer} monotonic, align {align}{suffix}"));
        let (before, head, attempt, done) =
            (self.f.block(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let seen = self.f.phi(cell);
        let old = self.bit_cast(seen.value, in_memory(scalar));
        let old = self.read_memory(old, scalar);
        let new = self.combine(op, old, value);
        let new = self.memory_form(new);
        let new = self.bits(new);
        let same = self.compare("eq", new, seen.value);
        self.f.branch(same, done, attempt);

        self.f.begin(attempt);
        let (latest, exchanged) = self.compare_exchange(pointer, seen.value, new, align, &suffix);
        self.f.fill(seen, &[(first, before), (latest, attempt)]);
        self.f.branch(exchanged, done, head);
        self.f.begin(done);
        old
    }

    /// What the cell held, and whether it was replaced.
    pub(crate) fn compare_exchange(
        &mut self,
        pointer: Ptr,
        expected: Val,
        desired: Val,
        align: u32,
        suffix: &str,
    ) -> (Val, Val) {
        let ty = expected.ty();
        let pair = self.f.define(format_args!(
            "cmpxchg ptr {pointer}, {}, {} monotonic monotonic, align {align}{suffix}",
            Typed(expected),
            Typed(desired)
        ));
        let old = self.f.value(ty, format_args!("extractvalue {{ {ty}, i1 }} %v{pair}, 0"));
        let exchanged =
            self.f.value(Ty::new(Scalar::U1, 1), format_args!("extractvalue {{ {ty}, i1 }} %v{pair}, 1"));
        (old, exchanged)
    }

    pub(crate) fn atomic_cas(&mut self, path: &[Value], expected: Val, desired: Val) -> Val {
        let address = self.address(path);
        self.update_inside(address, |e, address| e.atomic_cas_at(address, expected, desired))
    }

    fn atomic_cas_at(&mut self, address: Address, expected: Val, desired: Val) -> Val {
        if address.exclusive {
            return self.in_order(|e| {
                let old = e.load_at(address);
                let equal = e.compare("eq", old, expected);
                let new = e.select(equal, desired, old);
                e.store_at(address, new);
                old
            });
        }
        if address.scalar == Scalar::U1 {
            return self.truth_cas_at(address, expected, desired);
        }
        let pointer = address.one_cell();
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let (expected, desired) = (self.memory_form(expected), self.memory_form(desired));
        let (expected, desired) = (self.bits(expected), self.bits(desired));
        let align = address.scalar.bytes();
        let (old, _) = self.compare_exchange(pointer, expected, desired, align, &suffix);
        let old = self.bit_cast(old, in_memory(address.scalar));
        self.read_memory(old, address.scalar)
    }

    /// The same for a truth value: tries with the byte that is there, as long as that is as true as what is expected.
    fn truth_cas_at(&mut self, address: Address, expected: Val, desired: Val) -> Val {
        let pointer = address.one_cell();
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let byte = Ty::new(Scalar::U8, 1);
        let first =
            self.f.value(byte, format_args!("load atomic i8, ptr {pointer} monotonic, align 1{suffix}"));
        let desired = self.memory_form(desired);
        let (before, head, attempt, done) =
            (self.f.block(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let seen = self.f.phi(byte);
        let old = self.read_memory(seen.value, Scalar::U1);
        let equal = self.compare("eq", old, expected);
        self.f.branch(equal, attempt, done);

        self.f.begin(attempt);
        let (latest, exchanged) = self.compare_exchange(pointer, seen.value, desired, 1, &suffix);
        self.f.fill(seen, &[(first, before), (latest, attempt)]);
        self.f.branch(exchanged, done, head);
        self.f.begin(done);
        old
    }

    /// `op(cell, value)` on values. Reals that are updated are totals, in any order; the least and the greatest are the same in each.
    pub(crate) fn combine(&mut self, op: AtomicOp, cell: Val, value: Val) -> Val {
        let is_chosen = matches!(op, AtomicOp::Min | AtomicOp::Max);
        let rounding = if is_chosen { Rounding::AsWritten } else { Rounding::Total };
        let around = std::mem::replace(&mut self.rounding, rounding);
        let combined = self.combine_in_any_order(op, cell, value);
        self.rounding = around;
        combined
    }

    fn combine_in_any_order(&mut self, op: AtomicOp, cell: Val, value: Val) -> Val {
        match op {
            AtomicOp::Add => self.arith(ArithOp::Add, cell, value),
            AtomicOp::Sub => self.arith(ArithOp::Sub, cell, value),
            AtomicOp::Mul => self.arith(ArithOp::Mul, cell, value),
            AtomicOp::Min => self.arith(ArithOp::Min, cell, value),
            AtomicOp::Max => self.arith(ArithOp::Max, cell, value),
            AtomicOp::And => self.binary("and", cell, value),
            AtomicOp::Or => self.binary("or", cell, value),
            AtomicOp::Xor => self.binary("xor", cell, value),
            AtomicOp::Exchange => value,
        }
    }
}

/// Whether what lanes add to one cell may be added up first: integers, and reals where sums may be taken in any order.
pub(crate) fn sums_lanes(kernel: &Kernel, op: AtomicOp, scalar: Scalar) -> bool {
    let in_any_order = if scalar.is_real() { kernel.options.fast_math } else { scalar != Scalar::U1 };
    matches!(op, AtomicOp::Add | AtomicOp::Sub) && in_any_order
}

/// LLVM's instruction for the least or the greatest of integers that are as wide as a register.
fn extreme(op: AtomicOp, scalar: Scalar) -> Option<&'static str> {
    match (op, scalar) {
        (AtomicOp::Min, Scalar::I32 | Scalar::I64) => Some("min"),
        (AtomicOp::Max, Scalar::I32 | Scalar::I64) => Some("max"),
        (AtomicOp::Min, Scalar::U32 | Scalar::U64) => Some("umin"),
        (AtomicOp::Max, Scalar::U32 | Scalar::U64) => Some("umax"),
        _ => None,
    }
}

/// LLVM's instruction for an update, where it has one that is as good as a loop. Least and greatest go by a loop of ours, unless the target
/// has instructions for them: it writes nothing where the cell stays as it is.
fn instruction(op: AtomicOp, scalar: Scalar) -> Option<&'static str> {
    if scalar == Scalar::U1 {
        return match op {
            // What becomes of a byte depends on all of its bits.
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::Xor => None,
            AtomicOp::Mul | AtomicOp::Min | AtomicOp::And => Some("and"),
            AtomicOp::Max | AtomicOp::Or => Some("or"),
            AtomicOp::Exchange => Some("xchg"),
        };
    }
    match op {
        AtomicOp::Exchange => Some("xchg"),
        AtomicOp::Add if scalar == Scalar::F16 => None,
        AtomicOp::Sub if scalar == Scalar::F16 => None,
        AtomicOp::Add => Some(if scalar.is_real() { "fadd" } else { "add" }),
        // Of the negation.
        AtomicOp::Sub => Some(if scalar.is_real() { "fadd" } else { "sub" }),
        AtomicOp::And => Some("and"),
        AtomicOp::Or => Some("or"),
        AtomicOp::Xor => Some("xor"),
        AtomicOp::Mul | AtomicOp::Min | AtomicOp::Max => None,
    }
}
