//! Structure: the tree of regions, terminators, definitions and what is visible where, and that types exist.

use super::block::has_blocks;
use super::{Law, Verifier};
use crate::ids::{Id, Op, Region, SideTable, Value};
use crate::kernel::{Phase, ValueDef};
use crate::ops::{Effects, OpKind, Phases, Stands};
use crate::order::Order;
use crate::types::{Boundary, Data, TensorShape, Type};

pub(super) fn check(verifier: &mut Verifier) {
    known_types(verifier);
    fields(verifier);
    kernel_params(verifier);
    let walk = Walk {
        ops: SideTable::new(false),
        regions: SideTable::new(false),
        defined: SideTable::new(false),
        visible: SideTable::new(false),
        in_branch: false,
        in_loop: false,
        in_block: false,
    };
    let bodies = verifier.kernel.bodies();
    let mut checker = Checker { v: verifier, walk };
    for body in bodies {
        checker.region(None, body);
    }
}

/// What was met on the way.
struct Walk {
    ops: SideTable<Op, bool>,
    regions: SideTable<Region, bool>,
    /// Ever defined.
    defined: SideTable<Value, bool>,
    /// Defined above, here.
    visible: SideTable<Value, bool>,
    /// Whether the region being checked is a branch of a fork in the kernel's body.
    in_branch: bool,
    /// Whether it is a parallel loop's.
    in_loop: bool,
    /// Whether it is one whose threads form blocks.
    in_block: bool,
}

struct Checker<'v, 'k> {
    v: &'v mut Verifier<'k>,
    walk: Walk,
}

impl Checker<'_, '_> {
    fn region(&mut self, owner: Option<Op>, region: Region) {
        if std::mem::replace(self.walk.regions.get_mut(region), true) {
            let message = format!("{region} belongs to another op too");
            match owner {
                Some(op) => self.v.breaks(Law::Tree, op, message),
                None => self.v.kernel_breaks(Law::Tree, message),
            }
            return;
        }
        let kernel = self.v.kernel;
        let data = &kernel.regions[region];
        let mut own = Vec::new();
        for (index, &param) in data.params.iter().enumerate() {
            self.define(owner, param, ValueDef::Param(region, index as u32));
            own.push(param);
            if let Some(op) = owner
                && kernel.ty(param).data().is_none()
            {
                self.v.breaks(
                    Law::Params,
                    op,
                    format!("a region's parameter is {}, no data", kernel.ty(param)),
                );
            }
        }
        for (index, &op) in data.ops.iter().enumerate() {
            self.op(region, op, index + 1 == data.ops.len());
            own.extend(&kernel.ops[op].results);
        }
        if data.ops.is_empty() {
            match owner {
                Some(op) => self.v.breaks(Law::Terminator, op, "a region of it is empty"),
                None => self.v.kernel_breaks(Law::Terminator, "a body is empty"),
            }
        }
        for value in own {
            self.walk.visible.set(value, false);
        }
    }

    fn define(&mut self, op: Option<Op>, value: Value, def: ValueDef) {
        let twice = std::mem::replace(self.walk.defined.get_mut(value), true);
        if twice || self.v.kernel.values[value].def != def {
            let message = if twice {
                "defines a value that is defined before"
            } else {
                "a value it defines says otherwise"
            };
            match op {
                Some(op) => self.v.breaks(Law::Definition, op, message),
                None => self.v.kernel_breaks(Law::Definition, message),
            }
        }
        self.walk.visible.set(value, true);
    }

    fn op(&mut self, region: Region, op: Op, last: bool) {
        if std::mem::replace(self.walk.ops.get_mut(op), true) {
            self.v.breaks(Law::Tree, op, "stands in two places");
            return;
        }
        let data = &self.v.kernel.ops[op];
        let in_body = region == self.v.kernel.body;
        let in_branch = self.walk.in_branch;
        let stands = data.kind.info().stands;
        let fits = match stands {
            Stands::EndOfBody => last && self.v.kernel.is_body(region),
            Stands::EndOfRegion => last && !self.v.kernel.is_body(region),
            Stands::Anywhere | Stands::Body | Stands::Top => !last,
        };
        if !fits {
            let message = match (last, data.kind.is_terminator()) {
                (false, _) => "ends a region, but is not its last op",
                (true, true) => "ends a region of the other kind",
                (true, false) => "is the last op of its region, but ends none",
            };
            self.v.breaks(Law::Terminator, op, message);
        }
        for (index, &operand) in data.operands.iter().enumerate() {
            if !self.walk.visible[operand] {
                let message = if self.walk.defined[operand] {
                    "is defined in a region that is over"
                } else {
                    "is not defined before"
                };
                self.v.breaks(Law::Visible, op, format!("operand {index} {message}"));
            }
        }
        let expected = data.kind.info().regions.expected(data.regions.len());
        if data.regions.len() != expected {
            let found = data.regions.len();
            self.v.breaks(Law::Regions, op, format!("has {expected} regions by its kind, but {found}"));
        }
        let only_split = data.kind.info().phases == Phases::Split;
        if only_split && self.v.kernel.phase == Phase::Structured {
            self.v.breaks(Law::Split, op, "stands in a kernel that is not split");
        }
        let may_stand_here = match stands {
            Stands::Top => in_body || in_branch,
            Stands::Body => in_body,
            Stands::Anywhere | Stands::EndOfBody | Stands::EndOfRegion => true,
        };
        if !may_stand_here {
            self.v.breaks(Law::Top, op, "stands inside another op");
        }
        if data.kind == OpKind::Tape && !self.walk.in_loop {
            self.v.breaks(Law::Tape, op, "stands in no parallel loop");
        }
        let is_memory = data.kind.makes_shared();
        if is_memory && !self.walk.in_loop {
            self.v.breaks(Law::Shared, op, "stands in no parallel loop");
        }
        if data.kind.effects().contains(Effects::CONVERGENT) && !is_memory && !self.walk.in_block {
            self.v.breaks(Law::Block, op, "stands in no loop that has blocks");
        }
        self.walk.in_branch = in_body && data.kind == OpKind::Fork;
        let (in_loop, in_block) = (self.walk.in_loop, self.walk.in_block);
        if let OpKind::ParallelFor(attributes) = &data.kind {
            self.walk.in_loop = true;
            self.walk.in_block = has_blocks(attributes);
        }
        for &inner in &data.regions {
            self.region(Some(op), inner);
        }
        (self.walk.in_branch, self.walk.in_loop, self.walk.in_block) = (in_branch, in_loop, in_block);
        for (index, &result) in data.results.iter().enumerate() {
            self.define(Some(op), result, ValueDef::Result(op, index as u32));
        }
    }
}

