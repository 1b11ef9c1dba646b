//! `BufferView`: a part of an array along its first axis.
//!
//! A view that is an argument is an array of its own: the launch gives the address of its first element. One made in the kernel is
//! an array with a window, whose beginning is added to the first index.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp};
use octants_ir::{Boundary, Func, OpKind, Type, Value};

use crate::ast::{Expr, ExprKind, Keyword};
use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Place, Term, View};
use crate::lower::error::Fallible;
use crate::lower::places::index::Narrowing;
use crate::lower::places::slice::has_slice;

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
            "dtype" => Ok(self.array_dtype(view.array)),
            _ => Err(self.error_with_help(
                Code::NoAttribute,
                span,
                format!("a BufferView has no attribute `{name}`"),
                "in a kernel a view has `size`, `shape`, `dtype`, `subview` and `fill`",
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
            if has_slice(index) {
                return self.array_slice(Term::View(*view), base, index, span);
            }
            let items = self.index_operands(index)?;
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
        let (begin, size) = self.view_bounds(view, [start, stop].map(Option::as_deref), span)?;
        Ok(Term::View(self.window(view, begin, size, span)))
    }

    /// Where a slice begins in the view and how long it is, as Python has it: bounds below zero count from the end, and what lies
    /// outside is cut off.
    fn view_bounds(
        &mut self,
        view: &View,
        [start, stop]: [Option<&Expr>; 2],
        span: Span,
    ) -> Fallible<(Value, Value)> {
        let size = self.view_size(view, span);
        let begin = match start {
            Some(start) => self.view_bound(start, size)?,
            None => None,
        };
        let end = match stop {
            Some(stop) => self.view_bound(stop, size)?,
            None => None,
        };
        let zero = self.at(span).i32(0);
        let end = end.unwrap_or(size);
        let Some(begin) = begin else { return Ok((zero, end)) };
        let mut builder = self.at(span);
        let length = builder.arith(ArithOp::Sub, end, begin);
        Ok((begin, builder.arith(ArithOp::Max, length, zero)))
    }

    /// A bound of a slice, from 0 to the size; `None` for Python's `None`.
    fn view_bound(&mut self, expr: &Expr, size: Value) -> Fallible<Option<Value>> {
        let span = expr.span;
        let bound = match self.operand(expr)? {
            Term::None => return Ok(None),
            Term::Int(known) => {
                let known = known.clamp((i32::MIN + 1).into(), i32::MAX.into()) as i32;
                let mut builder = self.at(span);
                let bound = builder.i32(known.abs());
                return Ok(Some(if known >= 0 {
                    builder.arith(ArithOp::Min, bound, size)
                } else {
                    let zero = builder.i32(0);
                    let back = builder.arith(ArithOp::Sub, size, bound);
                    builder.arith(ArithOp::Max, back, zero)
                }));
            }
            term => self.index_value(term, Narrowing::Saturate, span)?,
        };
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let below = builder.compare(CompareOp::Lt, bound, zero);
        let from = builder.select(below, size, zero);
        // Only a negative bound is added to.
        let counted = builder.arith(ArithOp::Add, bound, from);
        Ok(Some(self.cut(counted, zero, size, span)))
    }

    /// The element's place in the array: clamped, or checked in debug mode.
    pub(crate) fn view_place(&mut self, view: &View, mut path: Vec<Value>, name: &str, span: Span) -> Place {
        let size = self.view_size(view, span);
        let guard = self.guard(view.array, Some(size), span);
        if guard.is_none() && self.options.check_bounds {
            let index = path[0];
            self.check_bounds(view.array, &path, 1, name, span);
            let inside = self.within_extent(index, size, span);
            let shown = self.shown_offset(view, span);
            let thread = self.thread_number(span);
            let index = self.whole_index(index);
            self.view_check(
                inside,
                "BufferView Out Of Range: kernel[%] tid={}, got index {} (offset={}, size={}).",
                &[thread, index, shown, size],
                span,
            );
        }
        if let Some((begin, size)) = view.window {
            if guard.is_some() {
                let mut builder = self.at(span);
                let (zero, one) = (builder.i32(0), builder.i32(1));
                let last = builder.arith(ArithOp::Sub, size, one);
                path[0] = self.cut(path[0], zero, last, span);
            }
            path[0] = self.at(span).arith(ArithOp::Add, begin, path[0]);
        }
        Place { base: view.array, path, shared: true, guard, sparse: None }
    }

    /// A part of a view that lies inside of it.
    fn window(&mut self, view: &View, begin: Value, size: Value, span: Span) -> View {
        let begin = match view.window {
            Some((outer, _)) => self.at(span).arith(ArithOp::Add, outer, begin),
            None => begin,
        };
        View { window: Some((begin, size)), ..*view }
    }

    /// A window that may reach outside: cut off where indices are clamped, else checked in debug mode. The text shows the
    /// window's offset and size and the length.
    fn bounded_window(
        &mut self,
        array: Value,
        (begin, size): (Value, Value),
        length: Value,
        text: &str,
        span: Span,
    ) -> (Value, Value) {
        if matches!(self.kernel.ty(array), Type::Array(ty) if ty.boundary == Boundary::Clamp) {
            let zero = self.at(span).i32(0);
            let begin = self.cut(begin, zero, length, span);
            let most = self.at(span).arith(ArithOp::Sub, length, begin);
            return (begin, self.cut(size, zero, most, span));
        }
        if self.options.check_bounds {
            let inside = self.window_fits(begin, size, length, span);
            let thread = self.thread_number(span);
            let shown = [thread, self.whole_index(begin), self.whole_index(size), length];
            self.view_check(inside, text, &shown, span);
        }
        (begin, size)
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
        let part = self.window_arguments(view.array, &begin, &size)?;
        let parent = self.view_size(view, span);
        let text = "BufferView subview Out Of Range: kernel[%] tid={}, subview offset={}, subview size={}, parent size={}.";
        let (begin, size) = self.bounded_window(view.array, part, parent, text, span);
        Ok(Term::View(self.window(view, begin, size, span)))
    }

    /// `BufferView(array, offset, size)`.
    pub(crate) fn make_view(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [Some(array), Some(begin), Some(size)] =
            self.named_arguments(arguments, ["arr", "offset", "size"])
        else {
            return Err(self.error_with_help(
                Code::IntrinsicArguments,
                span,
                "wrong arguments for `BufferView`",
                Intrinsic::BufferView.doc(),
            ));
        };
        let term = self.rvalue(array.term.clone(), array.span)?;
        let Term::Array(value) = term else { return Err(self.no_view_of(&term, array.span)) };
        if self.rank(value) == 0 {
            return Err(self.error(Code::ArgumentKind, array.span, "an array without axes has no views"));
        }
        let part = self.window_arguments(value, &begin, &size)?;
        let length = self.at(span).extent(value, 0);
        let text =
            "BufferView construction Out Of Range: kernel[%] tid={}, offset={}, size={}, ndarray length={}.";
        let window = self.bounded_window(value, part, length, text, span);
        Ok(Term::View(View { array: value, window: Some(window), offset: None }))
    }

    fn no_view_of(&mut self, term: &Term<H::Object>, span: Span) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        let help = match term {
            Term::View(_) => "use `view.subview(offset, size)` for a part of a view",
            _ if self.is_field_or_node(term) => {
                "a field has no views: pass the field itself and an offset, or keep the data in an `oc.ndarray`"
            }
            _ => "pass a parameter annotated `oc.types.ndarray()`",
        };
        let message = format!("a BufferView is made of an array, not of {what}");
        self.error_with_help(Code::ArgumentKind, span, message, help)
    }

    /// The offset and the size that a part is made with.
    fn window_arguments(
        &mut self,
        array: Value,
        begin: &Argument<H::Object>,
        size: &Argument<H::Object>,
    ) -> Fallible<(Value, Value)> {
        let clamps = matches!(self.kernel.ty(array), Type::Array(ty) if ty.boundary == Boundary::Clamp);
        let narrowing = if clamps { Narrowing::Saturate } else { self.narrowing() };
        let begin = self.index_value(begin.term.clone(), narrowing, begin.span)?;
        let size = self.index_value(size.term.clone(), narrowing, size.span)?;
        Ok((begin, size))
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
        let counted = builder.arith(ArithOp::Max, size, zero);
        let begins = builder.compare(CompareOp::Ge, begin, zero);
        let counts = builder.compare(CompareOp::Ge, size, zero);
        let room = builder.arith(ArithOp::Sub, length, counted);
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

    /// What a function is passed for a view: its array, offset and size, and in debug mode the offset that the user knows.
    pub(crate) fn view_values(&mut self, view: &View, span: Span) -> Vec<Value> {
        let size = self.view_size(view, span);
        let begin = match view.window {
            Some((begin, _)) => begin,
            None => self.at(span).i32(0),
        };
        let mut values = vec![view.array, begin, size];
        if self.options.check_bounds {
            values.push(match view.offset {
                Some(offset) => offset,
                None => self.at(span).i32(0),
            });
        }
        values
    }

    /// The view that a function is passed so.
    pub(crate) fn view_of_function(&mut self, function: Func, name: &str, ty: Type) -> View {
        let array = self.kernel.add_function_param(function, name, ty);
        let mut number =
            |part: &str| self.kernel.add_function_param(function, format!("{name}__{part}"), Type::I32);
        let window = Some((number("begin"), number("size")));
        let offset = self.options.check_bounds.then(|| number("offset"));
        View { array, window, offset }
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
