//! Functions of one real: the op of each, and its value at compile time.

use octants_ir::ops::MathUnary;

use crate::host::Number;
use crate::intrinsics::Intrinsic;

/// How a function of one real is compiled: its op, its value at compile time, and whether integers are cast.
pub(crate) type Function = (MathUnary, fn(f64) -> f64, bool);

pub(crate) fn function(intrinsic: Intrinsic) -> Option<Function> {
    use Intrinsic as I;
    Some(match intrinsic {
        I::Sqrt => (MathUnary::Sqrt, f64::sqrt, true),
        I::Rsqrt => (MathUnary::Rsqrt, |x| 1.0 / x.sqrt(), true),
        I::Exp => (MathUnary::Exp, f64::exp, true),
        I::Log => (MathUnary::Log, f64::ln, true),
        I::Log2 => (MathUnary::Log2, f64::log2, true),
        I::Sin => (MathUnary::Sin, f64::sin, false),
        I::Cos => (MathUnary::Cos, f64::cos, false),
        I::Tan => (MathUnary::Tan, f64::tan, false),
        I::Tanh => (MathUnary::Tanh, f64::tanh, false),
        I::Asin => (MathUnary::Asin, f64::asin, false),
        I::Acos => (MathUnary::Acos, f64::acos, false),
        I::Erf => (MathUnary::Erf, octants_ir::special::erf, false),
        I::Floor => (MathUnary::Floor, f64::floor, false),
        I::Ceil => (MathUnary::Ceil, f64::ceil, false),
        I::Round => (MathUnary::Round, f64::round, false),
        I::IsNan => (MathUnary::IsNan, |x| f64::from(u8::from(x.is_nan())), false),
        I::IsInf => (MathUnary::IsInf, |x| f64::from(u8::from(x.is_infinite())), false),
        _ => return None,
    })
}

pub(crate) fn is_function(intrinsic: Intrinsic) -> bool {
    function(intrinsic).is_some()
}

/// The value of a function of one real; `None` if it is none.
pub(crate) fn at_compile_time(intrinsic: Intrinsic, x: f64) -> Option<Number> {
    let (op, function, _) = function(intrinsic)?;
    Some(match op {
        MathUnary::IsNan | MathUnary::IsInf => Number::Bool(function(x) != 0.0),
        _ => Number::Float(function(x)),
    })
}
