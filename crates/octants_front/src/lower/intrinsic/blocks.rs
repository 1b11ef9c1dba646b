//! What threads of a block do together, and which one of them this is.
//!
//! Iteration `i` of a loop over ranges is run by thread `i % block_dim` of a block, whose threads run its neighbours: where a thread stands follows
//! from the loop's indices.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::ops::{ArithOp, DEFAULT_BLOCK, SUBGROUP, Scope, ShuffleOp, whole_number_of};
use octants_ir::{Data, Region, Scalar, SharedLayout, Value};

use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::flow::{LoopConfig, ParallelNest};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// What is said where threads form no blocks.
    pub(super) fn refused_without_blocks(&self, intrinsic: Intrinsic, span: Span) -> Box<Diagnostic> {
        let code = if is_of_subgroup(intrinsic) { Code::NoSubgroups } else { Code::NoBlocks };
        self.error_with_help(
            code,
            span,
            format!("`{}` requires a GPU backend: the session has none", spelling(intrinsic)),
            "leave `simt_on_cpu=False` out of `oc.init`: then the threads of a block run in turn on a CPU",
        )
    }

    /// The loop whose threads form blocks, here; `needs_all` if what is done needs all of them.
    fn blocks_around(
        &mut self,
        intrinsic: Intrinsic,
        needs_all: bool,
        span: Span,
    ) -> Fallible<&ParallelNest> {
        let called = format!("`{}`", spelling(intrinsic));
        self.lanes_here(&called, span)?;
        let nest = self.parallel_nest.as_mut().expect("it was there");
        if needs_all {
            nest.together.get_or_insert(span);
            nest.needs_block |= !is_of_subgroup(intrinsic);
        }
        Ok(nest)
    }

    /// Refuses what lanes do, by its name, where the iterations around are no threads of blocks.
    pub(crate) fn lanes_here(&self, called: &str, span: Span) -> Fallible<()> {
        let Some(nest) = self.parallel_nest.as_ref() else {
            return Err(self.error_with_help(
                Code::BlockOutside,
                span,
                format!("{called} stands in no parallel loop"),
                "threads form blocks in an outermost `for i in range(n)` of a kernel that is not serialised; a real function is \
                 passed what it needs",
            ));
        };
        if !nest.has_ranges || nest.limited {
            let (why, help) = if nest.limited {
                ("a loop whose threads are limited", "leave `parallelize=` out of `oc.loop_config`")
            } else {
                (
                    "a loop over the elements of a field or a tree",
                    "loop over `range(n)` or `oc.ndrange(...)`, whose neighbouring iterations are neighbours in a block",
                )
            };
            return Err(self.error_with_help(
                Code::BlockLoop,
                span,
                format!("{called} stands in {why}"),
                help,
            ));
        }
        Ok(())
    }

    /// Barriers and fences.
    pub(super) fn meeting(&mut self, intrinsic: Intrinsic, span: Span) -> Fallible<Term<H::Object>> {
        let (scope, is_fence) = match intrinsic {
            Intrinsic::BlockSync => (Scope::Block, false),
            Intrinsic::SubgroupSync => (Scope::Subgroup, false),
            Intrinsic::BlockFence => (Scope::Block, true),
            _ => (Scope::Device, true),
        };
        if is_fence {
            self.at(span).fence(scope);
        } else {
            self.blocks_around(intrinsic, true, span)?;
            self.at(span).barrier(scope);
        }
        Ok(Term::Nothing(spelling(intrinsic).into()))
    }

    /// A number that says which thread this is.
    pub(super) fn thread_position(&mut self, intrinsic: Intrinsic, span: Span) -> Fallible<Term<H::Object>> {
        let nest = self.blocks_around(intrinsic, false, span)?.clone();
        if intrinsic == Intrinsic::BlockThreads {
            return Ok(Term::Int(nest.threads().into()));
        }
        Ok(Term::Value(self.thread_number_in(intrinsic, &nest, span)))
    }

    fn thread_number_in(&mut self, intrinsic: Intrinsic, nest: &ParallelNest, span: Span) -> Value {
        let mut builder = self.at(span);
        let mut number: Option<Value> = None;
        for (&(lo, hi), &index) in nest.bounds.iter().zip(&nest.indices) {
            let own = match builder.kernel.as_const(lo) {
                Some(zero) if zero.bits() == 0 => index,
                _ => builder.arith(ArithOp::Sub, index, lo),
            };
            number = Some(match number {
                None => own,
                Some(outer) => {
                    let extent = builder.arith(ArithOp::Sub, hi, lo);
                    let rows = builder.arith(ArithOp::Mul, outer, extent);
                    builder.arith(ArithOp::Add, rows, own)
                }
            });
        }
        let number = number.expect("a parallel loop has an axis");
        let of = match intrinsic {
            Intrinsic::GlobalThreadIdx => return number,
            Intrinsic::ThreadIdx => nest.threads(),
            // A block of another size has a subgroup of fewer threads.
            _ if nest.threads().is_multiple_of(SUBGROUP) => SUBGROUP,
            _ => {
                let threads = builder.i32(nest.threads().cast_signed());
                let own = builder.arith(ArithOp::RawMod, number, threads);
                let lanes = builder.i32(SUBGROUP.cast_signed());
                return builder.arith(ArithOp::RawMod, own, lanes);
            }
        };
        let of = builder.i32(of.cast_signed());
        builder.arith(ArithOp::RawMod, number, of)
    }

    /// What comes of a condition of all threads.
    pub(super) fn vote(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [predicate] = self.required(intrinsic, arguments, ["predicate"], span)?;
        self.blocks_around(intrinsic, true, span)?;
        let holds = self.condition(predicate.term, predicate.span)?;
        let mut builder = self.at(span);
        Ok(Term::Value(match intrinsic {
            Intrinsic::BlockCount => builder.barrier_count(holds),
            _ => builder.ballot(holds),
        }))
    }

    /// What a value is on another lane; a vector or matrix entry by entry, and so is a struct.
    pub(super) fn shuffle(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let (op, by) = match intrinsic {
            Intrinsic::Shuffle => (ShuffleOp::Lane, "lane"),
            Intrinsic::ShuffleUp => (ShuffleOp::Up, "offset"),
            Intrinsic::ShuffleDown => (ShuffleOp::Down, "offset"),
            _ => (ShuffleOp::Xor, "mask"),
        };
        let [value, by] = self.required(intrinsic, arguments, ["value", by], span)?;
        self.blocks_around(intrinsic, true, span)?;
        let lane = self.value(by.term.clone(), by.span)?;
        if !self.data(lane).scalar().is_some_and(|scalar| scalar.is_integral() && scalar != Scalar::U1) {
            let what = self.describe(&by.term);
            return Err(self.error_with_help(
                Code::Exchange,
                by.span,
                format!("a lane is an integer, not {what}"),
                "lanes count from 0",
            ));
        }
        let lane = self.cast(lane, Scalar::I32, by.span);
        self.shuffled(op, value.term, lane, value.span)
    }

    fn shuffled(
        &mut self,
        op: ShuffleOp,
        term: Term<H::Object>,
        lane: Value,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let term = self.rvalue(term, span)?;
        if let Term::Struct(mut of) = term {
            for (_, member) in &mut of.members {
                *member = self.shuffled(op, member.clone(), lane, span)?;
            }
            return Ok(Term::Struct(of));
        }
        let value = self.value(term.clone(), span)?;
        match self.data(value) {
            Data::Scalar(scalar) => Ok(Term::Value(self.shuffled_scalar(op, value, scalar, lane, span))),
            data @ Data::Tensor(tensor) => {
                let dims = tensor.shape.dims();
                let mut entries = Vec::new();
                for entry in 0..tensor.shape.count() {
                    let mut rest = entry;
                    let mut at: Vec<u32> = dims
                        .iter()
                        .rev()
                        .map(|&n| {
                            let digit = rest % n;
                            rest /= n;
                            digit
                        })
                        .collect();
                    at.reverse();
                    let at: Vec<_> = at.into_iter().map(|n| self.at(span).i32(n.cast_signed())).collect();
                    let scalar = self.at(span).tensor_get(value, &at);
                    entries.push(self.shuffled_scalar(op, scalar, tensor.elem, lane, span));
                }
                Ok(Term::Value(self.at(span).tensor(data, entries)))
            }
            Data::Struct(_) => {
                let what = self.describe(&term);
                Err(self.error_with_help(
                    Code::Exchange,
                    span,
                    format!("lanes cannot exchange {what}"),
                    "exchange its members",
                ))
            }
        }
    }

    /// Lanes exchange words of 32 and 64 bits; what is narrower travels in a wider one.
    fn shuffled_scalar(
        &mut self,
        op: ShuffleOp,
        value: Value,
        scalar: Scalar,
        lane: Value,
        span: Span,
    ) -> Value {
        let carrier = match scalar {
            Scalar::F16 => Scalar::F32,
            narrow if narrow.bits() < 32 => Scalar::I32,
            wide => wide,
        };
        let sent = self.cast(value, carrier, span);
        let got = self.at(span).shuffle(op, sent, lane);
        self.cast(got, scalar, span)
    }

    /// `SharedArray(shape, dtype)`
    pub(super) fn shared_array(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [shape, dtype] = self.required(Intrinsic::SharedArray, arguments, ["shape", "dtype"], span)?;
        self.blocks_around(Intrinsic::SharedArray, true, span)?;
        let extents = self.shared_shape(&shape)?;
        let element = self.element_of_shared(&dtype)?;
        let bytes = element.bytes() * extents.iter().map(|&extent| u128::from(extent)).product::<u128>();
        let most = self.options.max_shared_bytes;
        if bytes > u128::from(most) {
            return Err(self.error_with_help(
                Code::SharedSize,
                span,
                format!(
                    "a block has {most} bytes of shared memory on this device, and this array takes {bytes}"
                ),
                "make it smaller, or keep part of it in registers or in an array",
            ));
        }
        Ok(self.new_shared(&element, &extents, span))
    }

    /// The shared arrays of a loop whose body was lowered lie in the memory of a block.
    pub(crate) fn fit_shared_arrays(
        &mut self,
        nest: &ParallelNest,
        body: Region,
        block_dim: Option<u32>,
    ) -> Fallible<()> {
        let most = self.options.max_shared_bytes;
        let layout = SharedLayout::of(&self.kernel, body, block_dim);
        let Some(array) = layout.first_beyond(most.into()) else { return Ok(()) };
        let Some(&(_, span)) = nest.shared.iter().find(|&&(op, _)| op == array.op) else { return Ok(()) };
        let (all, bytes) = (layout.bytes, array.bytes);
        Err(self.error_with_help(
            Code::SharedSize,
            span,
            format!("a block has {most} bytes of shared memory on this device, and its arrays take {all}, {bytes} of them here"),
            "make it smaller, keep part of it in registers or in an array, or put a `block.sync()` between the last use of one array and the first of \
             another: then they share memory",
        ))
    }

    fn shared_shape(&mut self, shape: &Argument<H::Object>) -> Fallible<Vec<u32>> {
        let term = self.rvalue(shape.term.clone(), shape.span)?;
        let items = match &term {
            Term::Int(_) => vec![term.clone()],
            _ => self.items(&term, shape.span)?.unwrap_or_else(|| vec![term.clone()]),
        };
        let extent = |item: &Term<H::Object>| match item {
            Term::Int(extent) if (1..=i128::from(i32::MAX)).contains(extent) => Some(*extent as u32),
            _ => None,
        };
        let mut extents = Vec::new();
        for item in items {
            let item = self.rvalue(item, shape.span)?;
            let Some(extent) = extent(&item) else {
                let what = match &item {
                    Term::Int(number) => number.to_string(),
                    Term::Float(number) => number.to_string(),
                    other => self.describe(other),
                };
                return Err(self.error_with_help(
                    Code::SharedShape,
                    shape.span,
                    format!("the shape of a shared array is a positive integer or a tuple of such, known while compiling: not {what}"),
                    "write `oc.simt.block.SharedArray((16, 17), oc.f32)`",
                ));
            };
            extents.push(extent);
        }
        if extents.is_empty() {
            extents.push(1);
        }
        Ok(extents)
    }

    /// How many threads a block of a loop has whose body was lowered, if they do something together.
    pub(crate) fn block_of(
        &mut self,
        nest: &ParallelNest,
        config: &LoopConfig<H::Object>,
        span: Span,
    ) -> Fallible<Option<u32>> {
        let Some(first) = nest.together else { return Ok(config.block_dim) };
        let threads = nest.threads();
        if threads > MOST_THREADS {
            return Err(self.error_with_help(
                Code::BlockLoop,
                config.span.unwrap_or(span),
                format!("a block has at most {MOST_THREADS} threads, not {threads}"),
                "write a smaller `block_dim`",
            ));
        }
        let multiple = nest.multiple();
        let known = |value: Value| self.kernel.as_const(value)?.as_i128();
        let points = nest
            .bounds
            .iter()
            .try_fold(1_i128, |points, &(lo, hi)| points.checked_mul((known(hi)? - known(lo)?).max(0)));
        if let Some(points) = points
            && points % i128::from(multiple) != 0
        {
            let of = if multiple == threads { "block" } else { "subgroup" };
            let diagnostic = self
                .diagnostic(
                    Code::BlockMultiple,
                    span,
                    format!("{points} iterations are no whole number of {of}s of {multiple} threads"),
                )
                .label(first, format!("here all threads of a {of} are needed"));
            let help = if config.block_dim.is_none() && nest.needs_block {
                "say how many threads a block has: `oc.loop_config(block_dim=...)` before the loop"
            } else {
                "round the number of iterations up to whole blocks, and do the work under `if i < n:`"
            };
            return Err(Box::new(diagnostic.help(help)));
        }
        Ok(Some(threads))
    }
}

