//! Small arrays that a loop only adds to: each block adds to a copy in its shared memory, which is added to the array in the end.
//!
//! ```text
//! if the copies fit:                                    (known while compiling for fields; asked at launch for arrays)
//!     each element of the copies = neutral; barrier
//!     the loop, with the copies in place of the arrays
//!     barrier; each element of the copies that is not neutral is added to its array
//! else:
//!     the loop
//! ```
//!
//! An element that nothing was added to is neutral bit by bit (-0.0 for reals), and is not touched. Threads of a block add to a copy at the
//! same time, so additions are atomic as they are elsewhere. A histogram of 2²⁶ keys into 1024 bins runs at 3820 GB/s on an H200 so, with
//! blocks of 1024 threads (a kernel written by hand).

use octants_ir::ops::AtomicOp;
use octants_ir::plan::Copied;
use octants_ir::{Op, Scalar};

use super::choose::{Grouping, SHARED_BYTES, Tiling};
use super::registers::Register;
use crate::address::{Address, Target};
use crate::emitter::Emitter;
use crate::value::{Ptr, Ty, Typed, Val, bits_of};

const COPIES: &str = "octants.copies";
/// Where copies begin.
const ALIGNMENT: u64 = 16;

/// A copy of an array in shared memory.
struct SharedCopy {
    param: usize,
    scalar: Scalar,
    /// How many scalars it has.
    count: Val,
    /// Where it begins, in bytes.
    offset: Val,
}

