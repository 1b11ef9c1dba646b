//! Small structured kernels, made at random, that keep every law and never trap: indices are brought into their arrays, loops end.
//! Updates of one place by all iterations are of integers, so that their order does not matter.

use octants_ir::ops::{
    ArithOp, AtomicOp, BitOp, BitUnary, CompareOp, MathOp, MathUnary, OpKind, ParallelFor,
};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Data, Kernel, Region, Scalar, TensorShape, TensorType, Type, Value,
};

use crate::random::Random;

/// Every array has this many elements along each axis.
pub const EXTENT: i32 = 8;
pub const SCALARS: [Scalar; 6] = [Scalar::I32, Scalar::F32, Scalar::U8, Scalar::I64, Scalar::U1, Scalar::F64];
pub const PAIR: Data = Data::Tensor(TensorType { elem: Scalar::I32, shape: TensorShape::Vector(2) });
pub const MATRIX: Data = Data::Tensor(TensorType { elem: Scalar::F32, shape: TensorShape::Matrix(2, 3) });
const BIG: Data = Data::Tensor(TensorType { elem: Scalar::I32, shape: TensorShape::Matrix(5, 5) });

struct Local {
    place: Value,
    data: Data,
    /// Declared outside the parallel loop that is being made.
    outside: bool,
}

struct Generator {
    random: Random,
    /// Values that can be used here.
    scope: Vec<Value>,
    locals: Vec<Local>,
    arrays: Vec<Value>,
    /// The indices of the parallel loop being made.
    axes: Vec<Value>,
    depth: usize,
}

pub fn kernel(seed: u64) -> Kernel {
    let mut kernel = Kernel::new(format!("seed{seed}"));
    kernel.results = vec![Scalar::I32.into(), Scalar::F32.into(), PAIR];
    let array = |elem: Data, rank| Type::Array(ArrayType { elem, rank, boundary: Boundary::Unsafe });
    let arrays = vec![
        kernel.add_param("a", array(Scalar::I32.into(), 1)),
        kernel.add_param("b", array(Scalar::F32.into(), 1)),
        kernel.add_param("c", array(PAIR, 1)),
        kernel.add_param("d", array(Scalar::I32.into(), 1)),
        kernel.add_param("e", array(Scalar::I32.into(), 2)),
    ];
    let scope = vec![
        kernel.add_param("n", Type::I32),
        kernel.add_param("x", Type::F32),
        kernel.add_param("m", MATRIX.into()),
        kernel.add_param("p", PAIR.into()),
    ];
    let random = Random::new(seed);
    let mut g = Generator { random, scope, locals: Vec::new(), arrays, axes: Vec::new(), depth: 0 };
    let mut b = Builder::new(&mut kernel);
    let statements = 3 + g.random.below(8);
    for _ in 0..statements {
        if g.random.chance(3) { g.parallel_for(&mut b) } else { g.statement(&mut b) }
    }
    let results = [g.scalar(&mut b, Scalar::I32), g.scalar(&mut b, Scalar::F32), g.data(&mut b, PAIR)];
    b.returns(&results);
    kernel
}

impl Generator {
    fn constant(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let c = match self.random.below(4) {
            0 => Const::from_i128(ty, self.random.below(3) as i128),
            1 => Const::from_i128(ty, 1 << self.random.below(6)),
            2 => Const::from_i128(ty, self.random.below(200) as i128 - 100),
            _ if ty.is_real() => Const::from_f64(ty, self.random.pick(&[0.1, -0.0, 2.5, -1.0, 1e30])),
            _ => Const::from_bits(ty, self.random.bits()),
        };
        b.constant(c)
    }

    fn known(&mut self, b: &Builder<'_>, ty: Type) -> Option<Value> {
        let fitting: Vec<_> = self.scope.iter().copied().filter(|&v| b.kernel.ty(v) == ty).collect();
        (!fitting.is_empty()).then(|| self.random.pick(&fitting))
    }

    fn data(&mut self, b: &mut Builder<'_>, data: Data) -> Value {
        match data {
            Data::Scalar(scalar) => self.scalar(b, scalar),
            Data::Tensor(tensor) => self.tensor(b, tensor),
            Data::Struct(_) => unreachable!("no structs are made"),
        }
    }

