//! The state of one task's emission, and the instructions that op families are written with.
//!
//! Every instruction here takes scalars or vectors alike: an operand that is the same for all lanes is spread where another
//! is a vector, so an op family says what it means once, for the scalar and for the widened loop.

use octants_ir::ops::MathUnary;
use octants_ir::plan::{Plan, Task};
use octants_ir::{
    Const, Func, Kernel, Op, OpKind, Region, Scalar, SharedLayout, SideTable, SiteNumbers, SiteScope, Type,
    Value,
};

use crate::alias::Scopes;
use crate::counter::Counter;
use crate::function::Function;
use crate::iterations::{Flat, Group, WholeWarp};
use crate::lanes::Lanes;
use crate::lowering::TargetLowering;
use crate::module::Module;
use crate::ops::call_facts::{self, Facts};
use crate::options::EmitOptions;
use crate::rounding::{Rounding, roundings};
use crate::softened::{Softened, softened};
use crate::value::{Label, ParamRegisters, Ptr, Ty, Typed, Val, bits_of};

/// Allowed to math functions where the user asked for fast math. Neither `nnan` nor `ninf`, here as elsewhere: a NaN must not become an undefined
/// branch, and `is_nan` stays right.
const APPROXIMATED: &str = "nsz afn ";

/// What all tasks of a kernel share: found once, read by each emission.
pub(crate) struct KernelFacts {
    pub functions: SideTable<Func, Facts>,
    pub sites: SiteNumbers,
    /// The positions of temporaries in the plan's layout.
    pub temps: SideTable<Value, Option<usize>>,
    /// Values that some op uses.
    pub used: SideTable<Value, bool>,
    /// The op of each task, by number.
    pub tasks: Vec<Op>,
    /// Whether it has both sines and cosines, in single precision or less.
    pub has_sines_and_cosines: bool,
    /// Of a sine or cosine in single precision: the next op of its region that computes the other of the same angle.
    pub partners: SideTable<Op, Option<Op>>,
    /// How far ops on reals may be from what is written.
    pub roundings: SideTable<Op, Rounding>,
    /// Sums of squares that begin with a constant.
    pub softened: SideTable<Op, Softened>,
}

impl KernelFacts {
    pub fn of(kernel: &Kernel) -> Self {
        let mut temps = SideTable::new(None);
        for (slot, place) in kernel.temps().enumerate() {
            temps.set(place, Some(slot));
        }
        let mut used = SideTable::new(false);
        let (mut sines, mut cosines) = (false, false);
        octants_ir::rewrite::walk_all(kernel, &mut |op| {
            let data = &kernel.ops[op];
            for &operand in &data.operands {
                used.set(operand, true);
            }
            let is_single = || matches!(kernel.ty(data.operands[0]).elem(), Some(Scalar::F16 | Scalar::F32));
            match data.kind {
                OpKind::MathUnary(MathUnary::Sin) => sines |= is_single(),
                OpKind::MathUnary(MathUnary::Cos) => cosines |= is_single(),
                _ => {}
            }
        });
        let roundings = roundings(kernel);
        Self {
            used,
            functions: call_facts::facts(kernel),
            sites: SiteNumbers::of(kernel, SiteScope::Reports),
            temps,
            tasks: kernel.tasks().collect(),
            has_sines_and_cosines: sines && cosines,
            partners: partners(kernel),
            softened: softened(kernel, &roundings),
            roundings,
        }
    }
}

/// Sines with the cosine of the same angle behind them in their region, and cosines with the sine. An op is in one pair at most.
fn partners(kernel: &Kernel) -> SideTable<Op, Option<Op>> {
    let mut found = SideTable::new(None);
    for (_, region) in kernel.regions.iter() {
        let mut alone: Vec<(Op, MathUnary, Value)> = Vec::new();
        for &op in &region.ops {
            let data = &kernel.ops[op];
            let OpKind::MathUnary(function @ (MathUnary::Sin | MathUnary::Cos)) = data.kind else { continue };
            let angle = data.operands[0];
            if kernel.ty(angle) != Type::F32 {
                continue;
            }
            match alone.iter().position(|&(_, other, of)| of == angle && other != function) {
                Some(first) => found.set(alone.swap_remove(first).0, Some(op)),
                None => alone.push((op, function, angle)),
            }
        }
    }
    found
}

