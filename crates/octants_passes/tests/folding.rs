//! Folding and identities against the interpreter: every op of every scalar type, on constants at the edges, with both operands known
//! or only one.

use octants_interp::{Arg, Buffers, Datum, Limits, run};
use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, ConvertOp, MathOp, MathUnary, OpKind};
use octants_ir::{Builder, Const, Kernel, Scalar, Type, Value};
use octants_passes::simplify;

fn edges(ty: Scalar) -> Vec<Const> {
    if ty.is_real() {
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            -3.75,
            7.0,
            1e-7,
            6e4,
            -1e30,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        return values.iter().map(|&value| Const::from_f64(ty, value)).collect();
    }
    let half = 1_u64 << (ty.bits() - 1);
    let mut bits = vec![0, 1, 2, 3, 7, 8, 100, half, half - 1, half + 1, u64::MAX, u64::MAX - 4];
    for bits in &mut bits {
        *bits = Const::from_bits(ty, *bits).bits();
    }
    bits.sort_unstable();
    bits.dedup();
    bits.into_iter().map(|bits| Const::from_bits(ty, bits)).collect()
}

/// A kernel that gives `build` of every pair of edges, the first also as a parameter that is not known.
fn check(name: &str, ty: Scalar, other: Scalar, build: impl Fn(&mut Builder<'_>, Value, Value) -> Value) {
    for a in edges(ty) {
        let mut kernel = Kernel::new(name);
        let param = kernel.add_param("a", Type::from(ty));
        let mut b = Builder::new(&mut kernel);
        let known = b.constant(a);
        let mut results = Vec::new();
        for c in edges(other) {
            let c = b.constant(c);
            results.push(build(&mut b, known, c));
            results.push(build(&mut b, param, c));
            if other == ty {
                results.push(build(&mut b, c, param));
                results.push(build(&mut b, param, param));
            }
        }
        b.returns(&results);
        kernel.results = results.iter().map(|&value| kernel.ty(value).data().expect("data")).collect();
        let args = [Arg::Data(Datum::Scalar(a))];
        let result = |kernel: &Kernel| {
            let results = run(kernel, &args, &mut Buffers::new(), &Limits::default());
            results.unwrap_or_else(|trap| panic!("{name} of {}: {trap:?}", ty.name()))
        };
        let before = result(&kernel);
        simplify(&mut kernel);
        let after = result(&kernel);
        for (index, (before, after)) in before.iter().zip(&after).enumerate() {
            let (x, y) = (before.scalar(), after.scalar());
            let both_nan = x.ty().is_real() && x.as_f64().is_nan() && y.as_f64().is_nan();
            assert!(x == y || both_nan, "{name} of {} {a:?}, result {index}: {x:?} became {y:?}", ty.name());
        }
    }
}

#[test]
fn folding_agrees_with_the_interpreter() {
    for &ty in Scalar::ALL {
        for &op in ArithOp::ALL.iter().filter(|op| op.info().takes.admits(ty)) {
            check(op.name(), ty, ty, |b, a, c| {
                if op.operands() == 1 { b.arith_unary(op, a) } else { b.arith(op, a, c) }
            });
        }
        for &op in CompareOp::ALL {
            check(op.name(), ty, ty, |b, a, c| b.compare(op, a, c));
        }
        for &op in BitOp::ALL.iter().filter(|op| op.info().takes.admits(ty)) {
            check(op.name(), ty, ty, |b, a, c| b.bit(op, a, c));
        }
        for &op in BitUnary::ALL.iter().filter(|op| op.info().takes.admits(ty)) {
            check(op.name(), ty, Scalar::U1, |b, a, _| b.bit_unary(op, a));
        }
        for &op in MathUnary::ALL.iter().filter(|op| op.info().takes.admits(ty)) {
            check(op.name(), ty, Scalar::U1, |b, a, _| b.math_unary(op, a));
        }
        if ty != Scalar::U1 {
            check("pow", ty, Scalar::I8, |b, a, c| b.math(MathOp::Pow, a, c));
        }
        check("select", ty, Scalar::U1, |b, a, c| {
            let zero = b.constant(Const::from_bits(ty, 0));
            b.select(c, a, zero)
        });
    }
}

/// Chains of two casts: what is collapsed loses nothing.
#[test]
fn casts_of_casts_agree_with_the_interpreter() {
    for &first in Scalar::ALL {
        for &middle in Scalar::ALL {
            for &last in Scalar::ALL {
                let name = format!("cast by {} to {}", middle.name(), last.name());
                check(&name, first, Scalar::U1, |b, a, _| {
                    let there = b.cast(a, middle);
                    b.cast(there, last)
                });
            }
            if first.bits() == middle.bits() {
                check("bit_cast", first, Scalar::U1, |b, a, _| {
                    let ty = Type::from(middle);
                    let there = b.op(OpKind::Convert(ConvertOp::BitCast), [a], [ty], []);
                    let there = b.kernel.ops[there].results[0];
                    b.bit_cast(there, first)
                });
            }
        }
    }
}
