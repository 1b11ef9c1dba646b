//! Splits small tensors and structs into scalars: values, carried values, results, and locals whose components are fixed.
//!
//! Before:
//! ```text
//! %v: tensor<f32, 2> = load %a[%i]
//! %w: tensor<f32, 2> = mul %v, %v
//! store %a[%i], %w
//! ```
//! After:
//! ```text
//! %0: i32 = const 0
//! %1: f32 = load %a[%i, %0]
//! %2: i32 = const 1
//! %3: f32 = load %a[%i, %2]
//! %4: f32 = mul %1, %1
//! %5: f32 = mul %3, %3
//! %6: i32 = const 0
//! store %a[%i, %6], %4
//! %7: i32 = const 1
//! store %a[%i, %7], %5
//! ```
//!
//! Expects and leaves the structured phase. Aggregates remain only where memory has them: entries of a parameter are taken by `tensor_get`
//! and `struct_get`; a result is put together right before `return`; a struct in memory is loaded and stored whole. A local tensor
//! with a component that is not fixed stays, addressed by components. A component that is not fixed of a value chooses among
//! its entries, or goes through such a local when there are many. Functions take and return scalars.

mod access;
mod components;
mod leaves;
mod locals;
mod moves;

use octants_ir::format::with_tensors;
use octants_ir::ops::TensorOp;
use octants_ir::rewrite::ValueMap;
use octants_ir::{Builder, Data, Kernel, Op, OpKind, Region, Scalar, SideTable, TensorShape, Type, Value};

use crate::edit::slots::{set_params, set_results};
use locals::LocalUses;

pub fn scalarise(kernel: &mut Kernel) {
    if !has_aggregates(kernel) {
        return;
    }
    let uses = LocalUses::find(kernel);
    moves::move_by_loops(kernel, &uses);
    let mut pass = Scalarise {
        kernel,
        uses,
        names: ValueMap::new(),
        leaves: SideTable::new(None),
        locals: SideTable::new(None),
    };
    pass.signatures();
    for function in pass.kernel.functions.ids() {
        let body = pass.kernel.functions[function].body;
        for op in std::mem::take(&mut pass.kernel.regions[body].ops) {
            pass.visit(body, op);
        }
    }
    pass.body();
}

fn has_aggregates(kernel: &Kernel) -> bool {
    kernel.values.iter().any(|(_, value)| match value.ty {
        Type::Data(data) | Type::Local(data) | Type::Temp(data) => data.scalar().is_none(),
        Type::Array(array) => array.elem.scalar().is_none(),
        Type::Tape(_) => false,
    })
}

struct Scalarise<'k> {
    kernel: &'k mut Kernel,
    uses: LocalUses,
    /// What stands for scalars that are gone.
    names: ValueMap,
    /// The scalars that an aggregate is made of, in the order of memory.
    leaves: SideTable<Value, Option<Vec<Value>>>,
    /// The locals that a local aggregate became, in the same order.
    locals: SideTable<Value, Option<Vec<Value>>>,
}

