//! Lowering: the tree of a kernel and of the funcs that it inlines, executed symbolically, gives IR.
//!
//! An expression lowers to a [`Term`](data::term::Term): an IR value, a place, or something known at compile time. Folders are by concept:
//! values, places, statements, calls, and below them the data that they share. A mistake ends the lowering with one diagnostic; warnings are collected.

mod calls;
mod data;
mod error;
mod intrinsic;
mod places;
mod sparse;
mod statements;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{Builder, Kernel, Loc, LocData, Region, SideTable, Type, Value};

use crate::ast::Function;
use crate::host::{FunctionSource, Host};
use crate::signature::source_unavailable;
use crate::sources::Sources;
use crate::{ArgSpec, FieldParam, FormulaParam, LowerOptions, Lowered};
use data::Fallible;
use data::blocks::{Block, Blocks};
use data::flow::{LoopConfig, StreamBlocks};
use data::scope::Frame;
use data::term::Term;

/// Lowers a kernel for one kind of arguments, one per parameter (the receiver of a method is a template). Of the numbers behind them,
/// those with the paths in `varying` are calculated with by launches where the code leaves that open.
pub fn lower_kernel<H: Host>(
    host: &H,
    sources: &Sources,
    function: &H::Object,
    args: &[ArgSpec<H::Object>],
    options: &LowerOptions,
    varying: &[String],
) -> Result<Lowered<H::Object>, Vec<Diagnostic>> {
    let source = host.function(function).map_err(|exception| vec![source_unavailable(&exception)])?;
    let tree = sources.function(&source).map_err(|error| vec![*error])?;
    let mut lowerer = Lowerer::new(host, sources, options, &source.qualname);
    lowerer.varying = varying;
    lowerer.frames.push(Frame::new(function.clone(), tree, Arc::clone(&source.qualname)));
    lowerer.kernel_body(args).map_err(|error| vec![*error])
}

/// Regions nested deeper than this are refused: everything after the front end walks them with its own stack, which takes
/// about 10 KiB for each without optimisation.
const MAX_REGION_DEPTH: usize = 200;

/// What lowering one node may take of the stack beyond the frames of its own recursion, in bytes: host code runs in it.
/// Chosen, not measured: three times the smallest stack that Python gives a thread.
const RESERVED_STACK_BYTES: usize = 96 << 10;

/// The state of one lowering.
struct Lowerer<'a, H: Host> {
    host: &'a H,
    sources: &'a Sources,
    options: &'a LowerOptions,
    /// Numbers that change from launch to launch, by the path to them.
    varying: &'a [String],
    kernel: Kernel,
    /// Where ops are appended.
    region: Region,
    /// Where the ops of the statement begin that is being lowered. Parts of it that may not run have regions inside of this one.
    statement_region: Region,
    /// The kernel and the funcs being inlined, outermost first.
    frames: Vec<Frame<H::Object>>,
    /// Trees of the functions that were inlined so far, by the address of what the host says of them, which is kept.
    known_trees: HashMap<usize, (Arc<FunctionSource>, Arc<Function>)>,
    /// What expressions held by host code stand for, by their index.
    exprs: Vec<Term<H::Object>>,
    /// The arguments, and what they led to.
    members: Vec<data::argument::Member<H::Object>>,
    /// Fields and objects with members that code reaches without an argument: by a global, a closure, or an object of these.
    captured: Vec<H::Object>,
    /// The parameters that are fields.
    fields: Vec<FieldParam>,
    /// Fields that were reached as members of others.
    parts: Vec<places::field::Part<H::Object>>,
    /// The parameters that a launch calculates, and their values in the kernel.
    formulas: Vec<FormulaParam>,
    /// The trees with sparse nodes that are used.
    trees: Vec<sparse::TreeUse>,
    /// What the loops around are visiting of them, the innermost last.
    visits: Vec<sparse::Visit>,
    /// The latest load of an element of a sparse field at a constant index.
    shared_load: Option<sparse::SharedLoad>,
    /// Fields whose loads are constants for derivatives, and where.
    stops: Vec<intrinsic::stop_grad::Stop<H::Object>>,
    /// Which block of the program each op belongs to.
    blocks_of_ops: Blocks,
    /// How many containers are being copied for host code, one in another.
    exposure_depth: usize,
    trace: u64,
    /// The location of the newest op, to find it again quickly: span, number of frames, location.
    newest_loc: Option<(Span, usize, Loc)>,
    /// Where an element of a quantised field is accessed: what the library does for it happens there.
    encoded_at: Option<Loc>,
    /// The innermost call that is being evaluated: where expressions of host code come from.
    call_span: Span,
    /// A failure that host code was told about, shown if it comes out again.
    trace_failure: Option<Box<Diagnostic>>,
    /// Inside `oc.static(…)`.
    in_static: bool,
    /// Inside a parallel loop.
    in_parallel: bool,
    /// The first index of the innermost parallel loop.
    thread: Option<Value>,
    /// That loop; none inside of a function of the kernel's own.
    parallel_nest: Option<data::flow::ParallelNest>,
    /// How many regions are open.
    nesting: usize,
    next_loop: Option<LoopConfig<H::Object>>,
    blocks: StreamBlocks,
    /// Functions of the kernel's own, by what they were compiled for.
    instances: Vec<data::function::Instance<H::Object>>,
    warnings: Vec<Diagnostic>,
    /// Indices that were made `i32`, and what they were before.
    whole_indices: SideTable<Value, Option<Value>>,
    /// Where members of structs were read that are vectors kept as scalars, for diagnostics.
    unpacked: Vec<Span>,
    /// Stores to a word that wait for others to it, and how many stores ever waited.
    pending: Option<places::pending::PendingStores<H::Object>>,
    held_stores: usize,
}

