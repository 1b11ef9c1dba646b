//! Walking, replacing, cloning and erasing: what every rewrite needs and no op is special for.
//!
//! All of it looks only at what stands in a region tree; dead ops in the arena are never visited.

use crate::ids::{Op, Region, SideTable, Value};
use crate::kernel::{Kernel, ValueDef};

/// What stands for a value, where something does.
#[derive(Clone, Debug)]
pub struct ValueMap {
    map: SideTable<Value, Option<Value>>,
    /// Whether anything was set.
    changed: bool,
}

impl Default for ValueMap {
    fn default() -> Self {
        Self::new()
    }
}

impl ValueMap {
    pub fn new() -> Self {
        Self { map: SideTable::new(None), changed: false }
    }

    pub fn insert(&mut self, from: Value, to: Value) {
        self.map.set(from, Some(to));
        self.changed = true;
    }

    /// What stands for the value itself, if anything does.
    pub fn get(&self, value: Value) -> Option<Value> {
        self.map[value]
    }

    /// One step: what stands for the value, or the value itself.
    pub fn map(&self, value: Value) -> Value {
        self.map[value].unwrap_or(value)
    }

    /// All steps: follows replacements of replacements to the end. There must be no cycle.
    pub fn resolve(&self, mut value: Value) -> Value {
        while let Some(next) = self.map[value] {
            if next == value {
                break;
            }
            value = next;
        }
        value
    }

    pub fn is_empty(&self) -> bool {
        !self.changed
    }
}

/// All ops of a region and of the regions inside, each before the ops of its own regions.
pub fn ops_in(kernel: &Kernel, region: Region) -> Vec<Op> {
    let mut ops = Vec::new();
    walk(kernel, region, &mut |op| ops.push(op));
    ops
}

/// Visits the ops of a region and of the regions inside, each before the ops of its own regions.
pub fn walk(kernel: &Kernel, region: Region, visit: &mut impl FnMut(Op)) {
    for &op in &kernel.regions[region].ops {
        visit(op);
        for &inner in &kernel.ops[op].regions {
            walk(kernel, inner, visit);
        }
    }
}

/// Visits the ops of all functions and of the kernel, each before the ops of its own regions.
pub fn walk_all(kernel: &Kernel, visit: &mut impl FnMut(Op)) {
    for body in kernel.bodies() {
        walk(kernel, body, visit);
    }
}

/// The region and the regions inside, each before its own inner ones.
pub fn regions_in(kernel: &Kernel, region: Region) -> Vec<Region> {
    let mut regions = vec![region];
    walk(kernel, region, &mut |op| regions.extend(&kernel.ops[op].regions));
    regions
}

/// Where each op and region of the trees under the bodies of the kernel and its functions stands.
pub struct Parents {
    region_of: SideTable<Op, Option<Region>>,
    op_of: SideTable<Region, Option<Op>>,
}

impl Parents {
    pub fn new(kernel: &Kernel) -> Self {
        let mut parents = Self { region_of: SideTable::new(None), op_of: SideTable::new(None) };
        let all = kernel.bodies().into_iter().flat_map(|body| regions_in(kernel, body));
        for region in all {
            for &op in &kernel.regions[region].ops {
                parents.region_of.set(op, Some(region));
                for &inner in &kernel.ops[op].regions {
                    parents.op_of.set(inner, Some(op));
                }
            }
        }
        parents
    }

    /// The region that the op stands in; `None` for a dead op.
    pub fn region(&self, op: Op) -> Option<Region> {
        self.region_of[op]
    }

    /// The op that the region belongs to; `None` for the body of the kernel or a function.
    pub fn op(&self, region: Region) -> Option<Op> {
        self.op_of[region]
    }

    /// Whether `inner` is `outer` or stands somewhere inside it.
    pub fn is_within(&self, mut inner: Region, outer: Region) -> bool {
        loop {
            if inner == outer {
                return true;
            }
            let Some(parent) = self.op(inner).and_then(|op| self.region(op)) else { return false };
            inner = parent;
        }
    }
}

/// The region in whose ops or parameters a value is defined; `None` for the result of a dead op.
pub fn defining_region(kernel: &Kernel, parents: &Parents, value: Value) -> Option<Region> {
    match kernel.values[value].def {
        ValueDef::Result(op, _) => parents.region(op),
        ValueDef::Param(region, _) => Some(region),
    }
}

