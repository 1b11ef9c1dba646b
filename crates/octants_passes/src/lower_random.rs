//! Writes random numbers out: Philox-4x32 with ten rounds in integer ops, on a counter that says where in the program a number is
//! drawn. See `octants_interp::random` for what is drawn from which counter.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %1: f32 = random
//! }
//! ```
//! After, but for the rounds:
//! ```text
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %0: local<u32> = local        ; words drawn so far in this iteration
//!   ...                           ; the iteration's number
//!   %2: u32 = load %0
//!   store %0, %2 + 1
//!   ...                           ; block %2 / 4 of loop 1 and this iteration, its word %2 mod 4
//!   %1: f32 = mul %word, 2^-24
//! }
//! ```
//!
//! A function that draws is passed the loop's and the iteration's numbers and how many words were drawn, and returns how many are then.
//! Calls whose counts are known share a block: four numbers cost one.
//!
//! Expects and leaves the structured phase. Stands before any pass that drops parallel loops, which are counted here.

use octants_ir::ops::{ArithOp, BitOp, CompareOp};
use octants_ir::rewrite::{ValueMap, ops_in, replace_values};
use octants_ir::{Builder, Const, Func, Kernel, Op, OpKind, Region, Scalar, SideTable, Value};

use crate::edit::slots::add_result;

pub fn lower_random(kernel: &mut Kernel) {
    let mut lowering =
        Lowering { draws: functions_that_draw(kernel), done: SideTable::new(false), names: ValueMap::new() };
    for function in kernel.functions.ids() {
        if lowering.draws[function] {
            lowering.function(kernel, function);
        }
    }
    let mut places = 0;
    lowering.loops_of(kernel, kernel.body, &mut places);
    // All that stands outside of parallel loops and branches; inside them none is left.
    lowering.outside_of_loops(kernel, kernel.body, 0);
    for body in kernel.bodies() {
        replace_values(kernel, body, &lowering.names);
    }
}

/// Which functions draw numbers, themselves or by what they call.
fn functions_that_draw(kernel: &Kernel) -> SideTable<Func, bool> {
    let mut draws = SideTable::new(false);
    loop {
        let mut changed = false;
        for (id, function) in kernel.functions.iter() {
            let found = ops_in(kernel, function.body).into_iter().any(|op| match kernel.ops[op].kind {
                OpKind::Random => true,
                OpKind::Call(called) => draws[called],
                _ => false,
            });
            if found && !draws[id] {
                draws.set(id, true);
                changed = true;
            }
        }
        if !changed {
            return draws;
        }
    }
}

fn word(b: &mut Builder<'_>, value: u32) -> Value {
    b.constant(Const::from_bits(Scalar::U32, value.into()))
}

fn long(b: &mut Builder<'_>, value: u64) -> Value {
    b.constant(Const::from_bits(Scalar::U64, value))
}

/// Where numbers are drawn from.
#[derive(Clone, Copy)]
struct Stream {
    task: Value,
    iteration: Value,
    /// The variable that counts words.
    words: Value,
}

struct Lowering {
    draws: SideTable<Func, bool>,
    /// Calls that pass the stream already.
    done: SideTable<Op, bool>,
    /// What the draws became.
    names: ValueMap,
}

impl Lowering {
    fn is_needed_in(&self, kernel: &Kernel, region: Region) -> bool {
        ops_in(kernel, region).into_iter().any(|op| self.is_needed(kernel, op))
    }

    fn is_needed(&self, kernel: &Kernel, op: Op) -> bool {
        match kernel.ops[op].kind {
            OpKind::Random => true,
            OpKind::Call(function) => self.draws[function] && !self.done[op],
            _ => false,
        }
    }

    /// The parallel loops of the kernel's body or of a branch, and branches there. `places` counts both.
    fn loops_of(&mut self, kernel: &mut Kernel, region: Region, places: &mut u32) {
        for op in kernel.regions[region].ops.clone() {
            match kernel.ops[op].kind {
                OpKind::ParallelFor(_) => {
                    *places += 1;
                    if self.is_needed_in(kernel, kernel.ops[op].regions[0]) {
                        self.parallel_for(kernel, op, *places);
                    }
                }
                OpKind::Fork => {
                    for branch in kernel.ops[op].regions.clone() {
                        *places += 1;
                        let number = *places;
                        self.loops_of(kernel, branch, places);
                        self.outside_of_loops(kernel, branch, number);
                    }
                }
                _ => {}
            }
        }
    }

