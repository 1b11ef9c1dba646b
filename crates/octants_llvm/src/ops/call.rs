//! Functions of the kernel, and calls of them.
//!
//! A function is internal to the module of each task that needs it, and LLVM may inline it. It takes the frame, the end of the stack
//! if it or something that it calls is recursive, and its parameters: scalars by value, arrays as their address and extents,
//! variables by address. It returns whether the task gives up, where that can be, and its results.

use std::fmt::Write;

use octants_ir::{Func, Kernel, Op, OpKind, Scalar, Type};

use crate::emitter::Emitter;
use crate::ops::call_facts::Facts;
use crate::value::ParamRegisters;
use crate::value::{Ptr, Ty, Typed, Val};

/// The function's name in its module.
fn symbol(kernel: &Kernel, function: Func) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = kernel.functions[function].name.chars().map(plain).collect();
    format!("{function}.{name}")
}

/// The types of what it returns: whether to stop, if that can be, then the results.
fn returned(kernel: &Kernel, function: Func, facts: Facts) -> Vec<String> {
    let stop = facts.may_stop.then(|| "i1".to_owned());
    let results = kernel.functions[function].results.iter().map(|data| {
        let scalar = data.scalar().unwrap_or_else(|| panic!("{function} returns {data}, which is no scalar"));
        Ty::new(scalar, 1).to_string()
    });
    stop.into_iter().chain(results).collect()
}

/// As one type: nothing, the only one, or all in a struct.
fn return_type(types: &[String]) -> String {
    match types {
        [] => "void".to_owned(),
        [one] => one.clone(),
        _ => format!("{{ {} }}", types.join(", ")),
    }
}

