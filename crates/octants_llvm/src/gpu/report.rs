//! What a task tells the host: faults and prints.

use super::instructions::filled;
use super::vendor::Vendor;
use crate::emitter::Emitter;
use crate::report::FaultOrdering;
use crate::value::{Typed, Val};
use octants_abi::gpu::GpuFrame;

const ORDERING: FaultOrdering =
    FaultOrdering { take: "monotonic monotonic", fence: Some(fence), publish: "monotonic" };

/// Appends a record to a ring of prints, or counts it as dropped where there is no room. The ring is `octants_hal`'s `PrintRing`: the
/// address of counters, words read, whether records were dropped, capacity, then the records. The counters are in the device's memory:
/// words reserved, records dropped. The host reads while the device writes, so the header comes last, behind a fence that the host sees.
///
/// Threads of a warp that print together reserve together: the first of those whose records are equally long asks for all of them. They meet in the vendor's
/// words, `<0>` and `<1>`; `<2>` is the fence.
const PRINT: &str = "\
define internal void @octants.print(ptr %ring, i32 %site, i32 %count, ptr %slots) noinline nounwind convergent {
entry:
  %counters = load ptr, ptr %ring, align 8
  %lost.at = getelementptr inbounds i64, ptr %counters, i64 1
  %consumed.at = getelementptr inbounds i64, ptr %ring, i64 1
  %dropped.at = getelementptr inbounds i64, ptr %ring, i64 2
  %capacity.at = getelementptr inbounds i64, ptr %ring, i64 3
  %words = getelementptr inbounds i64, ptr %ring, i64 4
  %capacity = load i64, ptr %capacity.at, align 8
  %mask = sub i64 %capacity, 1
  %operands = zext i32 %count to i64
  %length = add i64 %operands, 1
<0>
  %wanted = zext i32 %together to i64
  %is.first = icmp eq i32 %rank, 0
  br i1 %is.first, label %try, label %share
try:
  %reserved = load atomic volatile i64, ptr %counters monotonic, align 8
  %consumed = load atomic volatile i64, ptr %consumed.at monotonic, align 8
  %used = sub i64 %reserved, %consumed
  %free = sub i64 %capacity, %used
  %room = udiv i64 %free, %length
  %has.room = icmp ult i64 %wanted, %room
  %taken = select i1 %has.room, i64 %wanted, i64 %room
  %has.none = icmp eq i64 %taken, 0
  br i1 %has.none, label %share, label %reserve
reserve:
  %taken.words = mul i64 %taken, %length
  %end = add i64 %reserved, %taken.words
  %pair = cmpxchg ptr %counters, i64 %reserved, i64 %end monotonic monotonic, align 8
  %is.reserved = extractvalue { i64, i1 } %pair, 1
  br i1 %is.reserved, label %share, label %try
share:
  %own.taken = phi i64 [ 0, %entry ], [ 0, %try ], [ %taken, %reserve ]
  %own.begin = phi i64 [ 0, %entry ], [ 0, %try ], [ %reserved, %reserve ]
  %own.count = trunc i64 %own.taken to i32
  %own.low = trunc i64 %own.begin to i32
  %own.shifted = lshr i64 %own.begin, 32
  %own.high = trunc i64 %own.shifted to i32
<1>
  %fits = icmp ult i32 %rank, %fitting
  br i1 %fits, label %place, label %full
place:
  %low.wide = zext i32 %low to i64
  %high.wide = zext i32 %high to i64
  %high.part = shl i64 %high.wide, 32
  %all.begin = or i64 %high.part, %low.wide
  %rank.wide = zext i32 %rank to i64
  %skipped = mul i64 %rank.wide, %length
  %begin = add i64 %all.begin, %skipped
  br label %head
head:
  %k = phi i64 [ 0, %place ], [ %k.next, %body ]
  %more = icmp ult i64 %k, %operands
  br i1 %more, label %body, label %publish
body:
  %from = getelementptr inbounds i64, ptr %slots, i64 %k
  %word = load i64, ptr %from, align 8
  %k.next = add i64 %k, 1
  %position = add i64 %begin, %k.next
  %place.at = and i64 %position, %mask
  %to = getelementptr inbounds i64, ptr %words, i64 %place.at
  store volatile i64 %word, ptr %to, align 8
  br label %head
publish:
  <2>
  %header.place = and i64 %begin, %mask
  %header.at = getelementptr inbounds i64, ptr %words, i64 %header.place
  %site.wide = zext i32 %site to i64
  %site.high = shl i64 %site.wide, 32
  %header = or i64 %site.high, %length
  store atomic volatile i64 %header, ptr %header.at monotonic, align 8
  ret void
full:
  %lost = atomicrmw add ptr %lost.at, i64 1 monotonic, align 8
  %is.lost.first = icmp eq i64 %lost, 0
  br i1 %is.lost.first, label %tell, label %over
tell:
  store volatile i64 1, ptr %dropped.at, align 8
  br label %over
over:
  ret void
}
";

/// What was written before is seen by the host before what is written later.
fn fence(e: &mut Emitter<'_>) {
    e.run_instruction(&e.vendor().fence_for_host);
}

impl Emitter<'_> {
    /// Writes the fault into the launch's record, unless another thread was first, and ends the task.
    pub(super) fn record_device_fault(&mut self, site: u32, arguments: &[Val]) {
        let fault = self.load_pointer("%frame", GpuFrame::FAULT);
        self.write_fault(fault, site, arguments, &ORDERING);
    }

    /// The count, or -1 once the host says that nothing is to be waited for any more.
    pub(super) fn unless_stopped(&mut self, count: Val) -> Val {
        let stop = self.load_pointer("%frame", GpuFrame::STOP);
        let (ask, goes_on) = (self.f.new_label(), self.f.new_label());
        let none = self.f.define(format_args!("icmp eq ptr {stop}, null"));
        let before = self.f.block();
        self.f.terminate(format_args!("br i1 %v{none}, label %{goes_on}, label %{ask}"));
        self.f.begin(ask);
        let said = self.f.define(format_args!("load volatile i8, ptr {stop}, align 1"));
        let clear = self.f.define(format_args!("icmp eq i8 %v{said}, 0"));
        let asked = self.f.value(count.ty(), format_args!("select i1 %v{clear}, {}, i32 -1", Typed(count)));
        let after = self.f.block();
        self.f.jump(goes_on);
        self.f.begin(goes_on);
        self.f.join(count.ty(), &[(count, before), (asked, after)])
    }

    /// Hands the operands, in slots of eight bytes, to the launch's ring.
    pub(super) fn print_to_ring(&mut self, site: u32, operands: &[Val]) {
        let count = operands.len();
        let slots = self.print_slots(operands);
        let ring = self.load_pointer("%frame", GpuFrame::PRINTS);
        let Vendor { printing, fence_for_host, .. } = self.vendor();
        let [meet, share, fence] = [&printing.meet, &printing.share, fence_for_host]
            .map(|instruction| self.instruction(instruction, &[]));
        self.module.add_function_once("octants.print", || filled(PRINT, &[&meet, &share, &fence]));
        self.f
            .line(format_args!("call void @octants.print(ptr {ring}, i32 {site}, i32 {count}, ptr {slots})"));
    }
}
