//! Functions of reals.

use super::family;

family! {
    /// Two operands.
    MathOp {
        Pow "pow" Any diff "`a` to the power `b`. An integral `b` means repeated squaring on `|b|` in the type of `a` (the reciprocal is taken when `b < 0` and `a` is real; for integral `a` the sign of `b` is ignored); otherwise both have one real type.";
        Atan2 "atan2" Real diff "The angle of the point (`b`, `a`).";
    }
}

family! {
    /// One real operand, result of its type (`is_nan`, `is_inf`: `u1`; `frexp_exponent`: `i32`).
    MathUnary {
        Sqrt "sqrt" Real diff "Square root.";
        Rsqrt "rsqrt" Real diff "One over the square root.";
        Exp "exp" Real diff "e to the power.";
        Log "log" Real diff "Natural logarithm.";
        Log2 "log2" Real diff "Logarithm to base 2.";
        Sin "sin" Real diff "Sine.";
        Cos "cos" Real diff "Cosine.";
        Tan "tan" Real diff "Tangent.";
        Tanh "tanh" Real diff "Hyperbolic tangent.";
        Asin "asin" Real diff "Arcsine.";
        Acos "acos" Real diff "Arccosine.";
        Erf "erf" Real diff "The error function, `2/sqrt(pi)` times the integral of `exp(-t*t)` from 0.";
        Floor "floor" Real flat "The greatest integer not above.";
        Ceil "ceil" Real flat "The least integer not below.";
        Round "round" Real flat "The nearest integer, halves away from zero.";
        IsNan "is_nan" Real flat "Whether it is a NaN, by its bits: holds under `fast_math` too.";
        IsInf "is_inf" Real flat "Whether it is an infinity, by its bits: holds under `fast_math` too.";
        FrexpMantissa "frexp_mantissa" Real flat "The `m` of `m * 2^e` with `0.5 <= |m| < 1`; zeros, infinities and NaN as they are.";
        FrexpExponent "frexp_exponent" Real flat "The `e` of `m * 2^e` as `i32`; 0 for zeros, infinities and NaN.";
    }
}
