//! `BufferView`: a part of an array along its first axis.
//!
//! A view that is an argument is an array of its own: the launch gives the address of its first element. One made in the kernel is
//! an array with a window, whose beginning is added to the first index.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp};
use octants_ir::{OpKind, Value};

use crate::ast::{Expr, ExprKind, Keyword};
use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Place, Term, View};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn view_size(&mut self, view: &View, span: Span) -> Value {
        match view.window {
            Some((_, size)) => size,
            None => self.at(span).extent(view.array, 0),
        }
    }

    pub(crate) fn view_attribute(
        &mut self,
        view: &View,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match name {
            "size" => Ok(Term::Value(self.view_size(view, span))),
            "shape" => {
                let mut extents = vec![Term::Value(self.view_size(view, span))];
                for axis in 1..self.rank(view.array) {
                    extents.push(Term::Value(self.at(span).extent(view.array, axis)));
                }
                Ok(Term::Tuple(extents))
            }
            _ => Err(self.error_with_help(
                Code::NoAttribute,
                span,
                format!("a BufferView has no attribute `{name}`"),
                "in a kernel a view has `size`, `shape`, `subview` and `fill`",
            )),
        }
    }

    /// `view[i]`, `view[i, j]` or `view[a:b]`.
    pub(crate) fn view_subscript(
        &mut self,
        view: &View,
        base: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let ExprKind::Slice { start, stop, step } = &index.kind else {
            let mut items = Vec::new();
            for item in index.index_items() {
                items.push((self.index_operand(item)?, item.span));
            }
            let name = format!("`{}`", self.text(base.span));
            let path = self.array_path(view.array, &name, items, span)?;
            return Ok(Term::Place(self.view_place(view, path, &name, span)));
        };
        if let Some(step) = step {
            return Err(self.error_with_help(
                Code::ViewStep,
                step.span,
                "a slice of a BufferView has no step",
                "write `v[a:b]`, and step in the loop",
            ));
        }
        let size = self.view_size(view, span);
        let begin = self.view_bound(start.as_deref(), size, None)?;
        let end = self.view_bound(stop.as_deref(), size, Some(size))?;
        let length = self.at(span).arith(ArithOp::Sub, end, begin);
        Ok(Term::View(self.subview(view, begin, length, span)))
    }

    fn view_bound(&mut self, bound: Option<&Expr>, size: Value, missing: Option<Value>) -> Fallible<Value> {
        let Some(expr) = bound else {
            return Ok(match missing {
                Some(value) => value,
                None => self.at(self.call_span).i32(0),
            });
        };
        match self.operand(expr)? {
            // Known to count from the end.
            Term::Int(back) if back < 0 => {
                let Ok(back) = i32::try_from(-back) else {
                    return Err(self.error(Code::LiteralRange, expr.span, "index exceeded the range of i32"));
                };
                let back = self.at(expr.span).i32(back);
                Ok(self.at(expr.span).arith(ArithOp::Sub, size, back))
            }
            term => self.index_value(term, expr.span),
        }
    }

    /// The element's place in the array, checked in debug mode.
    pub(crate) fn view_place(&mut self, view: &View, mut path: Vec<Value>, name: &str, span: Span) -> Place {
        let index = path[0];
        if self.options.check_bounds {
            self.check_bounds(view.array, &path, 1, name, span);
            let size = self.view_size(view, span);
            let inside = self.within_extent(index, size, span);
            let shown = self.shown_offset(view, span);
            let thread = self.thread_number(span);
            self.view_check(
                inside,
                "BufferView Out Of Range: kernel[%] tid={}, got index {} (offset={}, size={}).",
                &[thread, index, shown, size],
                span,
            );
        }
        if let Some((begin, _)) = view.window {
            path[0] = self.at(span).arith(ArithOp::Add, begin, index);
        }
        Place { base: view.array, path, shared: true }
    }

    fn subview(&mut self, view: &View, begin: Value, size: Value, span: Span) -> View {
        if self.options.check_bounds {
            let parent = self.view_size(view, span);
            let inside = self.window_fits(begin, size, parent, span);
            let thread = self.thread_number(span);
            self.view_check(
                inside,
                "BufferView subview Out Of Range: kernel[%] tid={}, subview offset={}, subview size={}, parent size={}.",
                &[thread, begin, size, parent],
                span,
            );
        }
        let begin = match view.window {
            Some((outer, _)) => self.at(span).arith(ArithOp::Add, outer, begin),
            None => begin,
        };
        View { window: Some((begin, size)), ..*view }
    }

    /// `view.subview(offset, size)`.
    pub(crate) fn subview_call(
        &mut self,
        view: &View,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let arguments = self.arguments(args, keywords, crate::lower::data::argument::Passing::ByValue)?;
        let [Some(begin), Some(size)] = self.named_arguments(&arguments, ["offset", "size"]) else {
            return Err(self.error_with_help(
                Code::IntrinsicArguments,
                span,
                "wrong arguments for `subview`",
                "subview(offset, size)",
            ));
        };
        let begin = self.index_value(begin.term.clone(), begin.span)?;
        let size = self.index_value(size.term.clone(), size.span)?;
        Ok(Term::View(self.subview(view, begin, size, span)))
    }

    /// `BufferView(array, offset, size)`.
    pub(crate) fn make_view(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [Some(array), Some(begin), Some(size)] =
            self.named_arguments(arguments, ["ndarray", "offset", "size"])
        else {
            return Err(self.error_with_help(
                Code::IntrinsicArguments,
                span,
                "wrong arguments for `BufferView`",
                Intrinsic::BufferView.doc(),
            ));
        };
        let term = self.settle(array.term.clone(), array.span)?;
        let Term::Array(value) = term else {
            let what = self.describe(&term);
            return Err(self.error_with_help(
                Code::ArgumentKind,
                array.span,
                format!("a BufferView is made of an array, not of {what}"),
                "use `view.subview(offset, size)` for a part of a view",
            ));
        };
        let begin = self.index_value(begin.term.clone(), begin.span)?;
        let size = self.index_value(size.term.clone(), size.span)?;
        if self.options.check_bounds {
            let length = self.at(span).extent(value, 0);
            let inside = self.window_fits(begin, size, length, span);
            let thread = self.thread_number(span);
            self.view_check(
                inside,
                "BufferView construction Out Of Range: kernel[%] tid={}, offset={}, size={}, ndarray length={}.",
                &[thread, begin, size, length],
                span,
            );
        }
        Ok(Term::View(View { array: value, window: Some((begin, size)), offset: None }))
    }

    fn named_arguments<const N: usize>(
        &self,
        arguments: &[Argument<H::Object>],
        names: [&str; N],
    ) -> [Option<Argument<H::Object>>; N] {
        let mut slots = [const { None }; N];
        for (position, argument) in arguments.iter().enumerate() {
            let at = match &argument.name {
                None => Some(position),
                Some(name) => names.iter().position(|known| **known == **name),
            };
            match at.and_then(|at| slots.get_mut(at)) {
                Some(slot) if slot.is_none() => *slot = Some(argument.clone()),
                _ => return [const { None }; N],
            }
        }
        slots
    }

    fn within_extent(&mut self, index: Value, extent: Value, span: Span) -> Value {
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let above = builder.compare(CompareOp::Ge, index, zero);
        let below = builder.compare(CompareOp::Lt, index, extent);
        builder.bit(BitOp::And, above, below)
    }

    /// `begin >= 0`, `size >= 0` and `begin + size <= length`, without overflow.
    fn window_fits(&mut self, begin: Value, size: Value, length: Value, span: Span) -> Value {
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let begins = builder.compare(CompareOp::Ge, begin, zero);
        let counts = builder.compare(CompareOp::Ge, size, zero);
        let room = builder.arith(ArithOp::Sub, length, size);
        let fits = builder.compare(CompareOp::Le, begin, room);
        let both = builder.bit(BitOp::And, begins, counts);
        builder.bit(BitOp::And, both, fits)
    }

    /// The offset that the user knows: in the array that the caller has.
    fn shown_offset(&mut self, view: &View, span: Span) -> Value {
        let begin = view.window.map(|(begin, _)| begin);
        match (view.offset, begin) {
            (Some(outer), Some(begin)) => self.at(span).arith(ArithOp::Add, outer, begin),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.at(span).i32(0),
        }
    }

    /// The index of the parallel loop, or 0 outside of one and in real functions.
    fn thread_number(&mut self, span: Span) -> Value {
        match self.thread {
            Some(value) if self.in_parallel => value,
            _ => self.at(span).i32(0),
        }
    }

    fn view_check(&mut self, holds: Value, text: &str, numbers: &[Value], span: Span) {
        let kernel = self.frames.first().map_or_else(String::new, |frame| frame.function.name.to_string());
        let message = format!("{}\nCallstack:\n{}", text.replace('%', &kernel), self.call_stack(span));
        let operands: Vec<_> = std::iter::once(holds).chain(numbers.iter().copied()).collect();
        self.at(span).op(OpKind::Assert(AssertKind::Bounds, message.into()), operands, [], []);
    }

    /// One line per function, outermost first: `name (file:line)`.
    fn call_stack(&self, span: Span) -> String {
        let calls =
            self.frames.iter().skip(1).map(|frame| frame.call.as_ref().map_or(span, |call| call.span));
        let places = calls.chain(std::iter::once(span));
        let lines = self.frames.iter().zip(places).enumerate().map(|(depth, (frame, at))| {
            let file = self.sources.map().file(at.file);
            let (file, line) =
                file.map_or((String::new(), 0), |file| (file.name.clone(), file.line(at.start)));
            format!("{}{} ({file}:{line})", "  ".repeat(depth), frame.function.name)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
