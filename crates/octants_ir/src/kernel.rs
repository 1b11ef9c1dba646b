//! The IR's data: a kernel and what it is made of. Data only; builder, text, verifier and passes stand beside it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use octants_diag::Span;
use smallvec::SmallVec;

use crate::ids::{Arena, Func, Id, LayoutId, Loc, Op, Region, StructId, Value};
use crate::layout::Layout;
use crate::ops::{OpKind, Regions};
use crate::types::{ArrayType, Boundary, Data, StructType, Type};

/// One kernel: structured SSA in arenas.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub phase: Phase,
    pub options: KernelOptions,
    /// In call order. The parameters' values are the parameters of `body`, one each.
    pub params: Vec<Param>,
    /// Types of the values that the kernel returns.
    pub results: Vec<Data>,
    pub structs: Arena<StructId, StructType>,
    /// How the kernel's fields lie; each once.
    pub layouts: Arena<LayoutId, Layout>,
    /// Called by ops of the body and of each other; they may call themselves.
    pub functions: Arena<Func, Function>,
    pub values: Arena<Value, ValueData>,
    pub ops: Arena<Op, OpData>,
    pub regions: Arena<Region, RegionData>,
    pub locs: Arena<Loc, LocData>,
    pub body: Region,
}

/// Which ops a kernel may hold. Task splitting moves it on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// As the front end leaves it: no `temp`, `serial` or `store_result`.
    Structured,
    /// Split into tasks.
    Tasks,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KernelOptions {
    /// Reals may be reassociated and contracted, functions approximated; NaN, infinities and the sign of zero are not kept.
    pub fast_math: bool,
    /// Of what `fast_math` allows, nothing is done to what flows into [choices](crate::choices): somebody makes them again.
    pub exact_choices: bool,
    /// The program's mistakes are to be found: integers that overflow are told of, and so on.
    pub debug: bool,
}

impl KernelOptions {
    /// Whether any op on reals may be replaced by one that gives other bits, wherever its result flows.
    pub fn rewrites_reals(self) -> bool {
        self.fast_math && !self.exact_choices
    }
}

/// A function that ops call. Its parameters are those of its body: data, arrays, or `local` places, which are the caller's own.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// The parameters' names, for people.
    pub params: Vec<Param>,
    pub results: Vec<Data>,
    /// Ends in a `return` of the results. Holds no tasks.
    pub body: Region,
    /// Whether it is called rarely: code for a CPU keeps it out of the way of its callers.
    pub is_cold: bool,
    /// Whether calls with equal arguments give equal results for as long as the kernel runs, and only the first of them does anything.
    pub is_stable: bool,
    /// Whether no request to stop ends a thread inside: what it leaves in memory half done would be waited for by others for ever. Its loops are short,
    /// or end by something that looks at the request itself (`grow_pool`).
    pub is_whole: bool,
}

/// A kernel's parameter; its type is that of the value at the same position in the body's parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: String,
}

/// An SSA value.
#[derive(Clone, Copy, Debug)]
pub struct ValueData {
    pub ty: Type,
    pub def: ValueDef,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    Result(Op, u32),
    Param(Region, u32),
}

/// An operation. Dead ops stay in the arena but stand in no region.
#[derive(Clone, Debug)]
pub struct OpData {
    pub kind: OpKind,
    pub operands: SmallVec<[Value; 4]>,
    pub results: SmallVec<[Value; 1]>,
    pub regions: SmallVec<[Region; 2]>,
    pub loc: Loc,
}

/// A region. The last op is its terminator.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    pub params: SmallVec<[Value; 4]>,
    pub ops: Vec<Op>,
}

/// Where an op comes from.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LocData {
    /// `None` for what the compiler made up.
    pub span: Option<Span>,
    /// The function whose text the span is in.
    pub function: Option<Arc<str>>,
    /// The call that was inlined, for code of an inlined function.
    pub caller: Option<Loc>,
}

