//! What a task tells the host: faults and prints.

use super::abi::GpuFrame;
use crate::emitter::Emitter;
use crate::report::FaultOrdering;
use crate::value::Val;

/// LLVM 19 has no code for `fence` on this target.
const FENCE: &str = "llvm.nvvm.membar.sys";

const ORDERING: FaultOrdering =
    FaultOrdering { take: "monotonic monotonic", fence: Some(fence), publish: "monotonic" };

/// Appends a record to a ring of prints, or counts it as dropped where there is no room. The ring is `octants_hal`'s `PrintRing`: the
/// address of counters, words read, whether records were dropped, capacity, then the records. The counters are in the device's memory:
/// words reserved, records dropped. The host reads while the device writes, so the header comes last, behind a fence that the host sees.
const PRINT: &str = "\
define internal void @octants.print(ptr %ring, i32 %site, i32 %count, ptr %slots) noinline nounwind {
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
  br label %try
try:
  %begin = load atomic volatile i64, ptr %counters monotonic, align 8
  %consumed = load atomic volatile i64, ptr %consumed.at monotonic, align 8
  %end = add i64 %begin, %length
  %used = sub i64 %end, %consumed
  %fits = icmp ule i64 %used, %capacity
  br i1 %fits, label %reserve, label %full
reserve:
  %pair = cmpxchg ptr %counters, i64 %begin, i64 %end monotonic monotonic, align 8
  %reserved = extractvalue { i64, i1 } %pair, 1
  br i1 %reserved, label %head, label %try
head:
  %k = phi i64 [ 0, %reserve ], [ %k.next, %body ]
  %more = icmp ult i64 %k, %operands
  br i1 %more, label %body, label %publish
body:
  %from = getelementptr inbounds i64, ptr %slots, i64 %k
  %word = load i64, ptr %from, align 8
  %k.next = add i64 %k, 1
  %position = add i64 %begin, %k.next
  %place = and i64 %position, %mask
  %to = getelementptr inbounds i64, ptr %words, i64 %place
  store volatile i64 %word, ptr %to, align 8
  br label %head
publish:
  call void @llvm.nvvm.membar.sys()
  %first = and i64 %begin, %mask
  %header.at = getelementptr inbounds i64, ptr %words, i64 %first
  %site.wide = zext i32 %site to i64
  %site.high = shl i64 %site.wide, 32
  %header = or i64 %site.high, %length
  store atomic volatile i64 %header, ptr %header.at monotonic, align 8
  ret void
full:
  %lost = atomicrmw add ptr %lost.at, i64 1 monotonic, align 8
  %is.first = icmp eq i64 %lost, 0
  br i1 %is.first, label %tell, label %over
tell:
  store volatile i64 1, ptr %dropped.at, align 8
  br label %over
over:
  ret void
}
";

/// What was written before is seen by the host before what is written later.
fn fence(e: &mut Emitter<'_>) {
    e.module.declare(FENCE, || format!("declare void @{FENCE}()"));
    e.f.line(format_args!("call void @{FENCE}()"));
}

impl Emitter<'_> {
    /// Writes the fault into the launch's record, unless another thread was first, and ends the task.
    pub(super) fn record_device_fault(&mut self, site: u32, arguments: &[Val]) {
        let fault = self.load_pointer("%frame", GpuFrame::FAULT);
        self.write_fault(fault, site, arguments, &ORDERING);
    }

    /// Hands the operands, in slots of eight bytes, to the launch's ring.
    pub(super) fn print_to_ring(&mut self, site: u32, operands: &[Val]) {
        let count = operands.len();
        let slots = self.print_slots(operands);
        let ring = self.load_pointer("%frame", GpuFrame::PRINTS);
        self.module.declare(FENCE, || format!("declare void @{FENCE}()"));
        self.module.add_function_once("octants.print", || PRINT.to_owned());
        self.f
            .line(format_args!("call void @octants.print(ptr {ring}, i32 {site}, i32 {count}, ptr {slots})"));
    }
}
