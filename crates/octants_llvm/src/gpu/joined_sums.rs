//! Sums of neighbouring reals of 32 bits by one instruction, which GPUs have for two and four of them from compute capability 9.0 on.
//!
//! What updates of memory cost is how many of them reach the cache. A vector that is added to a cell, or particles that add to three
//! neighbouring cells of each row of a grid, update cells that lie side by side. So the updates of a straight run of ops are collected by the
//! row that they belong to, whatever else stands between them, and written behind the last one of each *run* of neighbouring cells:
//!
//! ```text
//! 6 cells from a multiple of 8 bytes:   if the first is a multiple of 16:  4 cells, 2 cells      else:  2 cells, 4 cells
//! 3 cells:                              if the first is a multiple of 8:   2 cells, 1 cell       else:  1 cell, 2 cells
//! ```
//!
//! Both sides of such an *odd* number of halves have the same instructions, so addresses and values are selected and no lane waits for
//! another. With an even number there is a branch. MPM-88 with 1M particles takes 192 µs for its sums on an H200 so, and 286 µs with pairs of one
//! cell alone (kernels written by hand).
//!
//! Threads may see several cells change at once, which they might have anyway. An update is never moved across an access that could tell: one
//! of the same array, of any array where arrays may overlap, nor across a loop, a condition or a call.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use octants_ir::ops::{ArithOp, AtomicOp};
use octants_ir::{Boundary, Const, Data, Kernel, Op, OpKind, Scalar, Spacing, Type, Value};

use super::runs::{cell_of, entry};
use crate::address::{Address, Target};
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::iterations::Sharing;
use crate::lowering::JoinedSums;
use crate::value::{Ptr, Ty, Val};

/// Bytes of a real.
const BYTES: i128 = 4;
const ADDRESS: Ty = Ty { scalar: Scalar::I64, lanes: 1 };
/// Reals of the widest update.
const WIDEST: usize = 4;
/// How far a constant moves an index, at most: far below where 32 bits wrap.
const FARTHEST: i128 = 1 << 20;

/// Cells whose distances are known.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Row {
    param: usize,
    /// What each index is, apart from a constant.
    leaves: Vec<Option<Value>>,
    /// Constants of the axes whose strides are not known.
    constants: Vec<i128>,
}

/// Updates of an array that nothing between them can tell apart, by row.
#[derive(Default)]
struct Open {
    /// By bytes behind the row's beginning, no two the same; with their places among the ops.
    rows: Vec<BTreeMap<i128, (usize, Op)>>,
    numbers: HashMap<Row, usize>,
}

impl Open {
    fn add(&mut self, row: Row, bytes: i128, (place, op): (usize, Op)) {
        let number = *self.numbers.entry(row).or_insert(self.rows.len());
        if number == self.rows.len() {
            self.rows.push(BTreeMap::new());
        }
        self.rows[number].entry(bytes).or_insert((place, op));
    }

    /// Takes rows apart into runs of neighbouring cells.
    fn close(self, joined: &mut Vec<JoinedSums>) {
        for cells in self.rows {
            let cells: Vec<_> = cells.into_iter().collect();
            for run in cells.chunk_by(|a, b| a.0 + BYTES == b.0).filter(|run| run.len() > 1) {
                let last = run.iter().map(|&(_, placed)| placed).max_by_key(|&(place, _)| place);
                let ops = run.iter().map(|&(_, (_, op))| op).collect();
                joined.extend(last.map(|(_, last)| JoinedSums { ops, last }));
            }
        }
    }
}

