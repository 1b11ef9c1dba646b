//! Writes the parts of a body as loops over lanes.

use octants_ir::ops::{ArithOp, AssertKind, BitOp, CellUse, CompareOp, SUBGROUP, Scope, ShuffleOp};
use octants_ir::rewrite::{ValueMap, clone_op, free_values, ops_in, retain_ops};
use octants_ir::{Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use super::parts::{Part, Parts, lanes_of_subgroup};
use super::races::Races;
use super::values::{Lifetimes, variable_of};
use crate::edit::slots::yielded;

/// Lanes that meet: from one on, which is the block's first where none is named.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    pub scope: Scope,
    pub first: Option<Value>,
}

/// A lane, and what stands for values while it runs.
pub(super) struct Lane {
    pub number: Value,
    /// Its number in its subgroup, if that is at hand.
    own: Option<Value>,
    pub region: Region,
    map: ValueMap,
}

impl Lane {
    pub fn new(number: Value, region: Region) -> Self {
        Self { number, own: None, region, map: ValueMap::new() }
    }
}

pub(super) struct LaneLoops<'k> {
    pub kernel: &'k mut Kernel,
    /// The new loop's body.
    top: Region,
    pub loc: Loc,
    threads: u32,
    /// The number of the block that runs.
    block: Value,
    bounds: Vec<(Value, Value)>,
    /// Lanes run one behind the other: with `debug`, so that what is told names the first one, too.
    in_order: bool,
    /// The old loop's body.
    body: Region,
    pub values: Lifetimes,
    /// By value that lanes keep: an element for each lane.
    arrays: SideTable<Value, Option<Value>>,
    /// Values that have the array of another one, which they replace.
    replaced: SideTable<Value, Option<Value>>,
    /// Values that are the same for all lanes that meet.
    uniform: ValueMap,
    /// By index of a loop that lanes begin at numbers of their own: where they begin, and how many rounds were before.
    counted: SideTable<Value, Option<(Value, Value)>>,
    /// With `debug`: who touched the elements of shared arrays.
    races: Option<Races>,
}

impl<'k> LaneLoops<'k> {
    pub fn new(
        kernel: &'k mut Kernel,
        top: Region,
        loc: Loc,
        threads: u32,
        (block, bounds): (Value, Vec<(Value, Value)>),
        body: Region,
        in_order: bool,
    ) -> Self {
        let in_order = in_order || kernel.options.debug;
        let values = Lifetimes::none();
        let (arrays, uniform, counted) = (SideTable::new(None), ValueMap::new(), SideTable::new(None));
        Self {
            kernel,
            top,
            loc,
            threads,
            block,
            bounds,
            in_order,
            body,
            values,
            arrays,
            replaced: SideTable::new(None),
            uniform,
            counted,
            races: None,
        }
    }

    pub fn run(mut self, parts: &Parts) {
        self.values = Lifetimes::of(self.kernel, &parts.0, self.body);
        if self.kernel.options.debug {
            self.races = Races::of(self.kernel, self.top, self.loc, self.threads, self.body);
        }
        self.parts(self.top, &parts.0, Lanes { scope: Scope::Block, first: None });
        // Arrays come before what uses them.
        let made = std::mem::take(&mut self.values.made);
        self.kernel.regions[self.top].ops.splice(0..0, made);
    }

