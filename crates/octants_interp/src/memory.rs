//! Loads, stores and updates of places.

use std::collections::BTreeMap;

use octants_ir::ops::{ArithOp, AtomicOp, BitOp};
use octants_ir::plan::size_and_align;
use octants_ir::{
    ArrayType, Boundary, CellAccess, Const, Data, Id, Layout, Op, OpKind, Place, Scalar, Type, Value,
};
use smallvec::{SmallVec, smallvec};

use crate::address_space::MemoryFault;
use crate::datum::Datum;
use crate::machine::{Machine, MemoryAccess};
use crate::shared::{SharedMemory, Touch};
use crate::trap::{Misuse, Trap, TrapKind};
use crate::{arith, bits, tensor};

/// A cell that a base and a path address.
enum Cell {
    /// In the array's memory; `None` for a component outside the shape, which is read as the first and never written.
    Memory { address: u64, data: Data, inside: bool },
    /// On a tape.
    Tape { tape: usize, index: i128 },
    /// In a `local` or `temp`, with the components of one entry, if one is meant.
    Variable { place: Value, components: Vec<Datum> },
}

/// What a `tape` gave.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    count: i128,
    /// Cells that were stored; the others hold anything, here zero.
    cells: BTreeMap<i128, Datum>,
}

pub fn update(op: AtomicOp, old: Const, value: Const) -> Const {
    match op {
        AtomicOp::Add => arith::binary(ArithOp::Add, old, value),
        AtomicOp::Sub => arith::binary(ArithOp::Sub, old, value),
        AtomicOp::Mul => arith::binary(ArithOp::Mul, old, value),
        AtomicOp::Min => arith::binary(ArithOp::Min, old, value),
        AtomicOp::Max => arith::binary(ArithOp::Max, old, value),
        AtomicOp::And => bits::binary(BitOp::And, old, value),
        AtomicOp::Or => bits::binary(BitOp::Or, old, value),
        AtomicOp::Xor => bits::binary(BitOp::Xor, old, value),
        AtomicOp::Exchange => value,
    }
}