/// Threads of a block, at most, on every GPU.
const MOST_THREADS: u32 = 1024;

impl ParallelNest {
    /// How many threads a block has.
    pub(crate) fn threads(&self) -> u32 {
        self.block_dim.unwrap_or(DEFAULT_BLOCK)
    }

    /// What the number of iterations is a multiple of.
    pub(crate) fn multiple(&self) -> u32 {
        whole_number_of(self.threads(), self.needs_block)
    }
}

/// Whether an intrinsic is about the threads of a block. How many there are is asked by functions of the library, which go on to one that is.
pub(super) fn is_of_blocks(intrinsic: Intrinsic) -> bool {
    use Intrinsic as I;
    let of_block = matches!(
        intrinsic,
        I::SharedArray
            | I::BlockSync
            | I::BlockCount
            | I::BlockFence
            | I::ThreadIdx
            | I::GlobalThreadIdx
            | I::GridFence
    );
    of_block || is_of_subgroup(intrinsic)
}

fn is_of_subgroup(intrinsic: Intrinsic) -> bool {
    use Intrinsic as I;
    matches!(
        intrinsic,
        I::SubgroupLane
            | I::SubgroupSync
            | I::Ballot
            | I::Shuffle
            | I::ShuffleUp
            | I::ShuffleDown
            | I::ShuffleXor
    )
}

/// How programs write it.
fn spelling(intrinsic: Intrinsic) -> &'static str {
    use Intrinsic as I;
    match intrinsic {
        I::SharedArray => "simt.block.SharedArray",
        I::BlockSync => "simt.block.sync",
        I::BlockCount => "simt.block.sync_count_nonzero",
        I::BlockFence => "simt.block.mem_fence",
        I::ThreadIdx => "simt.block.thread_idx",
        I::GlobalThreadIdx => "simt.block.global_thread_idx",
        I::SubgroupLane => "simt.subgroup.invocation_id",
        I::SubgroupSync => "simt.subgroup.sync",
        I::Ballot => "simt.subgroup.ballot",
        I::Shuffle => "simt.subgroup.shuffle",
        I::ShuffleUp => "simt.subgroup.shuffle_up",
        I::ShuffleDown => "simt.subgroup.shuffle_down",
        I::ShuffleXor => "simt.subgroup.shuffle_xor",
        I::GridFence => "simt.grid.mem_fence",
        other => other.name(),
    }
}