    pub fn at(&mut self, region: Region) -> Builder<'_> {
        Builder::at(self.kernel, region, self.loc)
    }

    fn parts(&mut self, region: Region, parts: &[Part], lanes: Lanes) {
        for part in parts {
            match part {
                Part::Shared(op) => {
                    let copy = clone_op(self.kernel, *op, &mut self.uniform);
                    self.kernel.regions[region].ops.push(copy);
                    if let Some(races) = &mut self.races {
                        races.copied(self.kernel.ops[*op].results[0], self.kernel.ops[copy].results[0]);
                    }
                }
                Part::Lanes(ops) => self.for_lanes(region, lanes, |this, lane| {
                    for value in this.replaced_in(ops) {
                        this.value(value, lane);
                    }
                    for &op in ops {
                        if let OpKind::Shuffle(shuffle) = this.kernel.ops[op].kind {
                            this.shuffle(op, shuffle, lanes, lane);
                        } else {
                            this.lane_op(op, lane);
                        }
                    }
                }),
                Part::Meeting(op) => self.meeting(region, *op, lanes),
                Part::Control(op, regions) => {
                    let around = std::mem::replace(&mut self.loc, self.kernel.ops[*op].loc);
                    self.control(region, *op, regions, lanes);
                    self.loc = around;
                }
                Part::Subgroups(parts) => self.subgroups(region, parts),
            }
        }
    }

    /// Each subgroup for itself.
    fn subgroups(&mut self, region: Region, parts: &[Part]) {
        if self.threads <= SUBGROUP {
            return self.parts(region, parts, Lanes { scope: Scope::Subgroup, first: None });
        }
        let count = self.threads.div_ceil(SUBGROUP);
        let mut b = self.at(region);
        let (zero, count) = (b.i32(0), b.i32(count.cast_signed()));
        let inner = b.kernel.add_region();
        let number = b.kernel.add_region_param(inner, Type::I32);
        b.op(OpKind::For, [zero, count], [], [inner]);
        let mut b = self.at(inner);
        let size = b.i32(SUBGROUP.cast_signed());
        let first = b.arith(ArithOp::Mul, number, size);
        self.parts(inner, parts, Lanes { scope: Scope::Subgroup, first: Some(first) });
        self.at(inner).yields(&[]);
    }

    /// The numbers of the lanes: the first, and the one behind the last.
    pub fn range(&mut self, region: Region, lanes: Lanes) -> (Value, Value) {
        let threads = self.threads;
        let mut b = self.at(region);
        match (lanes.scope, lanes.first) {
            (_, None) => (b.i32(0), b.i32(threads.cast_signed())),
            (_, Some(first)) => {
                let size = b.i32(SUBGROUP.cast_signed());
                let mut end = b.arith(ArithOp::Add, first, size);
                if !threads.is_multiple_of(SUBGROUP) {
                    let last = b.i32(threads.cast_signed());
                    end = b.arith(ArithOp::Min, end, last);
                }
                (first, end)
            }
        }
    }

    /// A loop over the lanes.
    fn for_lanes(&mut self, region: Region, lanes: Lanes, build: impl FnOnce(&mut Self, &mut Lane)) {
        // Subgroups that are whole have a number of lanes that LLVM knows.
        let whole = lanes.first.filter(|_| self.threads.is_multiple_of(SUBGROUP));
        let (begin, end) = match whole {
            Some(_) => {
                let mut b = self.at(region);
                (b.i32(0), b.i32(SUBGROUP.cast_signed()))
            }
            None => self.range(region, lanes),
        };
        let inner = self.kernel.add_region();
        let mut number = self.kernel.add_region_param(inner, Type::I32);
        let kind = if self.in_order { OpKind::For } else { OpKind::ForLanes };
        self.at(region).op(kind, [begin, end], [], [inner]);
        let mut lane = Lane::new(number, inner);
        if let Some(first) = whole {
            lane.own = Some(number);
            number = self.at(inner).arith(ArithOp::Add, first, number);
            lane.number = number;
        }
        build(self, &mut lane);
        self.at(inner).yields(&[]);
        if let Some(races) = &self.races {
            races.check(self.kernel, inner, lane.number);
        }
    }

    /// What the first lane has: all that meet have the same.
    fn of_first(&mut self, region: Region, value: Value, lanes: Lanes) -> Value {
        let number = match lanes.first {
            Some(first) => first,
            None => self.at(region).i32(0),
        };
        self.value(value, &mut Lane::new(number, region))
    }

    /// Whether it is an index of the loop that the block is of.
    pub fn is_index(&self, value: Value) -> bool {
        self.kernel.regions[self.body].params.contains(&value)
    }

    pub fn is_uniform(&self, value: Value) -> bool {
        self.uniform.get(value).is_some()
    }

    /// What a value of the body is for a lane.
    pub fn value(&mut self, value: Value, lane: &mut Lane) -> Value {
        if let Some(known) = lane.map.get(value).or_else(|| self.uniform.get(value)) {
            return known;
        }
        let indices = &self.kernel.regions[self.body].params;
        if let Some(axis) = indices.iter().position(|&index| index == value) {
            self.indices(lane);
            return lane.map.map(self.kernel.regions[self.body].params[axis]);
        }
        if let Some((lo, before)) = self.counted[value] {
            let (lo, ty) = (self.value(lo, lane), self.kernel.ty(value).scalar().unwrap_or(Scalar::I32));
            let mut b = self.at(lane.region);
            let before = b.cast(before, ty);
            let index = b.arith(ArithOp::Add, lo, before);
            lane.map.insert(value, index);
            return index;
        }
        if !self.values.is_own(value) {
            return value;
        }
        if self.values.is_computed_again(value) {
            let octants_ir::ValueDef::Result(op, _) = self.kernel.values[value].def else {
                unreachable!("{value} is computed by an op")
            };
            for operand in self.kernel.ops[op].operands.clone() {
                let known = self.value(operand, lane);
                lane.map.insert(operand, known);
            }
            let copy = clone_op(self.kernel, op, &mut lane.map);
            self.kernel.regions[lane.region].ops.push(copy);
            return lane.map.map(value);
        }
        let array = self.array(value);
        if variable_of(self.kernel, value) {
            return array;
        }
        let loaded = self.at(lane.region).load(array, &[lane.number]);
        lane.map.insert(value, loaded);
        loaded
    }

    /// The array with an element of the value for each lane.
    fn array(&mut self, value: Value) -> Value {
        if let Some(array) = self.arrays[value] {
            return array;
        }
        let data = match self.kernel.ty(value) {
            Type::Data(data) | Type::Local(data) => data,
            other => unreachable!("{value} of type {other} outlives no meeting"),
        };
        let region = self.kernel.add_region();
        let array = Builder::at(self.kernel, region, self.loc).shared(data, &[self.threads]);
        self.values.made.append(&mut self.kernel.regions[region].ops);
        self.arrays.set(value, Some(array));
        array
    }

    /// One array for both.
    fn share_array(&mut self, value: Value, with: Value) {
        let array = self.array(with);
        self.arrays.set(value, Some(array));
    }

    /// The loop's indices for a lane.
    fn indices(&mut self, lane: &mut Lane) {
        let (block, threads, bounds) = (self.block, i128::from(self.threads), self.bounds.clone());
        let params = self.kernel.regions[self.body].params.to_vec();
        let types: Vec<_> = params.iter().map(|&param| self.kernel.ty(param).scalar()).collect();
        let mut b = self.at(lane.region);
        let size = b.constant(Const::from_i128(Scalar::I64, threads));
        let before = b.arith(ArithOp::Mul, block, size);
        let own = b.cast(lane.number, Scalar::I64);
        let mut rest = b.arith(ArithOp::Add, before, own);
        for (axis, &param) in params.iter().enumerate().rev() {
            let ty = types[axis].unwrap_or(Scalar::I32);
            let (lo, hi) = bounds[axis];
            let digit = if axis == 0 {
                rest
            } else {
                let (first, end) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
                let extent = b.arith(ArithOp::Sub, end, first);
                let digit = b.arith(ArithOp::RawMod, rest, extent);
                rest = b.arith(ArithOp::RawDiv, rest, extent);
                digit
            };
            let digit = b.cast(digit, ty);
            let index = b.arith(ArithOp::Add, lo, digit);
            lane.map.insert(param, index);
        }
    }

    /// An op of a lane's own, with what is inside of it.
    fn lane_op(&mut self, op: Op, lane: &mut Lane) {
        let data = self.kernel.ops[op].clone();
        if let [result] = data.results[..] {
            if self.values.is_computed_again(result) {
                return;
            }
            if data.kind == OpKind::Local && self.values.kept[result] {
                return self.clear(result, lane);
            }
        }
        let mut used = data.operands.to_vec();
        for &region in &data.regions {
            retain_ops(self.kernel, region, &mut |kernel, op| !kernel.ops[op].kind.makes_shared());
            used.extend(free_values(self.kernel, region));
        }
        let mut passed = Vec::new();
        for value in used {
            let stands = self.value(value, lane);
            if variable_of(self.kernel, value) && self.values.kept[value] && self.is_passed(op, value) {
                passed.push((value, stands));
            } else {
                lane.map.insert(value, stands);
            }
        }
        // A function is passed a variable of the lane's own.
        for &(variable, array) in &passed {
            let own = self.variable_like(variable, lane);
            self.copy_variable(variable, (array, Some(lane.number)), (own, None), lane.region);
            lane.map.insert(variable, own);
        }
        let copy = clone_op(self.kernel, op, &mut lane.map);
        self.kernel.regions[lane.region].ops.push(copy);
        self.index_by_lane(copy, lane.number);
        for (variable, array) in passed {
            let own = lane.map.map(variable);
            self.copy_variable(variable, (own, None), (array, Some(lane.number)), lane.region);
            lane.map.insert(variable, array);
        }
        for &result in &data.results {
            if self.values.kept[result] && !variable_of(self.kernel, result) {
                let (array, value) = (self.array(result), lane.map.map(result));
                self.at(lane.region).store(array, &[lane.number], value);
            }
        }
    }

    /// Whether an op, or one inside of it, passes the variable to a function.
    fn is_passed(&self, op: Op, variable: Value) -> bool {
        let passes = |op: Op| {
            let data = &self.kernel.ops[op];
            matches!(data.kind, OpKind::Call(_)) && data.operands.contains(&variable)
        };
        let regions = &self.kernel.ops[op].regions;
        passes(op) || regions.iter().any(|&region| ops_in(self.kernel, region).into_iter().any(passes))
    }

    fn variable_like(&mut self, variable: Value, lane: &Lane) -> Value {
        let Type::Local(data) = self.kernel.ty(variable) else { unreachable!("{variable} is a variable") };
        self.at(lane.region).local(data)
    }

    /// Accesses of variables that are arrays now name the lane first.
    fn index_by_lane(&mut self, op: Op, lane: Value) {
        let mut all = vec![op];
        for &region in &self.kernel.ops[op].regions {
            all.extend(ops_in(self.kernel, region));
        }
        for op in all {
            let data = &self.kernel.ops[op];
            if data.kind.info().cell != CellUse::Nothing && self.is_variables(data.operands[0]) {
                self.kernel.ops[op].operands.insert(1, lane);
            }
        }
    }

    /// Whether it is the array of a variable.
    fn is_variables(&self, base: Value) -> bool {
        self.values.of_variables[base]
    }

    /// The places of a variable's scalars: their components.
    fn components(&mut self, variable: Value, region: Region) -> Vec<Vec<Value>> {
        let Type::Local(data) = self.kernel.ty(variable) else { unreachable!("{variable} is a variable") };
        let Some(shape) = data.tensor_shape() else { return vec![Vec::new()] };
        let dims = shape.dims();
        let mut b = self.at(region);
        (0..shape.count())
            .map(|entry| {
                let mut rest = entry;
                let mut at: Vec<_> = dims
                    .iter()
                    .rev()
                    .map(|&extent| {
                        let digit = rest % extent;
                        rest /= extent;
                        digit
                    })
                    .collect();
                at.reverse();
                at.into_iter().map(|digit| b.i32(digit.cast_signed())).collect()
            })
            .collect()
    }

    /// A variable begins as zero, for a lane.
    fn clear(&mut self, variable: Value, lane: &Lane) {
        let array = self.array(variable);
        self.values.of_variables.set(array, true);
        let Type::Local(data) = self.kernel.ty(variable) else { unreachable!("{variable} is a variable") };
        let Some(elem) = data.elem() else { unreachable!("a variable of a task holds no struct") };
        for at in self.components(variable, lane.region) {
            let mut b = self.at(lane.region);
            let zero = b.constant(Const::from_bits(elem, 0));
            let path: Vec<_> = std::iter::once(lane.number).chain(at).collect();
            b.store(array, &path, zero);
        }
    }

    /// Copies what a variable holds, from or to a lane's element of an array.
    fn copy_variable(
        &mut self,
        variable: Value,
        (from, from_lane): (Value, Option<Value>),
        (to, to_lane): (Value, Option<Value>),
        region: Region,
    ) {
        for at in self.components(variable, region) {
            let path = |lane: Option<Value>| lane.into_iter().chain(at.iter().copied()).collect::<Vec<_>>();
            let (source, target) = (path(from_lane), path(to_lane));
            let mut b = self.at(region);
            let value = b.load(from, &source);
            b.store(to, &target, value);
        }
    }

    /// Lanes hand values on, all at once.
    fn hand_on(&mut self, region: Region, from: &[Value], to: &[Value], lanes: Lanes) {
        let moves: Vec<_> = from
            .iter()
            .zip(to)
            .filter(|&(&from, &to)| self.arrays[from].is_none() || self.arrays[from] != self.arrays[to])
            .map(|(&from, &to)| (from, to))
            .collect();
        if moves.is_empty() {
            return;
        }
        self.for_lanes(region, lanes, |this, lane| {
            let values: Vec<_> = moves.iter().map(|&(from, _)| this.value(from, lane)).collect();
            for (&(_, to), value) in moves.iter().zip(values) {
                let array = this.array(to);
                this.at(lane.region).store(array, &[lane.number], value);
            }
        });
    }

    /// Values that some of the ops replace, in the array that both have: a lane reads them before.
    fn replaced_in(&self, ops: &[Op]) -> Vec<Value> {
        let results = ops.iter().flat_map(|&op| &self.kernel.ops[op].results);
        results.filter_map(|&result| self.replaced[result]).collect()
    }

    /// What lanes yield goes at once to the array of what it becomes, if it is computed in one of these parts. Where that replaces something there, nobody may ask for that later, and
    /// no other lane.
    fn yield_in_place(&mut self, parts: &[Part], yielded: &[Value], to: &[Value], is_replaced: bool) {
        for (index, part) in parts.iter().enumerate() {
            let Part::Lanes(ops) = part else { continue };
            for &op in ops {
                for &from in &self.kernel.ops[op].results.clone() {
                    let Some(slot) = yielded.iter().position(|&value| value == from) else { continue };
                    let old = to[slot];
                    let is_free = !is_replaced
                        || !yielded.contains(&old)
                            && !parts[index + 1..].iter().any(|part| part.names(self.kernel, old))
                            && !ops.iter().any(|&op| asks_for(self.kernel, op, old));
                    if self.arrays[from].is_some()
                        || !self.values.kept[from]
                        || variable_of(self.kernel, from)
                        || self.kernel.ty(from) != self.kernel.ty(old)
                        || !is_free
                    {
                        continue;
                    }
                    self.share_array(from, old);
                    if is_replaced {
                        self.replaced.set(from, Some(old));
                    }
                }
            }
        }
    }

    fn control(&mut self, region: Region, op: Op, regions: &[Vec<Part>], lanes: Lanes) {
        let data = self.kernel.ops[op].clone();
        match data.kind {
            OpKind::If => {
                if self.kernel.options.debug {
                    self.check_branch(region, op, lanes);
                }
                let condition = self.of_first(region, data.operands[0], lanes);
                let sides: Vec<_> = data
                    .regions
                    .iter()
                    .zip(regions)
                    .map(|(&side, parts)| {
                        let copy = self.kernel.add_region();
                        let from = yielded(self.kernel, side).to_vec();
                        self.yield_in_place(parts, &from, &data.results, false);
                        self.parts(copy, parts, lanes);
                        self.hand_on(copy, &from, &data.results, lanes);
                        self.at(copy).yields(&[]);
                        copy
                    })
                    .collect();
                self.at(region).op(OpKind::If, [condition], [], sides);
            }
            OpKind::For => {
                if self.kernel.options.debug {
                    self.check_rounds(region, op, lanes);
                }
                let [mut lo, mut hi] = [0, 1].map(|bound| self.of_first(region, data.operands[bound], lanes));
                let body = data.regions[0];
                let params = self.kernel.regions[body].params.to_vec();
                for (&result, &param) in data.results.iter().zip(&params[1..]) {
                    self.share_array(result, param);
                }
                self.hand_on(region, &data.operands[2..], &params[1..], lanes);
                let copy = self.kernel.add_region();
                if self.may_differ(data.operands[0]) {
                    // Lanes begin at numbers of their own: rounds are counted.
                    let mut b = self.at(region);
                    let runs = b.compare(CompareOp::Lt, lo, hi);
                    let [begin, end] = [lo, hi].map(|bound| b.cast(bound, Scalar::I64));
                    let rounds = b.arith(ArithOp::Sub, end, begin);
                    lo = b.constant(Const::from_bits(Scalar::I64, 0));
                    hi = b.select(runs, rounds, lo);
                    let before = self.kernel.add_region_param(copy, Scalar::I64.into());
                    self.counted.set(params[0], Some((data.operands[0], before)));
                } else {
                    let index = self.kernel.add_region_param(copy, self.kernel.ty(params[0]));
                    self.uniform.insert(params[0], index);
                }
                let next = yielded(self.kernel, body).to_vec();
                self.yield_in_place(&regions[0], &next, &params[1..], true);
                self.parts(copy, &regions[0], lanes);
                self.hand_on(copy, &next, &params[1..], lanes);
                self.at(copy).yields(&[]);
                self.at(region).op(OpKind::For, [lo, hi], [], [copy]);
            }
            OpKind::While => {
                let (cond, body) = (data.regions[0], data.regions[1]);
                let (own, inner) =
                    (self.kernel.regions[cond].params.to_vec(), self.kernel.regions[body].params.to_vec());
                for ((&param, &inner), &result) in own.iter().zip(&inner).zip(&data.results) {
                    self.share_array(inner, param);
                    self.share_array(result, param);
                }
                self.hand_on(region, &data.operands, &own, lanes);
                let copy = self.kernel.add_region();
                self.parts(copy, &regions[0], lanes);
                let ends = yielded(self.kernel, cond).to_vec();
                if self.kernel.options.debug {
                    self.check_round(copy, op, ends[0], lanes);
                }
                let goes_on = self.of_first(copy, ends[0], lanes);
                self.hand_on(copy, &ends[1..], &data.results, lanes);
                self.at(copy).yields(&[goes_on]);
                let run = self.kernel.add_region();
                self.parts(run, &regions[1], lanes);
                let next = yielded(self.kernel, body).to_vec();
                self.hand_on(run, &next, &own, lanes);
                self.at(run).yields(&[]);
                self.at(region).op(OpKind::While, [], [], [copy, run]);
            }
            kind => unreachable!("lanes do not meet inside of `{}`", kind.name()),
        }
    }

    fn meeting(&mut self, region: Region, op: Op, lanes: Lanes) {
        let data = self.kernel.ops[op].clone();
        match data.kind {
            OpKind::BarrierCount => {
                let (first, end) = self.range(region, lanes);
                let mut b = self.at(region);
                let zero = b.i32(0);
                let count = self.fold(region, (first, end), zero, data.operands[0], |b, count, holds, _| {
                    let one = b.cast(holds, Scalar::I32);
                    b.arith(ArithOp::Add, count, one)
                });
                self.give_all(region, data.results[0], count, lanes);
            }
            OpKind::Ballot => {
                let (first, end) = self.range(region, lanes);
                let none = self.at(region).constant(Const::from_bits(Scalar::U64, 0));
                let bits = self.fold(region, (first, end), none, data.operands[0], |b, bits, holds, lane| {
                    let bit = b.cast(holds, Scalar::U64);
                    let own = b.arith(ArithOp::Sub, lane, first);
                    let own = b.cast(own, Scalar::U64);
                    let bit = b.bit(BitOp::Shl, bit, own);
                    b.bit(BitOp::Or, bits, bit)
                });
                self.give_all(region, data.results[0], bits, lanes);
            }
            // All lanes have done what stands before.
            _ => {}
        }
        let mut b = Builder::at(self.kernel, region, self.loc);
        match (&self.races, data.kind.barrier_of()) {
            (Some(races), Some(Scope::Block)) => races.pass_block(&mut b),
            (Some(races), Some(Scope::Subgroup)) => races.pass_subgroup(&mut b, lanes.first),
            _ => {}
        }
    }

    /// What another lane has had before.
    fn shuffle(&mut self, op: Op, shuffle: ShuffleOp, lanes: Lanes, lane: &mut Lane) {
        let data = self.kernel.ops[op].clone();
        let by = self.value(data.operands[1], lane);
        let loc = std::mem::replace(&mut self.loc, data.loc);
        let from = self.source(shuffle, by, lanes, lane);
        self.loc = loc;
        let mut other = Lane::new(from, lane.region);
        let value = self.value(data.operands[0], &mut other);
        let result = data.results[0];
        lane.map.insert(result, value);
        if self.values.kept[result] {
            let array = self.array(result);
            self.at(lane.region).store(array, &[lane.number], value);
        }
    }

    /// The number of the lane from which a lane gets a value.
    fn source(&mut self, shuffle: ShuffleOp, by: Value, lanes: Lanes, lane: &Lane) -> Value {
        let mut b = self.at(lane.region);
        let own = match (lane.own, lanes.first) {
            (Some(own), _) => own,
            (None, None) => lane.number,
            (None, Some(first)) => b.arith(ArithOp::Sub, lane.number, first),
        };
        let mask = b.i32((SUBGROUP - 1).cast_signed());
        let (from, inside) = match shuffle {
            ShuffleOp::Lane => (b.bit(BitOp::And, by, mask), None),
            ShuffleOp::Xor => {
                let other = b.bit(BitOp::Xor, own, by);
                (b.bit(BitOp::And, other, mask), None)
            }
            ShuffleOp::Up | ShuffleOp::Down => {
                let op = if shuffle == ShuffleOp::Up { ArithOp::Sub } else { ArithOp::Add };
                let from = b.arith(op, own, by);
                let (zero, size) = (b.i32(0), b.i32(SUBGROUP.cast_signed()));
                let tests = [
                    (CompareOp::Ge, by, zero),
                    (CompareOp::Lt, by, size),
                    (CompareOp::Ge, from, zero),
                    (CompareOp::Lt, from, size),
                ];
                let inside = tests.map(|(op, a, c)| b.compare(op, a, c));
                let inside = inside.into_iter().reduce(|a, c| b.bit(BitOp::And, a, c));
                (from, inside)
            }
        };
        let mut from = from;
        if let Some(inside) = inside {
            from = self.at(lane.region).select(inside, from, own);
        }
        let debug = self.kernel.options.debug;
        let (threads, size) = (self.threads, self.threads.cast_signed());
        let mut b = self.at(lane.region);
        let number = |b: &mut Builder<'_>, from| match lanes.first {
            None => from,
            Some(first) => b.arith(ArithOp::Add, first, from),
        };
        if lanes_of_subgroup(threads) < SUBGROUP || !threads.is_multiple_of(SUBGROUP) {
            // A lane that does not run has nothing to give.
            let (wanted, end) = (number(&mut b, from), b.i32(size));
            let there = b.compare(CompareOp::Lt, wanted, end);
            if debug {
                let message = "lane {} asks for the value of lane {}, which does not run";
                b.assert(AssertKind::Condition, there, message, &[lane.number, from]);
            }
            from = b.select(there, from, own);
        }
        number(&mut b, from)
    }

    /// Folds what a condition is on each lane into one value.
    fn fold(
        &mut self,
        region: Region,
        (first, end): (Value, Value),
        initial: Value,
        condition: Value,
        step: impl FnOnce(&mut Builder<'_>, Value, Value, Value) -> Value,
    ) -> Value {
        let ty = self.kernel.ty(initial);
        let inner = self.kernel.add_region();
        let number = self.kernel.add_region_param(inner, Type::I32);
        let so_far = self.kernel.add_region_param(inner, ty);
        let op = self.at(region).op(OpKind::For, [first, end, initial], [ty], [inner]);
        let mut lane = Lane::new(number, inner);
        let holds = self.value(condition, &mut lane);
        let mut b = self.at(inner);
        let next = step(&mut b, so_far, holds, number);
        b.yields(&[next]);
        self.kernel.ops[op].results[0]
    }

    /// All lanes have the same value.
    fn give_all(&mut self, region: Region, result: Value, value: Value, lanes: Lanes) {
        self.for_lanes(region, lanes, |this, lane| {
            let array = this.array(result);
            this.at(lane.region).store(array, &[lane.number], value);
        });
    }
}

/// Whether an op asks other lanes for a value.
fn asks_for(kernel: &Kernel, op: Op, value: Value) -> bool {
    kernel.ops[op].kind.asks_lane() && kernel.ops[op].operands[0] == value
}
