//! Functions, and calls of them.

use octants_ir::ops::{ArithOp, BitOp, CompareOp, OpKind};
use octants_ir::{Builder, Data, Func, Kernel, Scalar, Type, Value};

use super::{Generator, Local, PAIR, held, outer};
use crate::random::Random;

impl Generator {
    /// A function that takes some of everything, may call those made before it, and itself a few times.
    pub(super) fn function(&mut self, kernel: &mut Kernel, number: usize) {
        let results: Vec<Data> = (0..self.random.below(3))
            .map(|_| self.random.pick(&[Scalar::I32.into(), PAIR, outer()]))
            .collect();
        let function = kernel.add_function(format!("f{number}"), results.iter().copied());
        let fuel = kernel.add_function_param(function, "fuel", Type::I32);
        let mut outside = Vec::new();
        for index in 0..self.random.below(5) {
            let ty = match self.random.below(4) {
                0 => Type::Local(self.random.pick(&held())),
                1 => kernel.ty(self.random.pick(&self.arrays)),
                _ => Type::Data(self.random.pick(&held())),
            };
            outside.push(kernel.add_function_param(function, format!("p{index}"), ty));
        }
        let body = kernel.functions[function].body;
        let loc = Builder::new(kernel).loc;
        let mut b = Builder::at(kernel, body, loc);
        let of = |b: &Builder<'_>, fits: fn(Type) -> bool| -> Vec<Value> {
            outside.iter().copied().filter(|&v| fits(b.kernel.ty(v))).collect()
        };
        let mut scope = of(&b, |ty| matches!(ty, Type::Data(_)));
        scope.push(fuel);
        let locals = of(&b, |ty| matches!(ty, Type::Local(_)));
        let locals = locals.into_iter().map(|place| {
            let (data, _) = b.kernel.ty(place).place().expect("a place");
            Local { place, data, outside: false }
        });
        let inner = Generator {
            random: Random::new(self.random.bits()),
            scope,
            locals: locals.collect(),
            arrays: of(&b, |ty| matches!(ty, Type::Array(_))),
            axes: Vec::new(),
            functions: self.functions.clone(),
            depth: 1,
        };
        inner.body(&mut b, function, fuel, &results);
        self.functions.push(function);
    }

    pub(super) fn body(mut self, b: &mut Builder<'_>, function: Func, fuel: Value, results: &[Data]) {
        let statements = self.random.below(4);
        self.block(b, statements);
        if self.random.chance(3) {
            let (mask, one, zero) = (b.i32(3), b.i32(1), b.i32(0));
            let left = b.bit(BitOp::And, fuel, mask);
            let goes_on = b.compare(CompareOp::Gt, left, zero);
            let again = self.region(b, &[], |g, b, _| {
                let less = b.arith(ArithOp::Sub, left, one);
                g.call(b, function, Some(less));
                Vec::new()
            });
            let done = self.region(b, &[], |_, _, _| Vec::new());
            b.op(OpKind::If, [goes_on], [], [again, done]);
        }
        let returned: Vec<_> = results.iter().map(|&data| self.data(b, data)).collect();
        b.returns(&returned);
    }

    /// Calls with arguments of the right types; variables are made where there are none.
    pub(super) fn call(&mut self, b: &mut Builder<'_>, function: Func, fuel: Option<Value>) {
        let body = b.kernel.functions[function].body;
        let types: Vec<_> = b.kernel.regions[body].params.iter().map(|&param| b.kernel.ty(param)).collect();
        let mut arguments = vec![match fuel {
            Some(fuel) => fuel,
            None => self.scalar(b, Scalar::I32),
        }];
        for &ty in &types[1..] {
            let argument = match ty {
                Type::Data(data) => self.data(b, data),
                Type::Array(_) => {
                    let arrays: Vec<_> =
                        self.arrays.iter().copied().filter(|&a| b.kernel.ty(a) == ty).collect();
                    if arrays.is_empty() {
                        return;
                    }
                    self.random.pick(&arrays)
                }
                Type::Tape(_) => unreachable!("no function takes a tape"),
                Type::Local(data) | Type::Temp(data) => {
                    let fitting: Vec<_> =
                        self.locals.iter().filter(|l| l.data == data).map(|l| l.place).collect();
                    if fitting.is_empty() || self.random.chance(4) {
                        let place = b.local(data);
                        self.locals.push(Local { place, data, outside: false });
                        place
                    } else {
                        self.random.pick(&fitting)
                    }
                }
            };
            arguments.push(argument);
        }
        let results = b.call(function, &arguments);
        self.scope.extend(results);
    }
}
