//! `if`, `for` and `while` where one decision holds for all lanes. Loops carry their values in phis and test at their head, as
//! they do in the IR: LLVM rotates them when it is time.
//!
//! Where lanes decide differently, [`mask`](crate::lanes::mask) takes over.

use octants_ir::{Op, OpKind, Region, Scalar, Value};

use crate::counter::Counter;
use crate::counter::Index;
use crate::emitter::Emitter;
use crate::function::Phi;
use crate::module::Node;
use crate::ops::loop_length::is_short;
use crate::ops::loop_length::polls;
use crate::ops::loop_length::strip_length;
use crate::ops::loop_length::unrolled_ops;
use crate::value::{Label, Ty, Val};

/// Ops of widened code that loops may be unrolled to. Chosen, not measured: LLVM's own threshold is about as many instructions.
const MAX_UNROLLED_OPS: u64 = 128;

/// A loop over strips of another loop, while it is being written.
struct Strips {
    /// Of the whole loop.
    range: (Val, Val),
    /// Of the strip.
    begin: Phi,
    end: Val,
    /// What the first strip begins with, and what each does.
    initial: Vec<Val>,
    carried: Vec<Phi>,
    before: Label,
    inside: Label,
    done: Label,
}

impl Emitter<'_> {
    /// The type of what stands for a value where control flow meets: a vector if lanes differ.
    pub(crate) fn joined_ty(&self, value: Value) -> Ty {
        let lanes = if self.lanes.varying[value] { self.lanes.count } else { 1 };
        Ty::new(self.scalar(value), lanes)
    }

    pub(crate) fn if_op(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        if self.taken.contains(&op) {
            self.region(data.regions[0]);
            return;
        }
        let condition = self.get(data.operands[0]);
        if condition.lanes > 1 {
            return self.masked_if(op, condition);
        }
        let (then, otherwise) = (data.regions[0], data.regions[1]);
        let joined: Vec<_> = data.results.iter().map(|&result| self.joined_ty(result)).collect();
        let done = self.f.new_label();
        let before = self.f.block();
        let then_label = if self.kernel.is_bare(then) { done } else { self.f.new_label() };
        let else_label = if self.kernel.is_bare(otherwise) { done } else { self.f.new_label() };
        if then_label == done && else_label == done {
            // Nothing but a choice.
            let (a, b) = (self.region(then), self.region(otherwise));
            for (index, &result) in data.results.iter().enumerate() {
                let chosen = self.select(condition, a[index], b[index]);
                let chosen = self.spread(chosen, joined[index].lanes);
                self.set(result, chosen);
            }
            return;
        }
        // A bare region yields what is known here already; it has to be spread here too.
        let mut from_then = (Vec::new(), before);
        let mut from_else = (Vec::new(), before);
        if then_label == done {
            from_then.0 = self.yielded(then, &joined);
        }
        if else_label == done {
            from_else.0 = self.yielded(otherwise, &joined);
        }
        self.f.branch(condition, then_label, else_label);
        if then_label != done {
            self.f.begin(then_label);
            from_then = (self.yielded(then, &joined), self.f.block());
            self.f.jump(done);
        }
        if else_label != done {
            self.f.begin(else_label);
            from_else = (self.yielded(otherwise, &joined), self.f.block());
            self.f.jump(done);
        }
        self.f.begin(done);
        for (index, &result) in data.results.iter().enumerate() {
            let incoming = [(from_then.0[index], from_then.1), (from_else.0[index], from_else.1)];
            let value = self.f.join(joined[index], &incoming);
            self.set(result, value);
        }
    }

    /// Emits a region and gives what it yields in the given types.
    pub(crate) fn yielded(&mut self, region: Region, types: &[Ty]) -> Vec<Val> {
        let values = self.region(region);
        values.iter().zip(types).map(|(&value, ty)| self.spread(value, ty.lanes)).collect()
    }

    pub(crate) fn for_op(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let (lo, hi) = (self.get(data.operands[0]), self.get(data.operands[1]));
        if lo.lanes > 1 || hi.lanes > 1 {
            return self.masked_for(op, lo, hi);
        }
        self.lanes.left_one_by_one.set(op, false);
        if self.lanes.count == 1 && self.lowering.for_loop(self, op) {
            return;
        }
        let body = data.regions[0];
        let params = &self.kernel.regions[body].params;
        let (&index, carried) = params.split_first().expect("a loop's body has an index");
        let types: Vec<_> = carried.iter().map(|&value| self.joined_ty(value)).collect();
        let initial: Vec<_> = data.operands[2..].iter().map(|&value| self.get(value)).collect();
        let mut initial: Vec<_> =
            initial.iter().zip(&types).map(|(&value, ty)| self.spread(value, ty.lanes)).collect();

        let narrow = self.scalar(index);
        // A counter of 64 bits makes addresses affine; it cannot overflow, since it stays below `hi`.
        let wide = if narrow == Scalar::U64 { Scalar::U64 } else { Scalar::I64 };
        let (mut lo, mut hi) = (self.resize(lo, wide), self.resize(hi, wide));
        let (less, step) = if wide.is_signed() { ("slt", "add nsw") } else { ("ult", "add nuw") };
        let hoisted = self.hoist_loads(op, (lo, hi));
        let strips = strip_length(self.kernel, op).filter(|_| self.lowering.can_stop()).map(|length| {
            let strips = self.begin_strips((lo, hi), initial.clone(), length);
            (lo, hi) = (strips.begin.value, strips.end);
            initial = strips.carried.iter().map(|phi| phi.value).collect();
            strips
        });
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let counter = self.f.phi(Ty::new(wide, 1));
        let phis: Vec<Phi> = types.iter().map(|&ty| self.f.phi(ty)).collect();
        let more = self.compare(less, counter.value, hi);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let seen = self.resize(counter.value, narrow);
        self.set(index, seen);
        let range = self.counted_range(data.operands[0], data.operands[1]);
        let exact = Index::uniform(counter.value.read_as(Scalar::I64));
        self.counters.set(index, Some(Counter { index: exact, range }));
        for (&param, phi) in carried.iter().zip(&phis) {
            self.set(param, phi.value);
        }
        let next = self.yielded(body, &types);
        self.forget_hoisted(&hoisted);
        if self.polls(op) {
            self.poll_cancel();
        }
        let stepped = self.binary(step, counter.value, Val::int(wide, 1));
        let latch = self.f.block();
        let facts = self.loop_facts(op);
        self.back_edge(head, &facts);
        self.f.fill(counter, &[(lo, before), (stepped, latch)]);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        let totals: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let totals = match &strips {
            Some(strips) => self.end_strips(strips, &totals),
            None => totals,
        };
        for (&result, &total) in data.results.iter().zip(&totals) {
            self.set(result, total);
        }
    }

    /// Begins a loop around a `for`: each iteration of it runs a strip of the `for`'s, and before the next one looks whether the launch
    /// should stop. The `for` itself stays free of that, so that it vectorises.
    fn begin_strips(&mut self, (lo, hi): (Val, Val), initial: Vec<Val>, length: u64) -> Strips {
        let (less, add) = if lo.ty.is_signed() { ("slt", "add nsw") } else { ("ult", "add nuw") };
        let (inside, done) = (self.f.new_label(), self.f.new_label());
        let some = self.compare(less, lo, hi);
        let before = self.f.block();
        self.f.branch(some, inside, done);

        self.f.begin(inside);
        let begin = self.f.phi(lo.ty());
        let carried: Vec<Phi> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        // The difference of what is in order is right as an unsigned number.
        let left = self.binary("sub", hi, begin.value);
        let left = self.intrinsic("llvm.umin", &[left, Val::int(lo.ty, length.into())], "");
        let end = self.binary(add, begin.value, left);
        Strips { range: (lo, hi), begin, end, initial, carried, before, inside, done }
    }

    /// Ends a strip, which leaves these values; gives what the whole loop leaves.
    fn end_strips(&mut self, strips: &Strips, totals: &[Val]) -> Vec<Val> {
        let (lo, hi) = strips.range;
        let at_most = if lo.ty.is_signed() { "sle" } else { "ule" };
        let over = self.compare(at_most, hi, strips.end);
        let (next, latch) = (self.f.new_label(), self.f.block());
        let (done, unlikely) = (strips.done, self.module.cold_node());
        self.f.terminate(format_args!("br i1 {over}, label %{done}, label %{next}, !prof {unlikely}"));

        self.f.begin(next);
        self.poll_cancel();
        let polled = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(strips.inside, &facts);
        self.f.fill(strips.begin, &[(lo, strips.before), (strips.end, polled)]);
        self.fill_phis(&strips.carried, &strips.initial, strips.before, totals, polled);

        self.f.begin(strips.done);
        let results = strips.initial.iter().zip(totals);
        results
            .map(|(&initial, &total)| self.f.join(total.ty(), &[(initial, strips.before), (total, latch)]))
            .collect()
    }

    pub(crate) fn while_op(&mut self, op: Op) {
        if self.lanes.count > 1 && self.decides_by_lane(op) {
            return self.masked_while(op);
        }
        self.lanes.left_one_by_one.set(op, false);
        let data = &self.kernel.ops[op];
        let (condition, body) = (data.regions[0], data.regions[1]);
        let types: Vec<_> = data.results.iter().map(|&value| self.joined_ty(value)).collect();
        let initial: Vec<_> = data.operands.iter().map(|&value| self.get(value)).collect();
        let initial: Vec<_> =
            initial.iter().zip(&types).map(|(&value, ty)| self.spread(value, ty.lanes)).collect();
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let phis: Vec<Phi> = types.iter().map(|&ty| self.f.phi(ty)).collect();
        self.bind(condition, &phis.iter().map(|phi| phi.value).collect::<Vec<_>>());
        let mut tested = self.region(condition);
        let holds = tested.remove(0);
        let tested: Vec<_> =
            tested.iter().zip(&types).map(|(&value, ty)| self.spread(value, ty.lanes)).collect();
        self.f.branch(holds, inside, done);

        self.f.begin(inside);
        self.bind(body, &tested);
        let next = self.yielded(body, &types);
        self.poll_cancel();
        let latch = self.f.block();
        let facts = self.lowering.while_facts(self, op);
        self.back_edge(head, &facts);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        for (&result, &value) in data.results.iter().zip(&tested) {
            self.set(result, value);
        }
    }

    /// In widened code an iteration is long already; only loops of a few short iterations are unrolled, fully. In scalar code LLVM decides, unless
    /// the target wants such loops unrolled.
    fn loop_facts(&mut self, op: Op) -> Vec<Node> {
        let whole = self.kernel.ops[op].kind == OpKind::For
            && is_short(self.kernel, op)
            && unrolled_ops(self.kernel, op) <= MAX_UNROLLED_OPS;
        match self.lanes.count {
            1 if whole && self.lowering.unrolls_short_loops() => {
                vec![self.module.node("!{!\"llvm.loop.unroll.full\"}".to_owned())]
            }
            1 => Vec::new(),
            _ if whole => Vec::new(),
            _ => vec![self.module.not_unrolled()],
        }
    }

    pub(crate) fn fill_phis(
        &mut self,
        phis: &[Phi],
        initial: &[Val],
        before: Label,
        next: &[Val],
        latch: Label,
    ) {
        for (index, &phi) in phis.iter().enumerate() {
            self.f.fill(phi, &[(initial[index], before), (next[index], latch)]);
        }
    }

    /// Sets a region's parameters.
    pub(crate) fn bind(&mut self, region: Region, values: &[Val]) {
        for (&param, &value) in self.kernel.regions[region].params.iter().zip(values) {
            self.set(param, value);
        }
    }

    /// Whether each iteration of a loop looks whether the launch should stop: where it holds another loop, it may take long, and a
    /// look is nothing beside that. An innermost loop does not look, so that it vectorises; if it is long, it is cut into strips.
    pub(crate) fn polls(&self, op: Op) -> bool {
        polls(self.kernel, op)
    }
}