impl Emitter<'_> {
    /// The updates among ops that are written together.
    pub(super) fn neighbouring_sums(&self, ops: &[Op]) -> Vec<JoinedSums> {
        let mut joined = Vec::new();
        // By the array's parameter.
        let mut open: BTreeMap<usize, Open> = BTreeMap::new();
        for (place, &op) in ops.iter().enumerate() {
            let data = &self.kernel.ops[op];
            if let Some((row, bytes)) = self.summed_cell(op) {
                open.entry(row.param).or_default().add(row, bytes, (place, op));
                continue;
            }
            let touched = data.operands.first().map(|&place| self.kernel.ty(place));
            let touches_one = self.kernel.cell_access(op).is_some();
            match touched {
                _ if data.kind.is_pure() || data.kind == OpKind::Local => {}
                Some(Type::Local(_)) if touches_one => {}
                // Others do not share its memory.
                Some(Type::Array(_)) if touches_one && self.options.noalias => {
                    let param = self.kernel.as_param(data.operands[0]);
                    let closed = param.and_then(|param| open.remove(&param));
                    if let Some(open) = closed {
                        open.close(&mut joined);
                    }
                }
                _ => std::mem::take(&mut open).into_values().for_each(|open| open.close(&mut joined)),
            }
        }
        for open in open.into_values() {
            open.close(&mut joined);
        }
        joined
    }

    /// The cell that an op adds to, if nobody asks for what it held.
    fn summed_cell(&self, op: Op) -> Option<(Row, i128)> {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub) = data.kind else { return None };
        let path = &data.operands[..data.operands.len() - 1];
        let (param, Type::Array(array)) = (kernel.as_param(path[0])?, kernel.ty(path[0])) else {
            return None;
        };
        let is_real =
            !matches!(array.elem, Data::Struct(_)) && crate::address::elem_of(array.elem) == Scalar::F32;
        let is_global = !matches!(self.array_class(param), Class::Shared(_) | Class::Unknown);
        let is_used = self.facts.used[data.results[0]];
        if !is_real || !is_global || is_used || array.boundary == Boundary::Clamp || self.lanes.count > 1 {
            return None;
        }
        let (indices, components) = path[1..].split_at(array.rank.into());
        let mut bytes = i128::from(entry(kernel, array.elem, components)?) * BYTES;
        let element = BYTES * array.elem.tensor_shape().map_or(1, |shape| i128::from(shape.count()));
        let fastest = array.order.axes(indices.len()).last();
        let (mut leaves, mut constants) = (Vec::new(), Vec::new());
        for (axis, &index) in indices.iter().enumerate() {
            let (leaf, constant) = moved(kernel, index);
            leaves.push(leaf);
            let stride = match kernel.layout(array) {
                Some(layout) => {
                    layout.digits_of(axis).next().map_or(Some(0), |digit| Some(digit.stride.into()))
                }
                // Elements of a view lie as far apart as it is told at launch.
                None => (fastest == Some(axis) && array.spacing != Spacing::Strided).then_some(element),
            };
            match stride {
                Some(stride) => bytes += constant * stride,
                None => constants.push(constant),
            }
        }
        Some((Row { param, leaves, constants }, bytes))
    }

    /// Emits the updates of neighbouring cells, first to last, or a single one.
    pub(super) fn add_neighbours(&mut self, sums: &JoinedSums) {
        let kernel = self.kernel;
        let first = &kernel.ops[sums.ops[0]].operands;
        let path = &first[..first.len() - 1];
        let values = sums.ops.iter().map(|&op| {
            let data = &kernel.ops[op];
            let value = self.get(*data.operands.last().expect("an update has a value"));
            match data.kind {
                OpKind::Atomic(AtomicOp::Sub) => self.arith(ArithOp::Neg, value, value),
                _ => value,
            }
        });
        let values: Vec<_> = values.collect();
        let address = self.address(path);
        match self.sharing(sums.ops[0]) {
            Sharing::Unknown => self.add_cells(path, address, &values),
            Sharing::Some => {
                let cell = address.one_cell();
                self.add_for_warp(cell, &values, |e, values| e.add_cells(path, address, values));
            }
            Sharing::All => self.add_for_all_lanes(&values, |e, values| e.add_cells(path, address, values)),
        }
    }

    /// Adds to a run of cells, which begins at a path.
    fn add_cells(&mut self, path: &[Value], address: Address, values: &[Val]) {
        if let &[value] = values {
            self.atomic_at(AtomicOp::Add, address, value);
            return;
        }
        let param = self.array_param(path[0]);
        let alignment = cell_of(self.kernel, path).map_or(0, super::runs::Cell::alignment);
        let half = (alignment as usize / BYTES as usize).clamp(1, WIDEST);
        if half == 1 || self.group.as_ref().is_some_and(|group| group.aligned.contains(&param)) {
            return self.add_run(address, values, half);
        }
        // Elements are aligned as the array is, which is asked nowhere else.
        let base = self.array_base(param);
        let bits = self.f.value(ADDRESS, format_args!("ptrtoint ptr {base} to i64"));
        let low = self.binary("and", bits, Val::i64(half as i64 * BYTES as i64 - 1));
        let aligned = self.compare("eq", low, Val::i64(0));
        let (whole, single, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let likely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 {aligned}, label %{whole}, label %{single}, !prof {likely}"));
        self.f.begin(whole);
        self.add_run(address, values, half);
        self.f.jump(done);
        self.f.begin(single);
        self.add_chunks(address, 0, values, 1);
        self.f.jump(done);
        self.f.begin(done);
    }

    /// Adds reals to a run of cells, the first of which is at a multiple of `half` reals.
    fn add_run(&mut self, address: Address, values: &[Val], half: usize) {
        let whole = 2 * half;
        let (halves, rest) = (values.len() / half, values.len() % half);
        let (halved, rest) = values.split_at(values.len() - rest);
        if half == WIDEST || halves < 2 {
            self.add_chunks(address, 0, halved, half);
        } else {
            let first = address.one_cell();
            let bits = self.f.value(ADDRESS, format_args!("ptrtoint ptr {first} to i64"));
            let low = self.binary("and", bits, Val::i64((half as i64) * BYTES as i64));
            let is_odd = self.compare("ne", low, Val::i64(0));
            let pairs = halves / 2;
            if halves % 2 == 1 {
                let shifted = self.cell_behind(first, half);
                let from = self.selected_pointer(is_odd, shifted, first);
                let shifted =
                    halved[half..].iter().zip(halved).map(|(&odd, &even)| self.select(is_odd, odd, even));
                let shifted: Vec<_> = shifted.collect();
                self.add_chunks(
                    Address { target: Target::One(from), ..address },
                    0,
                    &shifted[..pairs * whole],
                    whole,
                );
                let last = self.cell_behind(first, pairs * whole);
                let from = self.selected_pointer(is_odd, first, last);
                let left = halved[..half].iter().zip(&halved[pairs * whole..]);
                let left: Vec<_> = left.map(|(&odd, &even)| self.select(is_odd, odd, even)).collect();
                self.add_chunks(Address { target: Target::One(from), ..address }, 0, &left, half);
            } else {
                let (odd, even, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
                self.f.branch(is_odd, odd, even);
                self.f.begin(even);
                self.add_chunks(address, 0, halved, whole);
                self.f.jump(done);
                self.f.begin(odd);
                self.add_chunks(address, 0, &halved[..half], half);
                self.add_chunks(address, half, &halved[half..halved.len() - half], whole);
                self.add_chunks(address, halved.len() - half, &halved[halved.len() - half..], half);
                self.f.jump(done);
                self.f.begin(done);
            }
        }
        for (number, &value) in rest.iter().enumerate() {
            self.add_chunks(address, halved.len() + number, &[value], 1);
        }
    }

    /// Adds reals from so many cells behind the first on, so many by each update. They are a multiple of that.
    fn add_chunks(&mut self, address: Address, mut behind: usize, values: &[Val], width: usize) {
        let first = address.one_cell();
        for chunk in values.chunks(width) {
            let cell = self.cell_behind(first, behind);
            behind += width;
            if let &[value] = chunk {
                self.atomic_at(AtomicOp::Add, Address { target: Target::One(cell), ..address }, value);
                continue;
            }
            let cell = self.f.pointer(format_args!("addrspacecast ptr {cell} to ptr addrspace(1)"));
            self.add_together(cell, chunk);
        }
    }

    /// Adds two or four reals to the cells from one of global memory on, by one instruction.
    fn add_together(&mut self, cell: Ptr, values: &[Val]) {
        let both = self.vendor().add_neighbours.as_ref().expect("sums are joined where they can be");
        let instruction = &both[usize::from(values.len() == WIDEST)];
        let mut operands: Vec<&dyn Display> = vec![&cell];
        operands.extend(values.iter().map(|value| value as &dyn Display));
        let text = self.instruction(instruction, &operands);
        self.f.line(format_args!("{text}"));
    }

    fn cell_behind(&mut self, first: Ptr, cells: usize) -> Ptr {
        match cells {
            0 => first,
            _ => self.f.pointer(format_args!("getelementptr float, ptr {first}, i64 {cells}")),
        }
    }

    fn selected_pointer(&mut self, condition: Val, a: Ptr, b: Ptr) -> Ptr {
        self.f.pointer(format_args!("select i1 {condition}, ptr {a}, ptr {b}"))
    }
}

/// An index as a value and a constant that is added to it.
fn moved(kernel: &Kernel, index: Value) -> (Option<Value>, i128) {
    let constant = |value: Value| {
        let known = kernel.as_const(value).and_then(Const::as_i128);
        known.filter(|known| (-FARTHEST..=FARTHEST).contains(known))
    };
    if let Some(known) = constant(index) {
        return (None, known);
    }
    let Some(def) = kernel.def(index).filter(|_| kernel.ty(index) == Type::I32) else {
        return (Some(index), 0);
    };
    let (value, by) = match (&def.kind, &def.operands[..]) {
        (OpKind::Arith(ArithOp::Add), &[a, b]) => match (constant(a), constant(b)) {
            (_, Some(b)) => (a, b),
            (Some(a), _) => (b, a),
            _ => return (Some(index), 0),
        },
        (OpKind::Arith(ArithOp::Sub), &[a, b]) => match constant(b) {
            Some(b) => (a, -b),
            None => return (Some(index), 0),
        },
        _ => return (Some(index), 0),
    };
    let (leaf, further) = moved(kernel, value);
    if leaf.is_none() || (further + by).abs() > FARTHEST { (Some(index), 0) } else { (leaf, further + by) }
}
