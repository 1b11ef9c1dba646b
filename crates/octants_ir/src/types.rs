//! Types: scalars, small tensors and structs (data that a register or a memory cell holds), and places (arrays, locals,
//! temporaries) that hold data.

use serde::{Deserialize, Serialize};

use crate::ids::{LayoutId, StructId};
use crate::order::{Order, Spacing};

macro_rules! scalars {
    ($($variant:ident $name:literal $class:ident $bits:literal),* $(,)?) => {
        /// A scalar type.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub enum Scalar { $($variant),* }

        impl Scalar {
            pub const ALL: &'static [Scalar] = &[$(Scalar::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Scalar::$variant => $name),* }
            }

            pub fn class(self) -> ScalarClass {
                match self { $(Scalar::$variant => ScalarClass::$class),* }
            }

            /// Width in bits of the value; `u1` has one.
            pub fn bits(self) -> u32 {
                match self { $(Scalar::$variant => $bits),* }
            }
        }
    };
}

scalars! {
    U1 "u1" Bool 1,
    I8 "i8" Signed 8, I16 "i16" Signed 16, I32 "i32" Signed 32, I64 "i64" Signed 64,
    U8 "u8" Unsigned 8, U16 "u16" Unsigned 16, U32 "u32" Unsigned 32, U64 "u64" Unsigned 64,
    F16 "f16" Real 16, F32 "f32" Real 32, F64 "f64" Real 64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarClass {
    Bool,
    Signed,
    Unsigned,
    Real,
}

impl Scalar {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// Bytes in memory; a `u1` takes one byte that is 0 or 1.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub fn is_real(self) -> bool {
        self.class() == ScalarClass::Real
    }

    /// Every type that is not real, `u1` among them.
    pub fn is_integral(self) -> bool {
        !self.is_real()
    }

    pub fn is_signed(self) -> bool {
        matches!(self.class(), ScalarClass::Signed | ScalarClass::Real)
    }
}

/// The shape of a small tensor: a vector of `n` (rank 1) or a matrix of `n × m` (rank 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TensorShape {
    Vector(u16),
    Matrix(u16, u16),
}

impl TensorShape {
    pub fn rank(self) -> usize {
        match self {
            Self::Vector(_) => 1,
            Self::Matrix(..) => 2,
        }
    }

    pub fn dims(self) -> Vec<u32> {
        match self {
            Self::Vector(n) => vec![n.into()],
            Self::Matrix(n, m) => vec![n.into(), m.into()],
        }
    }

    pub fn count(self) -> u32 {
        match self {
            Self::Vector(n) => n.into(),
            Self::Matrix(n, m) => u32::from(n) * u32::from(m),
        }
    }
}

/// A small tensor of scalars; entries in row-major order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TensorType {
    pub elem: Scalar,
    pub shape: TensorShape,
}

/// What a register or a memory cell holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Data {
    Scalar(Scalar),
    Tensor(TensorType),
    Struct(StructId),
}

impl Data {
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Scalar(s) => Some(s),
            _ => None,
        }
    }

    /// The scalar type of a scalar or of a tensor's entries.
    pub fn elem(self) -> Option<Scalar> {
        match self {
            Self::Scalar(s) => Some(s),
            Self::Tensor(t) => Some(t.elem),
            Self::Struct(_) => None,
        }
    }

    /// The same shape with another scalar type; structs have no such thing.
    #[must_use]
    pub fn with_elem(self, elem: Scalar) -> Self {
        match self {
            Self::Scalar(_) => Self::Scalar(elem),
            Self::Tensor(t) => Self::Tensor(TensorType { elem, ..t }),
            Self::Struct(_) => self,
        }
    }

    pub fn tensor_shape(self) -> Option<TensorShape> {
        match self {
            Self::Tensor(t) => Some(t.shape),
            _ => None,
        }
    }

    /// How many component indices address one scalar of it.
    pub fn component_rank(self) -> usize {
        self.tensor_shape().map_or(0, TensorShape::rank)
    }
}

/// What an index outside an array does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Boundary {
    /// The program is wrong; checked in debug mode only.
    Unsafe,
    /// Each index is clamped into the shape, which must have elements: the front end guards each access.
    Clamp,
}

/// An array or a field: a base address known at launch, and elements addressed by `rank` indices; tensor entries innermost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ArrayType {
    pub elem: Data,
    pub rank: u8,
    pub boundary: Boundary,
    /// Of an array whose extents are known at launch: in which order its axes lie. Of a field, always row-major: its layout says it.
    pub order: Order,
    /// Of an array whose extents are known at launch: what lies between its elements. Of a field, always dense.
    pub spacing: Spacing,
    /// Of a field: where its elements lie. An array has none.
    pub layout: Option<LayoutId>,
}

impl ArrayType {
    /// An array argument.
    pub fn array(elem: impl Into<Data>, rank: u8, boundary: Boundary) -> Self {
        Self {
            elem: elem.into(),
            rank,
            boundary,
            order: Order::ROW_MAJOR,
            spacing: Spacing::Dense,
            layout: None,
        }
    }

    /// The same array with its elements in another order.
    #[must_use]
    pub fn ordered(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// The same array with something else between its elements.
    #[must_use]
    pub fn spaced(self, spacing: Spacing) -> Self {
        Self { spacing, ..self }
    }

    /// Whether a launch passes its strides.
    pub fn has_strides(self) -> bool {
        self.spacing != Spacing::Dense
    }
}

/// The type of an SSA value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Data(Data),
    /// A place: an array argument.
    Array(ArrayType),
    /// A place private to one thread of execution: a variable.
    Local(Data),
    /// A place shared by all tasks of one launch.
    Temp(Data),
    /// A place private to one thread of execution: as many scalars as were asked for, addressed by one index.
    Tape(Scalar),
}

impl Type {
    pub const U1: Self = Self::Data(Data::Scalar(Scalar::U1));
    pub const I32: Self = Self::Data(Data::Scalar(Scalar::I32));
    pub const I64: Self = Self::Data(Data::Scalar(Scalar::I64));
    pub const F32: Self = Self::Data(Data::Scalar(Scalar::F32));
    pub const F64: Self = Self::Data(Data::Scalar(Scalar::F64));

    pub fn data(self) -> Option<Data> {
        match self {
            Self::Data(d) => Some(d),
            _ => None,
        }
    }

    pub fn scalar(self) -> Option<Scalar> {
        self.data().and_then(Data::scalar)
    }

    /// The scalar type of a scalar or of a tensor's entries.
    pub fn elem(self) -> Option<Scalar> {
        self.data().and_then(Data::elem)
    }

    pub fn is_place(self) -> bool {
        self.place().is_some()
    }

    /// For a place: what a cell holds, and how many indices address one.
    pub fn place(self) -> Option<(Data, usize)> {
        match self {
            Self::Data(_) => None,
            Self::Array(a) => Some((a.elem, a.rank as usize)),
            Self::Local(d) | Self::Temp(d) => Some((d, 0)),
            Self::Tape(s) => Some((Data::Scalar(s), 1)),
        }
    }
}

impl From<Scalar> for Data {
    fn from(s: Scalar) -> Self {
        Self::Scalar(s)
    }
}

impl From<Scalar> for Type {
    fn from(s: Scalar) -> Self {
        Self::Data(Data::Scalar(s))
    }
}

impl From<Data> for Type {
    fn from(d: Data) -> Self {
        Self::Data(d)
    }
}

/// A struct type: named members in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructType {
    pub name: String,
    pub members: Vec<(String, Data)>,
}