    /// What the kernel's body or a branch draws itself.
    fn outside_of_loops(&mut self, kernel: &mut Kernel, region: Region, number: u32) {
        if !self.is_needed_in(kernel, region) {
            return;
        }
        let rest = std::mem::take(&mut kernel.regions[region].ops);
        let loc = Builder::new(kernel).loc;
        let mut b = Builder::at(kernel, region, loc);
        let (task, iteration) = (word(&mut b, number), long(&mut b, 0));
        let words = b.local(Scalar::U32.into());
        kernel.regions[region].ops.extend(rest);
        self.region(kernel, region, Stream { task, iteration, words });
    }

    fn function(&mut self, kernel: &mut Kernel, function: Func) {
        let body = kernel.functions[function].body;
        let task = kernel.add_function_param(function, "loop", Scalar::U32.into());
        let iteration = kernel.add_function_param(function, "iteration", Scalar::U64.into());
        let before = kernel.add_function_param(function, "words", Scalar::U32.into());
        kernel.functions[function].results.push(Scalar::U32.into());
        let rest = std::mem::take(&mut kernel.regions[body].ops);
        let loc = Builder::new(kernel).loc;
        let mut b = Builder::at(kernel, body, loc);
        let words = b.local(Scalar::U32.into());
        b.store(words, &[], before);
        kernel.regions[body].ops.extend(rest);
        self.region(kernel, body, Stream { task, iteration, words });
        let end = kernel.regions[body].ops.pop().expect("a body ends in a return");
        let after = Builder::at(kernel, body, loc).load(words, &[]);
        kernel.ops[end].operands.push(after);
        kernel.regions[body].ops.push(end);
    }

    fn parallel_for(&mut self, kernel: &mut Kernel, op: Op, number: u32) {
        let loc = kernel.ops[op].loc;
        let parallel = kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        let body = parallel.body;
        let indices: Vec<_> = parallel.indices().iter().copied().zip(parallel.bounds()).collect();
        let rest = std::mem::take(&mut kernel.regions[body].ops);
        let mut b = Builder::at(kernel, body, loc);
        let task = word(&mut b, number);
        let mut iteration = None;
        for (index, (lo, hi)) in indices {
            let (index, lo) = (b.cast(index, Scalar::U64), b.cast(lo, Scalar::U64));
            let offset = b.arith(ArithOp::Sub, index, lo);
            iteration = Some(match iteration {
                None => offset,
                Some(outer) => {
                    let hi = b.cast(hi, Scalar::U64);
                    let extent = b.arith(ArithOp::Sub, hi, lo);
                    let row = b.arith(ArithOp::Mul, outer, extent);
                    b.arith(ArithOp::Add, row, offset)
                }
            });
        }
        let iteration = iteration.expect("a parallel loop has an axis");
        let words = b.local(Scalar::U32.into());
        kernel.regions[body].ops.extend(rest);
        self.region(kernel, body, Stream { task, iteration, words });
    }

    fn region(&mut self, kernel: &mut Kernel, region: Region, stream: Stream) {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            let loc = kernel.ops[op].loc;
            match kernel.ops[op].kind {
                OpKind::Random => {
                    let result = kernel.ops[op].results[0];
                    let ty = kernel.ty(result).scalar().expect("a random number is a scalar");
                    let drawn = stream.draw(&mut Builder::at(kernel, region, loc), ty);
                    self.names.insert(result, drawn);
                }
                OpKind::Call(_) if self.is_needed(kernel, op) => {
                    self.done.set(op, true);
                    let before = Builder::at(kernel, region, loc).load(stream.words, &[]);
                    kernel.ops[op].operands.extend([stream.task, stream.iteration, before]);
                    let after = add_result(kernel, op, Scalar::U32.into());
                    kernel.regions[region].ops.push(op);
                    Builder::at(kernel, region, loc).store(stream.words, &[], after);
                }
                _ => {
                    kernel.regions[region].ops.push(op);
                    for inner in kernel.ops[op].regions.clone() {
                        self.region(kernel, inner, stream);
                    }
                }
            }
        }
    }
}

impl Stream {
    /// The next number.
    fn draw(self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        if ty.bits() == 64 {
            let bits = self.long(b);
            return match ty {
                // The mantissa of a number in [1, 2).
                Scalar::F64 => {
                    let (by, one) = (word(b, 12), long(b, 1_f64.to_bits()));
                    let mantissa = b.bit(BitOp::LShr, bits, by);
                    let pattern = b.bit(BitOp::Or, mantissa, one);
                    let (real, one) = (b.bit_cast(pattern, ty), b.constant(Const::f64(1.0)));
                    b.arith(ArithOp::Sub, real, one)
                }
                Scalar::I64 => b.bit_cast(bits, ty),
                _ => bits,
            };
        }
        let bits = self.word(b);
        match ty {
            Scalar::F32 => uniform(b, bits, 8, ty),
            Scalar::F16 => uniform(b, bits, 21, ty),
            Scalar::U32 => bits,
            Scalar::I32 => b.bit_cast(bits, ty),
            _ => b.cast(bits, ty),
        }
    }

