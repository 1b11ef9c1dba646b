//! Numbers of many lanes at once: bit `k` of the number in lane `l` is bit `l` of plane `k`.
//!
//! It knows words and no elements, fields or loops. What is known of a plane while compiling costs nothing.

use octants_ir::ops::BitOp;
use octants_ir::ops::BitUnary;
use octants_ir::{Builder, Const, Scalar, Value};

/// One bit of each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plane {
    Zero,
    Ones,
    Word(Value),
}

impl Plane {
    fn known(bit: bool) -> Self {
        if bit { Self::Ones } else { Self::Zero }
    }

    pub(super) fn not(self, b: &mut Builder<'_>) -> Self {
        match self {
            Self::Zero => Self::Ones,
            Self::Ones => Self::Zero,
            Self::Word(word) => Self::Word(b.bit_unary(BitUnary::Not, word)),
        }
    }

    pub(super) fn and(self, other: Self, b: &mut Builder<'_>) -> Self {
        match (self, other) {
            (Self::Zero, _) | (_, Self::Zero) => Self::Zero,
            (Self::Ones, x) | (x, Self::Ones) => x,
            (Self::Word(x), Self::Word(y)) => Self::Word(b.bit(BitOp::And, x, y)),
        }
    }

    pub(super) fn or(self, other: Self, b: &mut Builder<'_>) -> Self {
        match (self, other) {
            (Self::Ones, _) | (_, Self::Ones) => Self::Ones,
            (Self::Zero, x) | (x, Self::Zero) => x,
            (Self::Word(x), Self::Word(y)) => Self::Word(b.bit(BitOp::Or, x, y)),
        }
    }

    pub(super) fn xor(self, other: Self, b: &mut Builder<'_>) -> Self {
        match (self, other) {
            (Self::Zero, x) | (x, Self::Zero) => x,
            (Self::Ones, x) | (x, Self::Ones) => x.not(b),
            (Self::Word(x), Self::Word(y)) => Self::Word(b.bit(BitOp::Xor, x, y)),
        }
    }

    /// `self` in the lanes of `lanes`, `other` elsewhere.
    pub(super) fn select(self, other: Self, lanes: Self, b: &mut Builder<'_>) -> Self {
        let (own, rest) = (self.and(lanes, b), lanes.not(b));
        let rest = other.and(rest, b);
        own.or(rest, b)
    }

    pub(super) fn word(self, register: Scalar, b: &mut Builder<'_>) -> Value {
        match self {
            Self::Zero => b.constant(Const::from_i128(register, 0)),
            Self::Ones => b.constant(Const::from_bits(register, u64::MAX)),
            Self::Word(word) => word,
        }
    }
}

/// A number in each lane, none of them negative or above `max`; as many planes as `max` has bits.
#[derive(Clone, Debug)]
pub(super) struct Number {
    planes: Vec<Plane>,
    pub(super) max: u64,
}

/// The greatest number that is calculated with in planes. Chosen, not measured: it bounds the ops that one op becomes.
const GREATEST: u64 = (1 << 16) - 1;

fn bits_of(max: u64) -> usize {
    (u64::BITS - max.leading_zeros()) as usize
}

fn all_ones(bits: usize) -> u64 {
    (1 << bits) - 1
}

impl Number {
    fn new(mut planes: Vec<Plane>, max: u64) -> Option<Self> {
        planes.resize(bits_of(max), Plane::Zero);
        (max <= GREATEST).then_some(Self { planes, max })
    }

    /// The number 0 or 1.
    pub(super) fn bit(plane: Plane) -> Self {
        Self { planes: vec![plane], max: 1 }
    }

    pub(super) fn constant(value: u64) -> Option<Self> {
        let bit = |at| Plane::known(value >> at & 1 == 1);
        Self::new((0..bits_of(value)).map(bit).collect(), value)
    }

    pub(super) fn plane(&self, at: usize) -> Plane {
        self.planes.get(at).copied().unwrap_or(Plane::Zero)
    }

