//! Values of every type.

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, MathOp, MathUnary};
use octants_ir::{Builder, Const, Data, Id, Scalar, StructId, TensorShape, TensorType, Type, Value};

use super::{BIG, EXTENT, Generator, MATRIX, PAIR, SCALARS, outer};

impl Generator {
    pub(super) fn constant(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let c = match self.random.below(4) {
            0 => Const::from_i128(ty, self.random.below(3) as i128),
            1 => Const::from_i128(ty, 1 << self.random.below(6)),
            2 => Const::from_i128(ty, self.random.below(200) as i128 - 100),
            _ if ty.is_real() => Const::from_f64(ty, self.random.pick(&[0.1, -0.0, 2.5, -1.0, 1e30])),
            _ => Const::from_bits(ty, self.random.bits()),
        };
        b.constant(c)
    }

    pub(super) fn known(&mut self, b: &Builder<'_>, ty: Type) -> Option<Value> {
        let fitting: Vec<_> = self.scope.iter().copied().filter(|&v| b.kernel.ty(v) == ty).collect();
        (!fitting.is_empty()).then(|| self.random.pick(&fitting))
    }

    pub(super) fn data(&mut self, b: &mut Builder<'_>, data: Data) -> Value {
        match data {
            Data::Scalar(scalar) => self.scalar(b, scalar),
            Data::Tensor(tensor) => self.tensor(b, tensor),
            Data::Struct(id) => self.structure(b, id),
        }
    }