fn kernel_params(verifier: &mut Verifier) {
    let kernel = verifier.kernel;
    let functions = kernel.functions.iter().map(|(_, function)| (function.body, function.params.len(), true));
    for (body, names, is_function) in functions.chain([(kernel.body, kernel.params.len(), false)]) {
        let params = &kernel.regions[body].params;
        if params.len() != names {
            let values = params.len();
            verifier
                .kernel_breaks(Law::Params, format!("{names} parameters are named, the body has {values}"));
        }
        for &param in params {
            let fits = match kernel.ty(param) {
                Type::Data(_) | Type::Array(_) => true,
                Type::Local(_) => is_function,
                Type::Temp(_) | Type::Tape(_) => false,
            };
            if !fits {
                verifier.kernel_breaks(Law::Params, format!("a parameter is {}", kernel.ty(param)));
            }
        }
    }
}

fn known_types(verifier: &mut Verifier) {
    let kernel = verifier.kernel;
    let structs = kernel.structs.len();
    for (id, ty) in kernel.structs.iter() {
        for (name, data) in &ty.members {
            if !is_known(*data, id.index()) {
                verifier.kernel_breaks(Law::KnownTypes, format!("member {name:?} of {id} is {data}"));
            }
        }
    }
    for (_, value) in kernel.values.iter() {
        let (data, layout) = match value.ty {
            Type::Data(data) | Type::Local(data) | Type::Temp(data) => (data, None),
            Type::Array(array) => (array.elem, array.layout),
            Type::Tape(scalar) => (Data::Scalar(scalar), None),
        };
        if !is_known(data, structs) || layout.is_some_and(|id| id.index() >= kernel.layouts.len()) {
            verifier.kernel_breaks(Law::KnownTypes, format!("a value is {}", value.ty));
        }
    }
    let functions = kernel.functions.iter().flat_map(|(_, function)| &function.results);
    for &data in kernel.results.iter().chain(functions) {
        if !is_known(data, structs) {
            verifier.kernel_breaks(Law::KnownTypes, format!("a result is {data}"));
        }
    }
}

/// Layouts, and the fields that have them.
fn fields(verifier: &mut Verifier) {
    let kernel = verifier.kernel;
    for (id, layout) in kernel.layouts.iter() {
        if let Err(message) = layout.check(1, 1) {
            verifier.kernel_breaks(Law::Layout, format!("{id}: {message}"));
        }
    }
    for (_, value) in kernel.values.iter() {
        let Type::Array(array) = value.ty else { continue };
        let is_field = array.layout.is_some();
        if !array.order.fits(array.rank.into())
            || is_field && (array.order != Order::ROW_MAJOR || array.has_strides())
        {
            verifier.kernel_breaks(Law::Order, format!("a value is {}", value.ty));
        }
        let Some(layout) = array.layout.and_then(|id| kernel.layouts.get(id)) else { continue };
        let (rank, clamps) = (usize::from(array.rank), array.boundary == Boundary::Clamp);
        let Some(scalar) = array.elem.elem().filter(|_| rank == layout.rank() && !clamps) else {
            verifier.kernel_breaks(Law::Field, format!("a value is {} of rank {rank}", value.ty));
            continue;
        };
        let entries = array.elem.tensor_shape().map_or(1, TensorShape::count);
        if let Err(message) = layout.check(entries * scalar.bytes(), scalar.bytes()) {
            verifier.kernel_breaks(Law::Layout, format!("{}: {message}", value.ty));
        }
    }
}

fn is_known(data: Data, structs: usize) -> bool {
    match data {
        Data::Scalar(_) => true,
        Data::Tensor(tensor) => tensor.shape.count() > 0,
        Data::Struct(id) => id.index() < structs,
    }
}
