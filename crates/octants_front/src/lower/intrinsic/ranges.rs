//! `range`, `ndrange`, `grouped`, `loop_config`.

use octants_diag::{Code, Span};
use octants_ir::Value;

use crate::host::{Host, Number};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Ndrange, Term};
use crate::lower::error::Fallible;
use crate::lower::places::names::nearest;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn range(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let positional = arguments.iter().all(|argument| argument.name.is_none());
        match arguments {
            [end] if positional => {
                let lo = self.at(span).i32(0);
                let hi = self.bound(end.term.clone(), end.span)?;
                Ok(Term::Range(lo, hi))
            }
            [begin, end] if positional => {
                let lo = self.bound(begin.term.clone(), begin.span)?;
                let hi = self.bound(end.term.clone(), end.span)?;
                Ok(Term::Range(lo, hi))
            }
            _ => Err(self.error_with_help(
                Code::RangeArguments,
                span,
                format!("Range should have 1 or 2 arguments, found {}", arguments.len()),
                match arguments.len() {
                    3 => "for a step, loop over `range(count)` and compute `begin + i * step`",
                    _ => "write `range(end)` or `range(begin, end)`",
                },
            )),
        }
    }

    pub(crate) fn ndrange(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut bounds = Vec::new();
        let mut axes = None;
        for argument in arguments {
            match argument.name.as_deref() {
                None => bounds.push(self.axis(argument)?),
                Some("axes") => axes = Some(argument),
                Some(_) => return Err(self.bad_arguments(Intrinsic::Ndrange, argument.span)),
            }
        }
        let order = match axes {
            Some(argument) if !matches!(argument.term, Term::None) => {
                self.axis_order(argument, bounds.len(), span)?
            }
            _ => (0..bounds.len()).collect(),
        };
        let is_known = |term: &Term<H::Object>| term.is_static() && !term.holds_formula();
        let known = if arguments.iter().all(|argument| is_known(&argument.term)) {
            match self.host_result(callee, arguments, span)? {
                Ok(Term::Object(object)) => Some(object),
                _ => None,
            }
        } else {
            None
        };
        Ok(Term::Ndrange(Ndrange { order, ..Ndrange::new(bounds) }, known))
    }

    /// One axis: `end`, or `(begin, end)`.
    fn axis(&mut self, argument: &Argument<H::Object>) -> Fallible<(Value, Value)> {
        let span = argument.span;
        if let Some(items) = self.items(&argument.term, span)? {
            let [begin, end] = &*items else { return Err(self.bad_axis(&argument.term, span)) };
            return Ok((self.axis_bound(begin, span)?, self.axis_bound(end, span)?));
        }
        let hi = self.axis_bound(&argument.term, span)?;
        Ok((self.at(span).i32(0), hi))
    }

    fn axis_bound(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Value> {
        let rvalue = self.loaded(term.clone(), span)?;
        let integral = match &rvalue {
            Term::Int(_) | Term::Bool(_) => true,
            Term::Formula(number) => !matches!(number.now, Number::Float(_)),
            Term::Value(value) => self.data(*value).scalar().is_some_and(octants_ir::Scalar::is_integral),
            _ => false,
        };
        if integral { self.bound(rvalue, span) } else { Err(self.bad_axis(&rvalue, span)) }
    }

    fn bad_axis(&mut self, term: &Term<H::Object>, span: Span) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        self.error_with_help(
            Code::NdrangeArgument,
            span,
            format!("every argument of ndrange should be an integer scalar or a tuple/list of (begin, end), not {what}"),
            "write `oc.ndrange(n, (1, m))`",
        )
    }

    /// `axes=(1, 0)`: which axis each level runs over.
    fn axis_order(
        &mut self,
        argument: &Argument<H::Object>,
        count: usize,
        span: Span,
    ) -> Fallible<Vec<usize>> {
        let items = self.items(&argument.term, argument.span)?.unwrap_or_default();
        let mut order = Vec::new();
        for item in items {
            match self.rvalue(item, argument.span)? {
                Term::Int(axis) => order.push(axis),
                other => {
                    let what = self.describe(&other);
                    return Err(self.error(
                        Code::NdrangeArgument,
                        argument.span,
                        format!("`axes` must contain integers, not {what}"),
                    ));
                }
            }
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..count as i128).collect::<Vec<_>>() {
            return Err(Box::new(
                self.diagnostic(
                    Code::NdrangeAxes,
                    argument.span,
                    format!("`axes` must be a permutation of the {count} axes"),
                )
                .label(span, "of this range"),
            ));
        }
        Ok(order.into_iter().map(|axis| axis as usize).collect())
    }

    pub(crate) fn grouped(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [of] = self.required(Intrinsic::Grouped, arguments, ["x"], span)?;
        match of.term {
            Term::Array(_) | Term::View(_) | Term::Ndrange(..) => Ok(Term::Grouped(Box::new(of.term))),
            Term::Grouped(_) | Term::Static(_) => {
                let inner = if matches!(of.term, Term::Static(_)) { "static" } else { "grouped" };
                Err(self.error_with_help(
                    Code::GroupedNesting,
                    of.span,
                    format!("`oc.{inner}` cannot stand inside `oc.grouped`"),
                    "write `oc.static(oc.grouped(...))` to unroll",
                ))
            }
            other => {
                let rvalue = self.rvalue(other, of.span)?;
                if matches!(rvalue, Term::Array(_) | Term::View(_))
                    || self.is_field_or_node(&rvalue)
                    || self.is_encoded(&rvalue)
                {
                    return Ok(Term::Grouped(Box::new(rvalue)));
                }
                let what = self.describe(&rvalue);
                Err(self.error_with_help(
                    Code::LoopIterable,
                    of.span,
                    format!("`oc.grouped` cannot run over {what}"),
                    "group an array, a view, a field or an `oc.ndrange(...)`",
                ))
            }
        }
    }

    /// `block_dim(dim)` is `loop_config(block_dim=dim)`.
    pub(crate) fn block_dim(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [mut dim] = self.required(Intrinsic::BlockDim, arguments, ["dim"], span)?;
        dim.name = Some("block_dim".into());
        self.loop_config(&[dim], span)
    }

    pub(crate) fn loop_config(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        // Several before one loop add up.
        let mut config = self.next_loop.take().unwrap_or_default();
        config.span = Some(span);
        for argument in arguments {
            let name = argument.name.as_deref();
            match (name, &argument.term) {
                (Some("block_dim_adaptive" | "bit_vectorize"), Term::Bool(_) | Term::Int(_))
                | (Some("block_dim" | "parallelize" | "name" | "serialize"), Term::None) => {}
                (Some("serialize"), Term::Bool(_) | Term::Int(_)) => {
                    config.serialize = self.static_truth(&argument.term, argument.span)?;
                }
                (Some("block_dim"), Term::Int(value)) if (1..=1 << 20).contains(value) => {
                    config.block_dim = Some(*value as u32);
                }
                (Some("parallelize"), Term::Int(value)) if (1..=1 << 20).contains(value) => {
                    config.parallelize = Some(*value as u32);
                }
                (Some("name"), Term::Str(text)) => config.name = Some(text.to_string()),
                _ => {
                    let what = self.describe(&argument.term);
                    let known = [
                        "block_dim",
                        "serialize",
                        "parallelize",
                        "block_dim_adaptive",
                        "bit_vectorize",
                        "name",
                    ];
                    let message = match name {
                        Some(name) if !known.contains(&name) => {
                            format!("`loop_config` has no option `{name}`")
                        }
                        Some(name) => format!("`loop_config` cannot take {what} for `{name}`"),
                        None => "`loop_config` takes keyword arguments only".to_owned(),
                    };
                    let meant = name.filter(|name| !known.contains(name)).and_then(|name| {
                        nearest(known.iter().map(|&known| known.to_owned()).collect(), name)
                    });
                    let help = match meant {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => Intrinsic::LoopConfig.doc().to_owned(),
                    };
                    return Err(self.error_with_help(Code::LoopConfig, argument.span, message, help));
                }
            }
        }
        config.serialize |= config.parallelize == Some(1);
        self.next_loop = Some(config);
        Ok(Term::None)
    }
}