pub(crate) struct Emitter<'k> {
    pub kernel: &'k Kernel,
    pub facts: &'k KernelFacts,
    pub plan: &'k Plan,
    pub options: &'k EmitOptions,
    pub lowering: &'k dyn TargetLowering,
    pub f: Function,
    pub module: Module,
    pub scopes: Scopes,
    /// What stands for each IR value emitted so far.
    values: SideTable<Value, Option<Val>>,
    /// The exact 64-bit form of loop indices.
    pub counters: SideTable<Value, Option<Counter>>,
    /// Several axes that the row being written runs over at once.
    pub flat: Option<Flat>,
    /// Neighbouring points that are written one behind the other.
    pub group: Option<Group>,
    /// Whether all lanes of a warp run the body that is written.
    pub warp: Option<WholeWarp>,
    /// Whether a branch that is nearly always taken is better than selections: the loop that is written is not one to vectorise.
    pub branches: bool,
    /// `if`s whose condition is known to hold here.
    pub taken: Vec<Op>,
    /// Sines and cosines that were computed with the one before them, and of which angle.
    pub computed: SideTable<Op, Option<(Val, Val)>>,
    /// The allocas of `local` ops.
    pub locals: SideTable<Value, Option<Ptr>>,
    pub params: Vec<ParamRegisters>,
    /// Parameters whose array is a copy that no other thread sees.
    pub copied: Vec<usize>,
    /// Parameters whose array the task does not write, and no other array shares memory with, as far as it is written.
    pub unwritten: Vec<usize>,
    /// Parameters whose array is a copy that the threads of a block share.
    pub shared: Vec<usize>,
    /// The arrays in the block's memory.
    pub block_memory: SharedLayout,
    /// Where they lie, on a target that has no such memory, if some of them overlap.
    pub overlapped: Option<Ptr>,
    /// Threads of a block, where they do something together.
    pub block_threads: Option<u32>,
    pub temps: Option<Ptr>,
    pub results: Option<Ptr>,
    pub cancel: Option<Ptr>,
    pub key: Option<Val>,
    /// The scalars of what is whole, in the order of memory.
    pub aggregates: SideTable<Value, Option<Vec<Val>>>,
    /// The kernel's body, or the function's whose text is written.
    pub body: Region,
    /// Whether the function whose text is written runs to its end, whoever asks it to stop.
    pub is_whole: bool,
    /// Functions that the module needs, in the order of their first call.
    pub called: Vec<Func>,
    /// Where the stack ends for recursive functions.
    pub limit: Option<String>,
    pub lanes: Lanes,
    /// Of the op that is written.
    pub rounding: Rounding,
    /// Where a task that gives up ends.
    pub stop: Option<Label>,
}

impl<'k> Emitter<'k> {
    pub fn new(
        kernel: &'k Kernel,
        facts: &'k KernelFacts,
        plan: &'k Plan,
        options: &'k EmitOptions,
        lowering: &'k dyn TargetLowering,
    ) -> Self {
        Self {
            kernel,
            facts,
            plan,
            options,
            lowering,
            f: Function::new(),
            module: Module::default(),
            scopes: Scopes::default(),
            values: SideTable::new(None),
            counters: SideTable::new(None),
            flat: None,
            group: None,
            warp: None,
            taken: Vec::new(),
            computed: SideTable::new(None),
            locals: SideTable::new(None),
            params: vec![ParamRegisters::default(); kernel.params.len()],
            branches: false,
            copied: Vec::new(),
            unwritten: Vec::new(),
            shared: Vec::new(),
            block_memory: SharedLayout::default(),
            overlapped: None,
            block_threads: None,
            temps: None,
            results: None,
            cancel: None,
            key: None,
            aggregates: SideTable::new(None),
            body: kernel.body,
            is_whole: false,
            called: Vec::new(),
            limit: None,
            lanes: Lanes::default(),
            rounding: Rounding::default(),
            stop: None,
        }
    }

