//! Math functions.

use super::family;

family! {
    /// Two operands.
    MathOp {
        Pow "pow" Any 32 diff "`a` to the power `b`. An integral `b` means repeated squaring on `|b|` in the type of `a` (the reciprocal is taken when `b < 0` and `a` is real; for integral `a` the sign of `b` is ignored); otherwise both have one real type.";
        Atan2 "atan2" Real 32 diff "The angle of the point (`b`, `a`).";
    }
}

family! {
    /// One real operand, result of its type (`is_nan`, `is_inf`: `u1`; `frexp_exponent`: `i32`).
    MathUnary {
        Sqrt "sqrt" Real 16 diff "Square root.";
        Rsqrt "rsqrt" Real 16 diff "One over the square root.";
        Exp "exp" Real 16 diff "e to the power.";
        Log "log" Real 16 diff "Natural logarithm.";
        Log2 "log2" Real 16 diff "Logarithm to base 2.";
        Sin "sin" Real 16 diff "Sine.";
        Cos "cos" Real 16 diff "Cosine.";
        Tan "tan" Real 16 diff "Tangent.";
        Tanh "tanh" Real 16 diff "Hyperbolic tangent.";
        Asin "asin" Real 16 diff "Arcsine.";
        Acos "acos" Real 16 diff "Arccosine.";
        Erf "erf" Real 16 diff "The error function, `2/sqrt(pi)` times the integral of `exp(-t*t)` from 0.";
        Floor "floor" Real 16 flat "The greatest integer not above.";
        Ceil "ceil" Real 16 flat "The least integer not below.";
        Round "round" Real 16 flat "The nearest integer, halves away from zero.";
        IsNan "is_nan" Real 16 flat "Whether it is a NaN, by its bits: holds under `fast_math` too.";
        IsInf "is_inf" Real 16 flat "Whether it is an infinity, by its bits: holds under `fast_math` too.";
        FrexpMantissa "frexp_mantissa" Real 16 flat "The `m` of `m * 2^e` with `0.5 <= |m| < 1`; zeros, infinities and NaN as they are.";
        FrexpExponent "frexp_exponent" Real 16 flat "The `e` of `m * 2^e` as `i32`; 0 for zeros, infinities and NaN.";
    }
}
