//! Random structured programs against the interpreter: nested decisions and loops, variables with dynamic components, clamped
//! arrays, conditional stores; scalar and widened, in odd chunks.

mod harness;

use harness::oracle::{Input, Random, check};
use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, ParallelFor};
use octants_ir::{ArrayType, Boundary, Builder, Const, Kernel, Scalar, TensorShape, TensorType, Type, Value};

const TYPES: [Scalar; 5] = [Scalar::I32, Scalar::F32, Scalar::U1, Scalar::I64, Scalar::U8];

/// Cells in each shared array.
const SHARED: i32 = 3;

struct Generator {
    random: Random,
    /// Arrays to read, clamped: ranks 1 and 2.
    sources: Vec<(Value, usize)>,
    /// The iteration's own cells.
    outputs: Vec<Value>,
    index: Vec<Value>,
    /// Cells that all iterations update, one array for each op.
    shared: Vec<Value>,
    /// Variables with a dynamic component, and their number of entries.
    locals: Vec<(Value, Scalar, i32)>,
}

impl Generator {
    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn one_of<T: Copy>(&mut self, list: impl Fn(&Self) -> &Vec<T>) -> T {
        let count = list(self).len() as u64;
        let index = self.below(count) as usize;
        list(self)[index]
    }

    fn ty(&mut self) -> Scalar {
        TYPES[self.below(TYPES.len() as u64) as usize]
    }

    /// A value of the type: one that is there, or a constant.
    fn pick(&mut self, b: &mut Builder<'_>, pool: &[Value], ty: Scalar) -> Value {
        let fitting: Vec<_> = pool.iter().copied().filter(|&v| b.kernel.ty(v) == Type::from(ty)).collect();
        if fitting.is_empty() || self.below(6) == 0 {
            let small = self.below(9) as i128 - 3;
            return b.constant(if ty.is_real() {
                Const::from_f64(ty, small as f64 * 0.75)
            } else {
                Const::from_i128(ty, small)
            });
        }
        // Newer values more often.
        let back = self.below(fitting.len() as u64).min(self.below(fitting.len() as u64));
        fitting[fitting.len() - 1 - back as usize]
    }

    /// A number of iterations.
    fn bound(&mut self, b: &mut Builder<'_>, pool: &[Value]) -> Value {
        let any = self.pick(b, pool, Scalar::I32);
        let most = b.i32(7);
        b.arith(ArithOp::Mod, any, most)
    }

    fn expression(&mut self, b: &mut Builder<'_>, pool: &[Value]) -> Value {
        let ty = self.ty();
        let (x, y) = (self.pick(b, pool, ty), self.pick(b, pool, ty));
        match self.below(6) {
            0 => {
                let to = self.ty();
                b.cast(x, to)
            }
            1 => b.compare(CompareOp::ALL[self.below(6) as usize], x, y),
            2 => {
                let c = self.pick(b, pool, Scalar::U1);
                b.select(c, x, y)
            }
            3 if !ty.is_real() => b.bit(BitOp::ALL[self.below(6) as usize], x, y),
            _ if ty == Scalar::U1 => b.bit(BitOp::Xor, x, y),
            _ if ty.is_real() => {
                let ops = [ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Div];
                b.arith(ops[self.below(4) as usize], x, y)
            }
            _ => {
                let ops = [
                    ArithOp::Add,
                    ArithOp::Sub,
                    ArithOp::Mul,
                    ArithOp::FloorDiv,
                    ArithOp::Mod,
                    ArithOp::RawDiv,
                    ArithOp::RawMod,
                    ArithOp::Min,
                    ArithOp::Max,
                ];
                b.arith(ops[self.below(9) as usize], x, y)
            }
        }
    }

    fn load(&mut self, b: &mut Builder<'_>, pool: &[Value]) -> Value {
        if !self.locals.is_empty() && self.below(3) == 0 {
            let (local, _, _) = self.one_of(|g| &g.locals);
            let component = self.pick(b, pool, Scalar::I32);
            return b.load(local, &[component]);
        }
        let (source, rank) = self.one_of(|g| &g.sources);
        let indices: Vec<_> = (0..rank)
            .map(|_| {
                let i = self.pick(b, pool, Scalar::I32);
                let j = self.pick(b, pool, Scalar::I32);
                b.arith(ArithOp::Add, i, j)
            })
            .collect();
        b.load(source, &indices)
    }

