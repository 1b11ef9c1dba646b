//! Appends ops to a region. Infers result types from the tables, so that whoever builds IR never states one that follows.
//!
//! The builder asserts nothing about types: the verifier states the laws.

use crate::constant::Const;
use crate::ids::{Func, Loc, Op, Region, Value};
use crate::kernel::Kernel;
use crate::layout::Layout;
use crate::ops::{
    ArithOp, AssertKind, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp, MathOp, MathUnary, OpKind,
    ParallelFor, PrintSpec, Scope, ShuffleOp, TensorOp,
};
use crate::types::{Data, Scalar, Type};

/// An insertion point at the end of a region.
pub struct Builder<'k> {
    pub kernel: &'k mut Kernel,
    pub region: Region,
    pub loc: Loc,
}

impl<'k> Builder<'k> {
    /// Appends to the end of the kernel's body, at no location.
    pub fn new(kernel: &'k mut Kernel) -> Self {
        let region = kernel.body;
        let loc = kernel.locs.ids().next().expect("a kernel has the location NOWHERE");
        Self { kernel, region, loc }
    }

    pub fn at(kernel: &'k mut Kernel, region: Region, loc: Loc) -> Self {
        Self { kernel, region, loc }
    }

    /// Appends an op of any kind.
    pub fn op(
        &mut self,
        kind: OpKind,
        operands: impl IntoIterator<Item = Value>,
        results: impl IntoIterator<Item = Type>,
        regions: impl IntoIterator<Item = Region>,
    ) -> Op {
        let op = self.kernel.make_op(kind, operands, results, regions, self.loc);
        self.kernel.regions[self.region].ops.push(op);
        op
    }

    fn value(&mut self, kind: OpKind, operands: impl IntoIterator<Item = Value>, ty: Type) -> Value {
        let op = self.op(kind, operands, [ty], []);
        self.kernel.ops[op].results[0]
    }

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The type of `value` with another scalar type for its entries.
    fn like(&self, value: Value, elem: Scalar) -> Type {
        match self.ty(value) {
            Type::Data(d) => Type::Data(d.with_elem(elem)),
            other => other,
        }
    }

