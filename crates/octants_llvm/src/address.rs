//! From places to addresses.
//!
//! **An index is the wrapped 32-bit value**, as bounds checks and the interpreter see it. Where it is certain to make no
//! difference to an access inside the array (`index_range`), it is computed in 64 bits from the sums, differences and products by
//! loop-invariant values that it is made of, each leaf extended from its 32 bits. LLVM then sees addresses that are affine in
//! the loop's counter.

use octants_ir::ops::ArithOp;
use octants_ir::{ArrayType, Boundary, Data, Layout, Scalar, Spacing, TensorShape, Type, Value};

use crate::alias::Class;
use crate::counter::Index;
use crate::counter::Range;
use crate::emitter::Emitter;
use crate::index_range::Exact;
use crate::value::{Ptr, Ty, Typed, Val, in_memory};

/// Where an access goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// One cell, for all lanes.
    One(Ptr),
    /// As many cells as there are lanes, one behind the other.
    Run(Ptr),
    /// Cells at these offsets from the first lane's: the table of that number.
    Offsets(Ptr, usize),
    /// One cell for each lane.
    Each(Ptr),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub target: Target,
    pub scalar: Scalar,
    pub class: Class,
    /// Of the first cell, in bytes.
    pub align: u32,
    /// Whether the components were inside their shape, where that is not known beforehand.
    pub inside: Option<Val>,
    /// Whether nobody else touches the cells while the task runs: updates need not be atomic.
    pub exclusive: bool,
}

impl Address {
    /// The only cell, of an access that is never widened.
    pub fn one_cell(self) -> Ptr {
        match self.target {
            Target::One(pointer) => pointer,
            Target::Run(_) | Target::Offsets(..) | Target::Each(_) => {
                panic!("an access that cannot be widened has several cells")
            }
        }
    }
}

