//! The promotion rules, on types alone.

use octants_ir::Scalar;

/// The type in which two operands meet: real beats integral, then the wider wins, then unsigned beats signed.
pub(crate) fn promote(a: Scalar, b: Scalar) -> Scalar {
    if a == b {
        return a;
    }
    match (a.is_real(), b.is_real()) {
        (true, false) => a,
        (false, true) => b,
        _ if a.bits() != b.bits() => {
            if a.bits() > b.bits() {
                a
            } else {
                b
            }
        }
        _ if a.is_signed() => b,
        _ => a,
    }
}

/// Whether storing a `from` into a `to` may change the value.
pub(crate) fn loses(from: Scalar, to: Scalar) -> bool {
    to != Scalar::U1 && promote(to, from) != to
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::Scalar::{F16, F32, F64, I8, I32, I64, U1, U8, U32, U64};

    #[test]
    fn promotion_follows_the_three_rules() {
        let cases = [
            (F16, I64, F16),
            (F16, F32, F32),
            (U8, I32, I32),
            (I32, U32, U32),
            (I64, U32, I64),
            (I64, U64, U64),
            (U1, I8, I8),
            (U1, U1, U1),
            (F64, F32, F64),
        ];
        for (a, b, expected) in cases {
            assert_eq!(promote(a, b), expected, "{} with {}", a.name(), b.name());
            assert_eq!(promote(b, a), expected, "{} with {}", b.name(), a.name());
        }
    }
}
