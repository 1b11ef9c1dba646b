//! Statements: variables, memory, prints, control flow.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, Format, OpKind, ParallelFor, PrintSpec};
use octants_ir::{Builder, Data, Region, Scalar, Type, Value};

use super::{EXTENT, Generator, Local, MATRIX, PAIR, held};

impl Generator {
    pub(super) fn block(&mut self, b: &mut Builder<'_>, statements: usize) {
        for _ in 0..statements {
            self.statement(b);
        }
    }

    pub(super) fn statement(&mut self, b: &mut Builder<'_>) {
        self.depth += 1;
        let choice = if self.depth > 3 { self.random.below(8) } else { self.random.below(15) };
        match choice {
            12 => self.print(b),
            13 | 14 if !self.functions.is_empty() => {
                let function = self.random.pick(&self.functions);
                self.call(b, function, None);
            }
            0 | 1 => {
                let data = self.random.pick(&held());
                let value = self.data(b, data);
                let place = b.local(data);
                if !self.random.chance(3) {
                    b.store(place, &[], value);
                }
                self.locals.push(Local { place, data, outside: false });
            }
            2 | 3 => self.assign(b),
            4 | 5 if self.arrays.is_empty() => {}
            4 | 5 => {
                let array = self.random.pick(&self.arrays);
                let path = self.path(b, array);
                let (data, _) = b.kernel.ty(array).place().expect("a place");
                let value = self.data(b, data);
                b.store(array, &path, value);
            }
            6 | 7 => self.update(b),
            8 | 9 => self.if_else(b),
            10 => self.for_loop(b),
            _ => self.while_loop(b),
        }
        self.depth -= 1;
    }

    pub(super) fn assign(&mut self, b: &mut Builder<'_>) {
        if self.locals.is_empty() {
            return;
        }
        let at = self.random.below(self.locals.len());
        let (place, data) = (self.locals[at].place, self.locals[at].data);
        match data.tensor_shape() {
            Some(shape) if self.random.chance(2) => {
                let components = self.components(b, shape);
                let value = self.scalar(b, data.elem().expect("a tensor"));
                b.store(place, &components, value);
            }
            _ => {
                let value = self.data(b, data);
                b.store(place, &[], value);
            }
        }
    }

    /// An atomic update of an array element or a local; of integers where all iterations may meet.
    pub(super) fn update(&mut self, b: &mut Builder<'_>) {
        let op = self.random.pick(&[
            AtomicOp::Add,
            AtomicOp::Add,
            AtomicOp::Sub,
            AtomicOp::Min,
            AtomicOp::Max,
            AtomicOp::Or,
            AtomicOp::Mul,
            AtomicOp::Xor,
            AtomicOp::And,
            AtomicOp::Exchange,
        ]);
        let integers: Vec<_> = self.locals.iter().filter(|l| l.data == Scalar::I32.into()).collect();
        let base = if !integers.is_empty() && self.random.chance(2) {
            integers[self.random.below(integers.len())].place
        } else {
            let of_integers = |data: Data| {
                data.elem() == Some(Scalar::I32) && matches!(data, Data::Scalar(_) | Data::Tensor(_))
            };
            let fits = |&array: &Value| b.kernel.ty(array).place().is_some_and(|(data, _)| of_integers(data));
            let arrays: Vec<_> = self.arrays.iter().copied().filter(fits).collect();
            if arrays.is_empty() {
                return;
            }
            self.random.pick(&arrays)
        };
        let path = self.path(b, base);
        let (data, _) = b.kernel.ty(base).place().expect("a place");
        if data == Scalar::I32.into() && self.random.chance(6) {
            let (expected, desired) = (self.scalar(b, Scalar::I32), self.scalar(b, Scalar::I32));
            let old = b.atomic_cas(base, &path, expected, desired);
            self.scope.push(old);
            return;
        }
        let value = self.data(b, data);
        let old = b.atomic(op, base, &path, value);
        if self.random.chance(4) {
            self.scope.push(old);
        }
    }

    pub(super) fn print(&mut self, b: &mut Builder<'_>) {
        let mut spec = PrintSpec::default();
        let mut values = Vec::new();
        for _ in 0..self.random.below(3) {
            spec.push_text("a {");
            let data =
                self.random.pick(&[Scalar::I32.into(), Scalar::F32.into(), Scalar::F16.into(), PAIR, MATRIX]);
            values.push(self.data(b, data));
            spec.push_value(Format { width: self.random.chance(2).then_some(7), ..Format::default() });
        }
        spec.push_text("\n");
        b.print(spec, &values);
    }

