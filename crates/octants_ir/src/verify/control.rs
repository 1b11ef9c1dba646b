//! Control: conditions, bounds, carried values, reductions, and what ends a kernel.

use super::{Law, Verifier};
use crate::ids::{Func, LayoutId, Op, Region, Value};
use crate::kernel::Phase;
use crate::layout::Layout;
use crate::ops::{AtomicOp, Domain, ParallelFor, PrintPiece, PrintSpec};
use crate::types::{Data, Scalar, Type};

fn list(types: &[Type]) -> String {
    let names: Vec<_> = types.iter().map(ToString::to_string).collect();
    format!("({})", names.join(", "))
}

impl Verifier<'_> {
    pub(super) fn carries(&mut self, op: Op, what: &str, found: &[Type], expected: &[Type]) {
        if found != expected {
            self.breaks(Law::Carried, op, format!("{what}: {}, not {}", list(found), list(expected)));
        }
    }

    fn params(&self, region: Region) -> Vec<Type> {
        self.types(&self.kernel.regions[region].params)
    }

    fn condition(&mut self, op: Op, value: Value) {
        self.is_type(Law::Condition, op, "the condition", value, Type::U1);
    }

    pub(super) fn if_op(&mut self, op: Op) {
        if self.takes_operands(op, 1) {
            self.condition(op, self.operands(op)[0]);
        }
        let results = self.types(self.results(op));
        for &region in &self.kernel.ops[op].regions {
            self.carries(op, "a branch's parameters", &self.params(region), &[]);
            self.carries(op, "a branch yields", &self.yielded(region), &results);
        }
    }

    /// `lo`, `hi` and the index of one axis.
    fn axis(&mut self, op: Op, lo: Value, hi: Value, index: Option<Type>) {
        let ty = self.ty(lo);
        if !self.is_integer(lo) || self.ty(hi) != ty || index != Some(ty) {
            let index = index.map_or("none".to_string(), |ty| ty.to_string());
            self.breaks(Law::Bounds, op, format!("bounds {ty} and {}, index {index}", self.ty(hi)));
        }
    }

    pub(super) fn for_op(&mut self, op: Op) {
        if !self.takes_at_least(op, 2) {
            return;
        }
        let operands = self.operands(op);
        let body = self.kernel.ops[op].regions[0];
        let params = self.params(body);
        self.axis(op, operands[0], operands[1], params.first().copied());
        let carried = self.types(&operands[2..]);
        self.carries(op, "the body's parameters", params.get(1..).unwrap_or_default(), &carried);
        self.carries(op, "the body yields", &self.yielded(body), &carried);
        self.carries(op, "results", &self.types(self.results(op)), &carried);
    }

    pub(super) fn for_cells(&mut self, op: Op, layout: LayoutId) {
        self.gives(op, 0);
        let body = self.kernel.ops[op].regions[0];
        self.cell_indices(op, layout, &self.params(body));
        self.carries(op, "the body yields", &self.yielded(body), &[]);
        match *self.operands(op) {
            [] => {}
            [left] => {
                self.is_type(Law::Condition, op, "what ends it", left, Type::Local(Data::Scalar(Scalar::U1)));
            }
            [..] => self.breaks(Law::OperandCount, op, "takes one variable at most"),
        }
    }

    /// One `i32` for each axis of the layout.
    fn cell_indices(&mut self, op: Op, layout: LayoutId, indices: &[Type]) {
        let rank = self.kernel.layouts.get(layout).map(Layout::rank);
        if rank != Some(indices.len()) || indices.iter().any(|&ty| ty != Type::I32) {
            self.breaks(Law::Bounds, op, format!("{} indices over {layout}", indices.len()));
        }
    }

    pub(super) fn while_op(&mut self, op: Op) {
        let carried = self.types(self.operands(op));
        let &[cond, body] = &self.kernel.ops[op].regions[..] else { return };
        self.carries(op, "the condition's parameters", &self.params(cond), &carried);
        self.carries(op, "the body's parameters", &self.params(body), &carried);
        let yielded = self.yielded(cond);
        if yielded.first() != Some(&Type::U1) {
            let found = yielded.first().map_or("nothing".to_string(), ToString::to_string);
            self.breaks(Law::Condition, op, format!("the condition is {found}, not u1"));
        }
        self.carries(op, "the condition yields", yielded.get(1..).unwrap_or_default(), &carried);
        self.carries(op, "the body yields", &self.yielded(body), &carried);
        self.carries(op, "results", &self.types(self.results(op)), &carried);
    }

    pub(super) fn parallel_for(&mut self, op: Op, attributes: &ParallelFor) {
        self.gives(op, 0);
        if attributes.block_dim == Some(0) || attributes.max_threads == Some(0) {
            self.breaks(Law::Attributes, op, "a number of threads is zero");
        }
        let staged = &attributes.staged;
        let known = staged.last().is_none_or(|&last| (last as usize) < self.kernel.params.len());
        if !known || !staged.is_sorted_by(|a, b| a < b) {
            self.breaks(Law::Attributes, op, format!("stages {staged:?}"));
        }
        let axes = attributes.axes as usize;
        if !self.takes_operands(op, attributes.operand_count()) {
            return;
        }
        if axes == 0 {
            self.breaks(Law::Bounds, op, "has no axis");
        }
        let operands = self.operands(op);
        let body = self.kernel.ops[op].regions[0];
        let params = self.params(body);
        let (bounds, mut places) = operands.split_at(attributes.bound_operands());
        for (axis, bounds) in bounds.chunks_exact(2).enumerate() {
            self.axis(op, bounds[0], bounds[1], params.get(axis).copied());
        }
        if let Domain::Cells(id) = attributes.domain {
            self.cell_indices(op, id, params.get(..axes).unwrap_or_default());
        }
        let accumulators = params.get(axes..).unwrap_or_default();
        let mut cells = Vec::new();
        for reduction in &attributes.reductions {
            let (place, rest) = places.split_at(reduction.operands as usize);
            places = rest;
            match reduction.op {
                AtomicOp::Sub | AtomicOp::Exchange => {
                    self.breaks(Law::Reduction, op, format!("{} cannot be reduced", reduction.op.name()));
                }
                AtomicOp::Add
                | AtomicOp::Mul
                | AtomicOp::Min
                | AtomicOp::Max
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor => {}
            }
            let Some(cell) = self.cell(op, place) else { return };
            if !cell.elem().is_some_and(|elem| reduction.op.info().takes.admits(elem)) {
                self.breaks(Law::Reduction, op, format!("{} of {cell}", reduction.op.name()));
            }
            cells.push(cell);
        }
        if accumulators != cells {
            let message = format!("accumulators {} for cells {}", list(accumulators), list(&cells));
            self.breaks(Law::Reduction, op, message);
        }
        self.carries(op, "the body yields", &self.yielded(body), &cells);
    }

    pub(super) fn fork(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        if !data.operands.is_empty() || !data.results.is_empty() {
            self.breaks(Law::Fork, op, "has operands or results");
        }
        for &branch in &data.regions {
            if !self.params(branch).is_empty() || !self.yielded(branch).is_empty() {
                self.breaks(Law::Fork, op, "a branch has parameters or yields values");
            }
        }
    }

    pub(super) fn return_op(&mut self, op: Op) {
        self.gives(op, 0);
        let found = self.types(self.operands(op));
        let ends = |body: Region| self.kernel.regions[body].ops.last() == Some(&op);
        let function = self.kernel.functions.iter().find(|(_, function)| ends(function.body));
        let results = match (function, self.kernel.phase) {
            (Some((_, function)), _) => &function.results[..],
            (None, Phase::Structured) => &self.kernel.results[..],
            (None, Phase::Tasks) => &[],
        };
        let expected: Vec<Type> = results.iter().map(|&data| data.into()).collect();
        if found != expected {
            self.breaks(Law::Returned, op, format!("returns {}, not {}", list(&found), list(&expected)));
        }
    }

    pub(super) fn assert_op(&mut self, op: Op, message: &str) {
        self.gives(op, 0);
        if !self.takes_at_least(op, 1) {
            return;
        }
        let (&condition, arguments) = self.operands(op).split_first().expect("counted above");
        self.condition(op, condition);
        let blanks = crate::format::blanks(message);
        if blanks != arguments.len() {
            self.breaks(Law::Message, op, format!("{blanks} blanks for {} arguments", arguments.len()));
        }
        for &argument in arguments {
            if self.ty(argument).scalar().is_none() {
                self.breaks(Law::Message, op, format!("an argument is {}", self.ty(argument)));
            }
        }
    }

    pub(super) fn print_op(&mut self, op: Op, spec: &PrintSpec) {
        self.gives(op, 0);
        let (values, operands) = (spec.values(), self.operands(op));
        if values != operands.len() {
            self.breaks(Law::Print, op, format!("{values} values in the text, {} operands", operands.len()));
            return;
        }
        let formats = spec.pieces.iter().filter_map(|piece| match piece {
            PrintPiece::Value(format) => Some(*format),
            PrintPiece::Text(_) | PrintPiece::Location => None,
        });
        for (format, &operand) in formats.zip(operands) {
            if !self.ty(operand).elem().is_some_and(|elem| format.fits(elem)) {
                self.breaks(Law::Print, op, format!("`{{:{format}}}` for {}", self.ty(operand)));
            }
        }
    }

    pub(super) fn random(&mut self, op: Op) {
        self.takes_operands(op, 0);
        if self.gives(op, 1) {
            let ty = self.ty(self.results(op)[0]);
            if ty.scalar().is_none_or(|scalar| scalar == Scalar::U1) {
                self.breaks(Law::Random, op, format!("the result is {ty}"));
            }
        }
    }

    pub(super) fn call(&mut self, op: Op, function: Func) {
        let kernel = self.kernel;
        let Some(called) = kernel.functions.get(function) else {
            self.breaks(Law::Call, op, format!("the kernel has no {function}"));
            return;
        };
        let (found, expected) = (self.types(self.operands(op)), self.params(called.body));
        if found != expected {
            self.breaks(
                Law::Call,
                op,
                format!("arguments {} for parameters {}", list(&found), list(&expected)),
            );
        }
        let found = self.types(self.results(op));
        let expected: Vec<Type> = called.results.iter().map(|&data| data.into()).collect();
        if found != expected {
            self.breaks(Law::Call, op, format!("results {}, not {}", list(&found), list(&expected)));
        }
    }
}