    fn tensor(&mut self, b: &mut Builder<'_>, tensor: TensorType) -> Value {
        let data = Data::Tensor(tensor);
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(3) } else { self.random.below(8) };
        let value = match choice {
            0 | 1 => match self.known(b, data.into()) {
                Some(value) => value,
                None => self.new_tensor(b, tensor),
            },
            2 => self.new_tensor(b, tensor),
            3 => {
                let scalar = self.scalar(b, tensor.elem);
                b.splat(data, scalar)
            }
            4 => {
                let (t, s) = (self.tensor(b, tensor), self.scalar(b, tensor.elem));
                let components = self.components(b, tensor.shape);
                b.tensor_set(t, &components, s)
            }
            5 => {
                let (c, x, y) = (self.scalar(b, Scalar::U1), self.tensor(b, tensor), self.tensor(b, tensor));
                b.select(c, x, y)
            }
            6 => match self.load_local(b, data) {
                Some(value) => value,
                None => self.new_tensor(b, tensor),
            },
            _ => {
                let (x, y) = (self.tensor(b, tensor), self.tensor(b, tensor));
                let op = self.random.pick(&[ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Max]);
                b.arith(op, x, y)
            }
        };
        self.depth -= 1;
        value
    }

    fn new_tensor(&mut self, b: &mut Builder<'_>, tensor: TensorType) -> Value {
        if tensor.shape.count() > 8 {
            let scalar = self.scalar(b, tensor.elem);
            return b.splat(Data::Tensor(tensor), scalar);
        }
        let entries: Vec<_> = (0..tensor.shape.count()).map(|_| self.scalar(b, tensor.elem)).collect();
        b.tensor(Data::Tensor(tensor), entries)
    }

    /// Inside the shape, fixed or not.
    fn components(&mut self, b: &mut Builder<'_>, shape: TensorShape) -> Vec<Value> {
        let dims = shape.dims();
        dims.into_iter()
            .map(|extent| {
                if self.random.chance(2) {
                    return b.i32(self.random.below(extent as usize) as i32);
                }
                let (any, extent) = (self.scalar(b, Scalar::I32), b.i32(extent as i32));
                b.arith(ArithOp::Mod, any, extent)
            })
            .collect()
    }

    fn load_local(&mut self, b: &mut Builder<'_>, data: Data) -> Option<Value> {
        let fitting: Vec<_> = self.locals.iter().filter(|l| l.data == data).map(|l| l.place).collect();
        (!fitting.is_empty()).then(|| {
            let place = self.random.pick(&fitting);
            b.load(place, &[])
        })
    }

    fn scalar(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(3) } else { self.random.below(14) };
        let value = match choice {
            0 => self.constant(b, ty),
            1 => match self.known(b, ty.into()) {
                Some(value) => value,
                None => self.constant(b, ty),
            },
            2 | 3 => match self.load_local(b, ty.into()) {
                Some(value) => value,
                None => self.constant(b, ty),
            },
            4 => {
                let from = self.random.pick(&SCALARS);
                let x = self.scalar(b, from);
                b.cast(x, ty)
            }
            5 => {
                let (c, x, y) = (self.scalar(b, Scalar::U1), self.scalar(b, ty), self.scalar(b, ty));
                b.select(c, x, y)
            }
            6 => {
                let tensors: Vec<_> =
                    [PAIR, MATRIX, BIG].into_iter().filter(|t| t.elem() == Some(ty)).collect();
                if tensors.is_empty() {
                    self.constant(b, ty)
                } else {
                    let data = self.random.pick(&tensors);
                    let t = self.data(b, data);
                    let components = self.components(b, data.tensor_shape().expect("a tensor"));
                    b.tensor_get(t, &components)
                }
            }
            7 => self.element(b, ty),
            8 if ty == Scalar::U1 => {
                let of = self.random.pick(&SCALARS);
                let (x, y) = (self.scalar(b, of), self.scalar(b, of));
                b.compare(self.random.pick(CompareOp::ALL), x, y)
            }
            8 => {
                let (x, exponent) = (self.scalar(b, ty), b.i32(self.random.below(9) as i32 - 2));
                if ty == Scalar::U1 { x } else { b.math(MathOp::Pow, x, exponent) }
            }
            9 => self.unary(b, ty),
            _ => self.binary(b, ty),
        };
        self.depth -= 1;
        value
    }

    fn unary(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let x = self.scalar(b, ty);
        match ty {
            Scalar::U1 => b.bit_unary(BitUnary::Not, x),
            _ if ty.is_real() && self.random.chance(2) => {
                let op =
                    self.random.pick(&[MathUnary::Floor, MathUnary::Sqrt, MathUnary::Sin, MathUnary::Round]);
                b.math_unary(op, x)
            }
            _ if ty.is_integral() && self.random.chance(2) => b.bit_unary(BitUnary::Not, x),
            _ => b.arith_unary(self.random.pick(&[ArithOp::Neg, ArithOp::Abs]), x),
        }
    }

    fn binary(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let (x, y) = (self.scalar(b, ty), self.scalar(b, ty));
        if ty == Scalar::U1 {
            return b.bit(self.random.pick(&[BitOp::And, BitOp::Or, BitOp::Xor]), x, y);
        }
        if ty.is_integral() && self.random.chance(3) {
            return b.bit(self.random.pick(BitOp::ALL), x, y);
        }
        let op = self.random.pick(ArithOp::ALL);
        match op {
            ArithOp::Neg | ArithOp::Abs => b.arith_unary(op, x),
            ArithOp::Div if ty.is_integral() => b.arith(ArithOp::RawDiv, x, y),
            _ => b.arith(op, x, y),
        }
    }

    /// An index into an axis of any array: an axis of the parallel loop, moved and brought back inside, or anything.
    fn index(&mut self, b: &mut Builder<'_>) -> Value {
        let last = b.i32(EXTENT - 1);
        let index = match (self.axes.is_empty(), self.random.below(4)) {
            (false, 0..=2) => {
                let axis = self.random.pick(&self.axes);
                if self.random.chance(2) {
                    return axis;
                }
                let by = b.i32(self.random.below(3) as i32);
                b.arith(self.random.pick(&[ArithOp::Add, ArithOp::Sub]), axis, by)
            }
            (_, 3) => return b.i32(self.random.below(EXTENT as usize) as i32),
            _ => self.scalar(b, Scalar::I32),
        };
        b.bit(BitOp::And, index, last)
    }

    fn path(&mut self, b: &mut Builder<'_>, array: Value) -> Vec<Value> {
        let (_, rank) = b.kernel.ty(array).place().expect("a place");
        (0..rank).map(|_| self.index(b)).collect()
    }

    fn element(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let arrays: Vec<_> = self
            .arrays
            .iter()
            .copied()
            .filter(|&a| b.kernel.ty(a).place().and_then(|(data, _)| data.elem()) == Some(ty))
            .collect();
        if arrays.is_empty() {
            return self.constant(b, ty);
        }
        let array = self.random.pick(&arrays);
        let mut path = self.path(b, array);
        let (data, _) = b.kernel.ty(array).place().expect("a place");
        if let Some(shape) = data.tensor_shape() {
            path.extend(self.components(b, shape));
        }
        b.load(array, &path)
    }

    fn block(&mut self, b: &mut Builder<'_>, statements: usize) {
        for _ in 0..statements {
            self.statement(b);
        }
    }

    fn statement(&mut self, b: &mut Builder<'_>) {
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(8) } else { self.random.below(12) };
        match choice {
            0 | 1 => {
                let data = self.random.pick(&[
                    Scalar::I32.into(),
                    Scalar::F32.into(),
                    Scalar::U1.into(),
                    Scalar::I64.into(),
                    PAIR,
                    MATRIX,
                    BIG,
                ]);
                let value = self.data(b, data);
                let place = b.local(data);
                if !self.random.chance(3) {
                    b.store(place, &[], value);
                }
                self.locals.push(Local { place, data, outside: false });
            }
            2 | 3 => self.assign(b),
            4 | 5 => {
                let array = self.random.pick(&self.arrays);
                let path = self.path(b, array);
                let (data, _) = b.kernel.ty(array).place().expect("a place");
                let value = self.data(b, data);
                b.store(array, &path, value);
            }
            6 | 7 => self.update(b),
            8 | 9 => self.if_else(b),
            10 => self.for_loop(b),
            _ => self.while_loop(b),
        }
        self.depth -= 1;
    }

    fn assign(&mut self, b: &mut Builder<'_>) {
        if self.locals.is_empty() {
            return;
        }
        let at = self.random.below(self.locals.len());
        let (place, data) = (self.locals[at].place, self.locals[at].data);
        match data.tensor_shape() {
            Some(shape) if self.random.chance(2) => {
                let components = self.components(b, shape);
                let value = self.scalar(b, data.elem().expect("a tensor"));
                b.store(place, &components, value);
            }
            _ => {
                let value = self.data(b, data);
                b.store(place, &[], value);
            }
        }
    }

    /// An atomic update of an array element or a local; of integers where all iterations may meet.
    fn update(&mut self, b: &mut Builder<'_>) {
        let op = self.random.pick(&[
            AtomicOp::Add,
            AtomicOp::Add,
            AtomicOp::Sub,
            AtomicOp::Min,
            AtomicOp::Max,
            AtomicOp::Or,
            AtomicOp::Mul,
            AtomicOp::Xor,
            AtomicOp::And,
            AtomicOp::Exchange,
        ]);
        let integers: Vec<_> = self.locals.iter().filter(|l| l.data == Scalar::I32.into()).collect();
        let base = if !integers.is_empty() && self.random.chance(2) {
            integers[self.random.below(integers.len())].place
        } else {
            let arrays = [self.arrays[0], self.arrays[0], self.arrays[2], self.arrays[3], self.arrays[4]];
            self.random.pick(&arrays)
        };
        let path = self.path(b, base);
        let (data, _) = b.kernel.ty(base).place().expect("a place");
        if data == Scalar::I32.into() && self.random.chance(6) {
            let (expected, desired) = (self.scalar(b, Scalar::I32), self.scalar(b, Scalar::I32));
            let old = b.atomic_cas(base, &path, expected, desired);
            self.scope.push(old);
            return;
        }
        let value = self.data(b, data);
        let old = b.atomic(op, base, &path, value);
        if self.random.chance(4) {
            self.scope.push(old);
        }
    }

    /// A region whose values and locals are forgotten after it.
    fn region(
        &mut self,
        b: &mut Builder<'_>,
        params: &[Type],
        build: impl FnOnce(&mut Self, &mut Builder<'_>, &[Value]) -> Vec<Value>,
    ) -> Region {
        let (values, locals) = (self.scope.len(), self.locals.len());
        let region = b.region_of(params, |b, p| build(self, b, p));
        self.scope.truncate(values);
        self.locals.truncate(locals);
        region
    }

    fn if_else(&mut self, b: &mut Builder<'_>) {
        let cond = self.scalar(b, Scalar::U1);
        let types: Vec<Data> = (0..self.random.below(3))
            .map(|_| self.random.pick(&[Scalar::I32.into(), Scalar::F32.into(), PAIR]))
            .collect();
        let side = |g: &mut Self, b: &mut Builder<'_>| {
            g.region(b, &[], |g, b, _| {
                let statements = g.random.below(3);
                g.block(b, statements);
                types.iter().map(|&data| g.data(b, data)).collect()
            })
        };
        let regions = [side(self, b), side(self, b)];
        let op = b.op(OpKind::If, [cond], types.iter().map(|&data| data.into()), regions);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    fn for_loop(&mut self, b: &mut Builder<'_>) {
        let lo = b.i32(self.random.below(3) as i32);
        let hi = if self.random.chance(2) {
            b.i32(self.random.below(4) as i32)
        } else {
            let (any, mask) = (self.scalar(b, Scalar::I32), b.i32(3));
            b.bit(BitOp::And, any, mask)
        };
        let (types, first) = self.carried(b);
        let params: Vec<_> = [Type::I32].into_iter().chain(types.iter().copied()).collect();
        let body = self.region(b, &params, |g, b, p| {
            g.scope.extend(p);
            let statements = 1 + g.random.below(3);
            g.block(b, statements);
            g.next(b, &p[1..])
        });
        let operands: Vec<_> = [lo, hi].into_iter().chain(first).collect();
        let op = b.op(OpKind::For, operands, types, [body]);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    fn carried(&mut self, b: &mut Builder<'_>) -> (Vec<Type>, Vec<Value>) {
        let count = self.random.below(3);
        let types: Vec<Data> =
            (0..count).map(|_| self.random.pick(&[Scalar::I32.into(), Scalar::F32.into(), PAIR])).collect();
        let first = types.iter().map(|&data| self.data(b, data)).collect();
        (types.into_iter().map(Type::from).collect(), first)
    }

    /// What a loop carries on: often what it had.
    fn next(&mut self, b: &mut Builder<'_>, params: &[Value]) -> Vec<Value> {
        params
            .iter()
            .map(|&param| {
                let data = b.kernel.ty(param).data().expect("carried values are data");
                if self.random.chance(3) { param } else { self.data(b, data) }
            })
            .collect()
    }

    /// Counts to a small number, or stops before.
    fn while_loop(&mut self, b: &mut Builder<'_>) {
        let (types, first) = self.carried(b);
        let zero = b.i32(0);
        let params: Vec<_> = [Type::I32].into_iter().chain(types).collect();
        let cond = self.region(b, &params, |g, b, p| {
            g.scope.extend(&p[1..]);
            let limit = b.i32(g.random.below(4) as i32);
            let below = b.compare(CompareOp::Lt, p[0], limit);
            let also = g.scalar(b, Scalar::U1);
            let goes_on = b.bit(BitOp::And, below, also);
            let next = g.next(b, &p[1..]);
            [goes_on, p[0]].into_iter().chain(next).collect()
        });
        let body = self.region(b, &params, |g, b, p| {
            g.scope.extend(p);
            let statements = 1 + g.random.below(2);
            g.block(b, statements);
            let one = b.i32(1);
            let count = b.arith(ArithOp::Add, p[0], one);
            let next = g.next(b, &p[1..]);
            [count].into_iter().chain(next).collect()
        });
        let operands: Vec<_> = [zero].into_iter().chain(first).collect();
        let op = b.op(OpKind::While, operands, params, [cond, body]);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    fn parallel_for(&mut self, b: &mut Builder<'_>) {
        let axes = 1 + self.random.below(2);
        let bounds: Vec<_> = (0..axes).flat_map(|_| self.bounds(b)).collect();
        let params = vec![Type::I32; axes];
        let outside: Vec<_> = self.locals.iter().map(|l| l.outside).collect();
        self.locals.iter_mut().for_each(|l| l.outside = true);
        let body = self.region(b, &params, |g, b, p| {
            g.axes = p.to_vec();
            g.scope.extend(p);
            let statements = 1 + g.random.below(4);
            g.block(b, statements);
            Vec::new()
        });
        self.axes.clear();
        self.locals.iter_mut().zip(outside).for_each(|(l, outside)| l.outside = outside);
        let attributes = ParallelFor {
            axes: axes as u8,
            max_threads: self.random.chance(8).then_some(1),
            ..ParallelFor::default()
        };
        b.op(OpKind::ParallelFor(Box::new(attributes)), bounds, [], [body]);
    }

    /// Inside every array, constant or not, for the host to compute or not.
    fn bounds(&mut self, b: &mut Builder<'_>) -> [Value; 2] {
        let lo = b.i32(self.random.below(2) as i32);
        let hi = match self.random.below(4) {
            0 => b.extent(self.arrays[0], 0),
            1 => b.i32(self.random.below(EXTENT as usize) as i32),
            2 => {
                let (any, mask) = (self.scalar(b, Scalar::I32), b.i32(EXTENT - 1));
                b.bit(BitOp::And, any, mask)
            }
            _ => {
                let (n, eight) = (self.known(b, Type::I32).expect("n"), b.i32(EXTENT));
                b.arith(ArithOp::Mod, n, eight)
            }
        };
        [lo, hi]
    }
}