impl<'a, H: Host> Lowerer<'a, H> {
    fn new(host: &'a H, sources: &'a Sources, options: &'a LowerOptions, name: &str) -> Self {
        let mut kernel = Kernel::new(name);
        kernel.options = options.kernel;
        Self {
            host,
            sources,
            options,
            varying: &[],
            region: kernel.body,
            statement_region: kernel.body,
            kernel,
            frames: Vec::new(),
            known_trees: HashMap::new(),
            exprs: Vec::new(),
            members: Vec::new(),
            captured: Vec::new(),
            fields: Vec::new(),
            parts: Vec::new(),
            formulas: Vec::new(),
            trees: Vec::new(),
            visits: Vec::new(),
            shared_load: None,
            stops: Vec::new(),
            blocks_of_ops: Blocks::new(),
            exposure_depth: 0,
            trace: host.begin_trace(),
            newest_loc: None,
            encoded_at: None,
            call_span: Span::new(octants_diag::FileId(0), 0, 0),
            trace_failure: None,
            in_static: false,
            in_parallel: false,
            thread: None,
            parallel_nest: None,
            nesting: 0,
            next_loop: None,
            blocks: StreamBlocks::default(),
            instances: Vec::new(),
            warnings: Vec::new(),
            whole_indices: SideTable::new(None),
            unpacked: Vec::new(),
            pending: None,
            held_stores: 0,
        }
    }

    fn kernel_body(mut self, args: &[ArgSpec<H::Object>]) -> Result<Lowered<H::Object>, Box<Diagnostic>> {
        let tree = self.frame().function.clone();
        self.call_span = tree.name_span;
        self.check_argument_count(&tree, args.len())?;
        self.bind_arguments(&tree, args)?;
        self.blocks = StreamBlocks::of(&tree.body);
        self.statements(&tree.body)?;
        self.flush_pending()?;
        self.unused_loop_config();
        self.finish_blocks()?;
        let returns = self.kernel_returns()?;
        debug_assert_eq!(self.region, self.kernel.body);
        self.detach_stopped()?;
        calls::captures::pass_captures(&mut self.kernel);
        self.finish_trees();
        let evaluations = self.host.evaluations();
        let evaluations = evaluations.map_err(|exception| self.host_error(exception, tree.name_span))?;
        let dependencies = self.members.into_iter().map(|member| member.dependency).collect();
        Ok(Lowered {
            kernel: self.kernel,
            dependencies,
            fields: self.fields,
            formulas: self.formulas,
            returns,
            warnings: self.warnings,
            evaluations,
        })
    }

