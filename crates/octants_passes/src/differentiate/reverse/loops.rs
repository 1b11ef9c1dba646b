//! Loops. The forward sweep keeps what the loop carries into each iteration on tapes; the backward sweep takes the iterations from the last to the
//! first, and runs each forward again from there.
//!
//! Before:
//! ```text
//! %1: f32 = for %i: i32 in %zero..%n carry (%v: f32 = %0) {
//!   %2: f32 = sin %v
//!   yield %2
//! }
//! ```
//! After (`%a` is the adjoint of `%1`, and `%d` that of `%0`; what is dead is gone):
//! ```text
//! %t: tape<f32> = tape %n
//! %1: f32 = for %i: i32 in %zero..%n carry (%v: f32 = %0) {
//!   store %t[%i], %v
//!   %2: f32 = sin %v
//!   yield %2
//! }
//! %d: f32 = for %j: i32 in %zero..%n carry (%b: f32 = %a) {
//!   %3: i32 = sub %n, 1
//!   %i': i32 = sub %3, %j
//!   %v': f32 = load %t[%i']
//!   %4: f32 = cos %v'
//!   %5: f32 = mul %b, %4
//!   yield %5
//! }
//! ```
//! A tape lives as long as its region runs. The tapes of a loop inside a loop are made anew in each backward iteration of the outer one, so
//! that memory is the sum along a nest, not the product. Where loops inside each other carry the same values, their forward sweeps stand once ([`nests`](super::nests)). How often a `while` runs is found by running it once more.

use octants_ir::ops::{ArithOp, BitOp, CompareOp, ParallelFor};
use octants_ir::{Const, Op, OpKind, Region, Scalar, TensorShape, Type, Value};

use super::Reverse;
use crate::edit::slots::yielded;

