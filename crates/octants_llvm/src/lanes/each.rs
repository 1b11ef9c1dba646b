//! What has no vector instruction, done for one lane after the other: in a loop, not written out for each lane.

use octants_ir::{Const, Scalar};

use crate::emitter::Emitter;
use crate::value::{Ptr, Ty, Typed, Val, in_memory};

/// Loops over lanes that a task has in its own code. Each costs LLVM time that grows with the code around it: with 128 sines in the body of a loop, a
/// kernel's derivative compiled for 3.2 s of processor time. Further ones are calls of functions that have the loop; these are a few percent slower.
const MOST_LOOPS: usize = 8;

/// Updates that a task has unrolled, times lanes. Further ones are loops, which take longer to run and less to compile: with 32 updates of shared sums by 16 lanes, and 8
/// products and sums after each, a kernel compiles for 0.19 s if all are unrolled, for 0.11 s if none is, and for 0.08 s as scalar code.
const MAX_UNROLLED_UPDATES: u32 = 128;

const COUNTER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

impl Emitter<'_> {
    /// A stack slot for one vector of any type. Numbered, so that one instruction can use several.
    fn scratch(&mut self, number: usize) -> Ptr {
        while self.lanes.scratch.len() <= number {
            let bytes = self.lanes.count * 8;
            let slot = self.f.in_entry(|f| f.pointer(format_args!("alloca [{bytes} x i8], align 64")));
            self.lanes.scratch.push(slot);
        }
        self.lanes.scratch[number]
    }

    fn store_scratch(&mut self, number: usize, v: Val) -> Ptr {
        let slot = self.scratch(number);
        let v = self.memory_form(v);
        self.f.line(format_args!("store {}, ptr {slot}, align 64", Typed(v)));
        slot
    }

    fn load_scratch(&mut self, number: usize, scalar: Scalar) -> Val {
        let slot = self.scratch(number);
        let ty = Ty::new(in_memory(scalar), self.lanes.count);
        let v = self.f.value(ty, format_args!("load {ty}, ptr {slot}, align 64"));
        self.read_memory(v, scalar)
    }

    /// The address of one lane's scalar in a vector that lies in memory.
    fn lane_cell(&mut self, slot: Ptr, scalar: Scalar, lane: Val) -> Ptr {
        let ty = Ty::new(in_memory(scalar), 1);
        self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {slot}, {}", Typed(lane)))
    }

    fn load_lane(&mut self, slot: Ptr, scalar: Scalar, lane: Val) -> Val {
        let cell = self.lane_cell(slot, scalar, lane);
        let ty = Ty::new(in_memory(scalar), 1);
        let v = self.f.value(ty, format_args!("load {ty}, ptr {cell}, align {}", scalar.bytes()));
        self.read_memory(v, scalar)
    }

    fn store_lane(&mut self, slot: Ptr, lane: Val, v: Val) {
        let cell = self.lane_cell(slot, v.ty, lane);
        let align = v.ty.bytes();
        let v = self.memory_form(v);
        self.f.line(format_args!("store {}, ptr {cell}, align {align}", Typed(v)));
    }

    /// A pure scalar operation for the lanes that run. What it gives in other lanes is 0, or what it gives there.
    ///
    /// Where functions may be approximated the loop is one over all lanes, without a decision: LLVM makes it a call of a vector
    /// function, where there is one.
    pub(crate) fn by_lane(&mut self, operands: &[Val], operate: impl Fn(&mut Self, &[Val]) -> Val) -> Val {
        let lanes = operands.iter().map(|v| v.lanes).max().unwrap_or(1);
        if lanes == 1 {
            return operate(self, operands);
        }
        let scalar = operands[0].ty;
        let slots: Vec<_> = operands
            .iter()
            .enumerate()
            .map(|(index, &v)| (v.lanes > 1).then(|| self.store_scratch(index + 1, v)))
            .collect();
        let results = if !self.is_fast() && self.lanes.mask.is_some() {
            let zero = self.spread(Val::constant(Const::from_bits(scalar, 0)), lanes);
            self.store_scratch(0, zero)
        } else {
            self.scratch(0)
        };
        let body = |e: &mut Self, lane: Val| {
            let given = operands.iter().zip(&slots);
            let given: Vec<_> =
                given.map(|(&v, slot)| slot.map_or(v, |slot| e.load_lane(slot, v.ty, lane))).collect();
            let result = operate(e, &given);
            e.store_lane(results, lane, result);
        };
        if !self.is_fast() && self.lanes.mask.is_some() {
            self.each_running_lane(body);
        } else {
            self.each_lane(body);
        }
        self.load_scratch(0, scalar)
    }

    /// An intrinsic for each lane.
    pub(crate) fn intrinsic_by_lane(&mut self, name: &str, operands: &[Val]) -> Val {
        let lanes = operands.iter().map(|v| v.lanes).max().unwrap_or(1);
        let masked = !self.is_fast() && self.lanes.mask.is_some();
        self.lanes.loops += usize::from(lanes > 1 && !masked);
        if lanes == 1 || masked || self.lanes.loops <= MOST_LOOPS {
            return self.by_lane(operands, |e, v| e.intrinsic(name, v, ""));
        }
        let scalar = operands[0].ty;
        let mut slots = vec![self.scratch(0)];
        for (index, &operand) in operands.iter().enumerate() {
            let operand = self.spread(operand, lanes);
            slots.push(self.store_scratch(index + 1, operand));
        }
        let function = self.lane_function(name, scalar, operands.len());
        let slots: Vec<_> = slots.iter().map(|slot| format!("ptr {slot}")).collect();
        self.f.line(format_args!("call void @{function}({})", slots.join(", ")));
        self.load_scratch(0, scalar)
    }

    /// A function that applies an intrinsic to all lanes of vectors in memory: the results, then the operands.
    fn lane_function(&mut self, name: &str, scalar: Scalar, operands: usize) -> String {
        let (ty, lanes) = (Ty::new(scalar, 1), self.lanes.count);
        let symbol = format!("{name}.{}", ty.mangled());
        let function = format!("octants.{symbol}.by_{lanes}_lanes");
        if self.module.has_function(&function) {
            return function;
        }
        self.module.declare(&symbol, || {
            format!("declare {ty} @{symbol}({})", vec![ty.to_string(); operands].join(", "))
        });
        let whole = self.module.not_unrolled();
        let facts = self.module.distinct_node(&[whole]);
        let (flags, align) = (self.function_flags(), scalar.bytes());
        let (mut params, mut loads, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for operand in 0..operands {
            params.push(format!("ptr noalias nocapture readonly align 64 %in{operand}"));
            values.push(format!("{ty} %v{operand}"));
            loads.push(format!(
                "  %at{operand} = getelementptr inbounds {ty}, ptr %in{operand}, i64 %lane\n  \
                 %v{operand} = load {ty}, ptr %at{operand}, align {align}\n"
            ));
        }
        let (params, loads, values) = (params.join(", "), loads.concat(), values.join(", "));
        self.module.add_function_once(&function, || {
            format!(
                "define internal void @{function}(ptr noalias nocapture writeonly align 64 %out, {params}) noinline nounwind \
                 memory(argmem: readwrite) {{\nentry:\n  br label %inside\ninside:\n  \
                 %lane = phi i64 [ 0, %entry ], [ %next, %inside ]\n{loads}  \
                 %result = call {flags}{ty} @{symbol}({values})\n  \
                 %at = getelementptr inbounds {ty}, ptr %out, i64 %lane\n  \
                 store {ty} %result, ptr %at, align {align}\n  \
                 %next = add nuw nsw i64 %lane, 1\n  \
                 %more = icmp ult i64 %next, {lanes}\n  \
                 br i1 %more, label %inside, label %done, !llvm.loop {facts}\ndone:\n  ret void\n}}\n"
            )
        });
        function
    }

    /// A loop over all lanes; the body is scalar code.
    fn each_lane(&mut self, body: impl FnOnce(&mut Self, Val)) {
        let (before, head, inside, done) =
            (self.f.block(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let lane = self.f.phi(COUNTER);
        let more = self.compare("ult", lane.value, Val::i64(self.lanes.count.into()));
        self.f.branch(more, inside, done);
        self.f.begin(inside);
        self.as_scalar(|e| body(e, lane.value));
        let next = self.binary("add nuw nsw", lane.value, Val::i64(1));
        let latch = self.f.block();
        let whole = self.module.not_unrolled();
        self.back_edge(head, &[whole]);
        self.f.fill(lane, &[(Val::i64(0), before), (next, latch)]);
        self.f.begin(done);
    }

    /// Updates memory for the lanes that run, in their order. LLVM unrolls the first such loops, as lanes of vectors at fixed places are values in registers.
    pub(crate) fn update_each_lane(&mut self, update: impl FnOnce(&mut Self, Val)) {
        if self.lanes.mask.is_some() {
            return self.each_running_lane(update);
        }
        self.lanes.updates += self.lanes.count;
        if self.lanes.updates <= MAX_UNROLLED_UPDATES {
            self.each_running_lane(update);
        } else {
            self.each_lane(update);
        }
    }

    /// A loop over the lanes that run, in their order; the body is scalar code.
    pub(crate) fn each_running_lane(&mut self, body: impl FnOnce(&mut Self, Val)) {
        let lanes = self.lanes.count;
        let all = match self.lanes.mask {
            Some(mask) => format!("%v{}", self.mask_bits(mask)),
            None => "-1".to_owned(),
        };
        let (before, head, inside, done) =
            (self.f.block(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        // As wide as there are lanes, which no scalar type need be.
        let (left, rest) = (self.f.new_register(), self.f.new_register());
        let phi = self.f.position();
        let any = self.f.value(Ty::new(Scalar::U1, 1), format_args!("icmp ne i{lanes} %v{left}, 0"));
        self.f.branch(any, inside, done);
        self.f.begin(inside);
        let lane = self.lowest_bit(left, lanes);
        self.as_scalar(|e| body(e, lane));
        let less = self.f.define(format_args!("sub i{lanes} %v{left}, 1"));
        self.f.line(format_args!("%v{rest} = and i{lanes} %v{left}, %v{less}"));
        let latch = self.f.block();
        self.f.jump(head);
        self.f
            .insert(phi, format!("  %v{left} = phi i{lanes} [ {all}, %{before} ], [ %v{rest}, %{latch} ]\n"));
        self.f.begin(done);
    }

    /// Writes scalar code inside widened code.
    pub(crate) fn as_scalar(&mut self, write: impl FnOnce(&mut Self)) {
        let (lanes, mask) = (std::mem::replace(&mut self.lanes.count, 1), self.lanes.mask.take());
        write(self);
        (self.lanes.count, self.lanes.mask) = (lanes, mask);
    }

    /// One scalar for each lane that runs, from the cell that the closure names; 0 in the others.
    pub(crate) fn load_by_lane(&mut self, scalar: Scalar, load: impl FnOnce(&mut Self, Val) -> Val) -> Val {
        let zero = self.spread(Val::constant(Const::from_bits(scalar, 0)), self.lanes.count);
        let results = self.store_scratch(0, zero);
        self.each_running_lane(|e, lane| {
            let value = load(e, lane);
            e.store_lane(results, lane, value);
        });
        self.load_scratch(0, scalar)
    }
}
