//! Random kernels that have derivatives: nested loops and conditions, variables that are addressed by an index, sums of all iterations, steps
//! through memory. Values stay small, so that differences tell something.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, MathUnary, ParallelFor};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Data, Kernel, OpKind, Scalar, TensorShape, TensorType, Type, Value,
};

/// Elements along each axis that is addressed by an index, and trips of loops at most.
pub const EXTENT: i32 = 3;
/// Entries of a variable.
const ENTRIES: u16 = 3;

pub struct Xorshift(pub u64);

impl Xorshift {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn real(&mut self) -> f64 {
        self.below(4000) as f64 / 1000.0 - 2.0
    }
}

/// What can be used where the builder stands.
#[derive(Clone, Default)]
struct Scope {
    reals: Vec<Value>,
    /// Integers from 0 to [`EXTENT`] − 1.
    indices: Vec<Value>,
    locals: Vec<Value>,
    /// Where the iteration's own elements lie; `None` outside of parallel loops.
    own: Option<Value>,
    depth: u32,
}

struct Generator {
    random: Xorshift,
    sources: Vec<Value>,
    table: Value,
    results: Vec<Value>,
    history: Value,
    totals: Value,
    counts: Value,
    shared: Vec<Value>,
    statements: u32,
    points: i32,
}

fn array(rank: u8, scalar: Scalar) -> Type {
    Type::Array(ArrayType::array(scalar, rank, Boundary::Unsafe))
}

/// A kernel of random statements. Its parallel loops have so many points, and so has the last axis of arrays whose elements belong to them.
pub fn program(seed: u64, points: i32) -> Kernel {
    let mut kernel = Kernel::new(format!("random{seed}"));
    let sources =
        vec![kernel.add_param("a", array(1, Scalar::F64)), kernel.add_param("b", array(1, Scalar::F64))];
    let table = kernel.add_param("table", array(2, Scalar::F64));
    let results =
        vec![kernel.add_param("r", array(1, Scalar::F64)), kernel.add_param("s", array(1, Scalar::F64))];
    let history = kernel.add_param("history", array(2, Scalar::F64));
    let totals = kernel.add_param("totals", array(1, Scalar::F64));
    let counts = kernel.add_param("counts", array(1, Scalar::I32));
    let random = Xorshift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut generator = Generator {
        random,
        sources,
        table,
        results,
        history,
        totals,
        counts,
        shared: Vec::new(),
        statements: 60,
        points,
    };
    let mut b = Builder::new(&mut kernel);
    let mut scope = Scope::default();
    for index in 0..EXTENT {
        scope.indices.push(b.i32(index));
    }
    scope.reals.push(b.constant(Const::f64(0.7)));
    for _ in 0..=generator.random.below(3) {
        match generator.random.below(6) {
            0 => {
                for _ in 0..3 {
                    generator.statement(&mut b, &mut scope);
                }
            }
            1 => {
                let local = b.local(Scalar::F64.into());
                let value = generator.real(&mut b, &scope);
                b.store(local, &[], value);
                generator.shared.push(local);
            }
            _ => generator.parallel(&mut b, &scope),
        }
        for local in generator.shared.clone() {
            let value = b.load(local, &[]);
            scope.reals.push(value);
        }
    }
    b.returns(&[]);
    kernel
}

