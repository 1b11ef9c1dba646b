//! Tasks of a GPU: a kernel of which each thread runs some of the iterations.
//!
//! What only a GPU wants stands here: the [parameters](abi), how points are dealt to threads ([`domain`]), the library of device
//! functions ([`library`]), and reports to the host ([`report`]). Each thread combines its own reductions into their places.

pub mod abi;
mod domain;
mod library;
mod report;

use octants_hal::{Dealing, Grid, LaunchShape};
use octants_ir::plan::{Plan, Task};
use octants_ir::{Op, Region, Scalar};

use crate::emitter::Emitter;
use crate::module::Module;
use crate::shape::{ContextField, Dealt, LibraryFunction, Shape};
use crate::value::{Ptr, Ty, Val};
use abi::GpuFrame;

/// What code for a GPU is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GpuOptions {
    /// Threads of a block, at most.
    pub block: u32,
    /// A range may have 2³¹ points or more.
    pub wide: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self { block: 256, wide: false }
    }
}

impl Shape for GpuOptions {
    fn head(&self, plan: &Plan, task: &Task, symbol: &str) -> String {
        let axes = match task {
            Task::Serial => 0,
            Task::Range { axes, .. } => axes.len(),
        };
        // A parameter without bytes is none.
        let (args, frame) = (plan.args.bytes.max(8), GpuFrame::bytes(axes));
        format!(
            "define void @{symbol}(ptr byval([{args} x i8]) align 8 %args, ptr byval([{frame} x i8]) align 8 %frame) #0"
        )
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

    fn annotate(&self, module: &mut Module, symbol: &str, shape: LaunchShape) {
        let kernel = module.node(format!("!{{ptr @{symbol}, !\"kernel\", i32 1}}"));
        let threads = module.node(format!("!{{ptr @{symbol}, !\"maxntidx\", i32 {}}}", shape.block));
        module.name_nodes("nvvm.annotations", &[kernel, threads]);
    }

    fn serial(&self, e: &mut Emitter<'_>, body: Region) {
        e.region(body);
    }

    fn range(&self, e: &mut Emitter<'_>, op: Op) -> Dealt {
        e.strided_range(op, *self);
        let shape =
            LaunchShape { block: self.block, dealing: Dealing::Points, grid: Grid::Cover, shared_bytes: 0 };
        Dealt { lanes: 1, shape }
    }

    fn fail(&self, e: &mut Emitter<'_>, site: u32, arguments: &[Val]) {
        e.record_device_fault(site, arguments);
    }

    fn print(&self, e: &mut Emitter<'_>, site: u32, operands: &[Val]) {
        e.print_to_ring(site, operands);
    }

    /// A launch on a GPU is not interrupted.
    fn poll_cancel(&self, _: &mut Emitter<'_>) {}

    fn library(&self, e: &mut Emitter<'_>, function: LibraryFunction, operands: &[Val]) -> Val {
        e.device_function(function, operands)
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

    fn private_copy(&self, _: &mut Emitter<'_>, _: usize) -> Ptr {
        panic!("a GPU has no private copies")
    }

    fn fuse(&self, _: &mut Emitter<'_>, _: Op, _: Op) -> bool {
        false
    }

    fn has_min_max(&self) -> bool {
        true
    }

    fn vector_bits(&self) -> u32 {
        0
    }
}
