//! Small vectors and matrices as values: constants of the host, entries, products.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, TensorOp};
use octants_ir::{Const, Data, OpKind, Scalar, TensorShape, TensorType, Value, ValueDef};

use super::promote::promote;
use crate::host::{Host, Number, TensorConstant};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

/// Multiplications in a matrix product that is unrolled, at most: 8×8 by 8×8. A larger one is a loop, so that it compiles quickly: in a loop
/// over 1000 products of f32, an unrolled 8×8 one takes 35 ns and five times as long to compile as a 9×9 one, which takes 65 ns.
const MAX_UNROLLED_PRODUCTS: u32 = 512;

impl<H: Host> Lowerer<'_, H> {
    /// A vector or matrix of the host; one that was made of plain numbers has the default types.
    pub(crate) fn tensor_constant(&mut self, constant: &TensorConstant, span: Span) -> Value {
        let elem = self.constant_type(constant);
        let entries: Vec<_> = constant
            .entries
            .iter()
            .map(|number| {
                let constant = match *number {
                    Number::Bool(value) => Const::from_i128(elem, value.into()),
                    Number::Int(value) => Const::from_i128(elem, value),
                    Number::Float(value) => Const::from_f64(elem, value),
                };
                self.at(span).constant(constant)
            })
            .collect();
        self.at(span).tensor(Data::Tensor(TensorType { elem, shape: constant.shape }), entries)
    }

    /// The type of the entries of such a one.
    pub(crate) fn constant_type(&self, constant: &TensorConstant) -> Scalar {
        let is_real = |number: &Number| matches!(number, Number::Float(_));
        let is_bool = |number: &Number| matches!(number, Number::Bool(_));
        match constant.dtype {
            Some(scalar) => scalar,
            None if constant.entries.iter().any(is_real) => self.options.default_fp,
            None if constant.entries.iter().all(is_bool) => Scalar::U1,
            None => self.options.default_ip,
        }
    }

    /// The tensor type of a register value, if it is a tensor.
    pub(crate) fn tensor_type(&self, value: Value) -> Option<TensorType> {
        match self.data(value) {
            Data::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// All entries of a tensor in row-major order.
    pub(crate) fn tensor_entries(&mut self, value: Value, span: Span) -> Vec<Value> {
        let Some(TensorType { shape, .. }) = self.tensor_type(value) else { return vec![value] };
        if let Some(known) = self.known_entries(value) {
            return known;
        }
        let mut entries = Vec::with_capacity(shape.count() as usize);
        for position in 0..shape.count() {
            let components = self.components_at(shape, position, span);
            entries.push(self.at(span).tensor_get(value, &components));
        }
        entries
    }

    /// The entries that a tensor was put together from.
    fn known_entries(&self, value: Value) -> Option<Vec<Value>> {
        let ValueDef::Result(op, _) = self.kernel.values[value].def else { return None };
        let op = &self.kernel.ops[op];
        match op.kind {
            OpKind::Tensor(TensorOp::New) => Some(op.operands.to_vec()),
            OpKind::Tensor(TensorOp::Splat) => {
                let count = self.tensor_type(value)?.shape.count() as usize;
                Some(vec![op.operands[0]; count])
            }
            _ => None,
        }
    }

    /// The components of an entry, by its position in row-major order.
    pub(crate) fn components_at(&mut self, shape: TensorShape, position: u32, span: Span) -> Vec<Value> {
        let mut builder = self.at(span);
        match shape {
            TensorShape::Vector(_) => vec![builder.i32(position as i32)],
            TensorShape::Matrix(_, m) => {
                let m = u32::from(m);
                vec![builder.i32((position / m) as i32), builder.i32((position % m) as i32)]
            }
        }
    }

    /// One entry; of a tensor that was just put together, what was put there.
    pub(crate) fn tensor_entry(&mut self, value: Value, components: &[Value], span: Span) -> Value {
        if let Some(tensor) = self.tensor_type(value)
            && let Some(known) = self.known_entries(value)
        {
            let constant = |&component: &Value| {
                self.kernel
                    .as_const(component)
                    .and_then(octants_ir::Const::as_i128)
                    .and_then(|at| usize::try_from(at).ok())
            };
            let position = match (tensor.shape, components) {
                (TensorShape::Vector(_), [i]) => constant(i),
                (TensorShape::Matrix(_, m), [i, j]) => {
                    constant(i).zip(constant(j)).map(|(i, j)| i * usize::from(m) + j)
                }
                _ => None,
            };
            if let Some(&entry) = position.and_then(|at| known.get(at)) {
                return entry;
            }
        }
        self.at(span).tensor_get(value, components)
    }

    /// The entries of a vector, the rows of a matrix.
    pub(crate) fn tensor_items(&mut self, value: Value, span: Span) -> Option<Vec<Term<H::Object>>> {
        let TensorType { elem, shape } = self.tensor_type(value)?;
        let entries = self.tensor_entries(value, span);
        Some(match shape {
            TensorShape::Vector(_) => entries.into_iter().map(Term::Value).collect(),
            TensorShape::Matrix(_, m) => {
                let row = Data::Tensor(TensorType { elem, shape: TensorShape::Vector(m) });
                let rows = entries.chunks(m.into());
                rows.map(|entries| Term::Value(self.at(span).tensor(row, entries.iter().copied()))).collect()
            }
        })
    }

    /// `a @ b`: rows of one with columns of the other; a vector on the left is a row, on the right a column.
    pub(crate) fn matrix_product(&mut self, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let (Some(ta), Some(tb)) = (self.tensor_type(a), self.tensor_type(b)) else {
            return Err(self.unsupported_operands("@", a, b, span));
        };
        let meet = promote(ta.elem, tb.elem);
        let elem = if meet == Scalar::U1 { self.options.default_ip } else { meet };
        let (rows, inner) = match ta.shape {
            TensorShape::Vector(n) => (1, n),
            TensorShape::Matrix(n, m) => (n, m),
        };
        let (inner_b, columns) = match tb.shape {
            TensorShape::Vector(n) => (n, 1),
            TensorShape::Matrix(n, m) => (n, m),
        };
        if inner != inner_b {
            let (left, right) = (self.describe(&Term::Value(a)), self.describe(&Term::Value(b)));
            return Err(self.error_with_help(
                Code::OperandTypes,
                span,
                format!("unsupported operand type(s) for '@': dimension mismatch between {left} and {right}"),
                "the left side must have as many columns as the right side has rows",
            ));
        }
        let (a, b) = (self.cast(a, elem, span), self.cast(b, elem, span));
        let shape = match (ta.shape, tb.shape) {
            (TensorShape::Vector(_), TensorShape::Vector(_)) => None,
            (TensorShape::Vector(_), _) => Some(TensorShape::Vector(columns)),
            (_, TensorShape::Vector(_)) => Some(TensorShape::Vector(rows)),
            _ => Some(TensorShape::Matrix(rows, columns)),
        };
        let size = [rows, inner, columns].map(usize::from);
        if size.iter().map(|&n| n as u32).product::<u32>() > MAX_UNROLLED_PRODUCTS
            && let Some(shape @ TensorShape::Matrix(..)) = shape
            && ta.shape.rank() == 2
            && tb.shape.rank() == 2
        {
            return Ok(self.product_loop(a, b, elem, shape, size, span));
        }
        let (left, right) = (self.tensor_entries(a, span), self.tensor_entries(b, span));
        let mut entries = Vec::with_capacity(size[0] * size[2]);
        for row in 0..size[0] {
            for column in 0..size[2] {
                let mut sum = None;
                for k in 0..size[1] {
                    let mut builder = self.at(span);
                    let product =
                        builder.arith(ArithOp::Mul, left[row * size[1] + k], right[k * size[2] + column]);
                    sum = Some(match sum {
                        None => product,
                        Some(so_far) => builder.arith(ArithOp::Add, so_far, product),
                    });
                }
                entries.extend(sum);
            }
        }
        Ok(match shape {
            None => entries[0],
            Some(shape) => self.at(span).tensor(Data::Tensor(TensorType { elem, shape }), entries),
        })
    }

    fn product_loop(
        &mut self,
        a: Value,
        b: Value,
        elem: Scalar,
        shape: TensorShape,
        [rows, inner, columns]: [usize; 3],
        span: Span,
    ) -> Value {
        let (left, right) = (self.new_local(a, span).base, self.new_local(b, span).base);
        let mut builder = self.at(span);
        let result = builder.local(Data::Tensor(TensorType { elem, shape }));
        let zero = builder.i32(0);
        let ends = [rows, columns, inner].map(|n| builder.i32(n as i32));
        let start = builder.constant(Const::from_i128(elem, 0));
        builder.for_range(zero, ends[0], &[], |builder, i, _| {
            builder.for_range(zero, ends[1], &[], |builder, j, _| {
                let sum = builder.for_range(zero, ends[2], &[start], |builder, k, sum| {
                    let x = builder.load(left, &[i, k]);
                    let y = builder.load(right, &[k, j]);
                    let product = builder.arith(ArithOp::Mul, x, y);
                    vec![builder.arith(ArithOp::Add, sum[0], product)]
                });
                builder.store(result, &[i, j], sum[0]);
                Vec::new()
            });
            Vec::new()
        });
        builder.load(result, &[])
    }
}