impl LocData {
    pub const NOWHERE: Self = Self { span: None, function: None, caller: None };
}

impl Kernel {
    /// An empty kernel: a body without parameters, ops or terminator.
    pub fn new(name: impl Into<String>) -> Self {
        let mut regions = Arena::new();
        let body = regions.push(RegionData::default());
        let mut locs = Arena::new();
        locs.push(LocData::NOWHERE);
        Self {
            name: name.into(),
            phase: Phase::Structured,
            options: KernelOptions::default(),
            params: Vec::new(),
            results: Vec::new(),
            structs: Arena::new(),
            layouts: Arena::new(),
            functions: Arena::new(),
            values: Arena::new(),
            ops: Arena::new(),
            regions,
            locs,
            body,
        }
    }

    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The op that gives the value, if an op does.
    pub fn def(&self, value: Value) -> Option<&OpData> {
        match self.values[value].def {
            ValueDef::Result(op, _) => Some(&self.ops[op]),
            ValueDef::Param(..) => None,
        }
    }

    /// The value as a constant, if it is one.
    pub fn as_const(&self, value: Value) -> Option<crate::Const> {
        match self.def(value)?.kind {
            OpKind::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The kernel's parameter that the value is, if it is one.
    pub fn as_param(&self, value: Value) -> Option<usize> {
        match self.values[value].def {
            ValueDef::Param(region, index) if region == self.body => Some(index as usize),
            _ => None,
        }
    }

    pub fn terminator(&self, region: Region) -> Option<&OpData> {
        self.regions[region].ops.last().map(|&op| &self.ops[op]).filter(|op| op.kind.is_terminator())
    }

    pub fn add_param(&mut self, name: impl Into<String>, ty: Type) -> Value {
        self.params.push(Param { name: name.into() });
        self.add_region_param(self.body, ty)
    }

    /// A new function with an empty body, so that it can be called before it is written.
    pub fn add_function(&mut self, name: impl Into<String>, results: impl IntoIterator<Item = Data>) -> Func {
        let body = self.add_region();
        let results = results.into_iter().collect();
        self.functions.push(Function {
            name: name.into(),
            params: Vec::new(),
            results,
            body,
            is_cold: false,
            is_stable: false,
            is_whole: false,
        })
    }

    pub fn add_function_param(&mut self, function: Func, name: impl Into<String>, ty: Type) -> Value {
        self.functions[function].params.push(Param { name: name.into() });
        self.add_region_param(self.functions[function].body, ty)
    }

    /// The bodies of all functions, then the kernel's own: every op that counts stands in one of them.
    pub fn bodies(&self) -> Vec<Region> {
        self.functions.iter().map(|(_, function)| function.body).chain([self.body]).collect()
    }

    /// The regions that tasks stand in: the kernel's body, and the branches of forks there, in the order of the text.
    pub fn top_regions(&self) -> Vec<Region> {
        let forks = self.regions[self.body].ops.iter().filter(|&&op| self.ops[op].kind == OpKind::Fork);
        let branches = forks.flat_map(|&op| self.ops[op].regions.iter().copied());
        std::iter::once(self.body).chain(branches).collect()
    }

    /// Whether branches of it may run at the same time.
    pub fn has_branches(&self) -> bool {
        self.regions[self.body].ops.iter().any(|&op| self.ops[op].kind == OpKind::Fork)
    }

    /// The ops of all [`Kernel::top_regions`] in the order of the text: a fork comes before the ops of its branches.
    pub fn top_ops(&self) -> Vec<Op> {
        let mut ops = Vec::with_capacity(self.regions[self.body].ops.len());
        for &op in &self.regions[self.body].ops {
            ops.push(op);
            if self.ops[op].kind == OpKind::Fork {
                ops.extend(self.ops[op].regions.iter().flat_map(|&branch| &self.regions[branch].ops));
            }
        }
        ops
    }

    /// The tasks of a kernel in its tasks phase, by number: the `serial` and `parallel_for` ops of its [`Kernel::top_ops`].
    pub fn tasks(&self) -> impl Iterator<Item = Op> {
        self.top_ops().into_iter().filter(|&op| self.ops[op].kind.info().regions == Regions::Task)
    }

    /// The places of the temporaries that tasks share, in order.
    pub fn temps(&self) -> impl Iterator<Item = Value> {
        let top = self.regions[self.body].ops.iter();
        top.filter(|&&op| self.ops[op].kind == OpKind::Temp).map(|&op| self.ops[op].results[0])
    }

    /// Whether some op of the kernel's body asks for a tape in its thread's own memory.
    pub fn has_tapes(&self) -> bool {
        let mut found = false;
        crate::rewrite::walk(self, self.body, &mut |op| {
            found |= self.ops[op].kind == OpKind::Tape && self.ops[op].operands.len() == 1;
        });
        found
    }

    /// Whether the region is the body of the kernel or of a function.
    pub fn is_body(&self, region: Region) -> bool {
        region == self.body || self.functions.iter().any(|(_, function)| function.body == region)
    }

    pub fn add_region(&mut self) -> Region {
        self.regions.push(RegionData::default())
    }

    pub fn add_region_param(&mut self, region: Region, ty: Type) -> Value {
        let index = self.regions[region].params.len() as u32;
        let value = self.values.push(ValueData { ty, def: ValueDef::Param(region, index) });
        self.regions[region].params.push(value);
        value
    }

    /// A new op that stands in no region yet, with a fresh value for each result.
    pub fn make_op(
        &mut self,
        kind: OpKind,
        operands: impl IntoIterator<Item = Value>,
        results: impl IntoIterator<Item = Type>,
        regions: impl IntoIterator<Item = Region>,
        loc: Loc,
    ) -> Op {
        let op = self.ops.push(OpData {
            kind,
            operands: operands.into_iter().collect(),
            results: SmallVec::new(),
            regions: regions.into_iter().collect(),
            loc,
        });
        for (index, ty) in results.into_iter().enumerate() {
            let value = self.values.push(ValueData { ty, def: ValueDef::Result(op, index as u32) });
            self.ops[op].results.push(value);
        }
        op
    }

    /// The layout, added if it is new.
    pub fn intern_layout(&mut self, layout: Layout) -> LayoutId {
        let known = self.layouts.iter().find(|(_, known)| **known == layout).map(|(id, _)| id);
        known.unwrap_or_else(|| self.layouts.push(layout))
    }

    /// The type of a field of such elements, laid out so.
    ///
    /// # Panics
    /// If the layout has more than 255 axes.
    pub fn field_type(&mut self, elem: impl Into<Data>, layout: Layout) -> Type {
        let rank = u8::try_from(layout.rank()).expect("a field has few axes");
        let layout = Some(self.intern_layout(layout));
        Type::Array(ArrayType { layout, ..ArrayType::array(elem, rank, Boundary::Unsafe) })
    }

    /// Of a field's type: where its elements lie.
    pub fn layout(&self, array: ArrayType) -> Option<&Layout> {
        array.layout.map(|layout| &self.layouts[layout])
    }

    /// Whether a place is a field: memory of the device's own.
    pub fn is_field(&self, base: Value) -> bool {
        matches!(self.ty(base), Type::Array(array) if array.layout.is_some())
    }

    /// The location, added if it is new.
    pub fn intern_loc(&mut self, data: LocData) -> Loc {
        // Neighbouring ops share locations, so looking at the newest few is enough to keep the arena small.
        let newest = (self.locs.len().saturating_sub(4)..self.locs.len()).rev().map(Loc::from_index);
        for loc in newest {
            if self.locs[loc] == data {
                return loc;
            }
        }
        self.locs.push(data)
    }
}
