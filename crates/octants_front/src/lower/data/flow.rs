//! How control moves through a function being lowered: the loops around a statement, what follows it, how it is left.

use std::cell::{Cell, RefCell};

use octants_diag::Span;
use octants_ir::{Op, Region, Value};

use crate::ast::Stmt;
use crate::host::Annotation;

/// What happens after a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// The next statement.
    Next,
    /// Nothing more of this block: it was left, or what follows has been lowered already.
    Done,
    /// The function has returned.
    Returned,
    /// A static loop goes on with its next item.
    StaticContinue,
    /// A static loop ends.
    StaticBreak,
}

/// What follows a block, up to the end of the enclosing loop's body: statements of the enclosing blocks, innermost first.
#[derive(Clone, Copy)]
pub(crate) struct Continuation<'t> {
    pub stmts: &'t [Stmt],
    pub next: Option<&'t Continuation<'t>>,
    /// The block that ends before these statements had a scope of its own, which ends here.
    pub scope: Option<Span>,
    /// The group of statements that ends before these.
    pub group: Option<&'t Group>,
}

/// A group that is being lowered, and what is to be done at its end.
#[derive(Debug)]
pub(crate) struct Group {
    /// Where the groups stand.
    pub outer: Region,
    /// The first name of the scope, op, region and expression that this group may have made.
    pub first_name: usize,
    pub first_op: usize,
    pub first_region: usize,
    pub first_expr: usize,
    pub span: Span,
    /// Values that later groups need, and the variables that keep them.
    pub kept: RefCell<Vec<(Value, Value)>>,
    /// Whether some path comes to the end of the group.
    pub reaches_end: Cell<bool>,
}

/// A loop whose body is being lowered.
#[derive(Debug)]
pub(crate) struct Loop {
    pub kind: LoopKind,
    /// The frame's depth in the loop's body.
    pub depth: usize,
    /// A flag that says that the iteration was left, where one is needed.
    pub skip: Option<Value>,
    pub span: Span,
    /// Whether its body may give up cells that a loop around it visits.
    pub gives_up: bool,
}

#[derive(Debug)]
pub(crate) enum LoopKind {
    Parallel,
    /// `broken` is a flag that says that the loop was left, if something may leave it.
    Serial {
        broken: Option<Value>,
    },
    Static,
}

impl Loop {
    pub(crate) fn is_static(&self) -> bool {
        matches!(self.kind, LoopKind::Static)
    }

    /// The flag that says that the loop was left.
    pub(crate) fn broken(&self) -> Option<Value> {
        match self.kind {
            LoopKind::Serial { broken } => broken,
            LoopKind::Parallel | LoopKind::Static => None,
        }
    }
}

/// The `stream_parallel` blocks of a kernel.
#[derive(Debug, Default)]
pub(crate) struct StreamBlocks {
    /// Whether the kernel has a `with` at all.
    pub possible: bool,
    /// The block that is being lowered: its region, and its head.
    pub open: Option<(Region, Span)>,
    /// Those with code that have been lowered, in order.
    pub branches: Vec<Region>,
    /// The heads of all that have been lowered, in order.
    pub heads: Vec<Span>,
    /// The first statement at the kernel's top level that runs and stands in none.
    pub outside: Option<Span>,
}

/// What `loop_config` said about the next loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopConfig<O> {
    pub block_dim: Option<u32>,
    pub serialize: bool,
    pub parallelize: Option<u32>,
    pub name: Option<String>,
    /// Fields that the loop only reads, and where that was said.
    pub read_only: Vec<(O, Span)>,
    /// Fields whose elements the threads of a block had better share.
    pub block_local: Vec<O>,
    /// The latest call that said so.
    pub span: Option<Span>,
}

impl<O> Default for LoopConfig<O> {
    fn default() -> Self {
        Self {
            block_dim: None,
            serialize: false,
            parallelize: None,
            name: None,
            read_only: Vec::new(),
            block_local: Vec::new(),
            span: None,
        }
    }
}

/// The parallel loop whose body is being lowered, and what its threads do together.
#[derive(Clone, Debug)]
pub(crate) struct ParallelNest {
    /// In the order of the iterations' numbers, the last axis fastest.
    pub bounds: Vec<(Value, Value)>,
    pub indices: Vec<Value>,
    pub block_dim: Option<u32>,
    /// It runs over ranges of integers.
    pub has_ranges: bool,
    /// Its threads are limited.
    pub limited: bool,
    /// Where something stands first that needs all threads of a subgroup or a block.
    pub together: Option<Span>,
    /// A block, and not a subgroup alone.
    pub needs_block: bool,
    /// Its shared arrays, and where they were written.
    pub shared: Vec<(Op, Span)>,
}

/// How the function that is being lowered returns.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub flag: Value,
    pub results: Vec<Value>,
    pub returns: Vec<Annotation>,
    pub is_tuple: bool,
}