    /// An update of a cell that iterations share, in any order.
    fn update(&mut self, b: &mut Builder<'_>, pool: &[Value]) {
        let which = self.below(self.shared.len() as u64) as usize;
        let ops = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Xor];
        let any = self.pick(b, pool, Scalar::I32);
        let cells = b.i32(SHARED);
        let cell = b.arith(ArithOp::Mod, any, cells);
        let value = self.pick(b, pool, Scalar::I32);
        b.atomic(ops[which], self.shared[which], &[cell], value);
    }

    fn store(&mut self, b: &mut Builder<'_>, pool: &[Value]) {
        if self.below(3) == 0 {
            return self.update(b, pool);
        }
        if !self.locals.is_empty() && self.below(2) == 0 {
            let (local, ty, _) = self.one_of(|g| &g.locals);
            let component = self.pick(b, pool, Scalar::I32);
            let value = self.pick(b, pool, ty);
            return b.store(local, &[component], value);
        }
        let output = self.one_of(|g| &g.outputs);
        let Type::Array(array) = b.kernel.ty(output) else { unreachable!() };
        let value = self.pick(b, pool, array.elem.scalar().unwrap());
        let index = self.index.clone();
        b.store(output, &index, value);
    }

    /// Statements; gives everything that later ones of the same region may use.
    fn statements(&mut self, b: &mut Builder<'_>, pool: &[Value], depth: u32) -> Vec<Value> {
        let mut pool = pool.to_vec();
        let locals = self.locals.len();
        for _ in 0..3 + self.below(5) {
            let choice = if depth == 0 { self.below(7) } else { self.below(13) };
            match choice {
                0..4 => {
                    let value = self.expression(b, &pool);
                    pool.push(value);
                }
                4 | 5 => {
                    let value = self.load(b, &pool);
                    pool.push(value);
                }
                6 => self.store(b, &pool),
                7 if self.locals.len() < 3 => {
                    let ty = self.ty();
                    let entries = 2 + self.below(4) as u16;
                    let shape = TensorShape::Vector(entries);
                    let local = b.local(octants_ir::Data::Tensor(TensorType { elem: ty, shape }));
                    self.locals.push((local, ty, entries.into()));
                }
                7..9 => {
                    let c = self.pick(b, &pool, Scalar::U1);
                    let types: Vec<_> = (0..self.below(3)).map(|_| self.ty()).collect();
                    let this = std::cell::RefCell::new(&mut *self);
                    let branch = |b: &mut Builder<'_>| {
                        let mut this = this.borrow_mut();
                        let inner = this.statements(b, &pool, depth - 1);
                        types.iter().map(|&ty| this.pick(b, &inner, ty)).collect()
                    };
                    let results = b.if_else(c, branch, branch);
                    pool.extend(results);
                }
                9..11 => {
                    let lo = if self.below(2) == 0 { b.i32(0) } else { self.bound(b, &pool) };
                    let hi = self.bound(b, &pool);
                    let types: Vec<_> = (0..=self.below(3)).map(|_| self.ty()).collect();
                    let carried: Vec<_> = types.iter().map(|&ty| self.pick(b, &pool, ty)).collect();
                    let results = b.for_range(lo, hi, &carried, |b, index, carried| {
                        let mut inner = pool.clone();
                        inner.push(index);
                        inner.extend(carried);
                        let inner = self.statements(b, &inner, depth - 1);
                        types.iter().map(|&ty| self.pick(b, &inner, ty)).collect()
                    });
                    pool.extend(results);
                }
                _ => {
                    let bound = self.bound(b, &pool);
                    let types: Vec<_> = (0..=self.below(3)).map(|_| self.ty()).collect();
                    let zero = b.i32(0);
                    let mut carried = vec![zero];
                    carried.extend(types.iter().map(|&ty| self.pick(b, &pool, ty)));
                    let this = std::cell::RefCell::new(&mut *self);
                    let results = b.while_loop(
                        &carried,
                        |b, held| {
                            let mut this = this.borrow_mut();
                            let mut inner = pool.clone();
                            inner.extend(held);
                            let inner = this.statements(b, &inner, 0);
                            let mut go_on = b.compare(CompareOp::Lt, held[0], bound);
                            if this.below(2) == 0 {
                                let also = this.pick(b, &inner, Scalar::U1);
                                go_on = b.bit(BitOp::And, go_on, also);
                            }
                            let mut yielded = held.to_vec();
                            if this.below(2) == 0 {
                                yielded[1] = this.pick(b, &inner, types[0]);
                            }
                            (go_on, yielded)
                        },
                        |b, held| {
                            let mut this = this.borrow_mut();
                            let mut inner = pool.clone();
                            inner.extend(held);
                            let inner = this.statements(b, &inner, depth - 1);
                            let one = b.i32(1);
                            let next = b.arith(ArithOp::Add, held[0], one);
                            let mut yielded = vec![next];
                            yielded.extend(types.iter().map(|&ty| this.pick(b, &inner, ty)));
                            yielded
                        },
                    );
                    pool.extend(results);
                }
            }
        }
        self.locals.truncate(locals);
        pool
    }
}