impl Emitter<'_> {
    /// The address of one scalar: base, indices, components.
    pub(crate) fn address(&mut self, whole: &[Value]) -> Address {
        let (base, path) = whole.split_first().expect("an address begins with a base");
        match self.kernel.ty(*base) {
            Type::Array(array) => {
                let (indices, components) = path.split_at(array.rank.into());
                let offset = match self.kernel.layout(array) {
                    Some(layout) => self.field_offset(layout, elem_of(array.elem), indices),
                    None => self.array_offset(self.array_param(*base), array, indices),
                };
                let (offset, inside) = self.add_components(offset, array.elem, components);
                let of_block = self.locals[*base];
                let (pointer, class) = if let Some(pointer) = of_block {
                    (pointer, Class::Block)
                } else {
                    let param = self.array_param(*base);
                    (self.array_base(param), self.array_class(param))
                };
                let scalar = elem_of(array.elem);
                let align = self.group_alignment(whole, in_memory(scalar).bytes());
                let exclusive = match class {
                    Class::Copied(_) => true,
                    Class::Block => self.lowering.is_block(),
                    _ => self.is_exclusive(*base),
                };
                Address {
                    target: self.element(pointer, scalar, offset),
                    scalar,
                    class,
                    align,
                    inside,
                    exclusive,
                }
            }
            Type::Tape(scalar) => {
                let pointer = self.locals[*base].unwrap_or_else(|| panic!("{base} has no memory"));
                let index = self.index(path[0], Range::array_window());
                let target = if self.lanes.count == 1 {
                    self.element(pointer, scalar, index)
                } else {
                    let columns = self.tape_columns();
                    self.lane_element(pointer, scalar, index, columns)
                };
                let align = in_memory(scalar).bytes();
                Address { target, scalar, class: Class::Local, align, inside: None, exclusive: true }
            }
            Type::Temp(data) => {
                let slot = self.facts.temps[*base];
                let slot = slot.unwrap_or_else(|| panic!("{base} has no slot in the plan"));
                let bytes = self.plan.temps.slots[slot].offset as usize;
                let block = self.temps_block();
                let pointer = self.offset(block, bytes);
                let (offset, inside) = self.add_components(Index::uniform(Val::i64(0)), data, path);
                let scalar = elem_of(data);
                Address {
                    target: self.element(pointer, scalar, offset),
                    scalar,
                    class: Class::Temp(slot),
                    align: in_memory(scalar).bytes(),
                    inside,
                    exclusive: self.is_exclusive(*base),
                }
            }
            Type::Local(data) => {
                let pointer = self.locals[*base].unwrap_or_else(|| panic!("{base} has no alloca"));
                let (offset, inside) = self.add_components(Index::uniform(Val::i64(0)), data, path);
                let scalar = elem_of(data);
                let target = if self.lanes.count == 1 {
                    self.element(pointer, scalar, offset)
                } else {
                    let lanes = Val::i64(self.lanes.count.into());
                    self.lane_element(pointer, scalar, offset, lanes)
                };
                Address {
                    target,
                    scalar,
                    class: Class::Local,
                    align: in_memory(scalar).bytes(),
                    inside,
                    exclusive: true,
                }
            }
            Type::Data(_) => panic!("{base} is no place"),
        }
    }

    /// The class of memory that an array's elements belong to.
    pub(crate) fn array_class(&self, param: usize) -> Class {
        match self.options.noalias {
            // What a function is passed may be any array.
            _ if self.body != self.kernel.body => Class::Unknown,
            _ if self.shared.contains(&param) => Class::Shared(param),
            _ if self.copied.contains(&param) => Class::Copied(param),
            true if self.plan.access[param].written => Class::Array(param),
            true => Class::ReadOnly,
            false => Class::Arrays,
        }
    }

    /// Whether nobody else touches what a place refers to while the task runs. Arrays of the program's own may be memory that other processes see, too.
    pub(crate) fn is_exclusive(&self, base: Value) -> bool {
        let is_own = matches!(self.kernel.ty(base), Type::Temp(_)) || self.kernel.is_field(base);
        self.lowering.is_exclusive() && is_own && !self.kernel.has_branches()
    }

    /// Where cells lie, as numbers.
    pub(crate) fn address_of(&mut self, path: &[Value]) -> Val {
        let address = self.address(path);
        let address = self.each_cell(address);
        match address.target {
            Target::One(pointer) => {
                self.f.value(Ty::new(Scalar::U64, 1), format_args!("ptrtoint ptr {pointer} to i64"))
            }
            Target::Run(first) => {
                let first =
                    self.f.value(Ty::new(Scalar::U64, 1), format_args!("ptrtoint ptr {first} to i64"));
                let steps = Val::lane_ids(Scalar::U64, self.lanes.count);
                let bytes = Val::int(Scalar::U64, address.scalar.bytes().into());
                let steps = self.binary("mul", steps, bytes);
                self.binary("add", first, steps)
            }
            Target::Offsets(..) => unreachable!("each cell has an address"),
            Target::Each(cells) => {
                let ty = Ty::new(Scalar::U64, self.lanes.count);
                self.f.value(ty, format_args!("ptrtoint <{} x ptr> {cells} to {ty}", self.lanes.count))
            }
        }
    }

    /// The offset in scalars of a field's element. Strides are constants, and so is all that origins make of them.
    fn field_offset(&mut self, layout: &Layout, scalar: Scalar, indices: &[Value]) -> Index {
        let mut offset = Index::uniform(Val::i64(0));
        let mut start = 0;
        let bytes = u64::from(scalar.bytes());
        let flat = self.flat_part(layout, indices);
        if let Some((counter, stride, shift, _)) = &flat {
            offset = self.index_mul(Index::uniform(*counter), Val::i64((stride / bytes) as i64));
            start += (shift / i128::from(bytes)) as i64;
        }
        let covered = flat.map(|(.., covered)| covered).unwrap_or_default();
        for (axis, &index) in indices.iter().enumerate() {
            let mut digits = layout.digits_of(axis);
            let Some(digit) = digits.next() else { continue };
            assert!(digits.next().is_none(), "an axis of a task's field is one digit");
            let stride = (digit.stride / bytes) as i64;
            start -= i64::from(layout.origin[axis]) * stride;
            if covered.contains(&axis) {
                continue;
            }
            let index =
                self.index(index, Range::window(layout.origin[axis].into(), layout.shape[axis].into()));
            let cells = self.index_mul(index, Val::i64(stride));
            offset = self.index_add("add", offset, cells);
        }
        self.index_add("add", offset, Index::uniform(Val::i64(start)))
    }

    /// The offset in scalars.
    pub(crate) fn array_offset(&mut self, param: usize, array: ArrayType, indices: &[Value]) -> Index {
        if array.has_strides() {
            return self.spaced_offset(param, array, indices);
        }
        let mut offset = Index::uniform(Val::i64(0));
        for (place, axis) in array.order.axes(indices.len()).enumerate() {
            let index = self.axis_index(param, array, axis, indices[axis]);
            if place == 0 {
                offset = index;
            } else {
                let extent = self.extent(param, axis as u8).1;
                let rows = self.index_mul(offset, extent);
                offset = self.index_add("add", rows, index);
            }
        }
        let entries = array.elem.tensor_shape().map_or(1, TensorShape::count);
        self.index_mul(offset, Val::i64(entries.into()))
    }

    /// The offset in scalars in an array whose strides are passed.
    fn spaced_offset(&mut self, param: usize, array: ArrayType, indices: &[Value]) -> Index {
        let entries = array.elem.tensor_shape().map_or(1, TensorShape::count);
        let fastest = array.order.axes(indices.len()).last();
        let mut offset = Index::uniform(Val::i64(0));
        for axis in array.order.axes(indices.len()) {
            let index = self.axis_index(param, array, axis, indices[axis]);
            let stride = match array.spacing {
                Spacing::Rows if Some(axis) == fastest => Val::i64(entries.into()),
                Spacing::Rows | Spacing::Strided | Spacing::Dense => self.axis_stride(param, axis as u8),
            };
            let cells = self.index_mul(index, stride);
            offset = self.index_add("add", offset, cells);
        }
        offset
    }

    /// The index of an axis, in 64 bits.
    fn axis_index(&mut self, param: usize, array: ArrayType, axis: usize, index: Value) -> Index {
        match array.boundary {
            Boundary::Unsafe => self.index(index, Range::array_window()),
            Boundary::Clamp => self.clamped(param, axis as u8, index),
        }
    }

    /// An index in 64 bits, right for the accesses inside an axis with this window.
    fn index(&mut self, value: Value, window: Range) -> Index {
        let (exact, _) = self.exact(value, window, 6);
        self.exact_index(&exact)
    }

    fn exact_index(&mut self, exact: &Exact) -> Index {
        match exact {
            Exact::Leaf(value) => self.exact_leaf(*value),
            Exact::Wrapped(value) => {
                let lanes = self.get(*value);
                self.index_of(lanes)
            }
            Exact::Node(op, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (self.exact_index(a), self.exact_index(b));
                match (op, b) {
                    (ArithOp::Mul, Index::Linear { base, stride: 0 }) => self.index_mul(a, base),
                    (ArithOp::Mul, _) => {
                        let (a, b) = (self.index_lanes(a), self.index_lanes(b));
                        Index::Lanes(self.exact_mul(a, b))
                    }
                    _ => self.index_add(op.name(), a, b),
                }
            }
        }
    }

    fn exact_leaf(&mut self, value: Value) -> Index {
        if let Some(counter) = self.counters[value] {
            return counter.index;
        }
        if let Some(c) = self.kernel.as_const(value) {
            return Index::uniform(Val::int(Scalar::I64, c.as_i128().unwrap_or_default()));
        }
        let leaf = self.get(value);
        if leaf.lanes > 1
            && let Some(first) = self.first_of(value)
            && let Some(offsets) = self.offsets_from_first(value)
        {
            let first = self.resize(first, Scalar::I64);
            return self.index_at_offsets(first, &offsets);
        }
        if leaf.lanes > 1
            && let Some(stride) = self.lane_stride(value)
        {
            let first = self.lane(leaf, 0);
            return Index::Linear { base: self.resize(first, Scalar::I64), stride };
        }
        self.index_of(leaf)
    }

    fn index_of(&mut self, v: Val) -> Index {
        let wide = self.resize(v, Scalar::I64);
        if wide.lanes == 1 { Index::uniform(wide) } else { Index::Lanes(wide) }
    }

    /// The index clamped into the axis.
    fn clamped(&mut self, param: usize, axis: u8, index: Value) -> Index {
        let index = self.get(index);
        let extent = self.extent(param, axis).0;
        let last = self.binary("sub", extent, Val::int(Scalar::I32, 1));
        let below = self.intrinsic("llvm.smin", &[index, last], "");
        let inside = self.intrinsic("llvm.smax", &[below, Val::int(Scalar::I32, 0)], "");
        self.index_of(inside)
    }

    /// An index as a vector of 64-bit numbers.
    fn index_lanes(&mut self, index: Index) -> Val {
        match index {
            Index::Lanes(v) => v,
            Index::Offsets { first, table } => {
                let first = self.spread(first, self.lanes.count);
                self.plus_table("add nsw", first, table)
            }
            Index::Linear { base, stride } => {
                let lanes = self.lanes.count;
                let base = self.spread(base, lanes);
                if stride == 0 {
                    return base;
                }
                let steps = Val::lane_ids(Scalar::I64, lanes);
                let steps = if stride == 1 { steps } else { self.exact_mul(steps, Val::i64(stride)) };
                self.exact_sum("add", base, steps)
            }
        }
    }

    /// `add` or `sub`.
    fn index_add(&mut self, instruction: &str, a: Index, b: Index) -> Index {
        if let (Index::Linear { base: x, stride: s }, Index::Linear { base: y, stride: t }) = (a, b) {
            let stride = if instruction == "sub" { s.checked_sub(t) } else { s.checked_add(t) };
            if let Some(stride) = stride {
                return Index::Linear { base: self.exact_sum(instruction, x, y), stride };
            }
        }
        if let (Some((x, s)), Some((y, t))) = (self.offsets_of(a), self.offsets_of(b)) {
            let sign = if instruction == "sub" { -1 } else { 1 };
            let offsets: Vec<_> = s.iter().zip(&t).map(|(s, t)| s + sign * t).collect();
            let first = self.exact_sum(instruction, x, y);
            return self.index_at_offsets(first, &offsets);
        }
        let (a, b) = (self.index_lanes(a), self.index_lanes(b));
        Index::Lanes(self.exact_sum(instruction, a, b))
    }

    /// Times a factor that is the same in all lanes.
    fn index_mul(&mut self, index: Index, factor: Val) -> Index {
        match index {
            Index::Linear { base, stride: 0 } => Index::uniform(self.exact_mul(base, factor)),
            Index::Linear { base, stride } => {
                let known = factor.as_int().and_then(|f| i64::try_from(f).ok()?.checked_mul(stride));
                if let Some(stride) = known {
                    Index::Linear { base: self.exact_mul(base, factor), stride }
                } else {
                    let lanes = self.index_lanes(index);
                    Index::Lanes(self.exact_mul(lanes, factor))
                }
            }
            Index::Offsets { first, table } => {
                let offsets = self.table(table);
                let known = factor.as_int().and_then(|f| i64::try_from(f).ok());
                let offsets =
                    known.and_then(|f| offsets.iter().map(|o| o.checked_mul(f)).collect::<Option<Vec<_>>>());
                if let Some(offsets) = offsets {
                    let first = self.exact_mul(first, factor);
                    self.index_at_offsets(first, &offsets)
                } else {
                    let lanes = self.index_lanes(index);
                    Index::Lanes(self.exact_mul(lanes, factor))
                }
            }
            Index::Lanes(lanes) => Index::Lanes(self.exact_mul(lanes, factor)),
        }
    }

    fn exact_sum(&mut self, instruction: &str, a: Val, b: Val) -> Val {
        match (a.as_int(), b.as_int()) {
            (_, Some(0)) if a.lanes >= b.lanes => a,
            (Some(0), _) if instruction == "add" && b.lanes >= a.lanes => b,
            _ => self.binary(if instruction == "sub" { "sub nsw" } else { "add nsw" }, a, b),
        }
    }

    fn exact_mul(&mut self, a: Val, b: Val) -> Val {
        match (a.as_int(), b.as_int()) {
            (_, Some(1)) if a.lanes >= b.lanes => a,
            (Some(0), _) if a.lanes >= b.lanes => a,
            (Some(x), Some(y)) if a.lanes == b.lanes && a.lanes == 1 => Val::int(Scalar::I64, x * y),
            _ => self.binary("mul nsw", a, b),
        }
    }

    /// Adds the components' part to an offset counted in scalars.
    ///
    /// Components outside the shape address the first entry: never memory outside the cell.
    fn add_components(&mut self, cells: Index, data: Data, components: &[Value]) -> (Index, Option<Val>) {
        let Some(shape) = data.tensor_shape() else { return (cells, None) };
        assert_eq!(components.len(), shape.rank(), "a task addresses single scalars");
        let mut inside = None;
        let mut entry = Index::uniform(Val::i64(0));
        for (&component, dim) in components.iter().zip(shape.dims()) {
            let component = self.component(component, dim, &mut inside);
            entry = self.index_mul(entry, Val::i64(dim.into()));
            entry = self.index_add("add", entry, component);
        }
        if let Some(inside) = inside {
            let entries = match entry {
                Index::Linear { base, stride: 0 } if inside.lanes == 1 => base,
                _ => self.index_lanes(entry),
            };
            let entries = self.select(inside, entries, Val::i64(0));
            entry = if entries.lanes == 1 { Index::uniform(entries) } else { Index::Lanes(entries) };
        }
        (self.index_add("add", cells, entry), inside)
    }

    /// One component in 64 bits; notes whether it is inside its dimension, where that is not known.
    fn component(&mut self, component: Value, dim: u32, inside: &mut Option<Val>) -> Index {
        let value = self.get(component);
        if let Some(known) = value.as_int()
            && (0..i128::from(dim)).contains(&known)
        {
            return Index::uniform(Val::int(Scalar::I64, known));
        }
        let wide = self.resize(value, Scalar::I64);
        let within = self.compare("ult", wide, Val::i64(dim.into()));
        *inside = Some(match *inside {
            Some(others) => self.binary("and", others, within),
            None => within,
        });
        self.index_of(wide)
    }

    /// The address of an element of an array of scalars.
    fn element(&mut self, base: impl std::fmt::Display, scalar: Scalar, offset: Index) -> Target {
        let ty = Ty::new(in_memory(scalar), 1);
        if let Index::Linear { base: offset, stride: stride @ (0 | 1) } = offset {
            let pointer =
                self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {base}, {}", Typed(offset)));
            if stride == 0 { Target::One(pointer) } else { Target::Run(pointer) }
        } else if let Some((first, table)) = self.counted_cells(offset) {
            let pointer =
                self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {base}, {}", Typed(first)));
            Target::Offsets(pointer, table)
        } else {
            let lanes = self.index_lanes(offset);
            let pointer =
                self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {base}, {}", Typed(lanes)));
            Target::Each(pointer)
        }
    }

    /// How many cells of a tape lie side by side: one for each lane that may run. Where few do, a tape is as short as they need.
    pub(crate) fn tape_columns(&self) -> Val {
        self.lanes.columns.unwrap_or(Val::i64(self.lanes.count.into()))
    }

    /// The address in widened memory, which holds each of its scalars once for each of so many lanes.
    fn lane_element(&mut self, base: Ptr, scalar: Scalar, offset: Index, columns: Val) -> Target {
        let offset = if let Index::Linear { base, stride: 0 } = offset {
            Index::Linear { base: self.exact_mul(base, columns), stride: 1 }
        } else {
            let entries = self.index_lanes(offset);
            let first = self.exact_mul(entries, columns);
            let ids = Val::lane_ids(Scalar::I64, self.lanes.count);
            Index::Lanes(self.exact_sum("add", first, ids))
        };
        self.element(base, scalar, offset)
    }
}

/// The scalar that a cell is made of.
pub(crate) fn elem_of(data: Data) -> Scalar {
    data.elem().unwrap_or_else(|| panic!("a cell of a task holds scalars or tensors, not {data:?}"))
}