    pub(super) fn structure(&mut self, b: &mut Builder<'_>, id: StructId) -> Value {
        let data = Data::Struct(id);
        let members = b.kernel.structs[id].members.clone();
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(2) } else { self.random.below(6) };
        let value = match choice {
            0 => self.known(b, data.into()),
            1 => self.load_local(b, data),
            2 => {
                let (whole, member) = (self.structure(b, id), self.random.below(members.len()));
                let value = self.data(b, members[member].1);
                Some(b.struct_set(whole, member as u32, value))
            }
            3 => {
                let (c, x, y) = (self.scalar(b, Scalar::U1), self.structure(b, id), self.structure(b, id));
                Some(b.select(c, x, y))
            }
            4 if data == outer() => {
                let array = self.arrays.last().copied();
                array.filter(|&array| b.kernel.ty(array).place().is_some_and(|(held, _)| held == data)).map(
                    |array| {
                        let path = self.path(b, array);
                        b.load(array, &path)
                    },
                )
            }
            4 => {
                let whole = self.structure(b, StructId::from_index(1));
                Some(b.struct_get(whole, 2))
            }
            _ => None,
        };
        let value = value.unwrap_or_else(|| {
            let members: Vec<_> = members.iter().map(|&(_, member)| self.data(b, member)).collect();
            b.struct_new(data, members)
        });
        self.depth -= 1;
        value
    }

    pub(super) fn tensor(&mut self, b: &mut Builder<'_>, tensor: TensorType) -> Value {
        let data = Data::Tensor(tensor);
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(3) } else { self.random.below(8) };
        let value = match choice {
            0 | 1 => match self.known(b, data.into()) {
                Some(value) => value,
                None => self.new_tensor(b, tensor),
            },
            2 => self.new_tensor(b, tensor),
            3 => {
                let scalar = self.scalar(b, tensor.elem);
                b.splat(data, scalar)
            }
            4 => {
                let (t, s) = (self.tensor(b, tensor), self.scalar(b, tensor.elem));
                let components = self.components(b, tensor.shape);
                b.tensor_set(t, &components, s)
            }
            5 => {
                let (c, x, y) = (self.scalar(b, Scalar::U1), self.tensor(b, tensor), self.tensor(b, tensor));
                b.select(c, x, y)
            }
            6 => match self.load_local(b, data) {
                Some(value) => value,
                None => self.new_tensor(b, tensor),
            },
            _ => {
                let (x, y) = (self.tensor(b, tensor), self.tensor(b, tensor));
                let op = self.random.pick(&[ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Max]);
                b.arith(op, x, y)
            }
        };
        self.depth -= 1;
        value
    }

    pub(super) fn new_tensor(&mut self, b: &mut Builder<'_>, tensor: TensorType) -> Value {
        if tensor.shape.count() > 8 {
            let scalar = self.scalar(b, tensor.elem);
            return b.splat(Data::Tensor(tensor), scalar);
        }
        let entries: Vec<_> = (0..tensor.shape.count()).map(|_| self.scalar(b, tensor.elem)).collect();
        b.tensor(Data::Tensor(tensor), entries)
    }

    /// Inside the shape, fixed or not.
    pub(super) fn components(&mut self, b: &mut Builder<'_>, shape: TensorShape) -> Vec<Value> {
        let dims = shape.dims();
        dims.into_iter()
            .map(|extent| {
                if self.random.chance(2) {
                    return b.i32(self.random.below(extent as usize) as i32);
                }
                let (any, extent) = (self.scalar(b, Scalar::I32), b.i32(extent as i32));
                b.arith(ArithOp::Mod, any, extent)
            })
            .collect()
    }

    pub(super) fn load_local(&mut self, b: &mut Builder<'_>, data: Data) -> Option<Value> {
        let fitting: Vec<_> = self.locals.iter().filter(|l| l.data == data).map(|l| l.place).collect();
        (!fitting.is_empty()).then(|| {
            let place = self.random.pick(&fitting);
            b.load(place, &[])
        })
    }

    pub(super) fn scalar(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(3) } else { self.random.below(15) };
        let value = match choice {
            0 => self.constant(b, ty),
            14 if ty != Scalar::U1 => b.random(ty),
            1 => match self.known(b, ty.into()) {
                Some(value) => value,
                None => self.constant(b, ty),
            },
            2 | 3 => match self.load_local(b, ty.into()) {
                Some(value) => value,
                None => self.constant(b, ty),
            },
            4 => {
                let from = self.random.pick(&SCALARS);
                let x = self.scalar(b, from);
                b.cast(x, ty)
            }
            5 => {
                let (c, x, y) = (self.scalar(b, Scalar::U1), self.scalar(b, ty), self.scalar(b, ty));
                b.select(c, x, y)
            }
            6 => {
                let tensors: Vec<_> =
                    [PAIR, MATRIX, BIG].into_iter().filter(|t| t.elem() == Some(ty)).collect();
                if tensors.is_empty() {
                    self.constant(b, ty)
                } else {
                    let data = self.random.pick(&tensors);
                    let t = self.data(b, data);
                    let components = self.components(b, data.tensor_shape().expect("a tensor"));
                    b.tensor_get(t, &components)
                }
            }
            7 => self.element(b, ty),
            8 if ty == Scalar::U1 => {
                let of = self.random.pick(&SCALARS);
                let (x, y) = (self.scalar(b, of), self.scalar(b, of));
                b.compare(self.random.pick(CompareOp::ALL), x, y)
            }
            8 => {
                let (x, exponent) = (self.scalar(b, ty), b.i32(self.random.below(9) as i32 - 2));
                if ty == Scalar::U1 { x } else { b.math(MathOp::Pow, x, exponent) }
            }
            9 => self.unary(b, ty),
            _ => self.binary(b, ty),
        };
        self.depth -= 1;
        value
    }

    pub(super) fn unary(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let x = self.scalar(b, ty);
        match ty {
            Scalar::U1 => b.bit_unary(BitUnary::Not, x),
            _ if ty.is_real() && self.random.chance(2) => {
                let op =
                    self.random.pick(&[MathUnary::Floor, MathUnary::Sqrt, MathUnary::Sin, MathUnary::Round]);
                b.math_unary(op, x)
            }
            _ if ty.is_integral() && self.random.chance(2) => b.bit_unary(BitUnary::Not, x),
            _ => b.arith_unary(self.random.pick(&[ArithOp::Neg, ArithOp::Abs]), x),
        }
    }

    pub(super) fn binary(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let (x, y) = (self.scalar(b, ty), self.scalar(b, ty));
        if ty == Scalar::U1 {
            return b.bit(self.random.pick(&[BitOp::And, BitOp::Or, BitOp::Xor]), x, y);
        }
        if ty.is_integral() && self.random.chance(3) {
            return b.bit(self.random.pick(BitOp::ALL), x, y);
        }
        let op = self.random.pick(ArithOp::ALL);
        match op {
            ArithOp::Neg | ArithOp::Abs => b.arith_unary(op, x),
            ArithOp::Div if ty.is_integral() => b.arith(ArithOp::RawDiv, x, y),
            _ => b.arith(op, x, y),
        }
    }

    /// An index into an axis of any array: an axis of the parallel loop, moved and brought back inside, or anything.
    pub(super) fn index(&mut self, b: &mut Builder<'_>) -> Value {
        let last = b.i32(EXTENT - 1);
        let index = match (self.axes.is_empty(), self.random.below(4)) {
            (false, 0..=2) => {
                let axis = self.random.pick(&self.axes);
                match self.random.below(4) {
                    0 | 1 => return axis,
                    2 => return self.taken_apart(b, axis),
                    _ => {}
                }
                let by = b.i32(self.random.below(3) as i32);
                b.arith(self.random.pick(&[ArithOp::Add, ArithOp::Sub]), axis, by)
            }
            (_, 3) => return b.i32(self.random.below(EXTENT as usize) as i32),
            _ => self.scalar(b, Scalar::I32),
        };
        b.bit(BitOp::And, index, last)
    }

    /// The same number, as a sum of digits.
    fn taken_apart(&mut self, b: &mut Builder<'_>, index: Value) -> Value {
        let (bits, below) = self.random.pick(&[(1, 2), (2, 4), (3, 8)]);
        let (bits, below, last) = (b.i32(bits), b.i32(below), b.i32(below - 1));
        let high = b.bit(BitOp::Shr, index, bits);
        let low = b.bit(BitOp::And, index, last);
        let high = b.arith(ArithOp::Mul, high, below);
        b.arith(ArithOp::Add, high, low)
    }

    pub(super) fn path(&mut self, b: &mut Builder<'_>, array: Value) -> Vec<Value> {
        let origin = match b.kernel.ty(array) {
            Type::Array(ty) => {
                b.kernel.layout(ty).map_or_else(|| vec![0; ty.rank.into()], |layout| layout.origin.clone())
            }
            _ => Vec::new(),
        };
        origin
            .into_iter()
            .map(|origin| {
                let index = self.index(b);
                let origin = b.i32(origin);
                b.arith(ArithOp::Add, index, origin)
            })
            .collect()
    }

    pub(super) fn element(&mut self, b: &mut Builder<'_>, ty: Scalar) -> Value {
        let arrays: Vec<_> = self
            .arrays
            .iter()
            .copied()
            .filter(|&a| b.kernel.ty(a).place().and_then(|(data, _)| data.elem()) == Some(ty))
            .collect();
        if arrays.is_empty() {
            return self.constant(b, ty);
        }
        let array = self.random.pick(&arrays);
        let mut path = self.path(b, array);
        let (data, _) = b.kernel.ty(array).place().expect("a place");
        if let Some(shape) = data.tensor_shape() {
            path.extend(self.components(b, shape));
        }
        b.load(array, &path)
    }
}
