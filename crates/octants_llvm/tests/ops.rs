//! Every op on every type against the interpreter, on values that something might go wrong with: scalar and widened, optimised
//! and not.

mod harness;

use harness::oracle::{Input, Random, Tolerance, check};
use octants_ir::ops::{ArithOp, AtomicOp, BitOp, BitUnary, CompareOp, MathOp, MathUnary, ParallelFor, Takes};
use octants_ir::{ArrayType, Boundary, Builder, Const, Kernel, Scalar, Type, Value};

const COUNT: usize = 211;

fn admits(takes: Takes, ty: Scalar) -> bool {
    match takes {
        Takes::Any => true,
        Takes::Numeric => ty != Scalar::U1,
        Takes::Real => ty.is_real(),
        Takes::Integral => !ty.is_real(),
    }
}

fn array(ty: Scalar) -> Type {
    Type::Array(ArrayType::array(ty, 1, Boundary::Unsafe))
}

/// A kernel that applies several ops elementwise, each into an array of its own.
struct Elementwise {
    kernel: Kernel,
    inputs: Vec<Value>,
    given: Vec<Input>,
    /// Name, type of the result, and what makes it of the elements.
    outputs: Vec<Output>,
}

type Output = (String, Scalar, Box<dyn Fn(&mut Builder<'_>, &[Value]) -> Value>);

impl Elementwise {
    fn new(name: &str, types: &[Scalar], random: &mut Random) -> Self {
        let mut kernel = Kernel::new(name);
        let inputs = types
            .iter()
            .enumerate()
            .map(|(index, &ty)| kernel.add_param(format!("in{index}"), array(ty)))
            .collect();
        let given =
            types.iter().map(|&ty| Input::array(ty, &random.values(ty, COUNT), &[COUNT as i32])).collect();
        Self { kernel, inputs, given, outputs: Vec::new() }
    }

    fn output(
        &mut self,
        name: impl Into<String>,
        ty: Scalar,
        make: impl Fn(&mut Builder<'_>, &[Value]) -> Value + 'static,
    ) {
        self.outputs.push((name.into(), ty, Box::new(make)));
    }

    fn check(mut self, tolerance: Tolerance) {
        if self.outputs.is_empty() {
            return;
        }
        let places: Vec<_> = self
            .outputs
            .iter()
            .map(|(name, ty, _)| self.kernel.add_param(name.clone(), array(*ty)))
            .collect();
        for (_, ty, _) in &self.outputs {
            self.given.push(Input::array(*ty, &[Const::from_bits(*ty, 0); COUNT], &[COUNT as i32]));
        }
        let mut b = Builder::new(&mut self.kernel);
        let zero = b.i32(0);
        let count = b.i32(COUNT as i32);
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        b.parallel_for(&[(zero, count)], ParallelFor::default(), |b, index| {
            let elements: Vec<_> = inputs.iter().map(|&input| b.load(input, index)).collect();
            for ((_, _, make), &place) in outputs.iter().zip(&places) {
                let value = make(b, &elements);
                b.store(place, index, value);
            }
        });
        b.returns(&[]);
        check(&self.kernel, &self.given, tolerance);
    }
}

fn exactly(_: &str) -> f64 {
    0.0
}

#[test]
fn arithmetic_bits_and_comparisons() {
    let mut random = Random(1);
    for &ty in Scalar::ALL {
        let mut test = Elementwise::new(&format!("arith_{}", ty.name()), &[ty, ty], &mut random);
        for &op in ArithOp::ALL.iter().filter(|op| admits(op.info().takes, ty)) {
            if op.operands() == 1 {
                test.output(op.name(), ty, move |b, v| b.arith_unary(op, v[0]));
            } else {
                test.output(op.name(), ty, move |b, v| b.arith(op, v[0], v[1]));
            }
        }
        for &op in CompareOp::ALL {
            test.output(op.name(), Scalar::U1, move |b, v| b.compare(op, v[0], v[1]));
        }
        if !ty.is_real() {
            for &op in BitOp::ALL {
                test.output(op.name(), ty, move |b, v| b.bit(op, v[0], v[1]));
            }
            for &op in BitUnary::ALL {
                let result = if op == BitUnary::Not { ty } else { Scalar::I32 };
                test.output(op.name(), result, move |b, v| b.bit_unary(op, v[0]));
            }
        }
        test.output("select", ty, |b, v| {
            let less = b.compare(CompareOp::Lt, v[0], v[1]);
            b.select(less, v[0], v[1])
        });
        test.check(exactly);
    }
}

#[test]
fn arithmetic_with_a_constant_operand() {
    let mut random = Random(2);
    for &ty in Scalar::ALL.iter().filter(|&&ty| ty != Scalar::U1) {
        let constants = if ty.is_real() {
            vec![Const::from_f64(ty, 0.0), Const::from_f64(ty, 3.0), Const::from_f64(ty, -0.5)]
        } else {
            let least = Const::from_bits(ty, 1 << (ty.bits() - 1));
            let others = [0, 1, -1, 2, 64, 3, 7, -3, -8].map(|c| Const::from_i128(ty, c));
            others.into_iter().chain([least]).collect()
        };
        let mut test = Elementwise::new(&format!("constant_{}", ty.name()), &[ty], &mut random);
        for &op in ArithOp::ALL.iter().filter(|op| op.operands() == 2 && admits(op.info().takes, ty)) {
            for (index, &c) in constants.iter().enumerate() {
                test.output(format!("{}_{index}", op.name()), ty, move |b, v| {
                    let c = b.constant(c);
                    b.arith(op, v[0], c)
                });
            }
        }
        if !ty.is_real() {
            for &op in BitOp::ALL.iter().filter(|op| op.is_shift()) {
                for (index, &c) in constants.iter().enumerate() {
                    test.output(format!("{}_{index}", op.name()), ty, move |b, v| {
                        let c = b.constant(c);
                        b.bit(op, v[0], c)
                    });
                }
            }
        }
        test.check(exactly);
    }
}

#[test]
fn shifts_take_any_integer_as_the_amount() {
    let mut random = Random(3);
    let integers = || Scalar::ALL.iter().copied().filter(|ty| !ty.is_real());
    for ty in integers() {
        let types: Vec<_> = std::iter::once(ty).chain(integers()).collect();
        let mut test = Elementwise::new(&format!("shift_{}", ty.name()), &types, &mut random);
        for (index, &amount) in types.iter().enumerate().skip(1) {
            for &op in BitOp::ALL.iter().filter(|op| op.is_shift()) {
                test.output(format!("{}_{}", op.name(), amount.name()), ty, move |b, v| {
                    b.bit(op, v[0], v[index])
                });
            }
        }
        test.check(exactly);
    }
}

#[test]
fn conversions() {
    let mut random = Random(4);
    for &from in Scalar::ALL {
        let mut test = Elementwise::new(&format!("cast_{}", from.name()), &[from], &mut random);
        for &to in Scalar::ALL.iter().filter(|&&to| to != from) {
            test.output(format!("cast_{}", to.name()), to, move |b, v| b.cast(v[0], to));
            if to.bits() == from.bits() {
                test.output(format!("bits_{}", to.name()), to, move |b, v| b.bit_cast(v[0], to));
            }
        }
        test.check(exactly);
    }
}

/// Functions of the C library are right to a few units in the last place; what is defined by bits or by one rounding is exact.
fn math_tolerance(name: &str) -> f64 {
    match name {
        "sqrt" | "floor" | "ceil" | "round" | "frexp_mantissa" => 0.0,
        _ => 4.0,
    }
}

#[test]
fn functions_of_reals() {
    let mut random = Random(5);
    for ty in [Scalar::F16, Scalar::F32, Scalar::F64] {
        let mut test = Elementwise::new(&format!("math_{}", ty.name()), &[ty, ty], &mut random);
        for &op in MathUnary::ALL {
            let result = match op {
                MathUnary::IsNan | MathUnary::IsInf => Scalar::U1,
                MathUnary::FrexpExponent => Scalar::I32,
                _ => ty,
            };
            test.output(op.name(), result, move |b, v| b.math_unary(op, v[0]));
        }
        for &op in MathOp::ALL {
            test.output(op.name(), ty, move |b, v| b.math(op, v[0], v[1]));
        }
        test.check(math_tolerance);
    }
}

#[test]
fn integer_powers() {
    let mut random = Random(6);
    for &ty in Scalar::ALL {
        let exponents = [Scalar::I8, Scalar::U8, Scalar::I32, Scalar::U64, Scalar::U1];
        let types: Vec<_> = std::iter::once(ty).chain(exponents).collect();
        let mut test = Elementwise::new(&format!("pow_{}", ty.name()), &types, &mut random);
        for (index, exponent) in exponents.into_iter().enumerate() {
            test.output(format!("pow_{}", exponent.name()), ty, move |b, v| {
                b.math(MathOp::Pow, v[0], v[index + 1])
            });
        }
        for exponent in [0, 1, 2, 3, 7, -1, -2, 10] {
            test.output(format!("pow_const_{exponent}"), ty, move |b, v| {
                let exponent = b.i32(exponent);
                b.math(MathOp::Pow, v[0], exponent)
            });
        }
        test.check(exactly);
    }
}

/// Updates one after the other, so that every old value is known.
#[test]
fn atomic_updates() {
    let mut random = Random(7);
    for &ty in Scalar::ALL {
        let mut kernel = Kernel::new(format!("atomic_{}", ty.name()));
        let values = kernel.add_param("values", array(ty));
        let ops: Vec<_> = AtomicOp::ALL.iter().copied().filter(|op| admits(op.info().takes, ty)).collect();
        let cells: Vec<_> = ops.iter().map(|op| kernel.add_param(op.name(), array(ty))).collect();
        let olds: Vec<_> =
            ops.iter().map(|op| kernel.add_param(format!("{}_old", op.name()), array(ty))).collect();
        let swapped = (!ty.is_real()).then(|| kernel.add_param("cas", array(ty)));
        let mut b = Builder::new(&mut kernel);
        let zero = b.i32(0);
        let count = b.i32(COUNT as i32);
        let in_order = ParallelFor { max_threads: Some(1), ..ParallelFor::default() };
        b.parallel_for(&[(zero, count)], in_order, |b, index| {
            let value = b.load(values, index);
            let (seven, three) = (b.i32(7), b.i32(3));
            let cell = b.arith(ArithOp::Mod, index[0], seven);
            for ((&op, &cells), &olds) in ops.iter().zip(&cells).zip(&olds) {
                let old = b.atomic(op, cells, &[cell], value);
                b.store(olds, index, old);
            }
            if let Some(cells) = swapped {
                let near = b.arith(ArithOp::Mod, index[0], three);
                let expected = b.load(cells, &[near]);
                let old = b.atomic_cas(cells, &[cell], expected, value);
                b.store(cells, index, old);
            }
        });
        b.returns(&[]);
        let size = [COUNT as i32];
        let mut given = vec![Input::array(ty, &random.values(ty, COUNT), &size)];
        for _ in &cells {
            given.push(Input::array(ty, &random.values(ty, COUNT), &size));
        }
        for _ in &olds {
            given.push(Input::array(ty, &[Const::from_bits(ty, 0); COUNT], &size));
        }
        if swapped.is_some() {
            given.push(Input::array(ty, &random.values(ty, COUNT), &size));
        }
        check(&kernel, &given, exactly);
    }
}
