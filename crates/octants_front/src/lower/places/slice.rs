//! Parts of arrays, from which tiles are loaded and to which they are stored: `x[r0:r1, c0:c1]`, `x[i, r0:r1, c0:c1]`, and a column, `x[r0:r1, c]`.
//!
//! **What is left of a slice lies in its array**: it is cut at the end here, and one that begins before the array is empty, which debug mode reports. The
//! funcs that access its elements do not ask again.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp};
use octants_ir::{Data, OpKind, Type, Value};

use crate::ast::{Expr, ExprKind};
use crate::host::{FieldKind, Host};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{ArraySlice, Term};
use crate::lower::error::Fallible;
use crate::lower::places::index::Narrowing;
use crate::lower::values::convert::describe_data;

/// An axis of the array: its first index, and the one behind its last.
type Axis = (Value, Value);

const FORMS: &str = "a tile is loaded by `t[:] = x[a:b, c:d]` and stored by `x[a:b, c:d] = t`; a column is `v = x[a:b, c]`, of which each lane has an entry. An index before these picks one of several matrices";

/// Whether something between the brackets is a slice.
pub(crate) fn has_slice(index: &Expr) -> bool {
    index.index_items().iter().any(|item| matches!(item.kind, ExprKind::Slice { .. }))
}

/// Whether it is `:` alone.
pub(crate) fn is_whole(index: &Expr) -> bool {
    matches!(index.kind, ExprKind::Slice { start: None, stop: None, step: None })
}

