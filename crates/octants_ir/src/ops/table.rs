//! All ops, one row each: what an op is, and what everybody may ask about it.
//!
//! Passes, verifier and text ask the row. They name ops only to rewrite them, and to say what they mean. So a new op is a row here, a method of
//! the builder, its meaning in the interpreter and its code in the emitter.
//!
//! **Every column of a row is filled in: an attribute has no default.** A pass that moves, repeats, speculates or drops ops asks
//! [`OpKind::is_pure`] or [`OpKind::stays`], and never by the names of ops.

use super::effects::Effects;
use super::info::{CellUse, Derivative, Gives, OpInfo, Phases, Regions, Stands};
use super::{
    ArithOp, AssertKind, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp, MathOp, MathUnary, ParallelFor,
    PrintSpec, Scope, ShuffleOp, TensorOp,
};
use crate::constant::Const;
use crate::ids::{Func, LayoutId};

/// Declares [`OpKind`] and the row of each of its ops.
macro_rules! op_table {
    ($($(#[$doc:meta])* $op:ident $(($($payload:ty),*))?:
        $name:literal, [$($effect:ident)*], $cell:expr, $cost:literal, $derivative:ident, $regions:expr, $stands:ident, $phases:ident, $gives:expr;)*) => {
        /// What an op is; its operands, results and regions are in [`OpData`](crate::kernel::OpData).
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum OpKind { $($(#[$doc])* $op $(($($payload),*))?),* }

        impl OpKind {
            /// The op's row. For a family it says what holds for all ops of it; the mnemonic and the cost are in the family's own table.
            pub fn info(&self) -> &'static OpInfo {
                use CellUse::{Addresses, Nothing, Reads, Updates, Writes};
                use Gives::{Nullary, Own};
                use Regions::{Branches, Either, Repeated, Task, Without};
                match self { $(Self::$op { .. } => &const { OpInfo {
                    name: $name,
                    effects: Effects::empty()$(.union(Effects::$effect))*,
                    cell: $cell,
                    cost: $cost,
                    derivative: Derivative::$derivative,
                    regions: $regions,
                    stands: Stands::$stands,
                    phases: Phases::$phases,
                    gives: $gives,
                } }),* }
            }

            /// The op of that mnemonic, if it has no attributes and is in no family.
            pub(crate) fn without_attributes(name: &str) -> Option<Self> {
                [$(op_table!(@plain $op $(($($payload),*))?)),*].into_iter().flatten().find(|kind| kind.info().name == name)
            }
        }
    };
    (@plain $op:ident) => { Some(Self::$op) };
    (@plain $op:ident ($($payload:ty),*)) => { None };
}

op_table! {
    // op: mnemonic, [effects], cell, cost in instructions, derivative, regions, where it stands, in which phases, what it gives.
    // Costs are orders of magnitude, not measured: a device times the first launches and goes by that. What regions cost comes on top.

    /// `→ scalar`
    Const(Const): "const", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `(a, b) → T` or `(a) → T` for `neg` and `abs`; operands and result have one type.
    Arith(ArithOp): "arith", [], Nothing, 1, Rule, Without, Anywhere, Any, Own;
    /// `(a, b) → T`; for shifts the result has the type of `a`.
    Bit(BitOp): "bit", [], Nothing, 1, Flat, Without, Anywhere, Any, Own;
    /// `(a) → T`; counts give `i32`.
    BitUnary(BitUnary): "bit_unary", [], Nothing, 1, Flat, Without, Anywhere, Any, Own;
    /// `(a, b) → u1` (entrywise on tensors).
    Compare(CompareOp): "compare", [], Nothing, 1, Flat, Without, Anywhere, Any, Own;
    /// `(c, a, b) → T`: `a` where `c` holds, else `b`; `c` is `u1`, or a `u1` tensor of the operands' shape.
    Select: "select", [], Nothing, 1, Rule, Without, Anywhere, Any, Own;
    /// `(a, b) → T`
    Math(MathOp): "math", [], Nothing, 16, Rule, Without, Anywhere, Any, Own;
    /// `(a) → T`
    MathUnary(MathUnary): "math_unary", [], Nothing, 16, Rule, Without, Anywhere, Any, Own;
    /// `(a) → T`
    Convert(ConvertOp): "convert", [], Nothing, 1, Rule, Without, Anywhere, Any, Own;
    Tensor(TensorOp): "tensor_op", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `(members…) → struct`
    StructNew: "struct_new", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `(s) → member`
    StructGet(u32): "struct_get", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `(s, v) → s` with one member replaced.
    StructSet(u32): "struct_set", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;

    // A place has an identity: two `local` ops are two variables, though an unused one may go.
    /// `() → local<T>`: a variable, zero at first. Its lifetime is its region's execution.
    Local: "local", [READS], Nothing, 0, ByName, Without, Anywhere, Any, Own;
    /// `(count) → tape<T>`: memory for that many scalars, whose contents are undefined at first; a negative count is none. An index
    /// is below the count. Its lifetime is its region's execution.
    ///
    /// `(count, array, slots)`: likewise, and it is to lie in that array, of one axis, for so many iterations at once.
    Tape: "tape", [READS REPORTS], Nothing, 0, ByName, Without, Anywhere, Any, Own;
    /// `() → temp<T>`: a cell shared by the tasks of one launch, zero at first. Only at the top of a kernel.
    Temp: "temp", [READS], Nothing, 0, ByName, Without, Body, Split, Own;
    /// `(base, indices…, components…) → T`
    Load: "load", [READS], Reads, 1, ByName, Without, Anywhere, Any, Own;
    /// `(base, indices…, components…) → T`, never merged, moved or cached.
    VolatileLoad: "volatile_load", [READS WRITES MAY_WAIT NONDETERMINISTIC], Reads, 2, ByName, Without, Anywhere, Any, Own;
    /// `(base, indices…, components…, value)`
    Store: "store", [WRITES], Writes, 1, ByName, Without, Anywhere, Any, Own;
    /// `(base, indices…, components…, value) → T`: the old value. Whoever looks at that may wait for what another thread puts there.
    Atomic(AtomicOp): "atomic", [READS WRITES MAY_WAIT], Updates(1), 20, ByName, Without, Anywhere, Any, Own;
    /// `(base, indices…, components…, expected, desired) → T`: the old value; integers only.
    AtomicCas: "atomic_cas", [READS WRITES MAY_WAIT], Updates(2), 20, Flat, Without, Anywhere, Any, Own;
    /// `(base, indices…, wanted) → i32`: asks for memory, so that the count in this cell reaches `wanted`; gives the count, which others may raise
    /// at any time, or a negative number where there is no memory.
    GrowPool: "grow_pool", [READS WRITES MAY_WAIT], Updates(1), 20, Flat, Without, Anywhere, Any, Own;
    /// `(array) → i32`: the extent of one axis.
    Extent(u8): "extent", [], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `(array, indices…, components…) → u64`: where the cell lies in memory.
    Address: "address", [], Addresses, 0, Flat, Without, Anywhere, Any, Own;

    /// `(cond) → T…`; regions `then`, `else`, each yields the results.
    If: "if", [], Nothing, 1, ByName, Either, Anywhere, Any, Own;
    /// `(lo, hi, carried…) → carried…`; region `body(i, carried…)` yields the next carried values. Runs while `i < hi`, step 1.
    For: "for", [], Nothing, 1, ByName, Repeated(1), Anywhere, Any, Own;
    /// `(lo, hi)`; region `body(lane)`: as a `for`, of the lanes of a block between two places where they meet. Any of them may run first, or several
    /// at once, op by op: what one writes, no other reads. On a device whose threads form no blocks.
    ForLanes: "for_lanes", [], Nothing, 1, ByName, Repeated(1), Anywhere, Any, Own;
    /// `()` or `(left)`; region `body(i₀, i₁, …)` with an `i32` for each axis of the layout. Runs once for each cell, in storage order, from the
    /// layout's origin on; before a cell for which the variable `left` holds, the loop is over. Only in the structured phase.
    ForCells(LayoutId): "for_cells", [READS UNBOUNDED], Nothing, 1, ByName, Repeated(1), Anywhere, Any, Own;
    /// `(carried…) → carried…`; region `cond(carried…)` yields `u1, carried…`; region `body(carried…)` yields `carried…`.
    /// Results are what `cond` yielded when it yielded false.
    While: "while", [MAY_WAIT UNBOUNDED], Nothing, 1, ByName, Repeated(2), Anywhere, Any, Own;
    /// `(lo₀, hi₀, lo₁, hi₁, …, reduced places…)`, without bounds over a layout; region `body(i₀, i₁, …, accumulators…)` yields the
    /// accumulators. Without reductions it has no effects of its own.
    ParallelFor(Box<ParallelFor>): "parallel_for", [READS WRITES], Nothing, 0, ByName, Task, Top, Any, Own;
    /// A serial task: region `body()`. Only at the top of a kernel or of a branch, made by task splitting.
    Serial: "serial", [], Nothing, 0, ByName, Task, Top, Split, Own;
    /// Regions `branch()`, at least one: each runs once, in any order or at the same time; the fork is over when all are. A branch
    /// holds what a kernel's body may hold. Only in the kernel's body.
    Fork: "fork", [], Nothing, 0, ByName, Branches, Body, Any, Own;
    /// Terminator of a region: its values.
    Yield: "yield", [ENDS], Nothing, 0, ByName, Without, EndOfRegion, Any, Own;
    /// Terminator of the body of a kernel or a function: its results.
    Return: "return", [ENDS], Nothing, 0, ByName, Without, EndOfBody, Any, Own;
    /// `(v)`: writes result number `n` of the kernel. Made by task splitting.
    StoreResult(u32): "store_result", [WRITES], Nothing, 1, ByName, Without, Anywhere, Split, Own;
    /// `(cond, arguments…)`: where `cond` is false, the launch fails with this message and the op's location; this thread stops.
    /// `{}` in the message stands for the next argument.
    Assert(AssertKind, Box<str>): "assert", [WRITES ENDS REPORTS], Nothing, 1, Flat, Without, Anywhere, Any, Own;
    /// `(values…)`: writes text, whole, in the order of the thread that runs it.
    Print(Box<PrintSpec>): "print", [WRITES OUTPUT REPORTS UNBOUNDED], Nothing, 1000, Flat, Without, Anywhere, Any, Own;

    // Threads of a block, which run neighbouring iterations of a loop. Whoever looks at what others wrote has waited for them.
    /// `() → field`: memory that the threads of a block share, undefined at first; a field of the block's own. All of them come to it, and its
    /// lifetime is the block's.
    Shared: "shared", [READS CONVERGENT], Nothing, 0, Flat, Without, Anywhere, Any, Own;
    /// `()`: each thread of the scope waits here until all have come; what they did to memory is seen by all.
    Barrier(Scope): "barrier", [READS WRITES CONVERGENT MAY_WAIT], Nothing, 20, Flat, Without, Anywhere, Any, Own;
    /// `(p) → i32`: a barrier of the block; of how many threads `p` holds.
    BarrierCount: "barrier_count", [READS WRITES CONVERGENT MAY_WAIT], Nothing, 20, Flat, Without, Anywhere, Any, Own;
    /// `()`: what this thread did to memory before is seen by the scope's threads before what it does after.
    Fence(Scope): "fence", [READS WRITES MAY_WAIT], Nothing, 20, Flat, Without, Anywhere, Any, Own;
    /// `(v, lane) → T`: what `v` is on another lane of the subgroup.
    Shuffle(ShuffleOp): "shuffle", [CONVERGENT], Nothing, 2, Flat, Without, Anywhere, Any, Own;
    /// `(p) → u64`: on which lanes of the subgroup `p` holds, a bit for each.
    Ballot: "ballot", [CONVERGENT], Nothing, 2, Flat, Without, Anywhere, Any, Own;

    /// `() → T`: the next random number of this iteration. Reals are uniform in `[0, 1)`, integers over all of their values.
    Random: "random", [READS WRITES KEY NONDETERMINISTIC], Nothing, 100, Flat, Without, Anywhere, Any, Own;
    /// `() → u64`: a number that tells this launch from others of its session, and follows from the session's seed.
    LaunchKey: "launch_key", [KEY], Nothing, 1, Flat, Without, Anywhere, Any, Nullary(crate::Scalar::U64);
    // Reading it waits for what runs.
    /// `() → i64`: a clock of the device, in its own units; each reading is a new one.
    Clock: "clock", [READS WRITES MAY_WAIT NONDETERMINISTIC], Nothing, 32, Flat, Without, Anywhere, Any, Nullary(crate::Scalar::I64);

    // A function may do anything; it has no groups of threads to wait for. What it prints or draws stands in its own ops.
    /// `(arguments…) → results…`: runs a function of the kernel. A place is passed as itself: what is written to it is seen by the
    /// caller.
    Call(Func): "call", [READS WRITES ENDS MAY_WAIT NONDETERMINISTIC REPORTS UNBOUNDED], Nothing, 5, ByName, Without, Anywhere, Any, Own;
}