impl Generator {
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len())]
    }

    /// A value that is there, the newer the likelier.
    fn real(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Value {
        if self.random.below(8) == 0 {
            return b.constant(Const::f64(self.random.real()));
        }
        let count = scope.reals.len();
        let back = self.random.below(count).min(self.random.below(count));
        scope.reals[count - 1 - back]
    }

    fn parallel(&mut self, b: &mut Builder<'_>, scope: &Scope) {
        let (lo, hi) = (b.i32(0), b.i32(self.points));
        let attributes =
            ParallelFor { max_threads: (self.random.below(8) == 0).then_some(1), ..ParallelFor::default() };
        let shared = self.shared.clone();
        b.parallel_for(&[(lo, hi)], attributes, |b, indices| {
            let mut scope = scope.clone();
            let extent = b.i32(EXTENT);
            scope.indices.push(b.arith(ArithOp::Mod, indices[0], extent));
            scope.own = Some(indices[0]);
            for _ in 0..2 + self.random.below(6) {
                self.statement(b, &mut scope);
            }
            if !shared.is_empty() && self.random.below(2) == 0 {
                let local = self.pick(&shared);
                let value = self.real(b, &scope);
                b.atomic(AtomicOp::Add, local, &[], value);
            }
        });
    }

    fn statement(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        if self.statements == 0 {
            return;
        }
        self.statements -= 1;
        match self.random.below(if scope.depth < 3 { 20 } else { 14 }) {
            0..4 => {
                let value = self.computed(b, scope);
                scope.reals.push(value);
            }
            4 | 5 => {
                let (array, index) = (self.pick(&self.sources.clone()), self.pick(&scope.indices));
                scope.reals.push(b.load(array, &[index]));
            }
            6 => {
                let (row, column) = (self.pick(&scope.indices), self.pick(&scope.indices));
                scope.reals.push(b.load(self.table, &[row, column]));
            }
            7 => {
                let index = self.pick(&scope.indices);
                scope.indices.push(b.load(self.counts, &[index]));
            }
            8 => {
                if let Some(own) = scope.own {
                    let (array, value) = (self.pick(&self.results.clone()), self.real(b, scope));
                    b.store(array, &[own], value);
                }
            }
            9 => {
                if let Some(own) = scope.own {
                    let array = self.pick(&self.results.clone());
                    scope.reals.push(b.load(array, &[own]));
                }
            }
            10 => {
                let (index, value) = (self.pick(&scope.indices), self.real(b, scope));
                let op = self.pick(&[AtomicOp::Add, AtomicOp::Sub]);
                b.atomic(op, self.totals, &[index], value);
            }
            11 => {
                let ty = TensorType { elem: Scalar::F64, shape: TensorShape::Vector(ENTRIES) };
                scope.locals.push(b.local(Data::Tensor(ty)));
            }
            12 | 13 => {
                let Some(&local) = scope.locals.last() else { return };
                let index = self.pick(&scope.indices);
                if self.random.below(2) == 0 {
                    let value = self.real(b, scope);
                    b.store(local, &[index], value);
                } else {
                    scope.reals.push(b.load(local, &[index]));
                }
            }
            14 | 15 => self.decision(b, scope),
            16 | 17 => self.loop_over(b, scope),
            18 => self.while_loop(b, scope),
            _ => self.steps(b, scope),
        }
    }

    /// Values stay small, so that differences tell something.
    fn computed(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Value {
        let (x, y) = (self.real(b, scope), self.real(b, scope));
        match self.random.below(14) {
            0 => b.math_unary(MathUnary::Sin, x),
            1 => b.math_unary(MathUnary::Cos, x),
            2 => b.math_unary(MathUnary::Tanh, x),
            3 => {
                let small = b.math_unary(MathUnary::Tanh, x);
                b.math_unary(MathUnary::Exp, small)
            }
            4 => {
                let (square, one) = (b.arith(ArithOp::Mul, x, x), b.constant(Const::f64(1.0)));
                let sum = b.arith(ArithOp::Add, square, one);
                let op = self.pick(&[MathUnary::Sqrt, MathUnary::Log, MathUnary::Rsqrt]);
                b.math_unary(op, sum)
            }
            5 => b.arith(ArithOp::Add, x, y),
            6 => b.arith(ArithOp::Sub, x, y),
            7 | 8 => {
                let product = b.arith(ArithOp::Mul, x, y);
                b.math_unary(MathUnary::Sin, product)
            }
            9 => {
                let (square, two) = (b.arith(ArithOp::Mul, y, y), b.constant(Const::f64(2.0)));
                let divisor = b.arith(ArithOp::Add, square, two);
                b.arith(ArithOp::Div, x, divisor)
            }
            10 => {
                let op = self.pick(&[ArithOp::Min, ArithOp::Max]);
                b.arith(op, x, y)
            }
            11 => {
                let condition = self.condition(b, scope);
                b.select(condition, x, y)
            }
            12 => b.arith_unary(ArithOp::Abs, x),
            _ => {
                let index = self.pick(&scope.indices);
                let real = b.cast(index, Scalar::F64);
                b.arith(ArithOp::Mul, real, x)
            }
        }
    }

    fn condition(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Value {
        if self.random.below(3) == 0 {
            let (i, j) = (self.pick(&scope.indices), self.pick(&scope.indices));
            return b.compare(CompareOp::Lt, i, j);
        }
        let (x, y) = (self.real(b, scope), b.constant(Const::f64(self.random.real())));
        b.compare(CompareOp::Gt, x, y)
    }

    fn block(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        scope.depth += 1;
        for _ in 0..=self.random.below(4) {
            self.statement(b, scope);
        }
    }

    fn decision(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        let condition = self.condition(b, scope);
        let count = self.random.below(3);
        let outer = scope.clone();
        let mut regions = Vec::new();
        for _ in 0..2 {
            regions.push(b.region_of(&[], |b, _| {
                let mut inner = outer.clone();
                self.block(b, &mut inner);
                (0..count).map(|_| self.real(b, &inner)).collect()
            }));
        }
        let op = b.op(OpKind::If, [condition], vec![Type::F64; count], regions);
        scope.reals.extend(b.kernel.ops[op].results.iter().copied());
    }

    /// Bounds are constants, indices around, or what was loaded; they may be empty, and reach beyond the indices' range.
    fn loop_over(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        let (lo, hi) = (self.pick(&scope.indices), self.pick(&scope.indices));
        let carried: Vec<_> = (0..=self.random.below(3)).map(|_| self.real(b, scope)).collect();
        let first = self.pick(&scope.indices);
        let operands: Vec<_> = carried.iter().copied().chain([first]).collect();
        let results = b.for_range(lo, hi, &operands, |b, index, values| {
            let mut inner = scope.clone();
            let (&number, reals) = values.split_last().expect("an index is carried, too");
            inner.reals.extend(reals);
            inner.indices.extend([index, number]);
            self.block(b, &mut inner);
            let next = (0..reals.len()).map(|_| self.real(b, &inner));
            let mut next: Vec<_> = next.collect();
            // Another index, within range.
            next.push(self.pick(&inner.indices));
            next
        });
        scope.reals.extend(&results[..carried.len()]);
        scope.indices.push(results[carried.len()]);
    }

    /// Runs while a value is below something, at most so many times; the condition may compute what is carried.
    fn while_loop(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        let (first, zero) = (self.real(b, scope), b.i32(0));
        let computes = self.random.below(2) == 0;
        let most = 1 + self.random.below(4) as i32;
        let bound = self.random.real() + 1.0;
        let outer = scope.clone();
        let mut inner = scope.clone();
        let types = [Type::F64, Type::I32];
        let condition = b.region_of(&types, |b, values| {
            let mut value = values[0];
            if computes {
                value = b.math_unary(MathUnary::Cos, value);
            }
            let (bound, most) = (b.constant(Const::f64(bound)), b.i32(most));
            let less = b.compare(CompareOp::Lt, value, bound);
            let early = b.compare(CompareOp::Lt, values[1], most);
            let both = b.bit(BitOp::And, less, early);
            vec![both, value, values[1]]
        });
        let body = b.region_of(&types, |b, values| {
            inner.reals.push(values[0]);
            self.block(b, &mut inner);
            let (next, one) = (self.computed(b, &inner), b.i32(1));
            let number = b.arith(ArithOp::Add, values[1], one);
            vec![next, number]
        });
        *scope = outer;
        let op = b.op(OpKind::While, [first, zero], types, [condition, body]);
        scope.reals.push(b.kernel.ops[op].results[0]);
    }

    /// Each step reads what the one before wrote to memory.
    fn steps(&mut self, b: &mut Builder<'_>, scope: &mut Scope) {
        let Some(own) = scope.own else { return };
        let (lo, hi) = (b.i32(0), b.i32(EXTENT - 1));
        let history = self.history;
        b.for_range(lo, hi, &[], |b, step, _| {
            let mut inner = scope.clone();
            inner.reals.push(b.load(history, &[step, own]));
            inner.indices.push(step);
            self.block(b, &mut inner);
            let (value, one) = (self.computed(b, &inner), b.i32(1));
            let next = b.arith(ArithOp::Add, step, one);
            b.store(history, &[next, own], value);
            Vec::new()
        });
    }
}

/// The shape of a parameter, by its name.
pub fn shape(name: &str, points: i32) -> Vec<i32> {
    match name {
        "r" | "s" => vec![points],
        "history" => vec![EXTENT, points],
        "table" => vec![EXTENT, EXTENT],
        _ => vec![EXTENT],
    }
}