    fn word(self, b: &mut Builder<'_>) -> Value {
        let count = b.load(self.words, &[]);
        self.advance(b, count, 1);
        let block = self.block(b, count);
        let (even, first) = (is_clear(b, count, 1), is_clear(b, count, 2));
        let left = b.select(even, block[0], block[1]);
        let right = b.select(even, block[2], block[3]);
        b.select(first, left, right)
    }

    /// Two words, the first of them even.
    fn long(self, b: &mut Builder<'_>) -> Value {
        let count = b.load(self.words, &[]);
        let (one, even) = (word(b, 1), word(b, !1));
        let up = b.arith(ArithOp::Add, count, one);
        let count = b.bit(BitOp::And, up, even);
        self.advance(b, count, 2);
        let block = self.block(b, count);
        let first = is_clear(b, count, 2);
        let low = b.select(first, block[0], block[2]);
        let high = b.select(first, block[1], block[3]);
        let (low, high, by) = (b.cast(low, Scalar::U64), b.cast(high, Scalar::U64), word(b, 32));
        let high = b.bit(BitOp::Shl, high, by);
        b.bit(BitOp::Or, high, low)
    }

    fn advance(self, b: &mut Builder<'_>, from: Value, words: u32) {
        let by = word(b, words);
        let next = b.arith(ArithOp::Add, from, by);
        b.store(self.words, &[], next);
    }

    /// The four words of the block that holds a word.
    fn block(self, b: &mut Builder<'_>, first: Value) -> [Value; 4] {
        const FACTORS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
        const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
        let key = b.launch_key();
        let mut keys = [low(b, key), high(b, key)];
        let two = word(b, 2);
        let number = b.bit(BitOp::LShr, first, two);
        let mut c = [number, self.task, low(b, self.iteration), high(b, self.iteration)];
        for round in 0..10 {
            if round > 0 {
                for (key, step) in keys.iter_mut().zip(STEPS) {
                    let step = word(b, step);
                    *key = b.arith(ArithOp::Add, *key, step);
                }
            }
            let (p, q) = (product(b, c[0], FACTORS[0]), product(b, c[2], FACTORS[1]));
            let (upper, lower) = (high(b, q), high(b, p));
            let even = xor(b, [upper, c[1], keys[0]]);
            let odd = xor(b, [lower, c[3], keys[1]]);
            c = [even, low(b, q), odd, low(b, p)];
        }
        c
    }
}

fn low(b: &mut Builder<'_>, value: Value) -> Value {
    b.cast(value, Scalar::U32)
}

fn high(b: &mut Builder<'_>, value: Value) -> Value {
    let by = word(b, 32);
    let upper = b.bit(BitOp::LShr, value, by);
    b.cast(upper, Scalar::U32)
}

/// All 64 bits of it.
fn product(b: &mut Builder<'_>, value: Value, factor: u64) -> Value {
    let (value, factor) = (b.cast(value, Scalar::U64), long(b, factor));
    b.arith(ArithOp::Mul, value, factor)
}

fn xor(b: &mut Builder<'_>, [x, y, z]: [Value; 3]) -> Value {
    let both = b.bit(BitOp::Xor, x, y);
    b.bit(BitOp::Xor, both, z)
}

/// Whether a bit is not set.
fn is_clear(b: &mut Builder<'_>, value: Value, bit: u32) -> Value {
    let (bit, zero) = (word(b, bit), word(b, 0));
    let set = b.bit(BitOp::And, value, bit);
    b.compare(CompareOp::Eq, set, zero)
}

/// The upper bits of a word as a real in `[0, 1)`: no more of them than the type holds.
fn uniform(b: &mut Builder<'_>, bits: Value, dropped: u32, ty: Scalar) -> Value {
    let by = word(b, dropped);
    let kept = b.bit(BitOp::LShr, bits, by);
    // It is below 2^31, and conversions of signed integers are faster.
    let kept = b.bit_cast(kept, Scalar::I32);
    let real = b.cast(kept, ty);
    let scale = b.constant(Const::from_f64(ty, 2_f64.powi(dropped as i32 - 32)));
    b.arith(ArithOp::Mul, real, scale)
}
