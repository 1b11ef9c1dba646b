//! What lanes count: computed once, for the first lane, with an offset for each of the others.
//!
//! So an address is the first lane's, and loads of cells close by are loads of runs, whose elements are then put in the lanes' order.

use std::rc::Rc;

use octants_ir::{Op, Scalar, Value};

use crate::address::{Address, Target};
use crate::counter::Index;
use crate::emitter::Emitter;
use crate::value::{Ptr, Ty, Typed, Val, in_memory};

/// Vectors that are loaded, and whose elements are put in order, rather than one element for each lane. Chosen, not measured: each one takes a load and an instruction
/// that picks from two vectors; a gather takes as long as one load for each lane.
const MAX_LOADS: i64 = 4;
/// Bits of vectors from which a gather is better than a load for each lane. Processors that gain by shorter vectors alone take several times as long for a gather, since it was made
/// safe: with gathers, running sums of `benches/simt.py` reach 0.4 of what a plain loop does, and 0.7 without.
const FAST_GATHERS: u32 = 512;

impl Emitter<'_> {
    /// Whether the lanes count what an op gives.
    pub(crate) fn is_counted(&self, op: Op) -> bool {
        self.lanes.count > 1
            && matches!(self.kernel.ops[op].results[..], [result] if self.lanes.offsets[result].is_some())
    }

    /// Such an op: once, as scalar code, with what the first lane has.
    pub(crate) fn counted_op(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let result = data.results[0];
        let held = self.known(data.operands.iter().copied());
        for &(operand, val) in &held {
            if val.lanes > 1 {
                let first = self.lanes.firsts[operand];
                self.reset(operand, Some(first.expect("what is counted comes from what is counted")));
            }
        }
        self.as_scalar(|e| e.rounded_op(op));
        let first = self.get(result);
        for (operand, val) in held {
            self.reset(operand, Some(val));
        }
        self.set_counted(result, first);
    }

    /// A value of which the first lane has this.
    pub(crate) fn set_counted(&mut self, value: Value, first: Val) {
        let Some(offsets) = self.offsets_from_first(value) else { return self.set(value, first) };
        if offsets.iter().all(|&offset| offset == 0) {
            return self.set(value, first);
        }
        let table = self.table_of(&offsets);
        let all = self.spread(first, self.lanes.count);
        let all = self.plus_table("add", all, table);
        self.lanes.firsts.set(value, Some(first));
        self.set(value, all);
    }

    /// What the first lane has of a value that lanes count.
    pub(crate) fn first_of(&self, value: Value) -> Option<Val> {
        self.lanes.firsts[value].filter(|_| self.lanes.count > 1)
    }

    pub(crate) fn offsets_from_first(&self, value: Value) -> Option<Rc<[i64]>> {
        self.lanes.offsets[value]
            .as_ref()
            .filter(|_| self.lanes.count > 1)
            .map(super::offsets::Offsets::beyond_first)
    }

    pub(crate) fn table(&self, table: usize) -> Rc<[i64]> {
        Rc::clone(&self.lanes.tables[table])
    }

    fn table_of(&mut self, offsets: &[i64]) -> usize {
        let known = self.lanes.tables.iter().position(|table| **table == *offsets);
        known.unwrap_or_else(|| {
            self.lanes.tables.push(offsets.into());
            self.lanes.tables.len() - 1
        })
    }

    /// A vector of integers and offsets.
    pub(crate) fn plus_table(&mut self, add: &str, v: Val, table: usize) -> Val {
        let offsets = vector_text(v.ty, &self.table(table));
        self.f.value(v.ty(), format_args!("{add} {}, {offsets}", Typed(v)))
    }

    /// The index of which the first lane has this; the first offset is 0.
    pub(crate) fn index_at_offsets(&mut self, first: Val, offsets: &[i64]) -> Index {
        let stride = offsets.get(1).copied().unwrap_or_default();
        let is_linear = offsets.iter().zip(0..).all(|(&offset, lane)| offset == stride * lane);
        if is_linear {
            return Index::Linear { base: first, stride };
        }
        Index::Offsets { first, table: self.table_of(offsets) }
    }

    /// An index as the first lane's and offsets.
    pub(crate) fn offsets_of(&self, index: Index) -> Option<(Val, Vec<i64>)> {
        match index {
            Index::Linear { base, stride } => {
                Some((base, (0..i64::from(self.lanes.count)).map(|lane| stride * lane).collect()))
            }
            Index::Offsets { first, table } => Some((first, self.table(table).to_vec())),
            Index::Lanes(_) => None,
        }
    }

    /// The first lane's index and the offsets of the others. Of the lanes of a block alone.
    pub(crate) fn counted_cells(&mut self, index: Index) -> Option<(Val, usize)> {
        let (first, offsets) = self.offsets_of(index).filter(|_| self.lanes.are_of_block)?;
        Some((first, self.table_of(&offsets)))
    }

    /// Cells that are loaded without a gather, if they are such; otherwise each has an address of its own. Of a lane that does not run nobody knows whether it names memory.
    pub(crate) fn loaded_cells(&mut self, address: Address) -> Address {
        let gathers = self.lowering.vector_bits() >= FAST_GATHERS;
        match address.target {
            Target::Offsets(_, table)
                if self.lanes.mask.is_none() && (!gathers || is_close_by(&self.table(table))) =>
            {
                address
            }
            _ => self.each_cell(address),
        }
    }

    /// The same cells, each with an address of its own.
    pub(crate) fn each_cell(&mut self, address: Address) -> Address {
        let Target::Offsets(first, table) = address.target else { return address };
        let ty = Ty::new(in_memory(address.scalar), 1);
        let offsets = vector_text(Scalar::I64, &self.table(table));
        let count = self.lanes.count;
        let cells = self
            .f
            .pointer(format_args!("getelementptr inbounds {ty}, ptr {first}, <{count} x i64> {offsets}"));
        Address { target: Target::Each(cells), ..address }
    }

    /// A store for each lane, in their order.
    pub(crate) fn store_one_by_one(&mut self, (first, table): (Ptr, usize), value: Val, address: Address) {
        let ty = Ty::new(value.ty, 1);
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        for (&offset, lane) in self.table(table).iter().zip(0..) {
            let value = self.lane(value, lane);
            let cell = self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {first}, i64 {offset}"));
            let align = ty.scalar.bytes();
            self.f.line(format_args!("store {}, ptr {cell}, align {align}{suffix}", Typed(value)));
        }
    }

    /// The cells of all lanes. Each is aligned as an element is: what is known of the first one's alignment says nothing of others.
    pub(crate) fn load_offsets(&mut self, (first, table): (Ptr, usize), scalar: Scalar, suffix: &str) -> Val {
        let offsets = self.table(table);
        if is_close_by(&offsets) {
            // What is known of the cells that the program names says nothing of those between them.
            let suffix = if has_gaps(&offsets) { "" } else { suffix };
            return self.load_close_by((first, table), scalar, suffix);
        }
        let align = scalar.bytes();
        let (one, ty) = (Ty::new(scalar, 1), Ty::new(scalar, self.lanes.count));
        let mut all = None;
        for (lane, offset) in offsets.iter().enumerate() {
            let cell =
                self.f.pointer(format_args!("getelementptr inbounds {one}, ptr {first}, i64 {offset}"));
            let loaded = self.f.value(one, format_args!("load {one}, ptr {cell}, align {align}{suffix}"));
            let before = all.map_or_else(|| "poison".to_owned(), |v: Val| v.to_string());
            all = Some(
                self.f.value(ty, format_args!("insertelement {ty} {before}, {}, i64 {lane}", Typed(loaded))),
            );
        }
        all.expect("there is a lane")
    }

    /// Loads what lies from the first cell to the last one, and puts it in order.
    fn load_close_by(&mut self, (first, table): (Ptr, usize), scalar: Scalar, suffix: &str) -> Val {
        let (offsets, align) = (self.table(table), scalar.bytes());
        let lanes = i64::from(self.lanes.count);
        let least = offsets.iter().copied().min().unwrap_or_default();
        let span = offsets.iter().copied().max().unwrap_or_default() - least + 1;
        let wide = span.min(lanes);
        let element = Ty::new(scalar, 1);
        let (run, ty) = (Ty::new(scalar, wide as u32), Ty::new(scalar, lanes as u32));
        // The last one ends where the cells do.
        let begins: Vec<_> =
            (0..(span + wide - 1) / wide).map(|part| (part * wide).min(span - wide)).collect();
        let mut gathered: Option<Val> = None;
        for (part, &begin) in begins.iter().enumerate() {
            let at = self.f.pointer(format_args!(
                "getelementptr inbounds {element}, ptr {first}, i64 {}",
                least + begin
            ));
            let loaded = self.f.value(run, format_args!("load {run}, ptr {at}, align {align}{suffix}"));
            let is_here = |offset: i64| {
                let at = offset - least;
                at >= part as i64 * wide && at < (part as i64 + 1) * wide
            };
            let picks: Vec<_> = offsets
                .iter()
                .zip(0..)
                .map(|(&offset, lane)| match (is_here(offset), gathered) {
                    (true, None) => offset - least - begin,
                    (true, Some(_)) => lanes + offset - least - begin,
                    // What no part before had either is undefined until its own.
                    (false, _) => lane,
                })
                .collect();
            let picks = vector_text(Scalar::I32, &picks);
            gathered = Some(match gathered {
                None => self.f.value(
                    ty,
                    format_args!("shufflevector {}, {run} poison, <{lanes} x i32> {picks}", Typed(loaded)),
                ),
                Some(before) => self.f.value(
                    ty,
                    format_args!(
                        "shufflevector {}, {}, <{lanes} x i32> {picks}",
                        Typed(before),
                        Typed(loaded)
                    ),
                ),
            });
        }
        gathered.expect("there is a cell")
    }
}

/// Whether cells at these offsets are loaded with few vectors.
pub(crate) fn is_close_by(offsets: &[i64]) -> bool {
    let (least, most) = (offsets.iter().min(), offsets.iter().max());
    let span = most.copied().unwrap_or_default() - least.copied().unwrap_or_default() + 1;
    span <= MAX_LOADS * offsets.len() as i64
}

/// Whether there are cells between those at these offsets that none of them names.
fn has_gaps(offsets: &[i64]) -> bool {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[1] - pair[0] > 1)
}

/// A constant vector.
fn vector_text(scalar: Scalar, entries: &[i64]) -> String {
    let entries: Vec<_> =
        entries.iter().map(|&entry| Typed(Val::int(scalar, entry.into())).to_string()).collect();
    format!("<{}>", entries.join(", "))
}
