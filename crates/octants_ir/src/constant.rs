//! Scalar constants as bit patterns: equality is bitwise, so `-0.0` and NaN payloads are kept.

use half::f16;

use crate::types::{Scalar, ScalarClass};

/// A scalar constant. `bits` is zero above the type's width; signed integers are stored in two's complement of their width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Const {
    ty: Scalar,
    bits: u64,
}

impl Const {
    pub fn from_bits(ty: Scalar, bits: u64) -> Self {
        let mask = if ty.bits() == 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
        Self { ty, bits: bits & mask }
    }

    /// A constant from its little-endian bytes in memory; a `u1` is any byte that is not zero.
    pub fn from_bytes(ty: Scalar, bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        let width = ty.bytes() as usize;
        word[..width].copy_from_slice(&bytes[..width]);
        let bits = u64::from_le_bytes(word);
        Self::from_bits(ty, if ty == Scalar::U1 { (bits != 0).into() } else { bits })
    }

    pub fn ty(self) -> Scalar {
        self.ty
    }

    pub fn bits(self) -> u64 {
        self.bits
    }

    pub fn bool(value: bool) -> Self {
        Self { ty: Scalar::U1, bits: value.into() }
    }

    pub fn i32(value: i32) -> Self {
        Self::from_bits(Scalar::I32, value as u64)
    }

    pub fn f32(value: f32) -> Self {
        Self { ty: Scalar::F32, bits: value.to_bits().into() }
    }

    pub fn f64(value: f64) -> Self {
        Self { ty: Scalar::F64, bits: value.to_bits() }
    }

    /// An integer wrapped to the type, or converted to the nearest real.
    pub fn from_i128(ty: Scalar, value: i128) -> Self {
        match ty.class() {
            // A single is rounded once; what a half can hold, a single holds exactly.
            ScalarClass::Real if ty == Scalar::F64 => Self::f64(value as f64),
            ScalarClass::Real => Self::from_f64(ty, f64::from(value as f32)),
            ScalarClass::Bool => Self::bool(value != 0),
            ScalarClass::Signed | ScalarClass::Unsigned => Self::from_bits(ty, value as u64),
        }
    }

    /// A real rounded to the type; integral types truncate toward zero and saturate, NaN gives 0.
    pub fn from_f64(ty: Scalar, value: f64) -> Self {
        match ty {
            Scalar::F16 => Self { ty, bits: half_from_f64(value).to_bits().into() },
            Scalar::F32 => Self::f32(value as f32),
            Scalar::F64 => Self::f64(value),
            Scalar::U1 => Self::bool(value != 0.0),
            Scalar::I8 => Self::from_bits(ty, value as i8 as u64),
            Scalar::I16 => Self::from_bits(ty, value as i16 as u64),
            Scalar::I32 => Self::from_bits(ty, value as i32 as u64),
            Scalar::I64 => Self::from_bits(ty, value as i64 as u64),
            Scalar::U8 => Self::from_bits(ty, (value as u8).into()),
            Scalar::U16 => Self::from_bits(ty, (value as u16).into()),
            Scalar::U32 => Self::from_bits(ty, (value as u32).into()),
            Scalar::U64 => Self::from_bits(ty, value as u64),
        }
    }

    /// The value as an integer; `None` for reals.
    pub fn as_i128(self) -> Option<i128> {
        match self.ty.class() {
            ScalarClass::Real => None,
            ScalarClass::Bool | ScalarClass::Unsigned => Some(self.bits.into()),
            ScalarClass::Signed => {
                let shift = 64 - self.ty.bits();
                Some((((self.bits << shift) as i64) >> shift).into())
            }
        }
    }

    /// The value as a real; integers are converted.
    pub fn as_f64(self) -> f64 {
        match self.ty {
            Scalar::F16 => f16::from_bits(self.bits as u16).to_f64(),
            Scalar::F32 => f32::from_bits(self.bits as u32).into(),
            Scalar::F64 => f64::from_bits(self.bits),
            _ => self.as_i128().map_or(0.0, |v| v as f64),
        }
    }

    pub fn is_zero(self) -> bool {
        if self.ty.is_real() { self.as_f64() == 0.0 } else { self.bits == 0 }
    }
}

/// Rounded once. By way of the nearest single it would be rounded twice, so the single is rounded to odd: it keeps on which side
/// of a half's tie the value was.
fn half_from_f64(value: f64) -> f16 {
    let nearest = value as f32;
    let exact = f64::from(nearest);
    if exact == value || !nearest.is_finite() || nearest.to_bits() & 1 == 1 {
        return f16::from_f32(nearest);
    }
    let bits = nearest.to_bits();
    f16::from_f32(f32::from_bits(if exact.abs() > value.abs() { bits - 1 } else { bits + 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_is_rounded_once() {
        // Just above the tie between 1 and the next half: the nearest single is the tie itself.
        let above_tie = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
        assert_eq!(Const::from_f64(Scalar::F16, above_tie).bits(), 0x3c01);
        assert_eq!(Const::from_f64(Scalar::F16, -above_tie).bits(), 0xbc01);
        assert_eq!(Const::from_f64(Scalar::F16, 1.0 + f64::powi(2.0, -11)).bits(), 0x3c00);
        // Just above the tie between two singles, beyond what a double holds.
        let integer = (1_i128 << 54) + (1 << 30) + 1;
        assert_eq!(Const::from_i128(Scalar::F32, integer).as_f64(), ((1_i128 << 54) + (1 << 31)) as f64);
    }
}
