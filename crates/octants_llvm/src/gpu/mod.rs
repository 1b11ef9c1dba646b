//! Tasks of a GPU: a kernel of which each thread runs some of the iterations.
//!
//! What only a GPU wants stands here: how points are dealt to threads ([`choose`] decides; [`points`], [`tile`],
//! [`steps`], [`group`], [`guards`], [`runs`], [`stages`]), loops inside a body ([`inner`]), elements that a
//! warp loads and stores together ([`exchange`]), sums of neighbouring cells ([`joined_sums`]) and of lanes that share one ([`warp_sums`]), the reductions of a block ([`reduce`]) and its copies of small arrays ([`scatter`]), the library of device functions ([`library`]), and reports to the host
//! ([`report`]). What makers of GPUs call differently is data ([`vendor`]; [`nvidia`] is one).

mod block;
mod bounds;
mod choose;
mod exchange;
mod group;
mod guards;
mod inner;
mod instructions;
mod joined_sums;
mod library;
mod nvidia;
mod points;
mod reduce;
mod registers;
mod report;
pub(crate) mod runs;
mod scatter;
mod stages;
mod steps;
mod tile;
mod vendor;
pub(crate) mod warp_sums;

use std::collections::HashSet;

use octants_hal::LaunchShape;
use octants_ir::ops::{Scope, ShuffleOp};
use octants_ir::plan::{Plan, Task};
use octants_ir::{Op, Region, Scalar, SharedArray, Value};

use crate::emitter::Emitter;
use crate::lowering::{ContextField, IterationMapping, JoinedSums, LibraryFunction, TargetLowering};
use crate::module::{Module, Node};
use crate::options::GpuOptions;
use crate::value::{Ptr, Ty, Val};
use choose::{Choice, choose_shape};
use instructions::filled;
use octants_abi::gpu::GpuFrame;

pub use nvidia::NVIDIA;
pub use vendor::{Instruction, LargeAngles, PrintMeeting, Registers, Vendor};

impl TargetLowering for GpuOptions {
    fn head(&self, plan: &Plan, task: &Task, symbol: &str) -> String {
        let axes = match task {
            Task::Serial => 0,
            Task::Range { axes, .. } => axes.len(),
        };
        // A parameter without bytes is none.
        let (args, frame) = (plan.args.bytes.max(8), GpuFrame::bytes(axes));
        let Vendor { kernel, by_value, .. } = self.vendor;
        let args = if args as usize > GpuFrame::MAX_ARGS_BY_VALUE {
            "ptr noundef nonnull readonly align 8".to_owned()
        } else {
            filled(by_value, &[&args])
        };
        format!("{kernel} @{symbol}({args} %args, {} %frame) #0", filled(by_value, &[&frame]))
    }