/// How often each value is used as an operand.
pub fn use_counts(kernel: &Kernel) -> SideTable<Value, u32> {
    let mut counts = SideTable::new(0);
    walk_all(kernel, &mut |op| {
        for &operand in &kernel.ops[op].operands {
            *counts.get_mut(operand) += 1;
        }
    });
    counts
}

/// Who uses each value: the op and the operand's position, in order of appearance.
pub fn uses(kernel: &Kernel) -> SideTable<Value, Vec<(Op, u32)>> {
    let mut uses = SideTable::new(Vec::new());
    walk_all(kernel, &mut |op| {
        for (index, &operand) in kernel.ops[op].operands.iter().enumerate() {
            uses.get_mut(operand).push((op, index as u32));
        }
    });
    uses
}

/// Values used in the region or in regions inside it but defined outside, in order of first use.
pub fn free_values(kernel: &Kernel, region: Region) -> Vec<Value> {
    let mut inside = SideTable::new(false);
    for region in regions_in(kernel, region) {
        let region = &kernel.regions[region];
        let results = region.ops.iter().flat_map(|&op| &kernel.ops[op].results);
        for &value in region.params.iter().chain(results) {
            inside.set(value, true);
        }
    }
    let mut free = Vec::new();
    walk(kernel, region, &mut |op| {
        for &operand in &kernel.ops[op].operands {
            if !inside[operand] {
                // Listed once: it now counts as known.
                inside.set(operand, true);
                free.push(operand);
            }
        }
    });
    free
}

/// Every use of `from` in the kernel becomes a use of `to`.
pub fn replace_value(kernel: &mut Kernel, from: Value, to: Value) {
    let mut map = ValueMap::new();
    map.insert(from, to);
    for body in kernel.bodies() {
        replace_values(kernel, body, &map);
    }
}

/// Every operand in the region and inside it becomes what the map resolves it to.
pub fn replace_values(kernel: &mut Kernel, region: Region, map: &ValueMap) {
    if map.is_empty() {
        return;
    }
    for op in ops_in(kernel, region) {
        for operand in &mut kernel.ops[op].operands {
            *operand = map.resolve(*operand);
        }
    }
}

/// A copy of the op (and of its regions) that stands in no region yet. Operands go through the map; the map learns the
/// results.
pub fn clone_op(kernel: &mut Kernel, op: Op, map: &mut ValueMap) -> Op {
    let data = kernel.ops[op].clone();
    let regions: Vec<_> = data.regions.iter().map(|&region| clone_region(kernel, region, map)).collect();
    let types: Vec<_> = data.results.iter().map(|&result| kernel.ty(result)).collect();
    let operands: Vec<_> = data.operands.iter().map(|&operand| map.map(operand)).collect();
    let copy = kernel.make_op(data.kind, operands, types, regions, data.loc);
    for (index, &result) in data.results.iter().enumerate() {
        map.insert(result, kernel.ops[copy].results[index]);
    }
    copy
}

/// A copy of the region with fresh parameters; the map learns parameters and results. Values from outside go through the map.
pub fn clone_region(kernel: &mut Kernel, region: Region, map: &mut ValueMap) -> Region {
    let copy = kernel.add_region();
    for param in kernel.regions[region].params.clone() {
        let fresh = kernel.add_region_param(copy, kernel.ty(param));
        map.insert(param, fresh);
    }
    for op in kernel.regions[region].ops.clone() {
        let op = clone_op(kernel, op, map);
        kernel.regions[copy].ops.push(op);
    }
    copy
}

/// Copies a region's ops without the terminator, the region's parameters standing for `arguments`. Returns the new ops, to be put
/// where they are wanted, and what the terminator's operands became.
pub fn clone_body(
    kernel: &mut Kernel,
    region: Region,
    arguments: &[Value],
    map: &mut ValueMap,
) -> (Vec<Op>, Vec<Value>) {
    for (index, &argument) in arguments.iter().enumerate() {
        map.insert(kernel.regions[region].params[index], argument);
    }
    let ops = kernel.regions[region].ops.clone();
    let (body, terminator) = match ops.split_last() {
        Some((&last, body)) if kernel.ops[last].kind.is_terminator() => (body, Some(last)),
        _ => (&ops[..], None),
    };
    let copies = body.iter().map(|&op| clone_op(kernel, op, map)).collect();
    let yielded = terminator
        .map(|op| kernel.ops[op].operands.iter().map(|&v| map.map(v)).collect())
        .unwrap_or_default();
    (copies, yielded)
}