impl Reverse<'_> {
    /// A loop forward, with tapes for its backward sweep.
    pub(super) fn forward_taped(&mut self, op: Op) {
        if !self.facts.differentiates[op] {
            self.keep_places(op);
            self.forward_structure(op);
            return;
        }
        if self.is_inside_nest(op) {
            return;
        }
        if self.nest_of(op).is_some() {
            self.forward_nest(op);
            return;
        }
        match self.kernel.ops[op].kind {
            OpKind::For => self.forward_for(op),
            _ => self.forward_while(op),
        }
    }

    fn forward_for(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let operands = self.map(&data.operands);
        let (lo, hi) = (operands[0], operands[1]);
        let trips = self.distance(lo, hi);
        self.make_tapes(op, trips);
        let body = data.regions[0];
        let types = self.param_types(body);
        let region = self.fill(&types, |reverse, values| {
            reverse.set_params(body, values);
            let position = reverse.distance(lo, values[0]);
            reverse.write_tapes(op, position, &values[1..]);
            reverse.forward_region(body, false);
            let next = yielded(reverse.kernel, body).to_vec();
            reverse.map(&next)
        });
        self.finish_loop(op, operands, &types[1..], vec![region]);
    }

    fn forward_while(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        self.keep_places(op);
        let zero = self.b().constant(Const::from_i128(Scalar::I64, 0));
        let operands: Vec<_> = self.map(&data.operands).into_iter().chain([zero]).collect();
        let types: Vec<_> = self.param_types(data.regions[1]).into_iter().chain([Type::I64]).collect();
        // What another launch changes meanwhile must not make it run longer than the tapes are.
        let count = |reverse: &mut Self, most: Option<Value>| {
            let asks = reverse.fill(&types, |reverse, values| {
                let (&number, values) = values.split_last().expect("it counts");
                reverse.set_params(data.regions[0], values);
                reverse.forward_region(data.regions[0], false);
                let next = yielded(reverse.kernel, data.regions[0]).to_vec();
                let mut next = reverse.map(&next);
                if let Some(most) = most {
                    let b = &mut reverse.b();
                    let fits = b.compare(CompareOp::Lt, number, most);
                    next[0] = b.bit(BitOp::And, next[0], fits);
                }
                next.into_iter().chain([number]).collect()
            });
            let body = reverse.fill(&types, |reverse, values| {
                let (&number, values) = values.split_last().expect("it counts");
                reverse.set_params(data.regions[1], values);
                if most.is_some() {
                    reverse.write_tapes(op, number, values);
                }
                reverse.forward_region(data.regions[1], false);
                let next = yielded(reverse.kernel, data.regions[1]).to_vec();
                let one = reverse.one(number);
                let more = reverse.b().arith(ArithOp::Add, number, one);
                reverse.map(&next).into_iter().chain([more]).collect()
            });
            reverse.finish_loop(op, operands.clone(), &types, vec![asks, body])
        };
        let first = count(self, None);
        let results = self.map(&data.results);
        let &trips = self.kernel.ops[first].results.last().expect("it counts");
        self.restore_places(op);
        self.make_tapes(op, trips);
        count(self, Some(trips));
        for (&result, value) in data.results.iter().zip(results) {
            self.names.insert(result, value);
        }
        self.kept.get_mut(op).trips = Some(trips);
    }

    pub(super) fn backward_loop(&mut self, op: Op) {
        if !self.facts.differentiates[op] {
            self.restore_places(op);
            return;
        }
        if self.kept[op].is_nest {
            self.backward_nest(op);
        } else {
            self.backward_iterations(op);
        }
    }

    /// The iterations of a loop, the last one first.
    pub(super) fn backward_iterations(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let &body = data.regions.last().expect("a loop has a body");
        let params = self.kernel.regions[body].params.clone();
        // A body's parameters begin with the index of a `for`.
        let indices = params.len() - data.results.len();
        let operands = self.map(&data.operands);
        let (lo, hi) = match (self.kept[op].trips, self.bounds_in_nest(op)) {
            (Some(trips), _) => (self.b().constant(Const::from_i128(Scalar::I64, 0)), trips),
            (None, Some(bounds)) => bounds,
            (None, None) => (operands[0], operands[1]),
        };
        if self.is_innermost_in_nest(op) {
            self.run_nest_again();
        }
        let active: Vec<usize> = (0..data.results.len())
            .filter(|&slot| {
                self.activity.is_active(data.results[slot]) || self.activity.is_active(params[indices + slot])
            })
            .collect();
        let mut first = vec![lo, hi];
        for &slot in &active {
            first.push(self.adjoint_or_zero(data.results[slot]));
        }
        let types: Vec<_> = [lo].iter().chain(&first[2..]).map(|&value| self.kernel.ty(value)).collect();
        let region = self.fill(&types, |reverse, values| {
            let index = reverse.mirrored(values[0], lo, hi);
            let position = reverse.distance(lo, index);
            if indices > 0 {
                reverse.names.insert(params[0], index);
            }
            let seeds: Vec<_> = active.iter().copied().zip(values[1..].iter().copied()).collect();
            if reverse.is_around_in_nest(op) {
                reverse.begin_iteration(values[0], lo, index);
                reverse.pair(body, &seeds);
                reverse.end_iteration();
            } else {
                reverse.read_tapes(op, position, &params[indices..]);
                reverse.pair(body, &seeds);
            }
            active.iter().map(|&slot| reverse.adjoint_or_zero(params[indices + slot])).collect()
        });
        let looped = self.b().op(OpKind::For, first, types[1..].to_vec(), [region]);
        let starts = data.operands.len() - data.results.len();
        for (number, &slot) in active.iter().enumerate() {
            let adjoint = self.kernel.ops[looped].results[number];
            self.add_adjoint(data.operands[starts + slot], adjoint);
        }
    }

    /// What stands where tasks do becomes a task of one iteration: tapes do not outlive a task.
    pub(super) fn as_task(&mut self, op: Op, build: impl FnOnce(&mut Self)) {
        let (lo, hi) = (self.b().i32(0), self.b().i32(1));
        self.at_top = false;
        let region = self.fill(&[Type::I32], |reverse, _| {
            build(reverse);
            Vec::new()
        });
        self.at_top = true;
        let attributes = ParallelFor { axes: 1, max_threads: Some(1), ..ParallelFor::default() };
        let task = self.b().op(OpKind::ParallelFor(Box::new(attributes)), [lo, hi], [], [region]);
        self.tasks.push((task, op));
    }

    pub(super) fn param_types(&self, region: Region) -> Vec<Type> {
        self.kernel.regions[region].params.iter().map(|&param| self.kernel.ty(param)).collect()
    }

    pub(super) fn set_params(&mut self, region: Region, values: &[Value]) {
        for (param, &value) in self.kernel.regions[region].params.clone().into_iter().zip(values) {
            self.names.insert(param, value);
        }
    }

    /// Puts the loop itself behind its regions; its first results stand for those of the primal's.
    pub(super) fn finish_loop(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        types: &[Type],
        regions: Vec<Region>,
    ) -> Op {
        let data = self.kernel.ops[op].clone();
        let copy = self.b().op(data.kind, operands, types.to_vec(), regions);
        for (index, &result) in data.results.iter().enumerate() {
            let value = self.kernel.ops[copy].results[index];
            self.names.insert(result, value);
        }
        copy
    }

    fn make_tapes(&mut self, op: Op, trips: Value) {
        let mut tapes = Vec::new();
        for result in self.kernel.ops[op].results.clone() {
            let scalar = self.kernel.ty(result).scalar().unwrap_or(Scalar::I32);
            tapes.push(self.b().tape(scalar, trips));
        }
        let mut place_tapes = Vec::new();
        for local in self.written(op) {
            let Some((data, _)) = self.kernel.ty(local).place() else { continue };
            let cells = data.tensor_shape().map_or(1, TensorShape::count);
            let count = self.scaled(trips, cells);
            place_tapes.push((local, self.b().tape(data.elem().unwrap_or(Scalar::I32), count)));
        }
        let kept = self.kept.get_mut(op);
        (kept.tapes, kept.place_tapes) = (tapes, place_tapes);
    }

    fn write_tapes(&mut self, op: Op, position: Value, carried: &[Value]) {
        let kept = self.kept[op].clone();
        for (&tape, &value) in kept.tapes.iter().zip(carried) {
            self.b().store(tape, &[position], value);
        }
        for (local, tape) in kept.place_tapes {
            let cells = self.load_cells(local);
            for (number, &value) in cells.iter().enumerate() {
                let at = self.cell_position(position, cells.len(), number);
                self.b().store(tape, &[at], value);
            }
        }
    }

    fn read_tapes(&mut self, op: Op, position: Value, params: &[Value]) {
        let kept = self.kept[op].clone();
        for (&tape, &param) in kept.tapes.iter().zip(params) {
            let value = self.b().load(tape, &[position]);
            self.names.insert(param, value);
        }
        for (local, tape) in kept.place_tapes {
            let Some((data, _)) = self.kernel.ty(local).place() else { continue };
            let cells = data.tensor_shape().map_or(1, TensorShape::count) as usize;
            let mut values = Vec::with_capacity(cells);
            for number in 0..cells {
                let at = self.cell_position(position, cells, number);
                values.push(self.b().load(tape, &[at]));
            }
            self.store_cells(local, &values);
        }
    }

    fn cell_position(&mut self, position: Value, cells: usize, number: usize) -> Value {
        let first = self.scaled(position, cells as u32);
        let b = &mut self.b();
        let number = b.constant(Const::from_i128(Scalar::I64, number as i128));
        b.arith(ArithOp::Add, first, number)
    }

    fn scaled(&mut self, value: Value, by: u32) -> Value {
        let b = &mut self.b();
        let (value, by) = (b.cast(value, Scalar::I64), b.constant(Const::from_i128(Scalar::I64, by.into())));
        b.arith(ArithOp::Mul, value, by)
    }

    /// How far the second integer lies behind the first, in 64 bits; the second itself if the first is zero.
    pub(super) fn distance(&mut self, from: Value, to: Value) -> Value {
        if self.kernel.as_const(from).is_some_and(Const::is_zero) {
            return to;
        }
        let b = &mut self.b();
        let (from, to) = (b.cast(from, Scalar::I64), b.cast(to, Scalar::I64));
        b.arith(ArithOp::Sub, to, from)
    }

    pub(super) fn one(&mut self, like: Value) -> Value {
        let scalar = self.kernel.ty(like).scalar().unwrap_or(Scalar::I32);
        self.b().constant(Const::from_i128(scalar, 1))
    }
}
