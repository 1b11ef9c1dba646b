//! Indices in 64 bits, and which integers they can be.

use octants_ir::Scalar;
use octants_ir::ops::ArithOp;

use crate::value::Val;

/// A 64-bit index or offset in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    /// `base + lane * stride`
    Linear { base: Val, stride: i64 },
    /// `first` and an offset of each lane, which is 0 for the first: the table of that number.
    Offsets { first: Val, table: usize },
    /// Something else in each lane.
    Lanes(Val),
}

impl Index {
    pub fn uniform(base: Val) -> Self {
        Self::Linear { base, stride: 0 }
    }
}

/// The values from `low` to `high`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub low: i128,
    pub high: i128,
}

/// How far apart the wrapped forms of one number are.
const WRAP: i128 = 1 << 32;

impl Range {
    pub const I32: Self = Self { low: i32::MIN as i128, high: i32::MAX as i128 };
    /// The extents of arrays.
    pub const EXTENT: Self = Self { low: 0, high: i32::MAX as i128 };

    pub fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// What a loop counts from one bound to the other.
    pub fn counted(lo: Self, hi: Self) -> Self {
        Self { low: lo.low, high: (hi.high - 1).max(lo.low) }
    }

    /// The numbers of which no two with a wrapped form in the axis have the same one.
    pub fn window(origin: i128, extent: i128) -> Self {
        Self { low: origin + extent - WRAP, high: origin + WRAP - 1 }
    }

    /// The window of an array's axis, however long it is.
    pub fn array_window() -> Self {
        Self::window(0, i32::MAX.into())
    }

    pub fn of_type(scalar: Scalar) -> Option<Self> {
        let bits = scalar.bits();
        match scalar {
            Scalar::U1 => Some(Self::new(0, 1)),
            _ if scalar.is_real() => None,
            _ if scalar.is_signed() => Some(Self::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            _ => Some(Self::new(0, (1 << bits) - 1)),
        }
    }

    pub fn lies_in(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// The sum, difference or product of any two of the numbers.
    pub fn combined(self, op: ArithOp, other: Self) -> Option<Self> {
        match op {
            ArithOp::Add => Some(Self::new(self.low + other.low, self.high + other.high)),
            ArithOp::Sub => Some(Self::new(self.low - other.high, self.high - other.low)),
            ArithOp::Mul => {
                // Two numbers of 64 bits without a sign have a product that needs all of 128.
                let corners = [
                    self.low.checked_mul(other.low)?,
                    self.low.checked_mul(other.high)?,
                    self.high.checked_mul(other.low)?,
                    self.high.checked_mul(other.high)?,
                ];
                Some(Self::new(corners.into_iter().min()?, corners.into_iter().max()?))
            }
            ArithOp::Min => Some(Self::new(self.low.min(other.low), self.high.min(other.high))),
            ArithOp::Max => Some(Self::new(self.low.max(other.low), self.high.max(other.high))),
            ArithOp::Mod if other.low > 0 => Some(Self::new(0, other.high - 1)),
            ArithOp::RawMod if other.low > 0 && self.low >= 0 => Some(Self::new(0, other.high - 1)),
            ArithOp::FloorDiv | ArithOp::RawDiv if other.low > 0 && self.low >= 0 => {
                Some(Self::new(0, self.high / other.low))
            }
            _ => None,
        }
    }
}

/// A loop's index in 64 bits, and what it can be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub index: Index,
    pub range: Range,
}