    /// The tree of a function.
    fn function_tree(&mut self, source: &Arc<FunctionSource>) -> Fallible<Arc<Function>> {
        let address = Arc::as_ptr(source) as usize;
        if let Some((_, tree)) = self.known_trees.get(&address) {
            return Ok(Arc::clone(tree));
        }
        let tree = self.sources.function(source)?;
        self.known_trees.insert(address, (Arc::clone(source), Arc::clone(&tree)));
        Ok(tree)
    }

    fn frame(&self) -> &Frame<H::Object> {
        self.frames.last().expect("a kernel is being lowered")
    }

    fn frame_mut(&mut self) -> &mut Frame<H::Object> {
        self.frames.last_mut().expect("a kernel is being lowered")
    }

    /// A builder at the end of the current region whose ops come from `span`.
    fn at(&mut self, span: Span) -> Builder<'_> {
        let loc = self.loc(span);
        Builder::at(&mut self.kernel, self.region, loc)
    }

    fn loc(&mut self, span: Span) -> Loc {
        if let Some(loc) = self.encoded_at {
            return loc;
        }
        if let Some((newest, depth, loc)) = self.newest_loc
            && newest == span
            && depth == self.frames.len()
        {
            return loc;
        }
        let frame = self.frame();
        let data = LocData {
            span: Some(span),
            function: Some(frame.name.clone()),
            caller: frame.call.as_ref().and_then(|call| call.inlined_at),
        };
        let loc = self.kernel.intern_loc(data);
        self.newest_loc = Some((span, self.frames.len(), loc));
        loc
    }

    /// Builds a region with these parameters, without a terminator.
    fn open_region<R>(
        &mut self,
        params: &[Type],
        build: impl FnOnce(&mut Self, &[Value]) -> Fallible<R>,
    ) -> Fallible<(Region, R)> {
        if self.nesting >= MAX_REGION_DEPTH {
            let span = self.newest_loc.map_or(self.call_span, |(span, ..)| span);
            return Err(self.error_with_help(
                Code::TooDeep,
                span,
                format!("blocks are nested more than {MAX_REGION_DEPTH} deep"),
                "move the inner blocks into a func that is called in a loop, or use a table",
            ));
        }
        self.nesting += 1;
        let region = self.kernel.add_region();
        let values: Vec<_> = params.iter().map(|&ty| self.kernel.add_region_param(region, ty)).collect();
        let result = self.within(region, |lowerer| build(lowerer, &values));
        self.nesting -= 1;
        Ok((region, result?))
    }

    /// Refuses what is nested too deeply for the thread's stack.
    fn check_stack(&self, span: Span) -> Fallible<()> {
        if self.host.stack_left() >= RESERVED_STACK_BYTES {
            return Ok(());
        }
        Err(self.error_with_help(
            Code::TooDeep,
            span,
            "this is nested too deeply for the stack of the thread that compiles it",
            "use names for parts of it, or compile on a thread with a larger stack: `threading.stack_size`",
        ))
    }

    /// Runs `build` with the insertion point in another region.
    fn within<R>(&mut self, region: Region, build: impl FnOnce(&mut Self) -> Fallible<R>) -> Fallible<R> {
        self.flush_pending()?;
        let outer = std::mem::replace(&mut self.region, region);
        let result = build(self).and_then(|result| self.flush_pending().map(|()| result));
        self.region = outer;
        result
    }

    /// Ends a region that was built without a terminator.
    fn end_region(&mut self, region: Region, span: Span, yielded: &[Value]) {
        let loc = self.loc(span);
        Builder::at(&mut self.kernel, region, loc).yields(yielded);
    }

    /// Begins a block of the program inside of the open one, or of `around`. Gives the one to go back to.
    fn begin_block(&mut self, around: Option<Block>) -> Block {
        let around = around.unwrap_or_else(|| self.blocks_of_ops.open());
        let block = self.blocks_of_ops.add(around);
        self.switch_block(block)
    }

    /// Goes on with another block of the program. Gives the one that was open.
    fn switch_block(&mut self, to: Block) -> Block {
        self.blocks_of_ops.switch(to, self.kernel.ops.len())
    }

    /// Whether a loop here is one of the kernel's tasks.
    fn at_top_level(&self) -> bool {
        self.region == self.kernel.body || self.blocks.open.is_some_and(|(block, _)| block == self.region)
    }
}