    /// Runs `build` with the insertion point in another region.
    pub fn within<R>(&mut self, region: Region, build: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.region, region);
        let result = build(self);
        self.region = outer;
        result
    }

    pub fn constant(&mut self, c: Const) -> Value {
        self.value(OpKind::Const(c), [], c.ty().into())
    }

    pub fn i32(&mut self, value: i32) -> Value {
        self.constant(Const::i32(value))
    }

    pub fn f32(&mut self, value: f32) -> Value {
        self.constant(Const::f32(value))
    }

    pub fn arith(&mut self, op: ArithOp, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(OpKind::Arith(op), [a, b], ty)
    }

    /// `neg` or `abs`.
    pub fn arith_unary(&mut self, op: ArithOp, a: Value) -> Value {
        let ty = self.ty(a);
        self.value(OpKind::Arith(op), [a], ty)
    }

    pub fn bit(&mut self, op: BitOp, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(OpKind::Bit(op), [a, b], ty)
    }

    pub fn bit_unary(&mut self, op: BitUnary, a: Value) -> Value {
        let ty = match op {
            BitUnary::Not => self.ty(a),
            BitUnary::Popcnt | BitUnary::Clz | BitUnary::Ffs => self.like(a, Scalar::I32),
        };
        self.value(OpKind::BitUnary(op), [a], ty)
    }

    pub fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Value {
        let ty = self.like(a, Scalar::U1);
        self.value(OpKind::Compare(op), [a, b], ty)
    }

    pub fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(OpKind::Select, [c, a, b], ty)
    }

    pub fn math(&mut self, op: MathOp, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(OpKind::Math(op), [a, b], ty)
    }

    pub fn math_unary(&mut self, op: MathUnary, a: Value) -> Value {
        let ty = match op {
            MathUnary::IsNan | MathUnary::IsInf => self.like(a, Scalar::U1),
            MathUnary::FrexpExponent => self.like(a, Scalar::I32),
            _ => self.ty(a),
        };
        self.value(OpKind::MathUnary(op), [a], ty)
    }

    /// By value; the operand itself where it has the type already.
    pub fn cast(&mut self, a: Value, to: Scalar) -> Value {
        let ty = self.like(a, to);
        if ty == self.ty(a) { a } else { self.value(OpKind::Convert(ConvertOp::Cast), [a], ty) }
    }

    /// The value, as a constant for derivatives.
    pub fn detach(&mut self, a: Value) -> Value {
        self.value(OpKind::Convert(ConvertOp::Detach), [a], self.ty(a))
    }

    pub fn bit_cast(&mut self, a: Value, to: Scalar) -> Value {
        let ty = self.like(a, to);
        self.value(OpKind::Convert(ConvertOp::BitCast), [a], ty)
    }

    /// A tensor of the given type from its entries in row-major order.
    pub fn tensor(&mut self, ty: Data, entries: impl IntoIterator<Item = Value>) -> Value {
        self.value(OpKind::Tensor(TensorOp::New), entries, ty.into())
    }

    pub fn splat(&mut self, ty: Data, scalar: Value) -> Value {
        self.value(OpKind::Tensor(TensorOp::Splat), [scalar], ty.into())
    }

    pub fn tensor_get(&mut self, tensor: Value, components: &[Value]) -> Value {
        let elem = self.ty(tensor).elem().unwrap_or(Scalar::I32);
        let operands: Vec<_> = [tensor].iter().chain(components).copied().collect();
        self.value(OpKind::Tensor(TensorOp::Get), operands, elem.into())
    }

    pub fn tensor_set(&mut self, tensor: Value, components: &[Value], scalar: Value) -> Value {
        let ty = self.ty(tensor);
        let operands: Vec<_> = [tensor].iter().chain(components).chain([&scalar]).copied().collect();
        self.value(OpKind::Tensor(TensorOp::Set), operands, ty)
    }

    pub fn struct_new(&mut self, ty: Data, members: impl IntoIterator<Item = Value>) -> Value {
        self.value(OpKind::StructNew, members, ty.into())
    }

    pub fn struct_get(&mut self, s: Value, member: u32) -> Value {
        let ty = match self.ty(s) {
            Type::Data(Data::Struct(id)) => self.kernel.structs[id].members[member as usize].1.into(),
            other => other,
        };
        self.value(OpKind::StructGet(member), [s], ty)
    }

    pub fn struct_set(&mut self, s: Value, member: u32, v: Value) -> Value {
        let ty = self.ty(s);
        self.value(OpKind::StructSet(member), [s, v], ty)
    }

    pub fn local(&mut self, ty: Data) -> Value {
        self.value(OpKind::Local, [], Type::Local(ty))
    }

    /// Memory for so many scalars.
    pub fn tape(&mut self, scalar: Scalar, count: Value) -> Value {
        self.value(OpKind::Tape, [count], Type::Tape(scalar))
    }

    /// Memory of the block, for elements side by side in row-major order.
    pub fn shared(&mut self, elem: Data, shape: &[u32]) -> Value {
        let (bytes, _) = crate::plan::size_and_align(self.kernel, elem);
        let ty = self.kernel.field_type(elem, Layout::row_major(shape, bytes));
        self.value(OpKind::Shared, [], ty)
    }

    pub fn barrier(&mut self, scope: Scope) {
        self.op(OpKind::Barrier(scope), [], [], []);
    }

    /// A barrier of the block that counts.
    pub fn barrier_count(&mut self, holds: Value) -> Value {
        self.value(OpKind::BarrierCount, [holds], Type::I32)
    }

    pub fn fence(&mut self, scope: Scope) {
        self.op(OpKind::Fence(scope), [], [], []);
    }

    pub fn shuffle(&mut self, op: ShuffleOp, value: Value, lane: Value) -> Value {
        self.value(OpKind::Shuffle(op), [value, lane], self.ty(value))
    }

    pub fn ballot(&mut self, holds: Value) -> Value {
        self.value(OpKind::Ballot, [holds], Scalar::U64.into())
    }

    pub fn temp(&mut self, ty: Data) -> Value {
        self.value(OpKind::Temp, [], Type::Temp(ty))
    }

    /// What a place addressed by this many operands after the base holds.
    fn addressed(&self, base: Value, addresses: usize) -> Type {
        match self.ty(base).place() {
            Some((data, rank)) if addresses > rank => data.elem().map_or(Type::Data(data), Type::from),
            Some((data, _)) => data.into(),
            None => self.ty(base),
        }
    }

    /// `path` is the indices, then the components if one scalar of a tensor is meant.
    pub fn load(&mut self, base: Value, path: &[Value]) -> Value {
        let ty = self.addressed(base, path.len());
        self.value(OpKind::Load, [base].iter().chain(path).copied().collect::<Vec<_>>(), ty)
    }

    /// A load that sees what other threads wrote meanwhile.
    pub fn volatile_load(&mut self, base: Value, path: &[Value]) -> Value {
        let ty = self.addressed(base, path.len());
        self.value(OpKind::VolatileLoad, [base].iter().chain(path).copied().collect::<Vec<_>>(), ty)
    }

    pub fn store(&mut self, base: Value, path: &[Value], value: Value) {
        self.op(
            OpKind::Store,
            [base].iter().chain(path).chain([&value]).copied().collect::<Vec<_>>(),
            [],
            [],
        );
    }

    pub fn atomic(&mut self, op: AtomicOp, base: Value, path: &[Value], value: Value) -> Value {
        let ty = self.ty(value);
        let operands: Vec<_> = [base].iter().chain(path).chain([&value]).copied().collect();
        self.value(OpKind::Atomic(op), operands, ty)
    }

    pub fn atomic_cas(&mut self, base: Value, path: &[Value], expected: Value, desired: Value) -> Value {
        let ty = self.ty(desired);
        let operands: Vec<_> = [base].iter().chain(path).chain([&expected, &desired]).copied().collect();
        self.value(OpKind::AtomicCas, operands, ty)
    }

    /// Asks for memory, so that a count reaches what is wanted.
    pub fn grow_pool(&mut self, base: Value, path: &[Value], wanted: Value) -> Value {
        let operands: Vec<_> = [base].iter().chain(path).chain([&wanted]).copied().collect();
        self.value(OpKind::GrowPool, operands, Type::I32)
    }

    /// Where a cell of an array or a field lies.
    pub fn address(&mut self, base: Value, path: &[Value]) -> Value {
        let operands: Vec<_> = [base].iter().chain(path).copied().collect();
        self.value(OpKind::Address, operands, Scalar::U64.into())
    }

    /// Of a field it is a constant.
    pub fn extent(&mut self, array: Value, axis: u8) -> Value {
        if let Type::Array(ty) = self.ty(array)
            && let Some(layout) = self.kernel.layout(ty)
        {
            return self.i32(layout.shape[usize::from(axis)].cast_signed());
        }
        self.value(OpKind::Extent(axis), [array], Type::I32)
    }

    /// An `if` whose two regions are built by closures that return what they yield; results have the types of the first.
    pub fn if_else(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Self) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let then_region = self.region_of(&[], |b, _| then(b));
        let else_region = self.region_of(&[], |b, _| otherwise(b));
        let types = self.yielded(then_region);
        let op = self.op(OpKind::If, [cond], types, [then_region, else_region]);
        self.kernel.ops[op].results.to_vec()
    }

    /// A `for`; the closure gets the index and the carried values and returns the next ones.
    pub fn for_range(
        &mut self,
        lo: Value,
        hi: Value,
        carried: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<_> = carried.iter().map(|&v| self.ty(v)).collect();
        let params: Vec<_> = [self.ty(lo)].into_iter().chain(types.iter().copied()).collect();
        let region = self.region_of(&params, |b, p| body(b, p[0], &p[1..]));
        let operands: Vec<_> = [lo, hi].iter().chain(carried).copied().collect();
        let op = self.op(OpKind::For, operands, types, [region]);
        self.kernel.ops[op].results.to_vec()
    }

    /// A `while`; `cond` returns the condition and what to carry into the body or out of the loop.
    pub fn while_loop(
        &mut self,
        carried: &[Value],
        cond: impl FnOnce(&mut Self, &[Value]) -> (Value, Vec<Value>),
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<_> = carried.iter().map(|&v| self.ty(v)).collect();
        let cond_region = self.region_of(&types, |b, p| {
            let (c, mut values) = cond(b, p);
            values.insert(0, c);
            values
        });
        let body_region = self.region_of(&types, |b, p| body(b, p));
        let op = self.op(OpKind::While, carried.iter().copied(), types, [cond_region, body_region]);
        self.kernel.ops[op].results.to_vec()
    }

    /// A parallel loop without reductions over `bounds`, one `(lo, hi)` per axis.
    pub fn parallel_for(
        &mut self,
        bounds: &[(Value, Value)],
        mut attributes: ParallelFor,
        body: impl FnOnce(&mut Self, &[Value]),
    ) -> Op {
        attributes.axes = bounds.len() as u8;
        let params: Vec<_> = bounds.iter().map(|&(lo, _)| self.ty(lo)).collect();
        let region = self.region_of(&params, |b, p| {
            body(b, p);
            Vec::new()
        });
        let operands: Vec<_> = bounds.iter().flat_map(|&(lo, hi)| [lo, hi]).collect();
        self.op(OpKind::ParallelFor(Box::new(attributes)), operands, [], [region])
    }

    /// Where the condition is false, the launch fails with the message; each `{}` of it stands for an argument.
    pub fn assert(&mut self, kind: AssertKind, cond: Value, message: &str, arguments: &[Value]) {
        let operands: Vec<_> = [cond].iter().chain(arguments).copied().collect();
        self.op(OpKind::Assert(kind, message.into()), operands, [], []);
    }

    /// Values are scalars or tensors, one for each value of the spec.
    pub fn print(&mut self, spec: PrintSpec, values: &[Value]) {
        self.op(OpKind::Print(Box::new(spec)), values.iter().copied(), [], []);
    }

    /// A random number: uniform in `[0, 1)` for reals, over the whole type for integers.
    pub fn random(&mut self, ty: Scalar) -> Value {
        self.value(OpKind::Random, [], ty.into())
    }

    pub fn launch_key(&mut self) -> Value {
        self.value(OpKind::LaunchKey, [], Scalar::U64.into())
    }

    pub fn clock(&mut self) -> Value {
        self.value(OpKind::Clock, [], Scalar::I64.into())
    }

    /// Calls a function of the kernel. Where it takes a place, the argument is one of the same type.
    pub fn call(&mut self, function: Func, arguments: &[Value]) -> Vec<Value> {
        let results: Vec<Type> =
            self.kernel.functions[function].results.iter().map(|&data| data.into()).collect();
        let op = self.op(OpKind::Call(function), arguments.iter().copied(), results, []);
        self.kernel.ops[op].results.to_vec()
    }

    pub fn yields(&mut self, values: &[Value]) {
        self.op(OpKind::Yield, values.iter().copied(), [], []);
    }

    pub fn returns(&mut self, values: &[Value]) {
        self.op(OpKind::Return, values.iter().copied(), [], []);
    }

    /// A new region with these parameters, built by a closure and ended by a `yield` of what that returns.
    pub fn region_of(
        &mut self,
        params: &[Type],
        build: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let region = self.kernel.add_region();
        let values: Vec<_> = params.iter().map(|&ty| self.kernel.add_region_param(region, ty)).collect();
        self.within(region, |b| {
            let yielded = build(b, &values);
            b.yields(&yielded);
        });
        region
    }

    fn yielded(&self, region: Region) -> Vec<Type> {
        let terminator = self.kernel.terminator(region).expect("a built region ends in a yield");
        terminator.operands.iter().map(|&v| self.kernel.ty(v)).collect()
    }
}