fn array(ty: Scalar, rank: u8, boundary: Boundary) -> Type {
    Type::Array(ArrayType::array(ty, rank, boundary))
}

fn program(seed: u64) -> (Kernel, Vec<Input>) {
    let mut g = Generator {
        random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        sources: Vec::new(),
        outputs: Vec::new(),
        index: Vec::new(),
        shared: Vec::new(),
        locals: Vec::new(),
    };
    let mut kernel = Kernel::new(format!("program_{seed}"));
    let axes = 1 + g.below(3) as usize;
    let extents = [[41, 0, 0], [3, 23, 0], [2, 3, 17]][axes - 1];
    let shape = &extents[..axes];
    let count: i32 = shape.iter().product();
    let mut inputs = Vec::new();
    for (ty, rank, shape) in
        [(Scalar::I32, 1, vec![29]), (Scalar::F32, 2, vec![5, 7]), (Scalar::U1, 1, vec![9])]
    {
        g.sources.push((kernel.add_param(ty.name(), array(ty, rank, Boundary::Clamp)), rank.into()));
        let count: i32 = shape.iter().product();
        inputs.push(Input::array(ty, &g.random.values(ty, count as usize), &shape));
    }
    for ty in TYPES {
        let name = format!("out_{}", ty.name());
        g.outputs.push(kernel.add_param(name, array(ty, axes as u8, Boundary::Unsafe)));
        inputs.push(Input::array(ty, &vec![Const::from_bits(ty, 0); count as usize], shape));
    }
    for name in ["sums", "least", "parity"] {
        g.shared.push(kernel.add_param(name, array(Scalar::I32, 1, Boundary::Unsafe)));
        inputs.push(Input::array(Scalar::I32, &[Const::i32(9); SHARED as usize], &[SHARED]));
    }
    let scalar = kernel.add_param("n", Type::I32);
    inputs.push(Input::Scalar(Const::i32(5)));

    let mut b = Builder::new(&mut kernel);
    let bounds: Vec<_> = shape.iter().map(|&extent| (b.i32(0), b.i32(extent))).collect();
    b.parallel_for(&bounds, ParallelFor::default(), |b, index| {
        g.index = index.to_vec();
        let mut pool = index.to_vec();
        pool.push(scalar);
        let pool = g.statements(b, &pool, 3);
        for output in g.outputs.clone() {
            let Type::Array(array) = b.kernel.ty(output) else { unreachable!() };
            let value = g.pick(b, &pool, array.elem.scalar().unwrap());
            b.store(output, index, value);
        }
    });
    b.returns(&[]);
    (kernel, inputs)
}

#[test]
fn random_programs_do_what_the_interpreter_does() {
    // More with the environment variable, for a longer search.
    let count = std::env::var("OCTANTS_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let first = std::env::var("OCTANTS_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + count {
        let (kernel, inputs) = program(seed);
        let text = octants_ir::text::print(&kernel);
        let result = std::panic::catch_unwind(|| check(&kernel, &inputs, |_| 0.0));
        assert!(result.is_ok(), "seed {seed}:\n{text}");
    }
}
