//! Tasks of a CPU: a function that runs a chunk of the iterations, over vectors where that pays.
//!
//! What only a CPU wants stands here: the rows of a chunk ([`domain`], [`flat`]), widening across iterations ([`widen`],
//! [`order`]) and across the lanes of a block ([`lane_loops`]), accumulators of chunks ([`reduce`]), and updates of two reals by one exchange ([`atomic_pair`]).

mod atomic_pair;
mod domain;
mod fill;
pub(crate) mod flat;
mod lane_loops;
mod library;
mod order;
mod partial_sums;
mod reduce;
mod report;
mod vector_functions;
mod vector_library;
mod whole_rows;
mod widen;
mod written_out;

pub use vector_library::{VectorFunction, VectorLibrary};

use octants_hal::LaunchShape;
use octants_ir::ops::Scope;
use octants_ir::plan::{Plan, Task};
use octants_ir::{Op, Region, Scalar, SharedArray, Value};

use crate::emitter::Emitter;
use crate::lowering::{ContextField, IterationMapping, LibraryFunction, TargetLowering};
use crate::options::CpuOptions;
use crate::value::{Ptr, Ty, Val};
use octants_abi::cpu::{Frame, Worker};

impl TargetLowering for CpuOptions {
    fn head(&self, plan: &Plan, _task: &Task, symbol: &str) -> String {
        let args = match plan.args.bytes {
            0 => "ptr noundef %args".to_owned(),
            bytes => format!("ptr noalias noundef nonnull readonly align 8 dereferenceable({bytes}) %args"),
        };
        let context = self.context_param();
        let worker = "ptr noalias noundef nonnull readonly align 8 %worker";
        format!("define void @{symbol}({args}, {context}, {worker}, i64 noundef %lo, i64 noundef %hi) #0")
    }

    fn context_param(&self) -> &'static str {
        "ptr noundef nonnull align 8 %frame"
    }

    fn cold_attributes(&self) -> &'static str {
        // Out of line, a loop around it keeps its values in registers.
        " cold noinline"
    }

    fn context_offset(&self, field: ContextField) -> usize {
        match field {
            ContextField::Temps => Frame::TEMPS,
            ContextField::Results => Frame::RESULTS,
            ContextField::Key => Frame::KEY,
        }
    }

    fn serial(&self, e: &mut Emitter<'_>, body: Region) {
        e.region(body);
    }

    fn range(&self, e: &mut Emitter<'_>, op: Op) -> IterationMapping {
        if let Task::Range { copied, .. } = e.task_of(op) {
            e.copied = copied.iter().map(|copied| copied.param).collect();
        }
        let (lanes, straight) = e.range(op, *self);
        IterationMapping { lanes, straight, shape: LaunchShape::default() }
    }

    fn fail(&self, e: &mut Emitter<'_>, site: u32, arguments: &[Val]) {
        e.record_fault(site, arguments);
    }

    fn print(&self, e: &mut Emitter<'_>, site: u32, operands: &[Val]) {
        e.call_printer(site, operands);
    }

    fn poll_cancel(&self, e: &mut Emitter<'_>) {
        e.poll_cancel_flag("");
    }

    fn library(&self, e: &mut Emitter<'_>, function: LibraryFunction, operands: &[Val]) -> Val {
        e.library_function(*self, function, operands)
    }

    fn frame_address(&self, e: &mut Emitter<'_>) -> Val {
        e.module
            .declare("llvm.frameaddress.p0", || "declare ptr @llvm.frameaddress.p0(i32 immarg)".to_owned());
        e.f.in_entry(|f| {
            let pointer = f.pointer(format_args!("call ptr @llvm.frameaddress.p0(i32 0)"));
            f.value(Ty::new(Scalar::I64, 1), format_args!("ptrtoint ptr {pointer} to i64"))
        })
    }

    fn stack_limit(&self, e: &mut Emitter<'_>) -> Val {
        e.load_entry("%worker", Worker::STACK_LIMIT, Scalar::I64)
    }

    fn take_tape(&self, e: &mut Emitter<'_>, bytes: Val) -> Ptr {
        let (take, tape) =
            (e.load_pointer("%worker", Worker::TAKE_TAPE), e.load_pointer("%worker", Worker::TAPE));
        e.f.pointer(format_args!("call noalias ptr {take}(ptr {tape}, i64 {bytes}) #0"))
    }

    fn release_tapes(&self, e: &mut Emitter<'_>, first: Ptr) {
        let (release, tape) =
            (e.load_pointer("%worker", Worker::RELEASE_TAPES), e.load_pointer("%worker", Worker::TAPE));
        e.f.line(format_args!("call void {release}(ptr {tape}, ptr {first}) #0"));
    }

    fn grow_pool(&self, e: &mut Emitter<'_>, path: &[Value], wanted: Value) -> Val {
        let count = e.address(path).one_cell();
        let wanted = e.get(wanted);
        // A call that keeps registers, so that who makes cells need not: it seldom comes here.
        e.module.declare("grow_pool", || {
            format!(
                "define internal preserve_mostcc i32 @grow_pool(ptr %frame, ptr %count, i32 %wanted) \
                 cold noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) {{\n  \
                 %at = getelementptr inbounds i8, ptr %frame, i64 {}\n  \
                 %grow = load ptr, ptr %at, align 8\n  \
                 %slots = call i32 %grow(ptr %count, i32 %wanted)\n  \
                 ret i32 %slots\n}}",
                Frame::GROW_POOL
            )
        });
        let ty = Ty::new(Scalar::I32, 1);
        let call =
            format_args!("call preserve_mostcc i32 @grow_pool(ptr %frame, ptr {count}, i32 {wanted}) #0");
        e.f.value(ty, call)
    }

    fn private_copy(&self, e: &mut Emitter<'_>, position: usize) -> Ptr {
        let copies = e.load_pointer("%worker", Worker::COPIES);
        e.load_pointer(&copies.to_string(), 8 * position)
    }

    fn shared_array(&self, e: &mut Emitter<'_>, array: SharedArray) -> Ptr {
        let start = array.offset;
        if let Some(tape) = e.memory_of_block() {
            return e.f.pointer(format_args!("getelementptr inbounds i8, ptr {tape}, i64 {start}"));
        }
        let memory = |e: &mut Emitter<'_>, bytes: u64| {
            e.f.in_entry(|f| f.pointer(format_args!("alloca [{bytes} x i8], align 64")))
        };
        if !array.overlaps {
            // LLVM sees that no other array is there.
            return memory(e, array.bytes);
        }
        let all = match e.overlapped {
            Some(all) => all,
            None => memory(e, e.block_memory.bytes),
        };
        e.overlapped = Some(all);
        e.f.in_entry(|f| f.pointer(format_args!("getelementptr inbounds i8, ptr {all}, i64 {start}")))
    }

    fn is_block(&self) -> bool {
        true
    }

    fn for_loop(&self, e: &mut Emitter<'_>, op: Op) -> bool {
        e.lane_loop(op, *self)
    }

    fn fence(&self, e: &mut Emitter<'_>, scope: Scope) {
        if scope == Scope::Device {
            e.f.line(format_args!("fence seq_cst"));
        }
    }

    fn fuse(&self, e: &mut Emitter<'_>, first: Op, second: Op) -> bool {
        e.atomic_pair(first, second)
    }

    fn divides_unsigned(&self) -> bool {
        true
    }

    fn has_min_max(&self) -> bool {
        false
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    fn vector_bits(&self) -> u32 {
        self.vector_bits
    }
}