impl<H: Host> Lowerer<'_, H> {
    /// `array[…]` of an array, a view or a field, where one of the indices is a slice.
    pub(crate) fn array_slice(
        &mut self,
        array: Term<H::Object>,
        base: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let (batch, rows, columns) = match index.index_items() {
            [rows, columns] if is_slice(rows) => (None, rows, columns),
            [batch, rows, columns] if !is_slice(batch) && is_slice(rows) => (Some(batch), rows, columns),
            items => {
                let slice = items.iter().find(|item| is_slice(item)).map_or(span, |item| item.span);
                return Err(self.unsupported_slice(slice));
            }
        };
        let name = self.text(base.span);
        let axes = self.axes_of(&array, &name, base.span)?;
        self.check_rank(axes.len(), index.index_items().len(), &format!("`{name}`"), span)?;
        let (of_batch, of_slice) = axes.split_at(axes.len() - 2);
        let batch = match batch {
            Some(batch) => Some(self.slice_index(batch, of_batch[0])?),
            None => None,
        };
        let row_bounds = self.slice_bounds(rows, of_slice[0])?;
        let (column, column_bounds) = if is_slice(columns) {
            let bounds = self.slice_bounds(columns, of_slice[1])?;
            (bounds.0, Some(bounds))
        } else {
            (self.slice_index(columns, of_slice[1])?, None)
        };
        self.check_slice(
            &name,
            batch.zip(of_batch.first().copied()),
            [(row_bounds.0, of_slice[0]), (column, of_slice[1])],
            span,
        );
        let rows = self.cut_to_axis(row_bounds, of_slice[0], rows.span);
        let is_column = column_bounds.is_none();
        let columns = match column_bounds {
            Some(bounds) => self.cut_to_axis(bounds, of_slice[1], columns.span),
            None => self.one_of_axis(column, of_slice[1], columns.span),
        };
        Ok(Term::Slice(Box::new(ArraySlice { array, batch, rows, columns, is_column })))
    }

    /// The axes of an array of numbers.
    fn axes_of(&mut self, array: &Term<H::Object>, name: &str, span: Span) -> Fallible<Vec<Axis>> {
        let (elem, axes) = match array {
            Term::Array(array) => (self.array_elem(*array), self.axes_from(*array, None, span)),
            Term::View(view) => {
                let size = self.view_size(view, span);
                (self.array_elem(view.array), self.axes_from(view.array, Some(size), span))
            }
            Term::Object(field) => {
                let kind = self.field_kind(field, span)?;
                let FieldKind::Leaf { elem, layout, .. } = &*kind else {
                    return Err(self.no_numbers(
                        name,
                        "a struct or has entries in arrays of their own",
                        span,
                    ));
                };
                let mut builder = self.at(span);
                let axes = layout.origin.iter().zip(&layout.shape).map(|(&origin, &extent)| {
                    (builder.i32(origin), builder.i32(origin.saturating_add_unsigned(extent)))
                });
                (*elem, axes.collect())
            }
            _ => return Err(self.unsupported_slice(span)),
        };
        match elem {
            Data::Scalar(_) => Ok(axes),
            other => Err(self.no_numbers(name, &describe_data(other), span)),
        }
    }

    fn axes_from(&mut self, array: Value, first_extent: Option<Value>, span: Span) -> Vec<Axis> {
        let rank = self.rank(array);
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        (0..rank)
            .map(|axis| match first_extent {
                Some(extent) if axis == 0 => (zero, extent),
                _ => (zero, builder.extent(array, axis)),
            })
            .collect()
    }

    fn array_elem(&self, array: Value) -> Data {
        match self.kernel.ty(array) {
            Type::Array(ty) => ty.elem,
            _ => Data::Scalar(octants_ir::Scalar::I32),
        }
    }

    /// One index. What does not fit an `i32` lies outside of every array.
    fn slice_index(&mut self, index: &Expr, axis: Axis) -> Fallible<Value> {
        let term = self.operand(index)?;
        self.slice_number(term, axis, index.span)
    }

    fn slice_number(&mut self, term: Term<H::Object>, (first, _): Axis, span: Span) -> Fallible<Value> {
        // A literal below zero counts from the end in Python, unless a field begins there.
        let known = self.kernel.as_const(first).and_then(octants_ir::Const::as_i128);
        if let (Term::Int(number @ i128::MIN..0), Some(first)) = (&term, known)
            && first <= *number
        {
            return Ok(self.at(span).i32(*number as i32));
        }
        self.index_value(term, Narrowing::Saturate, span)
    }

    fn slice_bounds(&mut self, slice: &Expr, axis: Axis) -> Fallible<(Value, Value)> {
        let ExprKind::Slice { start, stop, step } = &slice.kind else {
            return Err(self.unsupported_slice(slice.span));
        };
        if let Some(step) = step {
            return Err(self.error_with_help(
                Code::SliceBounds,
                step.span,
                "a slice for a tile has no step",
                "rows and columns of a tile follow each other: write `a:b`",
            ));
        }
        let mut bounds = [None, None];
        for (bound, expr) in bounds.iter_mut().zip([start, stop]) {
            let Some(expr) = expr else { continue };
            match self.operand(expr)? {
                Term::None => {}
                term => *bound = Some(self.slice_number(term, axis, expr.span)?),
            }
        }
        match bounds {
            [Some(start), Some(stop)] => Ok((start, stop)),
            _ => Err(self.error_with_help(
                Code::SliceBounds,
                slice.span,
                "a slice for a tile has both start and stop",
                "write `a:b`, where `b` may lie behind the end: what is not there is left out",
            )),
        }
    }

    /// Where a slice begins in an axis, and how many there are of it. Nothing wraps, and nothing is told to overflow: both ends lie in the axis before they
    /// are subtracted.
    fn cut_to_axis(
        &mut self,
        (start, stop): (Value, Value),
        (first, end): Axis,
        span: Span,
    ) -> (Value, Value) {
        let mut builder = self.at(span);
        let inside = builder.compare(CompareOp::Ge, start, first);
        let start = builder.select(inside, start, end);
        let begin = builder.arith(ArithOp::Min, start, end);
        let last = builder.arith(ArithOp::Min, stop, end);
        let last = builder.arith(ArithOp::Max, last, begin);
        (begin, builder.arith(ArithOp::Sub, last, begin))
    }

    /// Likewise for one index: one of it is there, or none. The index behind it is not computed: there may be none.
    fn one_of_axis(&mut self, at: Value, (first, end): Axis, span: Span) -> (Value, Value) {
        let mut builder = self.at(span);
        let above = builder.compare(CompareOp::Ge, at, first);
        let below = builder.compare(CompareOp::Lt, at, end);
        let inside = builder.bit(BitOp::And, above, below);
        let (one, none) = (builder.i32(1), builder.i32(0));
        (at, builder.select(inside, one, none))
    }

    /// Debug mode: an assertion that a slice does not begin before its array, and that the index before it is inside.
    fn check_slice(
        &mut self,
        name: &str,
        batch: Option<(Value, Axis)>,
        starts: [(Value, Axis); 2],
        span: Span,
    ) {
        if !self.options.check_bounds {
            return;
        }
        let mut checks = Vec::new();
        if let Some((at, (first, end))) = batch {
            let mut builder = self.at(span);
            let above = builder.compare(CompareOp::Ge, at, first);
            let below = builder.compare(CompareOp::Lt, at, end);
            let inside = builder.bit(BitOp::And, above, below);
            checks.push((inside, format!("index {{}} is out of bounds of the first axis of `{name}`"), at));
        }
        for ((start, (first, _)), axis) in starts.into_iter().zip(["row", "column"]) {
            let inside = self.at(span).compare(CompareOp::Ge, start, first);
            checks.push((
                inside,
                format!("a slice of `{name}` begins before the array, at {axis} {{}}"),
                start,
            ));
        }
        for (inside, message, shown) in checks {
            let shown = self.whole_index(shown);
            let assert = OpKind::Assert(AssertKind::Bounds, message.into());
            self.at(span).op(assert, [inside, shown], [], []);
        }
    }

    /// The entry that this lane has of a column; anything else stays what it is.
    pub(crate) fn column_entry(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        let Term::Slice(slice) = term else { return Ok(term) };
        let function = match self.host.array_method("column") {
            Some(function) if slice.is_column => function,
            _ => return Err(self.stray_slice(span)),
        };
        self.lanes_here("a column of an array", span)?;
        let arguments = slice.arguments(span);
        self.inline_method(&function, (slice.array, true), arguments, span)
    }

    /// A column as the entry that this lane has of it; a slice of rows and columns stays one.
    pub(crate) fn column_or_slice(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        match term {
            Term::Slice(slice) if !slice.is_column => Ok(Term::Slice(slice)),
            other => self.column_entry(other, span),
        }
    }

    /// A slice that no tile is loaded from.
    pub(crate) fn stray_slice(&self, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::SliceOutside,
            span,
            "a slice of an array is only valid in tile operations",
            FORMS,
        )
    }

    fn unsupported_slice(&self, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::SliceUnsupported,
            span,
            "slices of arrays are not supported in a kernel",
            "index one element at a time, in a loop, or make a view of an array: `oc.BufferView(a, offset, size)`",
        )
    }

    pub(crate) fn no_numbers(&self, name: &str, elem: &str, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::SliceOutside,
            span,
            format!("tiles consist of numbers; an element of `{name}` is {elem}"),
            "keep the entries in an array of numbers",
        )
    }
}

fn is_slice(item: &Expr) -> bool {
    matches!(item.kind, ExprKind::Slice { .. })
}

impl<O: Clone> ArraySlice<O> {
    /// What the funcs that access its elements are called with behind the array.
    pub(crate) fn arguments(&self, span: Span) -> Vec<Argument<O>> {
        let argument = |term| Argument { name: None, term, span, is_literal: false };
        let batch = argument(self.batch.map_or(Term::None, Term::Value));
        let numbers = [self.rows.0, self.rows.1, self.columns.0, self.columns.1];
        [batch].into_iter().chain(numbers.map(|number| argument(Term::Value(number)))).collect()
    }
}
