//! Run-time loops: parallel at the top of a kernel, serial elsewhere.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, Domain, ParallelFor};
use octants_ir::{Builder, Const, Layout, Op, OpData, OpKind, Scalar, Type, Value};

use super::exits::{may_break, may_return};
use crate::FieldParam;
use crate::ast::{Expr, ExprKind, Name, Stmt};
use crate::host::{Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::flow::{Flow, Loop, LoopConfig, LoopKind, ParallelNest};
use crate::lower::data::term::{Ndrange, Term};
use crate::lower::error::{Fallible, counted};

/// A loop to be built: how its variables are named and what its body is.
struct Nest<'s> {
    range: Ndrange,
    targets: Targets<'s>,
    body: &'s [Stmt],
    span: Span,
}

enum Targets<'s> {
    /// One name per axis.
    Each(Vec<(&'s Name, Span)>),
    /// One name for the whole index.
    Grouped(&'s Name, Span),
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn for_statement(
        &mut self,
        target: &Expr,
        iter: &Expr,
        body: &[Stmt],
        span: Span,
    ) -> Fallible<Flow> {
        let config = self.next_loop.take().unwrap_or_default();
        let iterable = self.expr(iter)?;
        if let Term::Static(items) = iterable {
            return self.unrolled_loop(target, &items, iter.span, body, span);
        }
        self.runs_beside_blocks(span, &[body])?;
        let (range, grouped) = self.domain(iterable, iter.span)?;
        let targets = self.targets(target, &range, grouped)?;
        let nest = Nest { range, targets, body, span };
        let (read_only, before) = (config.read_only.clone(), self.kernel.ops.len());
        if self.at_top_level() && !config.serialize {
            self.parallel_loop(&nest, config)?;
        } else {
            if config.name.is_some() && !self.at_top_level() {
                let warning = self.diagnostic(
                    Code::LoopName,
                    span,
                    "`loop_config(name=...)` has no effect: this loop is not a task of its own",
                );
                self.warn(warning);
            }
            self.serial_loop(&nest)?;
        }
        self.check_read_only(&read_only, before)?;
        Ok(Flow::Next)
    }

    /// Refuses a loop, lowered to the ops behind the first `before`, that writes a field which it was said only to read.
    fn check_read_only(&self, fields: &[(H::Object, Span)], before: usize) -> Fallible<()> {
        for (field, said) in fields {
            let Some(number) = self.member_of(field) else { continue };
            let params = &self.kernel.regions[self.kernel.body].params;
            let arrays: Vec<_> = self.params_of_member(number).map(|param| params[param]).collect();
            let writes = |&(op, _): &(Op, &OpData)| {
                let access = self.kernel.cell_access(op);
                access.is_some_and(|access| access.writes && arrays.contains(&access.place.base()))
            };
            let Some((_, written)) = self.kernel.ops.iter().skip(before).find(writes) else { continue };
            let at = self.kernel.locs[written.loc].span.unwrap_or(*said);
            let name = self.text(*said);
            let diagnostic = self
                .diagnostic(Code::ReadOnlyWritten, at, format!("the loop writes `{name}`"))
                .label(*said, "here it was said to be read only")
                .help("leave it out of `oc.cache_read_only`, or read from one field and write to another");
            return Err(Box::new(diagnostic));
        }
        Ok(())
    }

    /// The kernel's parameters that hold elements of a field, by the number of its dependency.
    fn params_of_member(&self, number: usize) -> impl Iterator<Item = usize> {
        let is_of = move |param: &&FieldParam| match param.view {
            None => param.field == number,
            Some(view) => view.elements.is_some_and(|(field, _)| field == number),
        };
        self.fields.iter().filter(is_of).map(|param| param.param)
    }

    /// The kernel's parameters that hold elements of these fields, ascending; none of a field that the kernel has not named.
    fn params_of_fields(&self, fields: &[H::Object]) -> Vec<u32> {
        let numbers = fields.iter().filter_map(|field| self.member_of(field));
        let mut params: Vec<_> =
            numbers.flat_map(|number| self.params_of_member(number)).map(|param| param as u32).collect();
        params.sort_unstable();
        params.dedup();
        params
    }

    /// What a loop runs over, and whether it has one variable for the whole index.
    fn domain(&mut self, iterable: Term<H::Object>, span: Span) -> Fallible<(Ndrange, bool)> {
        match iterable {
            Term::Range(lo, hi) => Ok((Ndrange::new(vec![(lo, hi)]), false)),
            Term::Ndrange(range, _) => Ok((range, false)),
            Term::Array(array) => {
                let rank = self.rank(array);
                let mut bounds = Vec::new();
                for axis in 0..rank {
                    let mut builder = self.at(span);
                    bounds.push((builder.i32(0), builder.extent(array, axis)));
                }
                Ok((Ndrange::new(bounds), false))
            }
            Term::View(view) => {
                let rank = self.rank(view.array);
                let size = self.view_size(&view, span);
                let mut bounds = vec![(self.at(span).i32(0), size)];
                for axis in 1..rank {
                    let mut builder = self.at(span);
                    bounds.push((builder.i32(0), builder.extent(view.array, axis)));
                }
                Ok((Ndrange::new(bounds), false))
            }
            Term::Grouped(inner) => self.domain(*inner, span).map(|(range, _)| (range, true)),
            Term::Object(object) => {
                if let Meaning::Expr(id) = self.host.meaning(&object) {
                    let inner = self.expression(id, span)?;
                    return self.domain(inner, span);
                }
                if let Some(range) = self.field_domain(&object, span)? {
                    return Ok((range, false));
                }
                if let Some(range) = self.encoded_domain(&object, span)? {
                    return Ok((range, false));
                }
                // Says what is wrong with an array that is not an argument.
                let term = self.resolve(object, span)?;
                Err(self.not_iterable(&term, span))
            }
            other => Err(self.not_iterable(&other, span)),
        }
    }

    fn not_iterable(&mut self, term: &Term<H::Object>, span: Span) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        let help = match term {
            Term::Tuple(_) | Term::List(_) | Term::Object(_) => {
                "unroll it at compile time with `for x in oc.static(...)`"
            }
            _ => "loop over `range(n)`, `oc.ndrange(n, m)` or an array",
        };
        self.error_with_help(Code::LoopIterable, span, format!("a loop cannot run over {what}"), help)
    }

    fn not_a_loop_variable(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::LoopTargets,
            span,
            "a loop variable must be a plain name",
            "write one name for each axis, `for i, j in ...`, or one for all with `for I in oc.grouped(...)`",
        )
    }

    fn targets<'s>(&mut self, target: &'s Expr, range: &Ndrange, grouped: bool) -> Fallible<Targets<'s>> {
        let names = match &target.kind {
            ExprKind::Name(name) => vec![(name, target.span)],
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                let mut names = Vec::new();
                for item in items {
                    let ExprKind::Name(name) = &item.kind else {
                        return Err(self.not_a_loop_variable(item.span));
                    };
                    names.push((name, item.span));
                }
                names
            }
            _ => return Err(self.not_a_loop_variable(target.span)),
        };
        for (name, span) in &names {
            self.check_loop_variable(name, *span)?;
        }
        let axes = range.rank();
        match &*names {
            [(name, span)] if grouped || axes == 0 => Ok(Targets::Grouped(name, *span)),
            _ if grouped => Err(self.error_with_help(
                Code::LoopTargets,
                target.span,
                format!("Group for should have 1 loop target, found {}", names.len()),
                "write `for I in oc.grouped(...)` and use `I[0]`, `I[1]`",
            )),
            _ if names.len() != axes => Err(self.error_with_help(
                if range.layout.is_some() { Code::IndexCount } else { Code::LoopTargets },
                target.span,
                format!(
                    "{} for {}",
                    counted(names.len(), "loop variable", "loop variables"),
                    counted(axes, "axis", "axes")
                ),
                "write one variable per axis, or loop over `oc.grouped(...)` with one",
            )),
            _ => Ok(Targets::Each(names)),
        }
    }

    fn parallel_loop(&mut self, nest: &Nest<'_>, config: LoopConfig<H::Object>) -> Fallible<()> {
        let axes = match &nest.range.layout {
            Some(layout) => (0..layout.rank()).collect(),
            None => nest.range.order.clone(),
        };
        if axes.is_empty() {
            return self.serial_loop(nest);
        }
        let types = vec![Type::I32; axes.len()];
        let has_ranges = nest.range.layout.is_none() && nest.range.sparse.is_none();
        let mut threads = ParallelNest {
            bounds: axes.iter().filter_map(|&axis| nest.range.bounds.get(axis).copied()).collect(),
            indices: Vec::new(),
            block_dim: config.block_dim,
            has_ranges,
            limited: config.parallelize.is_some(),
            together: None,
            needs_block: false,
            shared: Vec::new(),
        };
        let (region, ()) = self.open_region(&types, |inner, params| {
            inner.in_parallel = true;
            inner.thread = params.first().copied();
            threads.indices = params.to_vec();
            inner.parallel_nest = Some(threads.clone());
            let mut indices = vec![params[0]; axes.len()];
            for (&axis, &param) in axes.iter().zip(params) {
                indices[axis] = param;
            }
            let result = inner.loop_body(nest, LoopKind::Parallel, &indices);
            inner.in_parallel = false;
            if let Some(lowered) = inner.parallel_nest.take() {
                threads = lowered;
            }
            result
        })?;
        self.end_region(region, nest.span, &[]);
        let block_dim = self.block_of(&threads, &config, nest.span)?;
        self.fit_shared_arrays(&threads, region, block_dim)?;
        let domain = match &nest.range.layout {
            Some(layout) => Domain::Cells(self.kernel.intern_layout((**layout).clone())),
            None => Domain::Ranges,
        };
        let attributes = ParallelFor {
            domain,
            axes: axes.len() as u8,
            reductions: Vec::new(),
            block_dim,
            max_threads: config.parallelize,
            in_order: false,
            brief: false,
            staged: self.params_of_fields(&config.block_local),
            name: config.name,
        };
        if let Some(sparse) = &nest.range.sparse {
            self.begin_visits(sparse, nest.span);
        }
        let bounds = axes.iter().filter_map(|&axis| nest.range.bounds.get(axis));
        let operands: Vec<_> = bounds.flat_map(|&(lo, hi)| [lo, hi]).collect();
        self.at(nest.span).op(OpKind::ParallelFor(Box::new(attributes)), operands, [], [region]);
        Ok(())
    }

    /// Whether a loop may end before its time.
    fn may_end_early(&self, body: &[Stmt]) -> bool {
        may_break(body) || (self.frame().exit.is_some() && may_return(body))
    }

    fn serial_loop(&mut self, nest: &Nest<'_>) -> Fallible<()> {
        let broken = self.may_end_early(nest.body).then(|| self.new_flag(nest.span));
        if let Some(layout) = &nest.range.layout {
            return self.serial_cells(nest, layout, broken);
        }
        let mut indices: Vec<Option<Value>> = vec![None; nest.range.bounds.len()];
        self.serial_level(nest, 0, broken, &mut indices)
    }

    /// A serial loop over a layout.
    fn serial_cells(&mut self, nest: &Nest<'_>, layout: &Layout, broken: Option<Value>) -> Fallible<()> {
        // It becomes as many loops inside each other as there are digits and axes of one element.
        let levels = layout.digits().count().max(layout.rank());
        self.nesting += levels.saturating_sub(1);
        let types = vec![Type::I32; layout.rank()];
        let opened = self.open_region(&types, |inner, indices| {
            let indices = indices.to_vec();
            inner.loop_body(nest, LoopKind::Serial { broken }, &indices)
        });
        self.nesting -= levels.saturating_sub(1);
        let (region, ()) = opened?;
        self.end_region(region, nest.span, &[]);
        let layout = self.kernel.intern_layout(layout.clone());
        self.at(nest.span).op(OpKind::ForCells(layout), broken, [], [region]);
        Ok(())
    }

    /// One nesting level of a serial loop, and those inside.
    fn serial_level(
        &mut self,
        nest: &Nest<'_>,
        level: usize,
        broken: Option<Value>,
        indices: &mut Vec<Option<Value>>,
    ) -> Fallible<()> {
        let span = nest.span;
        let Some(&axis) = nest.range.order.get(level) else {
            let indices: Vec<_> = indices.iter().copied().flatten().collect();
            if nest.range.bounds.is_empty() {
                // No axes: exactly one iteration.
                let (lo, hi) = (self.at(span).i32(0), self.at(span).i32(1));
                let (region, ()) = self.open_region(&[Type::I32], |inner, _| {
                    inner.loop_body(nest, LoopKind::Serial { broken }, &indices)
                })?;
                self.end_region(region, span, &[]);
                self.begin_serial_visits(nest, 0);
                self.at(span).op(OpKind::For, [lo, hi], [], [region]);
                return Ok(());
            }
            return self.loop_body(nest, LoopKind::Serial { broken }, &indices);
        };
        let (lo, hi) = nest.range.bounds[axis];
        let Some(flag) = broken else {
            let (region, ()) = self.open_region(&[Type::I32], |inner, params| {
                indices[axis] = Some(params[0]);
                inner.serial_level(nest, level + 1, broken, indices)
            })?;
            self.end_region(region, span, &[]);
            self.begin_serial_visits(nest, level);
            self.at(span).op(OpKind::For, [lo, hi], [], [region]);
            return Ok(());
        };
        // A loop that may be left counts by itself.
        let counter = self.new_local(lo, span).base;
        let (cond, going) = self.open_region(&[], |inner, _| {
            let mut builder = inner.at(span);
            let index = builder.load(counter, &[]);
            let inside = builder.compare(CompareOp::Lt, index, hi);
            let left = builder.load(flag, &[]);
            let staying = builder.bit_unary(BitUnary::Not, left);
            Ok(builder.bit(BitOp::And, staying, inside))
        })?;
        self.end_region(cond, span, &[going]);
        let (body, ()) = self.open_region(&[], |inner, _| {
            let index = inner.at(span).load(counter, &[]);
            indices[axis] = Some(index);
            inner.serial_level(nest, level + 1, broken, indices)?;
            let mut builder = inner.at(span);
            let one = builder.i32(1);
            let next = builder.arith(ArithOp::Add, index, one);
            builder.store(counter, &[], next);
            Ok(())
        })?;
        self.end_region(body, span, &[]);
        self.begin_serial_visits(nest, level);
        self.at(span).op(OpKind::While, [], [], [cond, body]);
        Ok(())
    }

    /// Before the outermost of the loops that a loop over a tree becomes.
    fn begin_serial_visits(&mut self, nest: &Nest<'_>, level: usize) {
        if let Some(sparse) = nest.range.sparse.as_deref().filter(|_| level == 0) {
            self.begin_visits(sparse, nest.span);
        }
    }

    /// One iteration: of the slots and digits of a tree, it visits the cell that they are, if it is active.
    fn loop_body(&mut self, nest: &Nest<'_>, kind: LoopKind, indices: &[Value]) -> Fallible<()> {
        match &nest.range.sparse {
            None => self.user_body(nest, kind, indices),
            Some(sparse) => {
                self.visit(sparse, indices, nest.span, |inner, indices| inner.user_body(nest, kind, indices))
            }
        }
    }

    /// The user's statements with the loop's variables bound.
    fn user_body(&mut self, nest: &Nest<'_>, kind: LoopKind, indices: &[Value]) -> Fallible<()> {
        self.enter_loop(kind, nest.body, nest.span);
        match &nest.targets {
            Targets::Grouped(name, span) => self.bind(name, Term::Index(indices.to_vec()), *span)?,
            Targets::Each(names) => {
                for ((name, span), &index) in names.iter().zip(indices) {
                    self.bind(name, Term::Value(index), *span)?;
                }
            }
        }
        self.block(nest.body, None)?;
        self.leave_loop(nest.span);
        Ok(())
    }

    fn enter_loop(&mut self, kind: LoopKind, body: &[Stmt], span: Span) {
        let gives_up = self.gives_up_visited(body);
        let frame = self.frame_mut();
        frame.depth += 1;
        frame.push_scope();
        let depth = frame.depth;
        frame.loops.push(Loop { kind, depth, skip: None, span, gives_up });
        self.begin_block(None);
    }

    fn leave_loop(&mut self, span: Span) {
        self.unused_loop_config();
        self.switch_block(self.blocks_of_ops.around(self.blocks_of_ops.open()));
        let frame = self.frame_mut();
        frame.loops.pop();
        frame.pop_scope(span);
        frame.depth -= 1;
        frame.ended = false;
    }

    /// Tells of a `loop_config` that no loop follows, and forgets it.
    pub(crate) fn unused_loop_config(&mut self) {
        let Some(span) = self.next_loop.take().and_then(|config| config.span) else { return };
        let message = "`loop_config` has no effect: no `for` loop follows it in its block";
        let warning = self.diagnostic(Code::UnusedLoopConfig, span, message);
        self.warn(warning.help(
            "write it right before the `for` loop that it is about; a `while` has nothing to configure",
        ));
    }

    pub(crate) fn while_statement(&mut self, test: &Expr, body: &[Stmt], span: Span) -> Fallible<()> {
        self.unused_loop_config();
        let broken = self.may_end_early(body).then(|| self.new_flag(span));
        let (cond, going) = match (broken, &test.kind) {
            (Some(flag), ExprKind::Bool(true)) => {
                self.open_region(&[], |inner, _| Ok(inner.not_left(flag, span)))?
            }
            (Some(flag), _) => self.open_region(&[], |inner, _| {
                let staying = inner.not_left(flag, span);
                // The condition is not evaluated again after a `break`.
                let (evaluated, value) = inner.open_region(&[], |test_region, _| {
                    let term = test_region.expr(test)?;
                    test_region.condition(term, test.span)
                })?;
                inner.end_region(evaluated, span, &[value]);
                let (left, no) =
                    inner.open_region(&[], |other, _| Ok(other.at(span).constant(Const::bool(false))))?;
                inner.end_region(left, span, &[no]);
                let op = inner.at(span).op(OpKind::If, [staying], [Type::U1], [evaluated, left]);
                Ok(inner.kernel.ops[op].results[0])
            })?,
            (None, _) => self.open_region(&[], |inner, _| {
                let term = inner.expr(test)?;
                inner.condition(term, test.span)
            })?,
        };
        self.end_region(cond, span, &[going]);
        let (region, ()) = self.open_region(&[], |inner, _| {
            inner.enter_loop(LoopKind::Serial { broken }, body, span);
            inner.block(body, None)?;
            inner.leave_loop(span);
            Ok(())
        })?;
        self.end_region(region, span, &[]);
        self.at(span).op(OpKind::While, [], [], [cond, region]);
        // Only a `return` ends an endless loop.
        self.frame_mut().ended = matches!(test.kind, ExprKind::Bool(true)) && !may_break(body);
        Ok(())
    }

    /// That a loop was not left.
    fn not_left(&mut self, flag: Value, span: Span) -> Value {
        let mut builder: Builder<'_> = self.at(span);
        let left = builder.load(flag, &[]);
        builder.bit_unary(BitUnary::Not, left)
    }

    /// A bound of `range` as `i32`.
    pub(crate) fn bound(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        let rvalue = match self.loaded(term, span)? {
            Term::Formula(number) if self.fits_i32(&number, i32::MIN) => {
                return Ok(self.formula_i32(*number, i32::MIN, span));
            }
            other => self.pinned(other),
        };
        let from = match &rvalue {
            Term::Int(value) => {
                if let Ok(value) = i32::try_from(*value) {
                    return Ok(self.at(span).i32(value));
                }
                return Err(self.error(
                    Code::LiteralRange,
                    span,
                    format!("loop bound {value} exceeded the range of i32"),
                ));
            }
            Term::Bool(_) => Scalar::I32,
            Term::Float(_) => self.options.default_fp,
            Term::Value(value) if self.data(*value).tensor_shape().is_none() => self.elem(*value),
            other => {
                let what = self.describe(other);
                return Err(self.error(
                    Code::RangeBound,
                    span,
                    format!("a bound of `range` must be a number, not {what}"),
                ));
            }
        };
        if from.is_real() || matches!(from, Scalar::I64 | Scalar::U64 | Scalar::U32) {
            let warning = self
                .diagnostic(
                    Code::IndexCast,
                    span,
                    format!("a loop bound of type {} is cast to i32", from.name()),
                )
                .help("cast it yourself, `oc.i32(...)`, to silence this");
            self.warn(warning);
        }
        self.value_as(rvalue, Scalar::I32, span)
    }
}
