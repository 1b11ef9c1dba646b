//! How types are written.

use std::fmt::{Display, Formatter, Result};

use crate::order::Order;
use crate::types::{ArrayType, Boundary, Data, Scalar, TensorShape, Type};

impl Display for Scalar {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.name())
    }
}

impl Display for Data {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Tensor(tensor) => match tensor.shape {
                TensorShape::Vector(n) => write!(f, "tensor<{}, {n}>", tensor.elem),
                TensorShape::Matrix(n, m) => write!(f, "tensor<{}, {n}, {m}>", tensor.elem),
            },
            Self::Struct(id) => id.fmt(f),
        }
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Data(data) => data.fmt(f),
            Self::Array(ArrayType { elem, layout: Some(layout), .. }) => write!(f, "field<{elem}, {layout}>"),
            Self::Array(array) => {
                let boundary = match array.boundary {
                    Boundary::Unsafe => "",
                    Boundary::Clamp => ", clamp",
                };
                write!(f, "array<{}, {}{boundary}", array.elem, array.rank)?;
                if array.order != Order::ROW_MAJOR {
                    write!(f, ", order {}", array.order)?;
                }
                if array.has_strides() {
                    write!(f, ", {}", array.spacing.name())?;
                }
                f.write_str(">")
            }
            Self::Local(data) => write!(f, "local<{data}>"),
            Self::Temp(data) => write!(f, "temp<{data}>"),
            Self::Tape(scalar) => write!(f, "tape<{scalar}>"),
        }
    }
}