impl Scalarise<'_> {
    fn builder(&mut self, region: Region, op: Op) -> Builder<'_> {
        let loc = self.kernel.ops[op].loc;
        Builder::at(self.kernel, region, loc)
    }

    /// The kernel's parameters keep their types; their entries are taken first of all.
    fn body(&mut self) {
        let body = self.kernel.body;
        let ops = std::mem::take(&mut self.kernel.regions[body].ops);
        for param in self.kernel.regions[body].params.clone() {
            if let Some(data) = self.aggregate(param) {
                let mut builder = Builder::new(self.kernel);
                let entries = leaves::split_into_leaves(&mut builder, param, data);
                self.leaves.set(param, Some(entries));
            }
        }
        for op in ops {
            self.visit(body, op);
        }
    }

    /// Functions take and return scalars. A variable that holds a struct is passed as its parts; one that holds a tensor stays whole, as
    /// the variables do that are passed for it.
    fn signatures(&mut self) {
        for function in self.kernel.functions.ids() {
            let data = &self.kernel.functions[function];
            let results = data.results.iter().flat_map(|&result| leaves::leaf_types(self.kernel, result));
            let results = results.map(Data::from).collect();
            let body = data.body;
            let names = std::mem::take(&mut self.kernel.functions[function].params);
            let mut params = Vec::new();
            let mut split_names = Vec::new();
            for (param, name) in self.kernel.regions[body].params.clone().into_iter().zip(names) {
                let before = params.len();
                match self.kernel.ty(param) {
                    Type::Local(held @ Data::Struct(_)) => {
                        let parts = self.fresh_like(param, held, |ty| Type::Local(ty.into()));
                        params.extend(&parts);
                        self.locals.set(param, Some(parts));
                    }
                    _ => params.extend(self.split_values(&[param])),
                }
                split_names.resize(split_names.len() + params.len() - before, name);
            }
            set_params(self.kernel, body, params);
            self.kernel.functions[function].params = split_names;
            self.kernel.functions[function].results = results;
        }
    }

    fn region(&mut self, region: Region) {
        self.split_params(region);
        for op in std::mem::take(&mut self.kernel.regions[region].ops) {
            self.visit(region, op);
        }
    }

    /// The type of a value that is to be split.
    fn aggregate(&self, value: Value) -> Option<Data> {
        self.kernel.ty(value).data().filter(|data| data.scalar().is_none())
    }

    /// The scalars of a value: itself where it is one.
    fn leaves_of(&self, value: Value) -> Vec<Value> {
        self.leaves[value].clone().unwrap_or_else(|| vec![value])
    }

    /// The variables that a variable was split into: itself where it was not.
    fn parts_of(&self, value: Value) -> Vec<Value> {
        self.locals[value].clone().unwrap_or_else(|| self.leaves_of(value))
    }

    fn expand(&self, values: &[Value]) -> Vec<Value> {
        values.iter().flat_map(|&value| self.parts_of(value)).collect()
    }

    /// The value is made of these scalars from now on.
    fn define(&mut self, value: Value, leaves: Vec<Value>) {
        if self.aggregate(value).is_some() {
            self.leaves.set(value, Some(leaves));
        } else {
            self.names.insert(value, leaves[0]);
        }
    }

    fn split_params(&mut self, region: Region) {
        let params = self.kernel.regions[region].params.clone();
        if params.iter().any(|&param| self.aggregate(param).is_some()) {
            let split = self.split_values(&params);
            set_params(self.kernel, region, split);
        }
    }

    fn split_results(&mut self, op: Op) {
        let results = self.kernel.ops[op].results.clone();
        if results.iter().any(|&result| self.aggregate(result).is_some()) {
            let split = self.split_values(&results);
            set_results(self.kernel, op, split);
        }
    }

    /// Fresh values for the scalars of each aggregate; scalars stay as they are.
    fn split_values(&mut self, values: &[Value]) -> Vec<Value> {
        let mut split = Vec::new();
        for &value in values {
            let Some(data) = self.aggregate(value) else {
                split.push(value);
                continue;
            };
            let fresh = self.fresh_like(value, data, Type::from);
            split.extend(&fresh);
            self.leaves.set(value, Some(fresh));
        }
        split
    }

    /// A value for each scalar of the data, defined where the value is.
    fn fresh_like(&mut self, value: Value, data: Data, ty: impl Fn(Scalar) -> Type) -> Vec<Value> {
        let def = self.kernel.values[value].def;
        let types = leaves::leaf_types(self.kernel, data);
        types
            .into_iter()
            .map(|scalar| self.kernel.values.push(octants_ir::ValueData { ty: ty(scalar), def }))
            .collect()
    }

    fn visit(&mut self, region: Region, op: Op) {
        for operand in &mut self.kernel.ops[op].operands {
            *operand = self.names.resolve(*operand);
        }
        let data = &self.kernel.ops[op];
        match data.kind {
            OpKind::Arith(_)
            | OpKind::Bit(_)
            | OpKind::BitUnary(_)
            | OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Math(_)
            | OpKind::MathUnary(_)
            | OpKind::Convert(_)
                if self.aggregate(data.results[0]).is_some() =>
            {
                self.entrywise(region, op);
            }
            OpKind::Tensor(kind) => self.tensor(region, op, kind),
            OpKind::StructNew | OpKind::StructGet(_) | OpKind::StructSet(_) => self.structure(op),
            OpKind::Local => self.local(region, op),
            OpKind::Load | OpKind::VolatileLoad | OpKind::Store | OpKind::Atomic(_) | OpKind::AtomicCas => {
                self.access(region, op);
            }
            OpKind::Address => self.address_of(region, op),
            OpKind::StoreResult(_) => self.give(region, op),
            OpKind::Return if region == self.kernel.body => self.give(region, op),
            OpKind::Print(_) => self.print(region, op),
            _ => self.keep(region, op),
        }
    }

    /// The op stays, on scalars.
    fn keep(&mut self, region: Region, op: Op) {
        let operands = self.expand(&self.kernel.ops[op].operands);
        self.kernel.ops[op].operands = operands.into();
        for inner in self.kernel.ops[op].regions.clone() {
            self.region(inner);
        }
        self.split_results(op);
        self.kernel.regions[region].ops.push(op);
    }

    /// Tensors are written entry by entry, in brackets.
    fn print(&mut self, region: Region, op: Op) {
        let types: Vec<_> = self.kernel.ops[op]
            .operands
            .iter()
            .filter_map(|&operand| self.kernel.ty(operand).data())
            .collect();
        if let OpKind::Print(spec) = &mut self.kernel.ops[op].kind {
            **spec = with_tensors(spec, &types);
        }
        self.keep(region, op);
    }

    fn entrywise(&mut self, region: Region, op: Op) {
        let data = self.kernel.ops[op].clone();
        let result = data.results[0];
        let types = leaves::leaf_types(self.kernel, self.aggregate(result).expect("an aggregate"));
        let operands: Vec<_> = data.operands.iter().map(|&operand| self.leaves_of(operand)).collect();
        let mut entries = Vec::with_capacity(types.len());
        for (index, ty) in types.into_iter().enumerate() {
            // A scalar beside tensors, such as the condition of a select, serves every entry.
            let scalars: Vec<_> =
                operands.iter().map(|o| if o.len() == 1 { o[0] } else { o[index] }).collect();
            let entry = self.kernel.make_op(data.kind.clone(), scalars, [ty.into()], [], data.loc);
            self.kernel.regions[region].ops.push(entry);
            entries.push(self.kernel.ops[entry].results[0]);
        }
        self.define(result, entries);
    }

    fn tensor(&mut self, region: Region, op: Op, kind: TensorOp) {
        let operands = self.kernel.ops[op].operands.clone();
        let result = self.kernel.ops[op].results[0];
        let entries = match kind {
            TensorOp::New => operands.to_vec(),
            TensorOp::Splat => {
                let count =
                    self.kernel.ty(result).data().and_then(Data::tensor_shape).map_or(1, TensorShape::count);
                vec![operands[0]; count as usize]
            }
            TensorOp::Get => vec![self.get_entry(region, op, operands[0], &operands[1..])],
            TensorOp::Set => {
                let last = operands.len() - 1;
                self.set_entry(region, op, operands[0], &operands[1..last], operands[last])
            }
        };
        self.define(result, entries);
    }

    fn structure(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let entries = match data.kind {
            OpKind::StructNew => self.expand(&data.operands),
            OpKind::StructGet(member) => {
                let range = self.member_range(data.operands[0], member);
                self.leaves_of(data.operands[0])[range].to_vec()
            }
            OpKind::StructSet(member) => {
                let range = self.member_range(data.operands[0], member);
                let mut entries = self.leaves_of(data.operands[0]);
                entries.splice(range, self.leaves_of(data.operands[1]));
                entries
            }
            ref other => unreachable!("{} makes no struct", other.name()),
        };
        self.define(data.results[0], entries);
    }

    /// Which of the struct's scalars belong to a member.
    fn member_range(&self, value: Value, member: u32) -> std::ops::Range<usize> {
        let Some(Data::Struct(id)) = self.aggregate(value) else { unreachable!("{value} is no struct") };
        let members = &self.kernel.structs[id].members;
        let count = |&(_, data): &(String, Data)| leaves::leaf_types(self.kernel, data).len();
        let begin = members[..member as usize].iter().map(count).sum();
        begin..begin + count(&members[member as usize])
    }

    /// Results of the kernel are put together again.
    fn give(&mut self, region: Region, op: Op) {
        let operands = self.kernel.ops[op].operands.clone();
        let whole: Vec<_> = operands
            .iter()
            .map(|&operand| match self.aggregate(operand) {
                None => operand,
                Some(data) => {
                    let entries = self.leaves_of(operand);
                    leaves::join_leaves(&mut self.builder(region, op), data, &mut entries.into_iter())
                }
            })
            .collect();
        self.kernel.ops[op].operands = whole.into();
        self.kernel.regions[region].ops.push(op);
    }
}
