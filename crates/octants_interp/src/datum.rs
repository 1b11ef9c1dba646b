//! Data as values: scalars, tensors, structs; and how they lie in memory.

use octants_ir::plan::{member_offset, size_and_align};
use octants_ir::{Const, Data, Kernel, Scalar, StructId, TensorType};

/// A value of a [`Data`] type.
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    Scalar(Const),
    /// Entries in row-major order.
    Tensor(TensorType, Vec<Const>),
    Struct(StructId, Vec<Datum>),
}

impl Datum {
    pub fn zero(kernel: &Kernel, data: Data) -> Self {
        match data {
            Data::Scalar(scalar) => Self::Scalar(Const::from_bits(scalar, 0)),
            Data::Tensor(tensor) => {
                Self::Tensor(tensor, vec![Const::from_bits(tensor.elem, 0); tensor.shape.count() as usize])
            }
            Data::Struct(id) => {
                let members = kernel.structs[id].members.iter();
                Self::Struct(id, members.map(|&(_, data)| Self::zero(kernel, data)).collect())
            }
        }
    }

    pub fn data(&self) -> Data {
        match self {
            Self::Scalar(c) => Data::Scalar(c.ty()),
            Self::Tensor(tensor, _) => Data::Tensor(*tensor),
            Self::Struct(id, _) => Data::Struct(*id),
        }
    }

    /// Whether it is a value of the type, with entries and members as that says.
    pub fn fits(&self, kernel: &Kernel, data: Data) -> bool {
        match (self, data) {
            (Self::Scalar(c), Data::Scalar(scalar)) => c.ty() == scalar,
            (Self::Tensor(ty, entries), Data::Tensor(tensor)) => {
                *ty == tensor
                    && entries.len() == tensor.shape.count() as usize
                    && entries.iter().all(|entry| entry.ty() == tensor.elem)
            }
            (Self::Struct(own, members), Data::Struct(id)) => {
                let expected = &kernel.structs[id].members;
                *own == id
                    && members.len() == expected.len()
                    && members.iter().zip(expected).all(|(member, &(_, data))| member.fits(kernel, data))
            }
            _ => false,
        }
    }

    /// The scalar. The laws make sure that it is one where one is asked for.
    pub fn scalar(&self) -> Const {
        match self {
            Self::Scalar(c) => *c,
            Self::Tensor(_, entries) => entries[0],
            Self::Struct(_, members) => members[0].scalar(),
        }
    }

    pub fn is_true(&self) -> bool {
        self.scalar().bits() != 0
    }

    /// The value of an integer.
    pub fn integer(&self) -> i128 {
        self.scalar().as_i128().unwrap_or_default()
    }

    /// `f` on the scalar or on each entry; it must give one type for all.
    #[must_use]
    pub fn map(&self, f: impl Fn(Const) -> Const) -> Self {
        match self {
            Self::Scalar(c) => Self::Scalar(f(*c)),
            Self::Tensor(tensor, entries) => {
                let entries: Vec<_> = entries.iter().map(|&c| f(c)).collect();
                Self::Tensor(TensorType { elem: entries[0].ty(), ..*tensor }, entries)
            }
            Self::Struct(..) => self.clone(),
        }
    }

    /// `f` on two scalars, or on entries at the same position of two tensors of one shape.
    #[must_use]
    pub fn zip(&self, other: &Self, f: impl Fn(Const, Const) -> Const) -> Self {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => Self::Scalar(f(*a, *b)),
            (Self::Tensor(tensor, a), Self::Tensor(_, b)) => {
                let entries: Vec<_> = a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect();
                Self::Tensor(TensorType { elem: entries[0].ty(), ..*tensor }, entries)
            }
            _ => self.clone(),
        }
    }

    /// Reads a value of the type from its bytes in memory.
    pub fn from_bytes(kernel: &Kernel, data: Data, bytes: &[u8]) -> Self {
        match data {
            Data::Scalar(scalar) => Self::Scalar(scalar_from_bytes(scalar, bytes)),
            Data::Tensor(tensor) => {
                let entries = bytes.chunks_exact(tensor.elem.bytes() as usize);
                Self::Tensor(tensor, entries.map(|bytes| scalar_from_bytes(tensor.elem, bytes)).collect())
            }
            Data::Struct(id) => {
                let members = kernel.structs[id].members.iter().enumerate();
                let read = |(number, &(_, data)): (usize, &(String, Data))| {
                    let start = member_offset(kernel, id, number as u32) as usize;
                    let (size, _) = size_and_align(kernel, data);
                    Self::from_bytes(kernel, data, &bytes[start..start + size as usize])
                };
                Self::Struct(id, members.map(read).collect())
            }
        }
    }

    /// Writes the value's bytes; what lies between members of a struct stays.
    pub fn to_bytes(&self, kernel: &Kernel, bytes: &mut [u8]) {
        match self {
            Self::Scalar(c) => scalar_to_bytes(*c, bytes),
            Self::Tensor(tensor, entries) => {
                let places = bytes.chunks_exact_mut(tensor.elem.bytes() as usize);
                for (&entry, place) in entries.iter().zip(places) {
                    scalar_to_bytes(entry, place);
                }
            }
            Self::Struct(id, members) => {
                for (number, member) in members.iter().enumerate() {
                    let start = member_offset(kernel, *id, number as u32) as usize;
                    let (size, _) = size_and_align(kernel, member.data());
                    member.to_bytes(kernel, &mut bytes[start..start + size as usize]);
                }
            }
        }
    }
}

/// Any byte but 0 is true.
fn scalar_from_bytes(scalar: Scalar, bytes: &[u8]) -> Const {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    if scalar == Scalar::U1 { Const::bool(bits != 0) } else { Const::from_bits(scalar, bits) }
}

fn scalar_to_bytes(c: Const, bytes: &mut [u8]) {
    let width = bytes.len();
    bytes.copy_from_slice(&c.bits().to_le_bytes()[..width]);
}
