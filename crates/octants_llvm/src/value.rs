//! LLVM types and operands as text.
//!
//! A [`Val`] is one scalar, or a vector of one scalar for each lane of a widened loop. Integers have no sign in LLVM; a `Val`
//! keeps the IR's type, so that whoever extends or compares it knows.

use std::fmt;

use octants_ir::{Const, Scalar};

/// A scalar type, or a vector of it: `float`, `<8 x float>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ty {
    pub scalar: Scalar,
    pub lanes: u32,
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = scalar_name(self.scalar);
        if self.lanes == 1 { f.write_str(name) } else { write!(f, "<{} x {name}>", self.lanes) }
    }
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U1 => "i1",
        Scalar::I8 | Scalar::U8 => "i8",
        Scalar::I16 | Scalar::U16 => "i16",
        Scalar::I32 | Scalar::U32 => "i32",
        Scalar::I64 | Scalar::U64 => "i64",
        Scalar::F16 => "half",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
    }
}

impl Ty {
    pub fn new(scalar: Scalar, lanes: u32) -> Self {
        Self { scalar, lanes }
    }

    /// How the type is written in the name of an intrinsic: `f32`, `v8f32`.
    pub fn mangled(self) -> String {
        let name = match self.scalar {
            Scalar::F16 | Scalar::F32 | Scalar::F64 => self.scalar.name(),
            _ => scalar_name(self.scalar),
        };
        if self.lanes == 1 { name.to_owned() } else { format!("v{}{name}", self.lanes) }
    }
}

/// The type that a cell of memory has: a `u1` takes a byte.
pub(crate) fn in_memory(scalar: Scalar) -> Scalar {
    if scalar == Scalar::U1 { Scalar::U8 } else { scalar }
}

/// The unsigned integer of the same width.
pub(crate) fn bits_of(scalar: Scalar) -> Scalar {
    match scalar.bits() {
        1 => Scalar::U1,
        8 => Scalar::U8,
        16 => Scalar::U16,
        32 => Scalar::U32,
        _ => Scalar::U64,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Atom {
    Reg(u32),
    /// In each lane.
    Const(Const),
    /// 0, 1, 2, … in the lanes.
    LaneIds,
}

/// An operand. Displays without its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Val {
    pub atom: Atom,
    pub ty: Scalar,
    pub lanes: u32,
}

impl Val {
    pub fn reg(reg: u32, ty: Ty) -> Self {
        Self { atom: Atom::Reg(reg), ty: ty.scalar, lanes: ty.lanes }
    }

    pub fn constant(c: Const) -> Self {
        Self { atom: Atom::Const(c), ty: c.ty(), lanes: 1 }
    }

    pub fn int(ty: Scalar, value: i128) -> Self {
        Self::constant(Const::from_i128(ty, value))
    }

    pub fn i64(value: i64) -> Self {
        Self::int(Scalar::I64, value.into())
    }

    pub fn real(ty: Scalar, value: f64) -> Self {
        Self::constant(Const::from_f64(ty, value))
    }

    /// The numbers of the lanes.
    pub fn lane_ids(ty: Scalar, lanes: u32) -> Self {
        Self { atom: Atom::LaneIds, ty, lanes }
    }

    pub fn ty(self) -> Ty {
        Ty { scalar: self.ty, lanes: self.lanes }
    }

    /// The same bits read as an integer of another sign.
    #[must_use]
    pub fn read_as(self, ty: Scalar) -> Self {
        match self.atom {
            Atom::Const(c) => {
                Self { atom: Atom::Const(Const::from_bits(ty, c.bits())), ty, lanes: self.lanes }
            }
            _ => Self { ty, ..self },
        }
    }

    pub fn as_const(self) -> Option<Const> {
        match self.atom {
            Atom::Const(c) => Some(c),
            Atom::Reg(_) | Atom::LaneIds => None,
        }
    }

    pub fn as_int(self) -> Option<i128> {
        self.as_const()?.as_i128()
    }
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.atom {
            Atom::Reg(reg) => write!(f, "%v{reg}"),
            Atom::Const(c) if self.lanes == 1 => write_const(f, c),
            Atom::Const(c) => {
                write!(f, "splat ({} ", Ty::new(self.ty, 1))?;
                write_const(f, c)?;
                f.write_str(")")
            }
            Atom::LaneIds => {
                let ty = Ty::new(self.ty, 1);
                for lane in 0..self.lanes {
                    write!(f, "{} {ty} {lane}", if lane == 0 { "<" } else { "," })?;
                }
                f.write_str(" >")
            }
        }
    }
}

/// Reals are written by their bits: LLVM reads a `float` as the `double` of the same value.
fn write_const(f: &mut fmt::Formatter<'_>, c: Const) -> fmt::Result {
    match c.ty() {
        Scalar::U1 => f.write_str(if c.bits() == 0 { "false" } else { "true" }),
        Scalar::F16 => write!(f, "0xH{:04X}", c.bits()),
        Scalar::F32 => write!(f, "0x{:016X}", widen_f32(c.bits() as u32)),
        Scalar::F64 => write!(f, "0x{:016X}", c.bits()),
        _ => write!(f, "{}", c.as_i128().unwrap_or_default()),
    }
}

/// The bits of the `f64` with the value of an `f32`, a NaN's payload kept.
fn widen_f32(bits: u32) -> u64 {
    if f32::from_bits(bits).is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return sign | (0x7FF << 52) | (u64::from(bits & 0x007F_FFFF) << 29);
    }
    f64::from(f32::from_bits(bits)).to_bits()
}

/// An operand with its type in front.
pub(crate) struct Typed(pub Val);

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.ty(), self.0)
    }
}

/// An address in a register: one, or one for each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ptr {
    pub reg: u32,
}

impl fmt::Display for Ptr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%v{}", self.reg)
    }
}

/// A block's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(pub u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// What has been read of one parameter.
#[derive(Clone, Default)]
pub(crate) struct ParamRegisters {
    pub base: Option<Ptr>,
    /// By axis: as `i32`, and as the same extended to 64 bits.
    pub extents: Vec<Option<(Val, Val)>>,
    /// By axis, in scalars, of an array that is not dense.
    pub strides: Vec<Option<Val>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_written_by_their_bits() {
        let text = |v: Val| Typed(v).to_string();
        assert_eq!(text(Val::constant(Const::f32(0.1))), "float 0x3FB99999A0000000");
        assert_eq!(text(Val::constant(Const::f32(f32::NAN))), "float 0x7FF8000000000000");
        assert_eq!(text(Val::constant(Const::f32(f32::from_bits(0xFF80_0001)))), "float 0xFFF0000020000000");
        assert_eq!(text(Val::real(Scalar::F16, 1.5)), "half 0xH3E00");
        assert_eq!(text(Val::int(Scalar::I8, -1)), "i8 -1");
        assert_eq!(text(Val { lanes: 4, ..Val::constant(Const::bool(true)) }), "<4 x i1> splat (i1 true)");
        assert_eq!(text(Val::lane_ids(Scalar::I64, 2)), "<2 x i64> < i64 0, i64 1 >");
    }
}