/// Takes ops out of the region and of the regions inside where `keep` says no. Whoever calls sees to it that nothing uses their
/// results.
pub fn retain_ops(kernel: &mut Kernel, region: Region, keep: &mut impl FnMut(&Kernel, Op) -> bool) {
    let ops = std::mem::take(&mut kernel.regions[region].ops);
    let kept: Vec<_> = ops.into_iter().filter(|&op| keep(kernel, op)).collect();
    for &op in &kept {
        for inner in kernel.ops[op].regions.clone() {
            retain_ops(kernel, inner, keep);
        }
    }
    kernel.regions[region].ops = kept;
}

/// Takes one op out of the region that it stands in.
pub fn erase_op(kernel: &mut Kernel, region: Region, op: Op) {
    kernel.regions[region].ops.retain(|&other| other != op);
}

/// Puts ops into the region before one that stands there, or at the end where that one does not stand there.
pub fn insert_before(kernel: &mut Kernel, region: Region, before: Op, new: impl IntoIterator<Item = Op>) {
    let ops = &mut kernel.regions[region].ops;
    let at = ops.iter().position(|&op| op == before).unwrap_or(ops.len());
    ops.splice(at..at, new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};
    use crate::verify;

    const NESTED: &str = "kernel @k(%x \"x\": array<i32, 1>, %n \"n\": i32) {
           %zero: i32 = const 0
           %sum: i32 = for %i: i32 in %zero..%n carry (%a: i32 = %zero) {
             %v: i32 = load %x[%i]
             %c: u1 = lt %v, %n
             %b: i32 = if %c {
               %d: i32 = add %a, %v
               yield %d
             } else {
               yield %a
             }
             yield %b
           }
           store %x[%zero], %sum
           return
         }";

    #[test]
    fn a_cloned_op_is_a_second_one_with_values_of_its_own() {
        let mut kernel = parse(NESTED).unwrap();
        let body = kernel.body;
        let (zero, sum) = (kernel.regions[body].ops[0], kernel.regions[body].ops[1]);
        let n = kernel.regions[body].params[1];
        let mut map = ValueMap::new();
        map.insert(kernel.ops[zero].results[0], n);
        let copy = clone_op(&mut kernel, sum, &mut map);
        insert_before(&mut kernel, body, sum, [copy]);
        verify(&kernel).unwrap();
        assert_eq!(kernel.ops[copy].operands.to_vec(), vec![n; 3]);
        let loop_text = |k: &Kernel, op: Op| {
            let mut only = k.clone();
            let kept = only.regions[body].ops.clone();
            only.regions[body].ops.retain(|&o| o == op || o == kept[0] || o == kept[kept.len() - 1]);
            print(&only)
        };
        assert_eq!(
            loop_text(&kernel, copy),
            loop_text(&kernel, sum).replace("%2..%1 carry (%5: i32 = %2)", "%1..%1 carry (%5: i32 = %1)")
        );
    }

    #[test]
    fn a_cloned_body_stands_with_its_arguments() {
        let mut kernel = parse(NESTED).unwrap();
        let body = kernel.body;
        let sum = kernel.regions[body].ops[1];
        let inner = kernel.ops[sum].regions[0];
        let n = kernel.regions[body].params[1];
        let (ops, yielded) = clone_body(&mut kernel, inner, &[n, n], &mut ValueMap::new());
        assert_eq!(ops.len(), 3);
        let result = kernel.ops[sum].results[0];
        kernel.regions[body].ops.splice(1..2, ops);
        replace_value(&mut kernel, result, yielded[0]);
        verify(&kernel).unwrap();
        assert!(use_counts(&kernel)[result] == 0 && use_counts(&kernel)[yielded[0]] == 1);
    }

    #[test]
    fn free_values_and_parents_follow_the_nesting() {
        let kernel = parse(NESTED).unwrap();
        let body = &kernel.regions[kernel.body];
        let inner = kernel.ops[body.ops[1]].regions[0];
        assert_eq!(free_values(&kernel, inner), body.params.to_vec());
        let parents = Parents::new(&kernel);
        let branch = kernel.ops[kernel.regions[inner].ops[2]].regions[0];
        assert!(parents.is_within(branch, inner) && !parents.is_within(inner, branch));
        assert_eq!(parents.op(inner), Some(body.ops[1]));
    }
}