    /// Plane by plane, of as many planes as the greatest of them has.
    fn each(&self, other: &Self, max: u64, mut combine: impl FnMut(Plane, Plane) -> Plane) -> Option<Self> {
        let planes = (0..bits_of(max)).map(|at| combine(self.plane(at), other.plane(at))).collect();
        Self::new(planes, max)
    }

    pub(super) fn and(&self, other: &Self, b: &mut Builder<'_>) -> Option<Self> {
        self.each(other, self.max.min(other.max), |x, y| x.and(y, b))
    }

    pub(super) fn or(&self, other: &Self, b: &mut Builder<'_>) -> Option<Self> {
        self.each(other, all_ones(bits_of(self.max.max(other.max))), |x, y| x.or(y, b))
    }

    pub(super) fn xor(&self, other: &Self, b: &mut Builder<'_>) -> Option<Self> {
        self.each(other, all_ones(bits_of(self.max.max(other.max))), |x, y| x.xor(y, b))
    }

    pub(super) fn select(&self, other: &Self, lanes: Plane, b: &mut Builder<'_>) -> Option<Self> {
        self.each(other, self.max.max(other.max), |x, y| x.select(y, lanes, b))
    }

    pub(super) fn add(&self, other: &Self, b: &mut Builder<'_>) -> Option<Self> {
        let mut carry = Plane::Zero;
        self.each(other, self.max + other.max, |x, y| {
            let half = x.xor(y, b);
            let sum = half.xor(carry, b);
            let (both, passed) = (x.and(y, b), half.and(carry, b));
            carry = both.or(passed, b);
            sum
        })
    }

    /// `other - self` where `other` is a constant of ones only that no lane exceeds: each bit is flipped.
    pub(super) fn below(&self, other: u64, b: &mut Builder<'_>) -> Option<Self> {
        let is_ones = other & (other + 1) == 0;
        let flipped = (0..bits_of(other)).map(|at| self.plane(at).not(b)).collect();
        if is_ones && self.max <= other { Self::new(flipped, other) } else { None }
    }

    /// The product, where one of the factors is 0 or 1.
    pub(super) fn mul(&self, other: &Self, b: &mut Builder<'_>) -> Option<Self> {
        let (bit, number) = if self.max <= 1 { (self, other) } else { (other, self) };
        let lanes = bit.plane(0);
        let planes = number.planes.iter().map(|plane| plane.and(lanes, b)).collect();
        if bit.max <= 1 { Self::new(planes, number.max * bit.max) } else { None }
    }

    pub(super) fn shr(&self, amount: usize) -> Option<Self> {
        Self::new(self.planes.iter().skip(amount).copied().collect(), self.max.checked_shr(amount as u32)?)
    }

    pub(super) fn shl(&self, amount: usize) -> Option<Self> {
        let max = u128::from(self.max) << amount.min(64);
        let zeros = std::iter::repeat_n(Plane::Zero, amount.min(64));
        Self::new(zeros.chain(self.planes.iter().copied()).collect(), u64::try_from(max).ok()?)
    }

    /// The lanes where it is less than the other.
    pub(super) fn lt(&self, other: &Self, b: &mut Builder<'_>) -> Plane {
        let mut less = Plane::Zero;
        for at in 0..self.planes.len().max(other.planes.len()) {
            let (x, y) = (self.plane(at), other.plane(at));
            let differ = x.xor(y, b);
            less = y.select(less, differ, b);
        }
        less
    }

    /// The lanes where they differ.
    pub(super) fn ne(&self, other: &Self, b: &mut Builder<'_>) -> Plane {
        let mut differ = Plane::Zero;
        for at in 0..self.planes.len().max(other.planes.len()) {
            let unlike = self.plane(at).xor(other.plane(at), b);
            differ = differ.or(unlike, b);
        }
        differ
    }

    /// The lowest bits alone.
    pub(super) fn wrapped(&self, bits: usize) -> Option<Self> {
        let max = if bits_of(self.max) > bits { all_ones(bits) } else { self.max };
        Self::new(self.planes.iter().take(bits).copied().collect(), max)
    }
}