    fn context_param(&self) -> &'static str {
        "ptr noundef nonnull align 8 %frame"
    }

    fn context_offset(&self, field: ContextField) -> usize {
        match field {
            ContextField::Temps => GpuFrame::TEMPS,
            ContextField::Results => GpuFrame::RESULTS,
            ContextField::Key => GpuFrame::KEY,
        }
    }

    /// The host does not wait for what an earlier task leaves in the device's memory.
    fn computes_bounds(&self, task: &Task) -> bool {
        task.needs_temps()
    }

    fn annotate(&self, module: &mut Module, symbol: &str, shape: LaunchShape) {
        for (name, nodes) in self.vendor.annotations {
            let nodes: Vec<_> =
                nodes.iter().map(|text| module.node(filled(text, &[&symbol, &shape.block]))).collect();
            module.name_nodes(name, &nodes);
        }
    }

    fn serial(&self, e: &mut Emitter<'_>, body: Region) {
        e.region(body);
    }

    fn range(&self, e: &mut Emitter<'_>, op: Op) -> IterationMapping {
        e.unwritten = e.unwritten_arrays(op);
        let choice = choose_shape(e.kernel, e.task_of(op), op);
        match &choice {
            Choice::Blocks { block } => e.blocks(op, *block),
            Choice::Points { limited: true, .. } => {
                let totals = e.numbered_range(op);
                e.combine_totals(op, &totals);
            }
            Choice::Points { limited: false, block, .. } => {
                let totals = e.numbered_range(op);
                e.combine_block_totals(op, &totals, *block);
            }
            Choice::Tiles { tiling, grouping, copied } => {
                let totals = if copied.is_empty() {
                    e.tiled_range(op, *tiling, grouping)
                } else {
                    e.scattered_range(op, *tiling, grouping, copied)
                };
                e.combine_block_totals(op, &totals, tiling.block);
            }
        }
        IterationMapping { lanes: 1, straight: false, shape: choice.launch_shape() }
    }

    fn fail(&self, e: &mut Emitter<'_>, site: u32, arguments: &[Val]) {
        e.record_device_fault(site, arguments);
    }

    fn print(&self, e: &mut Emitter<'_>, site: u32, operands: &[Val]) {
        e.print_to_ring(site, operands);
    }

    fn for_loop(&self, e: &mut Emitter<'_>, op: Op) -> bool {
        e.unrolled_for(op)
    }

    fn has_atomic_extremes(&self) -> bool {
        true
    }

    /// A variable whose entries are named by a loop's index has registers only if the loop is unrolled.
    fn unrolls_short_loops(&self) -> bool {
        true
    }

    fn can_stop(&self) -> bool {
        false
    }

    /// Their path through the caches is shorter.
    fn marks_read_only_loads(&self) -> bool {
        true
    }

    /// A launch on a GPU is not interrupted, but where it waits for the host.
    fn poll_cancel(&self, _: &mut Emitter<'_>) {}

    fn grow_pool(&self, e: &mut Emitter<'_>, path: &[Value], _wanted: Value) -> Val {
        let count = e.volatile_load(path);
        e.unless_stopped(count)
    }

    fn library(&self, e: &mut Emitter<'_>, function: LibraryFunction, operands: &[Val]) -> Val {
        e.device_function(function, operands)
    }

    fn sine_and_cosine(&self, e: &mut Emitter<'_>, angle: Val) -> Option<(Val, Val)> {
        let angles = self.vendor.large_angles.filter(|_| angle.lanes == 1)?;
        Some(e.sine_and_cosine_of(angle, &angles))
    }

    /// A variable of the frame's own stands for it: there is no register that says where the frame lies.
    fn frame_address(&self, e: &mut Emitter<'_>) -> Val {
        e.f.in_entry(|f| {
            let variable = f.pointer(format_args!("alloca i64, align 8"));
            f.value(Ty::new(Scalar::I64, 1), format_args!("ptrtoint ptr {variable} to i64"))
        })
    }

    fn stack_limit(&self, e: &mut Emitter<'_>) -> Val {
        let (here, bytes) = (self.frame_address(e), e.load_entry("%frame", GpuFrame::STACK, Scalar::I64));
        e.f.in_entry(|f| f.value(Ty::new(Scalar::I64, 1), format_args!("sub i64 {here}, {bytes}")))
    }

    fn take_tape(&self, _e: &mut Emitter<'_>, _bytes: Val) -> Ptr {
        panic!("a kernel with a tape is no kernel for this target")
    }

    fn release_tapes(&self, _e: &mut Emitter<'_>, _first: Ptr) {
        panic!("a kernel with a tape is no kernel for this target")
    }

    fn private_copy(&self, _: &mut Emitter<'_>, _: usize) -> Ptr {
        panic!("a GPU has no private copies")
    }

    fn shared_array(&self, e: &mut Emitter<'_>, array: SharedArray) -> Ptr {
        e.block_window(array.offset)
    }

    fn barrier(&self, e: &mut Emitter<'_>, scope: Scope) {
        e.block_barrier(scope);
    }

    fn barrier_count(&self, e: &mut Emitter<'_>, holds: Val) -> Val {
        e.block_count(holds)
    }

    fn fence(&self, e: &mut Emitter<'_>, scope: Scope) {
        e.block_fence(scope);
    }

    fn shuffle(&self, e: &mut Emitter<'_>, shuffle: ShuffleOp, word: Val, by: Val) -> Val {
        e.subgroup_shuffle(shuffle, word, by)
    }

    fn ballot(&self, e: &mut Emitter<'_>, holds: Val) -> Val {
        e.subgroup_ballot(holds)
    }

    fn fuse(&self, _: &mut Emitter<'_>, _: Op, _: Op) -> bool {
        false
    }

    fn joined_sums(&self, e: &Emitter<'_>, ops: &[Op]) -> Vec<JoinedSums> {
        let mut joined = if self.vector_sums && self.vendor.add_neighbours.is_some() {
            e.neighbouring_sums(ops)
        } else {
            Vec::new()
        };
        let together: HashSet<_> = joined.iter().flat_map(|sums| sums.ops.iter().copied()).collect();
        let alone = e.scattered_sums(ops).into_iter().filter(|op| !together.contains(op));
        joined.extend(alone.map(|op| JoinedSums { ops: vec![op], last: op }));
        joined
    }

    fn add_joined(&self, e: &mut Emitter<'_>, sums: &JoinedSums) {
        e.add_neighbours(sums);
    }

    fn while_facts(&self, e: &mut Emitter<'_>, op: Op) -> Vec<Node> {
        e.unrolled_while(op).into_iter().collect()
    }

    fn has_min_max(&self) -> bool {
        true
    }

    fn vector_bits(&self) -> u32 {
        0
    }
}