    /// A region whose values and locals are forgotten after it.
    pub(super) fn region(
        &mut self,
        b: &mut Builder<'_>,
        params: &[Type],
        build: impl FnOnce(&mut Self, &mut Builder<'_>, &[Value]) -> Vec<Value>,
    ) -> Region {
        let (values, locals) = (self.scope.len(), self.locals.len());
        let region = b.region_of(params, |b, p| build(self, b, p));
        self.scope.truncate(values);
        self.locals.truncate(locals);
        region
    }

    pub(super) fn if_else(&mut self, b: &mut Builder<'_>) {
        let cond = self.scalar(b, Scalar::U1);
        let types: Vec<Data> = (0..self.random.below(3))
            .map(|_| self.random.pick(&[Scalar::I32.into(), Scalar::F32.into(), PAIR]))
            .collect();
        let side = |g: &mut Self, b: &mut Builder<'_>| {
            g.region(b, &[], |g, b, _| {
                let statements = g.random.below(3);
                g.block(b, statements);
                types.iter().map(|&data| g.data(b, data)).collect()
            })
        };
        let regions = [side(self, b), side(self, b)];
        let op = b.op(OpKind::If, [cond], types.iter().map(|&data| data.into()), regions);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    pub(super) fn for_loop(&mut self, b: &mut Builder<'_>) {
        let lo = b.i32(self.random.below(3) as i32);
        let hi = if self.random.chance(2) {
            b.i32(self.random.below(4) as i32)
        } else {
            let (any, mask) = (self.scalar(b, Scalar::I32), b.i32(3));
            b.bit(BitOp::And, any, mask)
        };
        let (types, first) = self.carried(b);
        let params: Vec<_> = [Type::I32].into_iter().chain(types.iter().copied()).collect();
        let body = self.region(b, &params, |g, b, p| {
            g.scope.extend(p);
            let statements = 1 + g.random.below(3);
            g.block(b, statements);
            g.next(b, &p[1..])
        });
        let operands: Vec<_> = [lo, hi].into_iter().chain(first).collect();
        let op = b.op(OpKind::For, operands, types, [body]);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    pub(super) fn carried(&mut self, b: &mut Builder<'_>) -> (Vec<Type>, Vec<Value>) {
        let count = self.random.below(3);
        let types: Vec<Data> =
            (0..count).map(|_| self.random.pick(&[Scalar::I32.into(), Scalar::F32.into(), PAIR])).collect();
        let first = types.iter().map(|&data| self.data(b, data)).collect();
        (types.into_iter().map(Type::from).collect(), first)
    }

    /// What a loop carries on: often what it had.
    pub(super) fn next(&mut self, b: &mut Builder<'_>, params: &[Value]) -> Vec<Value> {
        params
            .iter()
            .map(|&param| {
                let data = b.kernel.ty(param).data().expect("carried values are data");
                if self.random.chance(3) { param } else { self.data(b, data) }
            })
            .collect()
    }

    /// Counts to a small number, or stops before.
    pub(super) fn while_loop(&mut self, b: &mut Builder<'_>) {
        let (types, first) = self.carried(b);
        let zero = b.i32(0);
        let params: Vec<_> = [Type::I32].into_iter().chain(types).collect();
        let cond = self.region(b, &params, |g, b, p| {
            g.scope.extend(&p[1..]);
            let limit = b.i32(g.random.below(4) as i32);
            let below = b.compare(CompareOp::Lt, p[0], limit);
            let also = g.scalar(b, Scalar::U1);
            let goes_on = b.bit(BitOp::And, below, also);
            let next = g.next(b, &p[1..]);
            [goes_on, p[0]].into_iter().chain(next).collect()
        });
        let body = self.region(b, &params, |g, b, p| {
            g.scope.extend(p);
            let statements = 1 + g.random.below(2);
            g.block(b, statements);
            let one = b.i32(1);
            let count = b.arith(ArithOp::Add, p[0], one);
            let next = g.next(b, &p[1..]);
            [count].into_iter().chain(next).collect()
        });
        let operands: Vec<_> = [zero].into_iter().chain(first).collect();
        let op = b.op(OpKind::While, operands, params, [cond, body]);
        self.scope.extend(&b.kernel.ops[op].results);
    }

    pub(super) fn parallel_for(&mut self, b: &mut Builder<'_>) {
        let axes = 1 + self.random.below(2);
        let bounds: Vec<_> = (0..axes).flat_map(|_| self.bounds(b)).collect();
        let params = vec![Type::I32; axes];
        let outside: Vec<_> = self.locals.iter().map(|l| l.outside).collect();
        self.locals.iter_mut().for_each(|l| l.outside = true);
        let body = self.region(b, &params, |g, b, p| {
            g.axes = p.to_vec();
            g.scope.extend(p);
            let statements = 1 + g.random.below(4);
            g.block(b, statements);
            Vec::new()
        });
        self.axes.clear();
        self.locals.iter_mut().zip(outside).for_each(|(l, outside)| l.outside = outside);
        let attributes = ParallelFor {
            axes: axes as u8,
            max_threads: self.random.chance(8).then_some(1),
            ..ParallelFor::default()
        };
        b.op(OpKind::ParallelFor(Box::new(attributes)), bounds, [], [body]);
    }

    /// Inside every array, constant or not, for the host to compute or not.
    pub(super) fn bounds(&mut self, b: &mut Builder<'_>) -> [Value; 2] {
        let lo = b.i32(self.random.below(2) as i32);
        let hi = match self.random.below(4) {
            0 if matches!(b.kernel.ty(self.arrays[0]), Type::Array(array) if array.layout.is_none()) => {
                b.extent(self.arrays[0], 0)
            }
            0 => b.i32(EXTENT),
            1 => b.i32(self.random.below(EXTENT as usize) as i32),
            2 => {
                let (any, mask) = (self.scalar(b, Scalar::I32), b.i32(EXTENT - 1));
                b.bit(BitOp::And, any, mask)
            }
            _ => {
                let (n, eight) = (self.known(b, Type::I32).expect("n"), b.i32(EXTENT));
                b.arith(ArithOp::Mod, n, eight)
            }
        };
        [lo, hi]
    }
}