impl<'k> Machine<'k> {
    fn cell_access(&self, op: Op) -> CellAccess<'k> {
        self.kernel.cell_access(op).expect("the caller saw an access")
    }

    fn address(&self, op: Op, place: Place<'_>) -> Result<Cell, Trap> {
        let (base, indices, components) = (place.base(), place.indices(), place.components());
        if let Type::Tape(_) = self.kernel.ty(base) {
            return self.tape_cell(op, base, self.get(indices[0]).integer());
        }
        let Type::Array(array) = self.kernel.ty(base) else {
            return Ok(Cell::Variable { place: base, components: self.operand_data(components) });
        };
        let (param, start, shape) = self.array(base);
        let offset = match self.kernel.layout(array) {
            Some(layout) => self.field_offset(op, param, layout, indices)?,
            None => self.array_offset(op, param, array, shape, indices)?,
        };
        let address = start.wrapping_add(offset);
        let (Data::Tensor(ty), [_, ..]) = (array.elem, components) else {
            return Ok(Cell::Memory { address, data: array.elem, inside: true });
        };
        let position = tensor::position(ty.shape, &self.operand_data(components));
        let offset = position.unwrap_or(0) as u64 * u64::from(ty.elem.bytes());
        let data = Data::Scalar(ty.elem);
        Ok(Cell::Memory { address: address.wrapping_add(offset), data, inside: position.is_some() })
    }

    /// A tape comes to life, or begins again.
    pub fn make_tape(&mut self, op: Op) {
        let place = self.kernel.ops[op].results[0];
        let tape = Tape { count: self.operand(op, 0).integer(), cells: BTreeMap::new() };
        if let Some(number) = self.places[place.index()] {
            self.tapes[number] = tape;
        } else {
            self.places[place.index()] = Some(self.tapes.len());
            self.tapes.push(tape);
        }
    }

    fn tape_cell(&self, op: Op, base: Value, index: i128) -> Result<Cell, Trap> {
        let tape = self.places[base.index()].expect("a tape is made before it is used");
        let count = self.tapes[tape].count;
        if (0..count).contains(&index) {
            Ok(Cell::Tape { tape, index })
        } else {
            self.trap(op, TrapKind::OffTape { index, count })
        }
    }

    /// How many bytes behind a field's first element another one lies: down the tree, from the root, each node's cell inside the one
    /// above.
    fn field_offset(&self, op: Op, param: usize, layout: &Layout, indices: &[Value]) -> Result<u64, Trap> {
        // What is left of each index once the nodes above have taken their part.
        let mut rest = Vec::new();
        for (axis, &index) in indices.iter().enumerate() {
            let (index, origin) = (self.get(index).integer(), layout.origin[axis]);
            let extent = layout.shape[axis] as i32;
            let distance = index - i128::from(origin);
            if distance < 0 || distance >= extent.into() {
                let axis = axis as u8;
                return self.trap(op, TrapKind::OutOfBounds { param, axis, index, origin, extent });
            }
            rest.push(distance as u64);
        }
        let mut offset: u64 = 0;
        for digit in layout.digits() {
            let rest = &mut rest[usize::from(digit.axis)];
            offset = offset.wrapping_add((*rest / u64::from(digit.below)).wrapping_mul(digit.stride));
            *rest %= u64::from(digit.below);
        }
        Ok(offset)
    }

    /// How many bytes behind an array's first element another lies.
    fn array_offset(
        &self,
        op: Op,
        param: usize,
        array: ArrayType,
        shape: &[i32],
        indices: &[Value],
    ) -> Result<u64, Trap> {
        let size = size_and_align(self.kernel, array.elem).0.into();
        let strides = self.strides(param);
        let scalar = array.elem.elem().map_or(0, Scalar::bytes).into();
        let (mut element, mut spaced): (u64, u64) = (0, 0);
        for axis in array.order.axes(indices.len()) {
            let (mut index, extent) = (self.get(indices[axis]).integer(), shape[axis]);
            if array.boundary == Boundary::Clamp {
                index = index.min(i128::from(extent) - 1).max(0);
            }
            let inside = u64::try_from(index).ok().filter(|_| index < i128::from(extent));
            let Some(inside) = inside else {
                return self
                    .trap(op, TrapKind::OutOfBounds { param, axis: axis as u8, index, origin: 0, extent });
            };
            // Extents are below 2^31 and their product is the array's size, so nothing real overflows here; a caller that
            // lies about a shape gets an address without memory.
            element = element.wrapping_mul(extent as u64).wrapping_add(inside);
            let stride = strides.get(axis).map_or(0, |stride| stride.cast_unsigned());
            spaced = spaced.wrapping_add(inside.wrapping_mul(stride).wrapping_mul(scalar));
        }
        Ok(if array.has_strides() { spaced } else { element.wrapping_mul(size) })
    }

    /// The running lane touches the block's memory: each scalar of an element, since others may touch one of them alone.
    fn touch_shared(
        &mut self,
        op: Op,
        (address, data): (u64, Data),
        touch: Touch<'_>,
        access: impl FnOnce(&mut SharedMemory) -> Result<(), MemoryFault>,
    ) -> Result<(), Trap> {
        let bytes = size_and_align(self.kernel, data).0 as usize;
        // Members of a struct have several sizes.
        let scalar = data.elem().map_or(1, |scalar| scalar.bytes() as usize);
        for start in (0..bytes).step_by(scalar) {
            let part = match touch {
                Touch::Writes(bytes) => Touch::Writes(&bytes[start..start + scalar]),
                other => other,
            };
            if let Some((lane, other)) = self.shared.touch(address + start as u64, part) {
                return self.trap(op, TrapKind::Misuse(Misuse::Race { lane, other }));
            }
        }
        access(&mut self.shared).or_else(|fault| self.trap(op, TrapKind::Memory(fault)))
    }

    fn tell(&mut self, op: Op, address: u64, writes: bool) {
        let iteration = self.iteration;
        if let Some(on_access) = &mut self.context.on_access {
            on_access(MemoryAccess { op, address, writes, iteration });
        }
    }

    fn read(&mut self, op: Op, cell: &Cell) -> Result<Datum, Trap> {
        match cell {
            Cell::Memory { address, data, .. } => {
                let mut bytes: SmallVec<[u8; 16]> =
                    smallvec![0; size_and_align(self.kernel, *data).0 as usize];
                if self.shared.holds(*address) {
                    let looks = self.kernel.ops[op].kind == OpKind::VolatileLoad;
                    let touch = if looks { Touch::Looks } else { Touch::Reads };
                    self.touch_shared(op, (*address, *data), touch, |memory| {
                        memory.read(*address, &mut bytes)
                    })?;
                    return Ok(Datum::from_bytes(self.kernel, *data, &bytes));
                }
                self.tell(op, *address, false);
                match self.memory.read(*address, &mut bytes) {
                    Ok(()) => Ok(Datum::from_bytes(self.kernel, *data, &bytes)),
                    Err(fault) => self.trap(op, TrapKind::Memory(fault)),
                }
            }
            Cell::Tape { tape, index } => {
                let held = self.tapes[*tape].cells.get(index).cloned();
                Ok(held.unwrap_or_else(|| Datum::zero(self.kernel, self.result_data(op))))
            }
            Cell::Variable { place, components } if components.is_empty() => Ok(self.cell(*place).clone()),
            Cell::Variable { place, components } => Ok(tensor::get(self.cell(*place), components)),
        }
    }

    fn write(&mut self, op: Op, cell: &Cell, value: &Datum) -> Result<(), Trap> {
        match cell {
            Cell::Memory { inside: false, .. } => Ok(()),
            Cell::Memory { address, data, .. } => {
                let mut bytes: SmallVec<[u8; 16]> =
                    smallvec![0; size_and_align(self.kernel, *data).0 as usize];
                if self.shared.holds(*address) {
                    value.to_bytes(self.kernel, &mut bytes);
                    let touch = Touch::Writes(&bytes);
                    let write = |memory: &mut SharedMemory| memory.write(*address, &bytes);
                    return self.touch_shared(op, (*address, *data), touch, write);
                }
                self.tell(op, *address, true);
                // What lies between members of a struct stays as it is.
                let read = match data {
                    Data::Struct(_) => self.memory.read(*address, &mut bytes),
                    Data::Scalar(_) | Data::Tensor(_) => Ok(()),
                };
                value.to_bytes(self.kernel, &mut bytes);
                match read.and_then(|()| self.memory.write(*address, &bytes)) {
                    Ok(()) => Ok(()),
                    Err(fault) => self.trap(op, TrapKind::Memory(fault)),
                }
            }
            Cell::Tape { tape, index } => {
                self.tapes[*tape].cells.insert(*index, value.clone());
                Ok(())
            }
            Cell::Variable { place, components } if components.is_empty() => {
                *self.cell(*place) = value.clone();
                Ok(())
            }
            Cell::Variable { place, components } => {
                tensor::set(self.cell(*place), components, value);
                Ok(())
            }
        }
    }

    pub fn load(&mut self, op: Op) -> Result<Datum, Trap> {
        let cell = self.address(op, self.cell_access(op).place)?;
        self.read(op, &cell)
    }

    pub fn store(&mut self, op: Op) -> Result<(), Trap> {
        let access = self.cell_access(op);
        let cell = self.address(op, access.place)?;
        let value = self.get(access.values[0]).clone();
        self.write(op, &cell, &value)
    }

    pub fn atomic(&mut self, op: Op, atomic: AtomicOp) -> Result<Datum, Trap> {
        let access = self.cell_access(op);
        let value = self.get(access.values[0]).clone();
        self.combine(op, atomic, access.place, &value)
    }

    /// `cell = op(cell, value)`; what was there before.
    pub fn combine(
        &mut self,
        op: Op,
        atomic: AtomicOp,
        place: Place<'_>,
        value: &Datum,
    ) -> Result<Datum, Trap> {
        self.update(op, place, |old| Some(old.zip(value, |old, value| update(atomic, old, value))))
    }

    /// Replaces what a cell holds, as one step, if `change` gives something for it; what was there before.
    fn update(
        &mut self,
        op: Op,
        place: Place<'_>,
        change: impl Fn(&Datum) -> Option<Datum>,
    ) -> Result<Datum, Trap> {
        let cell = self.address(op, place)?;
        let Cell::Memory { address, data, inside: true } = cell else {
            let old = self.read(op, &cell)?;
            if let Some(new) = change(&old) {
                self.write(op, &cell, &new)?;
            }
            return Ok(old);
        };
        let kernel = self.kernel;
        let mut bytes: SmallVec<[u8; 16]> = smallvec![0; size_and_align(kernel, data).0 as usize];
        let mut old = None;
        let mut step = |bytes: &mut [u8]| {
            let found = Datum::from_bytes(kernel, data, bytes);
            if let Some(new) = change(&found) {
                new.to_bytes(kernel, bytes);
            }
            old = Some(found);
        };
        let updated = if self.shared.holds(address) {
            self.touch_shared(op, (address, data), Touch::Updates, |memory| {
                memory.read(address, &mut bytes)?;
                step(&mut bytes);
                memory.write(address, &bytes)
            })?;
            Ok(())
        } else {
            self.memory.update(address, &mut bytes, &mut step)
        };
        match (updated, old) {
            (Ok(()), Some(old)) => Ok(old),
            (Ok(()), None) => unreachable!("an address space changes what it updates"),
            (Err(fault), _) => self.trap(op, TrapKind::Memory(fault)),
        }
    }

    pub fn atomic_cas(&mut self, op: Op) -> Result<Datum, Trap> {
        let access = self.cell_access(op);
        let [expected, desired] = [access.values[0], access.values[1]].map(|value| self.get(value).clone());
        self.update(op, access.place, |old| (*old == expected).then(|| desired.clone()))
    }

    /// Where a cell lies. Components outside the shape lie where the first does.
    pub fn address_of(&mut self, op: Op) -> Result<Datum, Trap> {
        let place = self.kernel.addressed(op).expect("the caller saw an address");
        match self.address(op, place)? {
            Cell::Memory { address, .. } => Ok(Datum::Scalar(Const::from_bits(Scalar::U64, address))),
            Cell::Variable { .. } | Cell::Tape { .. } => {
                unreachable!("the laws let {} have no address", place.base())
            }
        }
    }

    pub fn extent(&mut self, op: Op, axis: u8) -> Datum {
        let (_, _, shape) = self.array(self.kernel.ops[op].operands[0]);
        Datum::Scalar(Const::i32(shape[axis as usize]))
    }
}