    /// What the plan says of a task.
    pub fn task_of(&self, op: Op) -> &'k Task {
        let number = self.facts.tasks.iter().position(|&task| task == op);
        &self.plan.tasks[number.unwrap_or_else(|| panic!("{op} is no task"))]
    }

    /// What stands for a value.
    pub fn get(&mut self, value: Value) -> Val {
        if let Some(val) = self.values[value] {
            return val;
        }
        let param = self.kernel.as_param(value);
        let param = param.unwrap_or_else(|| panic!("{value} is used before it was emitted"));
        let val = self.load_param(param);
        self.set(value, val);
        val
    }

    pub fn set(&mut self, value: Value, val: Val) {
        self.values.set(value, Some(val));
    }

    /// Puts back what stood for a value, if anything did.
    pub fn reset(&mut self, value: Value, val: Option<Val>) {
        self.values.set(value, val);
    }

    /// What stands for some values, as far as they were emitted.
    pub fn known(&self, values: impl Iterator<Item = Value>) -> Vec<(Value, Val)> {
        values.filter_map(|value| Some((value, self.values[value]?))).collect()
    }

    /// The scalar type of an IR value. After scalarisation values have no other.
    pub fn scalar(&self, value: Value) -> Scalar {
        self.kernel
            .ty(value)
            .scalar()
            .unwrap_or_else(|| panic!("{value} is no scalar, as all values of a task must be"))
    }

    /// Whether the user asked for fast math: math functions may be approximated.
    pub fn is_fast(&self) -> bool {
        self.kernel.options.fast_math
    }

    /// Flags of an instruction on reals.
    pub fn flags(&self, instruction: &str) -> &'static str {
        match instruction {
            _ if !self.is_fast() => "",
            "fdiv" => self.rounding.of_roots(),
            _ => self.rounding.flags(),
        }
    }

    /// Flags of calls of math functions.
    pub fn function_flags(&self) -> &'static str {
        if self.is_fast() { APPROXIMATED } else { "" }
    }

    /// The block in which a task that gives up returns.
    pub fn stop_block(&mut self) -> Label {
        *self.stop.get_or_insert_with(|| self.f.new_label())
    }

    /// Ends the function: the task is done.
    pub fn finish_blocks(&mut self) {
        self.f.terminate(format_args!("ret void"));
        if let Some(stop) = self.stop {
            self.f.begin(stop);
            self.f.terminate(format_args!("ret void"));
        }
    }

    /// The value in each lane.
    pub fn spread(&mut self, v: Val, lanes: u32) -> Val {
        if v.lanes == lanes {
            return v;
        }
        debug_assert_eq!(v.lanes, 1, "only what is the same for all lanes can be spread");
        if v.as_const().is_some() {
            return Val { lanes, ..v };
        }
        let ty = Ty::new(v.ty, lanes);
        let first = self.f.value(ty, format_args!("insertelement {ty} poison, {}, i64 0", Typed(v)));
        self.f.value(
            ty,
            format_args!("shufflevector {ty} {first}, {ty} poison, <{lanes} x i32> zeroinitializer"),
        )
    }

    /// Both with as many lanes as the wider one.
    pub fn same_lanes(&mut self, a: Val, b: Val) -> (Val, Val) {
        let lanes = a.lanes.max(b.lanes);
        (self.spread(a, lanes), self.spread(b, lanes))
    }

    /// An instruction on two integers or bit patterns; the result has the type of `a`.
    pub fn binary(&mut self, instruction: &str, a: Val, b: Val) -> Val {
        let (a, b) = self.same_lanes(a, b);
        self.f.value(a.ty(), format_args!("{instruction} {} {a}, {b}", a.ty()))
    }

    /// An instruction on two reals, with the task's flags.
    pub fn real_binary(&mut self, instruction: &str, a: Val, b: Val) -> Val {
        let (a, b) = self.same_lanes(a, b);
        let flags = self.flags(instruction);
        self.f.value(a.ty(), format_args!("{instruction} {flags}{} {a}, {b}", a.ty()))
    }

    /// `icmp` or `fcmp`, as the operands' type says.
    pub fn compare(&mut self, predicate: &str, a: Val, b: Val) -> Val {
        let (a, b) = self.same_lanes(a, b);
        let instruction = if a.ty.is_real() { "fcmp" } else { "icmp" };
        let ty = Ty::new(Scalar::U1, a.lanes);
        self.f.value(ty, format_args!("{instruction} {predicate} {} {a}, {b}", a.ty()))
    }

    pub fn select(&mut self, c: Val, a: Val, b: Val) -> Val {
        let (a, b) = self.same_lanes(a, b);
        let (a, b) = (self.spread(a, a.lanes.max(c.lanes)), self.spread(b, b.lanes.max(c.lanes)));
        self.f.value(a.ty(), format_args!("select {}, {}, {}", Typed(c), Typed(a), Typed(b)))
    }

    pub fn not(&mut self, a: Val) -> Val {
        self.binary("xor", a, Val::constant(Const::from_bits(a.ty, u64::MAX)))
    }

    /// A conversion instruction.
    pub fn convert(&mut self, instruction: &str, a: Val, to: Scalar) -> Val {
        let ty = Ty::new(to, a.lanes);
        self.f.value(ty, format_args!("{instruction} {} to {ty}", Typed(a)))
    }

    /// An integer in another width, extended as its own type says.
    pub fn resize(&mut self, a: Val, to: Scalar) -> Val {
        if let Some(value) = a.as_int() {
            return Val { lanes: a.lanes, ..Val::constant(Const::from_bits(to, value as u64)) };
        }
        match to.bits().cmp(&a.ty.bits()) {
            std::cmp::Ordering::Less => self.convert("trunc", a, to),
            std::cmp::Ordering::Equal => a.read_as(to),
            std::cmp::Ordering::Greater if a.ty.is_signed() => self.convert("sext", a, to),
            std::cmp::Ordering::Greater => self.convert("zext", a, to),
        }
    }

    /// The bits of a real as an integer, or back.
    pub fn bit_cast(&mut self, a: Val, to: Scalar) -> Val {
        if a.ty.is_real() == to.is_real() {
            return a.read_as(to);
        }
        self.convert("bitcast", a, to)
    }

    pub fn bits(&mut self, a: Val) -> Val {
        self.bit_cast(a, bits_of(a.ty))
    }

    /// A call of an intrinsic that is overloaded by its result; `extra` is what follows the operands.
    pub fn intrinsic(&mut self, name: &str, operands: &[Val], extra: &str) -> Val {
        let lanes = operands.iter().map(|v| v.lanes).max().unwrap_or(1);
        let operands: Vec<_> = operands.iter().map(|&v| self.spread(v, lanes)).collect();
        let ty = operands[0].ty();
        let symbol = format!("{name}.{}", ty.mangled());
        let flags = match name {
            _ if !ty.scalar.is_real() || !self.is_fast() => "",
            "llvm.sqrt" => self.rounding.of_roots(),
            _ if self.rounding == Rounding::AsWritten => "",
            _ => self.function_flags(),
        };
        let types: Vec<_> = operands.iter().map(|v| v.ty().to_string()).collect();
        let typed: Vec<_> = operands.iter().map(|&v| Typed(v).to_string()).collect();
        self.module.declare(&symbol, || {
            let extra = if extra.is_empty() { "" } else { ", i1" };
            format!("declare {ty} @{symbol}({}{extra})", types.join(", "))
        });
        self.f.value(ty, format_args!("call {flags}{ty} @{symbol}({}{extra})", typed.join(", ")))
    }

    /// What one lane holds.
    pub fn lane(&mut self, v: Val, lane: u32) -> Val {
        if v.lanes == 1 || v.as_const().is_some() {
            return Val { lanes: 1, ..v };
        }
        self.f.value(Ty::new(v.ty, 1), format_args!("extractelement {}, i64 {lane}", Typed(v)))
    }

    /// What a lane holds whose number is computed.
    pub fn lane_at(&mut self, v: Val, lane: Val) -> Val {
        if v.lanes == 1 || v.as_const().is_some() {
            return Val { lanes: 1, ..v };
        }
        self.f.value(Ty::new(v.ty, 1), format_args!("extractelement {}, {}", Typed(v), Typed(lane)))
    }

    /// The address so many bytes behind another.
    pub fn offset(&mut self, base: impl std::fmt::Display, bytes: usize) -> String {
        if bytes == 0 {
            return base.to_string();
        }
        self.f.pointer(format_args!("getelementptr inbounds i8, ptr {base}, i64 {bytes}")).to_string()
    }
}
