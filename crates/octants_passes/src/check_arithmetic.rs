//! In debug mode, tells of integers that overflow, and fails where an integer is divided by zero or has a negative exponent.
//!
//! Before:
//! ```text
//! %2: i32 = add %0, %1
//! ```
//! After:
//! ```text
//! %2: i32 = add %0, %1
//! %3: i64 = cast %0
//! %4: i64 = cast %1
//! %5: i64 = add %3, %4
//! %6: i64 = cast %2
//! %7: u1 = ne %5, %6
//! if %7 {
//!   print "Addition overflow detected in {@}\n"
//! }
//! ```
//!
//! Only what the user wrote is looked at: ops with a place in a file. Expects scalars, and leaves the structured phase; stands before anything folds or rewrites arithmetic.

use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp, MathOp, PrintPiece, PrintSpec};
use octants_ir::rewrite::regions_in;
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Scalar, Value};

pub fn check_arithmetic(kernel: &mut Kernel) {
    if !kernel.options.debug {
        return;
    }
    let regions: Vec<_> = kernel.bodies().into_iter().flat_map(|body| regions_in(kernel, body)).collect();
    for region in regions {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            let loc = kernel.ops[op].loc;
            let written = kernel.locs[loc].span.is_some();
            if written {
                let b = &mut Builder::at(kernel, region, loc);
                check_exponent(b, op);
                check_divisor(b, op);
            }
            kernel.regions[region].ops.push(op);
            if written {
                check_overflow(&mut Builder::at(kernel, region, loc), op);
            }
        }
    }
}

fn check_exponent(b: &mut Builder<'_>, op: Op) {
    let (OpKind::Math(MathOp::Pow), &[base, exponent]) =
        (&b.kernel.ops[op].kind, &b.kernel.ops[op].operands[..])
    else {
        return;
    };
    let integral = |value: Value| b.kernel.ty(value).scalar().filter(|scalar| scalar.is_integral());
    if let (Some(_), Some(ty)) = (integral(base), integral(exponent))
        && ty.is_signed()
    {
        let zero = b.constant(Const::from_bits(ty, 0));
        let fits = b.compare(CompareOp::Ge, exponent, zero);
        b.assert(AssertKind::Arithmetic, fits, "the exponent of an integer is negative: {}", &[exponent]);
    }
}

fn check_divisor(b: &mut Builder<'_>, op: Op) {
    use ArithOp::{FloorDiv, Mod, RawDiv, RawMod};
    let (OpKind::Arith(FloorDiv | Mod | RawDiv | RawMod), &[dividend, divisor]) =
        (&b.kernel.ops[op].kind, &b.kernel.ops[op].operands[..])
    else {
        return;
    };
    if b.kernel.as_const(divisor).is_some_and(|divisor| !divisor.is_zero()) {
        return;
    }
    if let Some(ty) = b.kernel.ty(divisor).scalar().filter(|scalar| scalar.is_integral()) {
        let zero = b.constant(Const::from_bits(ty, 0));
        let divides = b.compare(CompareOp::Ne, divisor, zero);
        b.assert(
            AssertKind::Arithmetic,
            divides,
            "integer division by zero: the dividend is {}",
            &[dividend],
        );
    }
}

fn check_overflow(b: &mut Builder<'_>, op: Op) {
    let data = &b.kernel.ops[op];
    let (kind, &[x, y], &[result]) = (&data.kind, &data.operands[..], &data.results[..]) else { return };
    let Some(ty) = b.kernel.ty(result).scalar().filter(|ty| ty.is_integral() && *ty != Scalar::U1) else {
        return;
    };
    let (name, overflows) = match kind {
        OpKind::Arith(ArithOp::Add) => ("Addition", sum_overflows(b, ArithOp::Add, ty, [x, y, result])),
        OpKind::Arith(ArithOp::Sub) => ("Subtraction", sum_overflows(b, ArithOp::Sub, ty, [x, y, result])),
        OpKind::Arith(ArithOp::Mul) => ("Multiplication", product_overflows(b, ty, [x, y, result])),
        OpKind::Bit(BitOp::Shl) => ("Shift left", {
            let back = b.bit(BitOp::Shr, result, y);
            b.compare(CompareOp::Ne, back, x)
        }),
        _ => return,
    };
    let mut spec = PrintSpec::default();
    spec.push_text(&format!("{name} overflow detected in "));
    spec.pieces.push(PrintPiece::Location);
    spec.push_text("\n");
    b.if_else(
        overflows,
        |b| {
            b.print(spec, &[]);
            Vec::new()
        },
        |_| Vec::new(),
    );
}

fn sum_overflows(b: &mut Builder<'_>, op: ArithOp, ty: Scalar, [x, y, result]: [Value; 3]) -> Value {
    match (ty.bits(), ty.is_signed(), op) {
        (8 | 16 | 32, true, _) => wide_differs(b, op, [x, y, result]),
        (_, true, _) => {
            // The result's sign is wrong: not that of two equal signs, or not that of what is subtracted from.
            let other = if op == ArithOp::Add { result } else { x };
            let (p, q) = (b.bit(BitOp::Xor, x, result), b.bit(BitOp::Xor, y, other));
            let signs = b.bit(BitOp::And, p, q);
            let zero = b.constant(Const::from_bits(ty, 0));
            b.compare(CompareOp::Lt, signs, zero)
        }
        (_, false, ArithOp::Add) => b.compare(CompareOp::Lt, result, x),
        (_, false, _) => b.compare(CompareOp::Lt, x, y),
    }
}

fn product_overflows(b: &mut Builder<'_>, ty: Scalar, [x, y, result]: [Value; 3]) -> Value {
    if ty.bits() <= 32 {
        return wide_differs(b, ArithOp::Mul, [x, y, result]);
    }
    // A product divided by a factor is the other one. The least number by -1 divides back to itself.
    let zero = b.constant(Const::from_bits(ty, 0));
    let back = b.arith(ArithOp::RawDiv, result, y);
    let (differs, divides) = (b.compare(CompareOp::Ne, back, x), b.compare(CompareOp::Ne, y, zero));
    let overflows = b.bit(BitOp::And, differs, divides);
    if !ty.is_signed() {
        return overflows;
    }
    let least = b.constant(Const::from_bits(ty, 1 << (ty.bits() - 1)));
    let minus_one = b.constant(Const::from_bits(ty, u64::MAX));
    let (at_least, by_minus_one) =
        (b.compare(CompareOp::Eq, x, least), b.compare(CompareOp::Eq, y, minus_one));
    let wraps = b.bit(BitOp::And, at_least, by_minus_one);
    b.bit(BitOp::Or, overflows, wraps)
}

/// Whether 64 bits give something else.
fn wide_differs(b: &mut Builder<'_>, op: ArithOp, [x, y, result]: [Value; 3]) -> Value {
    let wide = if b.kernel.ty(x).scalar().is_some_and(Scalar::is_signed) { Scalar::I64 } else { Scalar::U64 };
    let (x, y, result) = (b.cast(x, wide), b.cast(y, wide), b.cast(result, wide));
    let exact = b.arith(op, x, y);
    b.compare(CompareOp::Ne, exact, result)
}
