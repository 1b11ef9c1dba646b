//! Math functions, and powers.

use octants_ir::ops::{ArithOp, MathOp, MathUnary};
use octants_ir::{Op, OpKind, Scalar};

use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::value::{Val, bits_of};

impl Emitter<'_> {
    pub(crate) fn math(&mut self, op: MathOp, a: Val, b: Val) -> Val {
        match op {
            MathOp::Pow if b.ty.is_real() => self.library(LibraryFunction::Pow, &[a, b]),
            MathOp::Pow => match b.as_int() {
                Some(exponent) => self.constant_power(a, exponent),
                None => self.power(a, b),
            },
            MathOp::Atan2 => self.library(LibraryFunction::Atan2, &[a, b]),
        }
    }

    pub(crate) fn library(&mut self, function: LibraryFunction, operands: &[Val]) -> Val {
        let lowering = self.lowering;
        lowering.library(self, function, operands)
    }

    pub(crate) fn math_unary(&mut self, op: MathUnary, a: Val) -> Val {
        match op {
            // One instruction, on vectors too.
            MathUnary::Sqrt => self.intrinsic("llvm.sqrt", &[a], ""),
            MathUnary::Floor => self.intrinsic("llvm.floor", &[a], ""),
            MathUnary::Ceil => self.intrinsic("llvm.ceil", &[a], ""),
            MathUnary::Round => self.intrinsic("llvm.round", &[a], ""),
            MathUnary::Rsqrt if a.ty == Scalar::F16 => {
                // Rounded once.
                let wide = self.cast(a, Scalar::F32);
                let result = self.math_unary(op, wide);
                self.cast(result, Scalar::F16)
            }
            MathUnary::Rsqrt => {
                let root = self.intrinsic("llvm.sqrt", &[a], "");
                self.real_binary("fdiv", Val::real(a.ty, 1.0), root)
            }
            MathUnary::Exp
            | MathUnary::Log
            | MathUnary::Log2
            | MathUnary::Sin
            | MathUnary::Cos
            | MathUnary::Tan
            | MathUnary::Tanh
            | MathUnary::Asin
            | MathUnary::Acos
            | MathUnary::Erf => self.library(LibraryFunction::of_unary(op).expect("a library has it"), &[a]),
            MathUnary::IsNan => self.magnitude_test("ugt", a),
            MathUnary::IsInf => self.magnitude_test("eq", a),
            MathUnary::FrexpMantissa => self.frexp(a).0,
            MathUnary::FrexpExponent => self.frexp(a).1,
        }
    }

    /// A sine or cosine where the other of the same angle is computed, too: the first op of a pair computes both.
    pub(crate) fn sine_or_cosine_of_pair(&mut self, op: Op, angle: Val) -> Option<Val> {
        if let Some((of, value)) = self.computed[op] {
            self.computed.set(op, None);
            return (of == angle).then_some(value);
        }
        let partner = self.facts.partners[op]?;
        let lowering = self.lowering;
        let (sine, cosine) = lowering.sine_and_cosine(self, angle)?;
        let (own, other) = match self.kernel.ops[op].kind {
            OpKind::MathUnary(MathUnary::Sin) => (sine, cosine),
            _ => (cosine, sine),
        };
        self.computed.set(partner, Some((angle, other)));
        Some(own)
    }

    /// Compares the bits without the sign with those of infinity.
    fn magnitude_test(&mut self, predicate: &str, a: Val) -> Val {
        let format = Format::of(a.ty);
        let bits = self.bits(a);
        let magnitude = self.binary("and", bits, Val::int(bits.ty, format.magnitude()));
        self.compare(predicate, magnitude, Val::int(bits.ty, format.infinity()))
    }

    /// Mantissa and exponent by bits: a subnormal is scaled up first; zeros, infinities and NaN are left as they are.
    fn frexp(&mut self, a: Val) -> (Val, Val) {
        let format = Format::of(a.ty);
        let int = bits_of(a.ty);
        let bits = self.bits(a);
        let magnitude = self.binary("and", bits, Val::int(int, format.magnitude()));
        let zero = self.compare("eq", magnitude, Val::int(int, 0));
        let not_finite = self.compare("uge", magnitude, Val::int(int, format.infinity()));
        let as_it_is = self.binary("or", zero, not_finite);
        let subnormal = self.compare("ult", magnitude, Val::int(int, 1 << format.fraction));
        let scale = Val::real(a.ty, 2.0_f64.powi(format.fraction as i32));
        // Exact, and no flags: it must not be merged with anything.
        let (x, by) = self.same_lanes(a, scale);
        let scaled = self.f.value(x.ty(), format_args!("fmul {} {x}, {by}", x.ty()));
        let scaled = self.bits(scaled);
        let normal = self.select(subnormal, scaled, bits);
        let kept = self.binary("and", normal, Val::int(int, !(format.infinity()) & format.all()));
        let half = i128::from(format.bias - 1) << format.fraction;
        let mantissa = self.binary("or", kept, Val::int(int, half));
        let mantissa = self.bit_cast(mantissa, a.ty);
        let mantissa = self.select(as_it_is, a, mantissa);

        let field = self.binary("lshr", normal, Val::int(int, format.fraction.into()));
        let field = self.binary("and", field, Val::int(int, format.infinity() >> format.fraction));
        let field = self.resize(field, Scalar::I32);
        let bias = i128::from(format.bias - 1);
        let bias = self.select(
            subnormal,
            Val::int(Scalar::I32, bias + i128::from(format.fraction)),
            Val::int(Scalar::I32, bias),
        );
        let exponent = self.binary("sub", field, bias);
        let exponent = self.select(as_it_is, Val::int(Scalar::I32, 0), exponent);
        (mantissa, exponent)
    }

    /// Squares and products for the bits of a known exponent, in the same order as [`Self::power`] takes them.
    fn constant_power(&mut self, a: Val, exponent: i128) -> Val {
        let mut rest = exponent.unsigned_abs();
        let mut square = a;
        let mut product = None;
        while rest != 0 {
            if rest & 1 == 1 {
                product = Some(match product {
                    Some(product) => self.arith(ArithOp::Mul, product, square),
                    None => square,
                });
            }
            rest >>= 1;
            if rest != 0 {
                square = self.arith(ArithOp::Mul, square, square);
            }
        }
        let product = product.unwrap_or_else(|| one(a));
        if exponent < 0 && a.ty.is_real() {
            self.real_binary("fdiv", one(a), product)
        } else {
            self.spread(product, a.lanes)
        }
    }

    /// Repeated squaring on the magnitude of the exponent, until no lane has bits left.
    fn power(&mut self, a: Val, b: Val) -> Val {
        let (a, b) = self.same_lanes(a, b);
        let count = bits_of(b.ty);
        let magnitude = if b.ty.is_signed() { self.intrinsic("llvm.abs", &[b], ", i1 false") } else { b };
        let magnitude = magnitude.read_as(count);
        let (before, head, body, done) =
            (self.f.block(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let rest = self.f.phi(magnitude.ty());
        let square = self.f.phi(a.ty());
        let product = self.f.phi(a.ty());
        let left = self.compare("ne", rest.value, Val::int(count, 0));
        let any_left = self.any_lane(left);
        self.f.branch(any_left, body, done);

        self.f.begin(body);
        let odd = if count == Scalar::U1 { rest.value } else { self.resize_to_bool(rest.value) };
        let multiplied = self.arith(ArithOp::Mul, product.value, square.value);
        let next_product = self.select(odd, multiplied, product.value);
        let next_square = self.arith(ArithOp::Mul, square.value, square.value);
        let next_rest = if count == Scalar::U1 {
            self.spread(Val::int(count, 0), rest.value.lanes)
        } else {
            self.binary("lshr", rest.value, Val::int(count, 1))
        };
        let latch = self.f.block();
        self.f.jump(head);

        self.f.begin(done);
        let first = self.spread(one(a), a.lanes);
        self.f.fill(rest, &[(magnitude, before), (next_rest, latch)]);
        self.f.fill(square, &[(a, before), (next_square, latch)]);
        self.f.fill(product, &[(first, before), (next_product, latch)]);
        if !a.ty.is_real() || !b.ty.is_signed() {
            return product.value;
        }
        let inverse = self.real_binary("fdiv", one(a), product.value);
        let negative = self.compare("slt", b, Val::int(b.ty, 0));
        self.select(negative, inverse, product.value)
    }

    /// The lowest bit.
    fn resize_to_bool(&mut self, v: Val) -> Val {
        self.convert("trunc", v, Scalar::U1)
    }
}

fn one(like: Val) -> Val {
    if like.ty.is_real() { Val::real(like.ty, 1.0) } else { Val::int(like.ty, 1) }
}

/// How a real type lays out its bits.
struct Format {
    bits: u32,
    /// Width of the fraction.
    fraction: u32,
    bias: i32,
}

impl Format {
    fn of(ty: Scalar) -> Self {
        match ty {
            Scalar::F16 => Self { bits: 16, fraction: 10, bias: 15 },
            Scalar::F32 => Self { bits: 32, fraction: 23, bias: 127 },
            _ => Self { bits: 64, fraction: 52, bias: 1023 },
        }
    }

    fn all(&self) -> i128 {
        (1 << self.bits) - 1
    }

    /// Everything but the sign.
    fn magnitude(&self) -> i128 {
        (1 << (self.bits - 1)) - 1
    }

    fn infinity(&self) -> i128 {
        self.magnitude() & !((1 << self.fraction) - 1)
    }
}
