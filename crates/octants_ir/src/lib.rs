//! The IR: structured SSA in typed-id arenas.
//!
//! A [`Kernel`] owns arenas of values, ops and regions. Regions nest inside ops; there are no jumps. Memory is addressed as
//! *places* (a base and indices). This crate holds the data, the builder, the text form, and the verifier with its laws; what ops
//! mean is the interpreter's, and how they change is the passes'.

pub mod builder;
pub mod choices;
pub mod constant;
pub mod format;
pub mod ids;
pub mod kernel;
pub mod layout;
pub mod ops;
pub mod order;
pub mod plan;
pub mod rewrite;
pub mod shared_layout;
pub mod site;
pub mod sparse;
pub mod special;
pub mod text;
pub mod types;
pub mod verify;
pub mod views;

pub use builder::Builder;
pub use constant::Const;
pub use ids::{Arena, Func, Id, LayoutId, Loc, Op, Region, SideTable, StructId, Value};
pub use kernel::{
    Function, Kernel, KernelOptions, LocData, OpData, Param, Phase, RegionData, ValueData, ValueDef,
};
pub use layout::{Digit, Layout, Level, NodeKind};
pub use ops::{Effects, OpKind};
pub use order::{Order, Spacing};
pub use plan::{
    Access, ArgKind, ArgLayout, ArgSlot, Bound, Branch, Copied, LaunchUses, Plan, ResultLayout, ResultSlot,
    RunTime, Schedule, Task, TempLayout, TempSlot,
};
pub use shared_layout::{SharedArray, SharedLayout};
pub use site::{Site, SiteKind, SiteNumbers, SiteScope, SiteTable, Together};
pub use sparse::SparseTree;
pub use types::{ArrayType, Boundary, Data, Scalar, StructType, TensorShape, TensorType, Type};
pub use verify::{Law, Violation, verify};
pub use views::{CellAccess, ParallelLoop, Place, ReductionView};
