//! Control flow where lanes decide differently: each side runs for the lanes that want it, under a mask.
//!
//! A lane that does not run computes something all the same; it is never poison, and nobody reads it. Memory is only touched
//! where the mask says so. **Masked code with memory accesses runs only if some lane does**, so an access that is the same
//! for all lanes needs no mask.

use octants_ir::ops::MathUnary;
use octants_ir::{Const, Op, OpKind, Region, Scalar, Value, ValueDef};

use crate::counter::Counter;
use crate::counter::Index;
use crate::emitter::Emitter;
use crate::function::Phi;
use crate::ops::loop_length::may_stop;
use crate::value::{Ty, Val};

/// Ops without side effects that are executed under a mask instead of branched around: about the cost of a mispredicted branch. Chosen,
/// not measured.
const MAX_BRANCHLESS_OPS: usize = 12;

impl Emitter<'_> {
    /// A condition in the form in which masks are held from one block to the next: where the target has no registers for
    /// them, all bits of an integer as wide as the data, so that nothing is packed and unpacked.
    pub(crate) fn as_mask(&mut self, condition: Val) -> Val {
        let condition = self.spread(condition, self.lanes.count);
        if self.lanes.mask_scalar == Scalar::U1 {
            return condition;
        }
        match condition.as_const() {
            Some(c) => {
                let bits = if c.is_zero() { 0 } else { u64::MAX };
                self.spread(Val::constant(Const::from_bits(self.lanes.mask_scalar, bits)), self.lanes.count)
            }
            None => self.convert("sext", condition, self.lanes.mask_scalar),
        }
    }

    /// The lanes of a mask as bits, for a selection or an access.
    pub(crate) fn lanes_of(&mut self, mask: Val) -> Val {
        if mask.ty == Scalar::U1 { mask } else { self.compare("slt", mask, Val::int(mask.ty, 0)) }
    }

    /// The lanes that run, where not all do, as bits.
    pub(crate) fn running_lanes(&mut self) -> Option<Val> {
        self.lanes.mask.map(|mask| self.lanes_of(mask))
    }

    /// The mask as an integer with one bit per lane, in a register.
    pub(crate) fn mask_bits(&mut self, mask: Val) -> u32 {
        let mask = self.lanes_of(mask);
        let lanes = mask.lanes;
        self.f.define(format_args!("bitcast <{lanes} x i1> {mask} to i{lanes}"))
    }

    /// The number of the first lane of a mask that has one.
    pub(crate) fn first_lane(&mut self, mask: Val) -> Val {
        let (bits, lanes) = (self.mask_bits(mask), mask.lanes);
        self.lowest_bit(bits, lanes)
    }

    /// The position of the lowest bit of an integer of that many bits that has one.
    pub(crate) fn lowest_bit(&mut self, bits: u32, width: u32) -> Val {
        let symbol = format!("llvm.cttz.i{width}");
        self.module.declare(&symbol, || format!("declare i{width} @{symbol}(i{width}, i1)"));
        let zeros = self.f.define(format_args!("call i{width} @{symbol}(i{width} %v{bits}, i1 true)"));
        let ty = Ty::new(Scalar::I64, 1);
        match width {
            64 => Val::reg(zeros, ty),
            0..64 => self.f.value(ty, format_args!("zext i{width} %v{zeros} to i64")),
            _ => self.f.value(ty, format_args!("trunc i{width} %v{zeros} to i64")),
        }
    }

    /// Whether any lane holds true, of a mask or a condition.
    pub(crate) fn any_lane(&mut self, mask: Val) -> Val {
        if mask.lanes == 1 {
            return mask;
        }
        let (bits, lanes) = (self.mask_bits(mask), mask.lanes);
        self.f.value(Ty::new(Scalar::U1, 1), format_args!("icmp ne i{lanes} %v{bits}, 0"))
    }

    /// What lanes of the mask compute, and what the others had.
    pub(crate) fn choose(&mut self, mask: Val, value: Val, old: Val) -> Val {
        if value == old {
            return old;
        }
        let lanes = self.lanes_of(mask);
        self.select(lanes, value, old)
    }

    /// The lanes that run and hold true.
    pub(crate) fn narrowed(&mut self, condition: Val) -> Val {
        let held = self.as_mask(condition);
        match self.lanes.mask {
            Some(mask) => self.binary("and", mask, held),
            None => held,
        }
    }

    /// Runs `emit` with another mask.
    pub(crate) fn under<R>(&mut self, mask: Val, emit: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.lanes.mask.replace(mask);
        let result = emit(self);
        self.lanes.mask = outer;
        result
    }

    /// Whether the lanes may want different numbers of iterations of a `while`.
    pub(crate) fn decides_by_lane(&self, op: Op) -> bool {
        let condition = self.kernel.ops[op].regions[0];
        self.kernel.terminator(condition).is_some_and(|terminator| self.lanes.varying[terminator.operands[0]])
    }

    pub(crate) fn masked_if(&mut self, op: Op, condition: Val) {
        let data = &self.kernel.ops[op];
        let then_mask = self.narrowed(condition);
        let a = self.masked_region(data.regions[0], then_mask);
        // Most have no `else`, and yield there what was.
        let b = if self.kernel.regions[data.regions[1]].ops.len() == 1 {
            self.region(data.regions[1])
        } else {
            let inverse = self.not(condition);
            let else_mask = self.narrowed(inverse);
            self.masked_region(data.regions[1], else_mask)
        };
        for (index, &result) in data.results.iter().enumerate() {
            let chosen = self.select(condition, a[index], b[index]);
            self.set(result, chosen);
        }
    }

    /// A region under a mask, skipped if no lane wants it; what it yields is then something.
    fn masked_region(&mut self, region: Region, mask: Val) -> Vec<Val> {
        if self.is_branchless(region) {
            return self.under(mask, |e| e.region(region));
        }
        let (runs, done) = (self.f.new_label(), self.f.new_label());
        let any = self.any_lane(mask);
        let before = self.f.block();
        self.f.branch(any, runs, done);
        self.f.begin(runs);
        let values = self.under(mask, |e| e.region(region));
        let end = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        values
            .iter()
            .map(|&value| {
                let nothing = Val { lanes: value.lanes, ..Val::constant(Const::from_bits(value.ty, 0)) };
                self.f.join(value.ty(), &[(value, end), (nothing, before)])
            })
            .collect()
    }

    /// Whether a region is a few cheap instructions without effects. A square root is none: where no lane wants it, a loop with one takes twice as long.
    fn is_branchless(&self, region: Region) -> bool {
        let mut cost = 0;
        for &op in &self.kernel.regions[region].ops {
            cost += match &self.kernel.ops[op].kind {
                OpKind::Yield => 1,
                OpKind::MathUnary(
                    MathUnary::Floor | MathUnary::Ceil | MathUnary::IsNan | MathUnary::IsInf,
                ) => 1,
                OpKind::Math(_) | OpKind::MathUnary(_) => return false,
                kind if kind.is_pure() => 1,
                _ => return false,
            };
        }
        cost <= MAX_BRANCHLESS_OPS
    }

    /// A `for` whose bounds differ between lanes. Lanes that begin alike keep one counter.
    pub(crate) fn masked_for(&mut self, op: Op, lo: Val, hi: Val) {
        let data = &self.kernel.ops[op];
        let body = data.regions[0];
        let params = &self.kernel.regions[body].params;
        let (&index, carried) = params.split_first().expect("a loop's body has an index");
        let initial: Vec<_> = data.operands[2..].iter().map(|&value| self.get(value)).collect();
        let initial: Vec<_> = initial.iter().map(|&value| self.spread(value, self.lanes.count)).collect();
        let less = if lo.ty.is_signed() { "slt" } else { "ult" };
        let all = self.narrowed(Val::constant(Const::bool(true)));
        self.lanes.left_one_by_one.set(op, true);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let counter = self.f.phi(lo.ty());
        let mask = self.f.phi(all.ty());
        let phis: Vec<Phi> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let within = self.compare(less, counter.value, hi);
        let within = self.as_mask(within);
        let still = self.binary("and", mask.value, within);
        let any = self.any_lane(still);
        self.f.branch(any, inside, done);

        self.f.begin(inside);
        self.set(index, counter.value);
        for (&param, phi) in carried.iter().zip(&phis) {
            self.set(param, phi.value);
        }
        let wide = self.resize(counter.value, Scalar::I64);
        let exact = if wide.lanes == 1 { Index::uniform(wide) } else { Index::Lanes(wide) };
        let range = self.counted_range(data.operands[0], data.operands[1]);
        self.counters.set(index, Some(Counter { index: exact, range }));
        let yielded = self.under(still, |e| e.region(body));
        let yields = &self.kernel.terminator(body).expect("a loop's body yields").operands;
        let mut next = Vec::with_capacity(phis.len());
        for (slot, (&value, phi)) in yielded.iter().zip(&phis).enumerate() {
            let keeps = self.keeps_lanes(yields[slot], carried[slot]);
            next.push(if keeps { value } else { self.choose(still, value, phi.value) });
        }
        if may_stop(self.kernel, op) {
            self.poll_cancel();
        }
        // A lane that has left is at its end and stays there: its counter may wrap, its mask does not come back.
        let stepped = self.binary("add", counter.value, Val::int(lo.ty, 1));
        let latch = self.f.block();
        self.f.jump(head);
        self.f.fill(counter, &[(lo, before), (stepped, latch)]);
        self.f.fill(mask, &[(all, before), (still, latch)]);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        for (&result, phi) in data.results.iter().zip(&phis) {
            self.set(result, phi.value);
        }
    }

    /// Whether lanes that do not run a body have in what it yields what it began with: a loop carries that, under the body's mask.
    fn keeps_lanes(&self, yields: Value, began: Value) -> bool {
        let ValueDef::Result(op, slot) = self.kernel.values[yields].def else { return false };
        let data = &self.kernel.ops[op];
        self.lanes.left_one_by_one[op]
            && data.operands[data.operands.len() - data.results.len() + slot as usize] == began
    }

    /// A `while` that lanes leave one by one: it runs until none is left. A lane that has left keeps what it had.
    pub(crate) fn masked_while(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let (condition, body) = (data.regions[0], data.regions[1]);
        let initial: Vec<_> = data.operands.iter().map(|&value| self.get(value)).collect();
        let initial: Vec<_> = initial.iter().map(|&value| self.spread(value, self.lanes.count)).collect();
        let all = self.narrowed(Val::constant(Const::bool(true)));
        self.lanes.left_one_by_one.set(op, true);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let mask = self.f.phi(all.ty());
        let phis: Vec<Phi> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let held: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        self.bind(condition, &held);
        let mut tested = self.under(mask.value, |e| e.region(condition));
        let holds = tested.remove(0);
        let tested: Vec<_> =
            tested.iter().zip(&held).map(|(&value, &old)| self.choose(mask.value, value, old)).collect();
        let holds = self.as_mask(holds);
        let still = self.binary("and", mask.value, holds);
        let any = self.any_lane(still);
        self.f.branch(any, inside, done);

        self.f.begin(inside);
        self.bind(body, &tested);
        let yielded = self.under(still, |e| e.region(body));
        let next: Vec<_> =
            yielded.iter().zip(&tested).map(|(&value, &old)| self.choose(still, value, old)).collect();
        self.poll_cancel();
        let latch = self.f.block();
        self.f.jump(head);
        self.f.fill(mask, &[(all, before), (still, latch)]);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        for (&result, &value) in data.results.iter().zip(&tested) {
            self.set(result, value);
        }
    }
}