impl Emitter<'_> {
    /// The whole task of a `parallel_for` that adds to such arrays. Gives the thread's totals.
    pub(super) fn scattered_range(
        &mut self,
        op: Op,
        tiling: Tiling,
        grouping: &Grouping,
        copied: &[Copied],
    ) -> Vec<Val> {
        let (copies, bytes) = self.shared_copies(copied);
        if bytes.as_int().is_some() {
            return self.range_with_copies(op, tiling, grouping, &copies);
        }
        let fit = self.compare("ule", bytes, Val::i64(SHARED_BYTES as i64));
        let with = |e: &mut Self| e.range_with_copies(op, tiling, grouping, &copies);
        self.either(fit, with, |e| e.tiled_range(op, tiling, grouping))
    }

    /// Where the copies lie, and how many bytes they take together: a constant, if all are known.
    fn shared_copies(&mut self, copied: &[Copied]) -> (Vec<SharedCopy>, Val) {
        let known: Option<u64> = copied.iter().map(|array| array.span).sum();
        let mut end = Val::i64(0);
        let mut copies = Vec::new();
        let mut known_end = 0;
        for array in copied {
            let (param, scalar) = (array.param, array.scalar);
            let size = u64::from(scalar.bytes());
            if let Some(span) = array.span.filter(|_| known.is_some()) {
                let (count, offset) = (Val::i64((span / size) as i64), Val::i64(known_end as i64));
                copies.push(SharedCopy { param, scalar, count, offset });
                known_end = (known_end + span).next_multiple_of(ALIGNMENT);
                continue;
            }
            let bytes = self.array_bytes(array);
            let count = self.binary("udiv", bytes, Val::i64(size as i64));
            copies.push(SharedCopy { param, scalar, count, offset: end });
            let next = self.binary("add", end, bytes);
            let next = self.binary("add", next, Val::i64(ALIGNMENT as i64 - 1));
            end = self.binary("and", next, Val::i64(-(ALIGNMENT as i64)));
        }
        (copies, if known.is_some() { Val::i64(known_end as i64) } else { end })
    }

    fn array_bytes(&mut self, array: &Copied) -> Val {
        if let Some(span) = array.span {
            return Val::i64(span as i64);
        }
        let slot = self.plan.args.slots[array.param];
        let rank = slot.array().map_or(0, |array| array.rank);
        let mut bytes = Val::i64(slot.bytes.into());
        for axis in 0..rank {
            let extent = self.extent(array.param, axis).1;
            bytes = self.binary("mul", bytes, extent);
        }
        bytes
    }

    fn range_with_copies(
        &mut self,
        op: Op,
        tiling: Tiling,
        grouping: &Grouping,
        copies: &[SharedCopy],
    ) -> Vec<Val> {
        let places: Vec<_> = copies.iter().map(|copy| self.shared_place(copy.offset)).collect();
        for (copy, &place) in copies.iter().zip(&places) {
            let neutral = self.identity(AtomicOp::Add, copy.scalar);
            self.each_element(copy, tiling.block, |e, element| {
                let cell = e.cell(place, copy.scalar, element);
                e.f.line(format_args!("store {}, ptr {cell}, align {}", Typed(neutral), copy.scalar.bytes()));
            });
        }
        self.wait_for_block();
        let arrays: Vec<_> = copies.iter().map(|copy| self.array_base(copy.param)).collect();
        for (copy, &place) in copies.iter().zip(&places) {
            self.set_array_base(copy.param, place);
            self.shared.push(copy.param);
        }
        let totals = self.tiled_range(op, tiling, grouping);
        for (copy, &array) in copies.iter().zip(&arrays) {
            self.set_array_base(copy.param, array);
        }
        self.shared.clear();
        self.wait_for_block();
        for ((copy, &place), &array) in copies.iter().zip(&places).zip(&arrays) {
            self.each_element(copy, tiling.block, |e, element| e.add_element(copy, place, array, element));
        }
        totals
    }

    /// Adds an element of a copy to its array, if anything was added to it.
    fn add_element(&mut self, copy: &SharedCopy, place: Ptr, array: Ptr, element: Val) {
        let (scalar, align) = (copy.scalar, copy.scalar.bytes());
        let ty = Ty::new(scalar, 1);
        let from = self.cell(place, scalar, element);
        let sum = self.f.value(ty, format_args!("load {ty}, ptr {from}, align {align}"));
        let neutral = self.identity(AtomicOp::Add, scalar);
        let word = bits_of(scalar);
        let (bits, untouched) = (self.bit_cast(sum, word), self.bit_cast(neutral, word));
        let touched = self.compare("ne", bits, untouched);
        let (add, done) = (self.f.new_label(), self.f.new_label());
        self.f.branch(touched, add, done);
        self.f.begin(add);
        let target = Target::One(self.cell(array, scalar, element));
        let class = self.array_class(copy.param);
        self.atomic_at(
            AtomicOp::Add,
            Address { target, scalar, class, align, inside: None, exclusive: false },
            sum,
        );
        self.f.jump(done);
        self.f.begin(done);
    }

    fn cell(&mut self, base: Ptr, scalar: Scalar, element: Val) -> Ptr {
        let ty = Ty::new(scalar, 1);
        self.f.pointer(format_args!("getelementptr inbounds {ty}, ptr {base}, {}", Typed(element)))
    }

    /// The threads of a block take the elements of a copy in turn.
    fn each_element(&mut self, copy: &SharedCopy, block: u32, run: impl FnOnce(&mut Self, Val)) {
        let thread = self.wide_register(Register::Thread);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);
        self.f.begin(head);
        let element = self.f.phi(Ty::new(Scalar::I64, 1));
        let more = self.compare("ult", element.value, copy.count);
        self.f.branch(more, inside, done);
        self.f.begin(inside);
        run(self, element.value);
        let next = self.binary("add", element.value, Val::i64(block.into()));
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.f.fill(element, &[(thread, before), (next, latch)]);
        self.f.begin(done);
    }

    fn shared_place(&mut self, offset: Val) -> Ptr {
        self.module.declare(COPIES, || {
            format!("@{COPIES} = internal addrspace(3) global [{SHARED_BYTES} x i8] undef, align {ALIGNMENT}")
        });
        let place = self.f.pointer(format_args!(
            "getelementptr inbounds i8, ptr addrspace(3) @{COPIES}, {}",
            Typed(offset)
        ));
        self.f.pointer(format_args!("addrspacecast ptr addrspace(3) {place} to ptr"))
    }
}