impl Emitter<'_> {
    /// Emits a call, and sees to it that the function is there.
    pub(crate) fn call(&mut self, op: Op, function: Func) {
        if !self.called.contains(&function) {
            self.called.push(function);
        }
        let facts = self.facts.functions[function];
        if facts.recursive && self.body != self.kernel.body {
            self.check_stack(op);
        }
        let mut arguments = vec!["ptr %frame".to_owned()];
        if facts.needs_limit {
            arguments.push(format!("i64 {}", self.stack_limit()));
        }
        for &operand in &self.kernel.ops[op].operands {
            match self.kernel.ty(operand) {
                Type::Data(_) => {
                    let value = self.get(operand);
                    arguments.push(Typed(value).to_string());
                }
                Type::Array(_) if self.locals[operand].is_some() => {
                    let of_block = self.locals[operand].unwrap_or_else(|| unreachable!("it was just seen"));
                    arguments.push(format!("ptr {of_block}"));
                }
                Type::Array(array) => {
                    let param = self.array_param(operand);
                    let base = self.array_base(param);
                    arguments.push(format!("ptr {base}"));
                    let extents = if array.layout.is_some() { 0 } else { array.rank };
                    for axis in 0..extents {
                        let extent = self.extent(param, axis).0;
                        arguments.push(Typed(extent).to_string());
                    }
                    let strides = if array.has_strides() { array.rank } else { 0 };
                    for axis in 0..strides {
                        let stride = self.axis_stride(param, axis);
                        arguments.push(Typed(stride).to_string());
                    }
                }
                Type::Local(_) => {
                    let place = self.locals[operand].unwrap_or_else(|| panic!("{operand} has no alloca"));
                    arguments.push(format!("ptr {place}"));
                }
                Type::Temp(_) => panic!("{op} passes a temporary"),
                Type::Tape(_) => panic!("{op} passes a tape"),
            }
        }
        let types = returned(self.kernel, function, facts);
        let (ty, symbol) = (return_type(&types), symbol(self.kernel, function));
        let arguments = arguments.join(", ");
        let untouched = self.untouched_by(op);
        if types.is_empty() {
            self.f.line(format_args!("call void @{symbol}({arguments}){untouched}"));
            return;
        }
        let all = self.f.define(format_args!("call {ty} @{symbol}({arguments}){untouched}"));
        let results = &self.kernel.ops[op].results;
        let skipped = usize::from(facts.may_stop);
        for (index, &result) in results.iter().enumerate() {
            let part = Ty::new(self.scalar(result), 1);
            let value = if types.len() == 1 {
                Val::reg(all, part)
            } else {
                self.f.value(part, format_args!("extractvalue {ty} %v{all}, {}", index + skipped))
            };
            self.set(result, value);
        }
        if facts.may_stop {
            let stopped = match types.len() {
                1 => all,
                _ => self.f.define(format_args!("extractvalue {ty} %v{all}, 0")),
            };
            let go_on = self.f.define(format_args!("xor i1 %v{stopped}, true"));
            let (next, stop) = (self.f.new_label(), self.stop_block());
            let unlikely = self.module.cold_node();
            self.f.terminate(format_args!("br i1 %v{go_on}, label %{next}, label %{stop}, !prof {unlikely}"));
            self.f.begin(next);
        }
    }

    /// What is written behind a call of a function that may be left out if it was called before: no array changes by it but those that it takes. Others
    /// may wait for another iteration.
    fn untouched_by(&mut self, op: Op) -> String {
        let data = &self.kernel.ops[op];
        let is_stable =
            matches!(data.kind, OpKind::Call(function) if self.kernel.functions[function].is_stable);
        if !is_stable || !self.options.noalias || self.body != self.kernel.body {
            return String::new();
        }
        let arrays = data.operands.iter().filter_map(|&operand| self.kernel.as_param(operand)).collect();
        self.scopes.call_suffix(&mut self.module, arrays)
    }

    /// The processor's own counter of time.
    pub(crate) fn clock(&mut self) -> Val {
        let declare = || "declare i64 @llvm.readcyclecounter()".to_owned();
        self.module.declare("llvm.readcyclecounter", declare);
        self.f.value(Ty::new(Scalar::I64, 1), format_args!("call i64 @llvm.readcyclecounter()"))
    }

    /// The lowest address that a frame of a recursive function may have.
    fn stack_limit(&mut self) -> String {
        if let Some(limit) = &self.limit {
            return limit.clone();
        }
        let limit = self.lowering.stack_limit(self).to_string();
        self.limit = Some(limit.clone());
        limit
    }

    /// Gives up where the stack is used up, or the launch should stop.
    fn check_stack(&mut self, op: Op) {
        self.poll_cancel();
        let (here, limit) = (self.lowering.frame_address(self), self.stack_limit());
        let (fits, fails) = (self.f.new_label(), self.f.new_label());
        let above = self.f.define(format_args!("icmp ugt i64 {here}, {limit}"));
        let unlikely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 %v{above}, label %{fits}, label %{fails}, !prof {unlikely}"));
        self.f.begin(fails);
        self.fail(op, &[]);
        self.f.begin(fits);
    }

    /// Writes the functions that were called, and those that they call, into the module.
    pub(crate) fn finish_functions(&mut self) {
        let mut next = 0;
        while let Some(&function) = self.called.get(next) {
            next += 1;
            let text = self.function(function);
            self.module.add_function(text);
        }
    }

    fn function(&mut self, function: Func) -> String {
        let data = &self.kernel.functions[function];
        let facts = self.facts.functions[function];
        let mut e = Emitter::new(self.kernel, self.facts, self.plan, self.options, self.lowering);
        e.module = std::mem::take(&mut self.module);
        e.called = std::mem::take(&mut self.called);
        e.body = data.body;
        e.is_whole = data.is_whole;
        let mut head = self.lowering.context_param().to_owned();
        if facts.needs_limit {
            head.push_str(", i64 noundef %limit");
            e.limit = Some("%limit".to_owned());
        }
        let params = &self.kernel.regions[data.body].params;
        e.params = vec![ParamRegisters::default(); params.len()];
        for (index, &param) in params.iter().enumerate() {
            e.function_param(index, param, &mut head);
        }
        let types = returned(self.kernel, function, facts);
        let ty = return_type(&types);
        let results = e.region(data.body);
        e.return_values(&ty, facts, &results);
        let Emitter { f, module, called, .. } = e;
        (self.module, self.called) = (module, called);
        let rarely = if data.is_cold { self.lowering.cold_attributes() } else { "" };
        let symbol = symbol(self.kernel, function);
        format!("define internal {ty} @{symbol}({head}) #0{rarely} {{\n{}}}\n", f.finish())
    }

    fn function_param(&mut self, index: usize, param: octants_ir::Value, head: &mut String) {
        match self.kernel.ty(param) {
            Type::Data(_) => {
                let ty = Ty::new(self.scalar(param), 1);
                let value = Val::reg(self.f.new_register(), ty);
                write!(head, ", {}", Typed(value)).expect("writing to a string");
                self.set(param, value);
            }
            Type::Array(array) => {
                let base = Ptr { reg: self.f.new_register() };
                write!(head, ", ptr noundef {base}").expect("writing to a string");
                let extents = if array.layout.is_some() { 0 } else { array.rank };
                let strides = if array.has_strides() { array.rank } else { 0 };
                let mut registers = |count: u8, scalar| -> Vec<Val> {
                    let register = |_| {
                        let value = Val::reg(self.f.new_register(), Ty::new(scalar, 1));
                        write!(head, ", {}", Typed(value)).expect("writing to a string");
                        value
                    };
                    (0..count).map(register).collect()
                };
                let extents = registers(extents, octants_ir::Scalar::I32);
                let strides = registers(strides, octants_ir::Scalar::I64);
                self.params[index] = self.known_array(base, &extents, &strides);
            }
            Type::Local(_) => {
                let place = Ptr { reg: self.f.new_register() };
                write!(head, ", ptr noundef {place}").expect("writing to a string");
                self.locals.set(param, Some(place));
            }
            Type::Temp(_) => panic!("{param} is a temporary, and a parameter"),
            Type::Tape(_) => panic!("{param} is a tape, and a parameter"),
        }
    }

    /// Ends a function: with its results, or where it gives up.
    fn return_values(&mut self, ty: &str, facts: Facts, results: &[Val]) {
        let goes_on = facts.may_stop.then(|| Val::constant(octants_ir::Const::bool(false)));
        let all: Vec<_> = goes_on.into_iter().chain(results.iter().copied()).collect();
        match all[..] {
            [] => self.f.terminate(format_args!("ret void")),
            [one] => self.f.terminate(format_args!("ret {}", Typed(one))),
            _ => {
                let mut whole = "poison".to_owned();
                for (index, &part) in all.iter().enumerate() {
                    let next =
                        self.f.define(format_args!("insertvalue {ty} {whole}, {}, {index}", Typed(part)));
                    whole = format!("%v{next}");
                }
                self.f.terminate(format_args!("ret {ty} {whole}"));
            }
        }
        let Some(stop) = self.stop else { return };
        self.f.begin(stop);
        if all.len() == 1 {
            self.f.terminate(format_args!("ret i1 true"));
        } else {
            let whole = self.f.define(format_args!("insertvalue {ty} zeroinitializer, i1 true, 0"));
            self.f.terminate(format_args!("ret {ty} %v{whole}"));
        }
    }
}
