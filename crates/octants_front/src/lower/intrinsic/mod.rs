//! What the language's own callables mean. Families are files here.

mod atomic;
mod blocks;
mod fields;
pub(crate) mod math;
mod random;
mod ranges;
mod sparse;
mod statics;
pub(crate) mod stop_grad;
mod tensors;

use octants_diag::{Code, Span};
use octants_ir::{Data, Scalar};

use crate::ast::{Expr, Keyword};
use crate::host::{Host, HostException, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::{Argument, Passing};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::statements::assign::Combine;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        callee: &H::Object,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if intrinsic == Intrinsic::Static {
            return self.static_call(args, keywords);
        }
        let passing = if takes_place(intrinsic) { Passing::ByReference } else { Passing::ByValue };
        let mut arguments = self.arguments(args, keywords, passing)?;
        if !calculates(intrinsic) {
            for argument in &mut arguments {
                argument.term = self.pinned(argument.term.clone());
            }
        }
        if intrinsic != Intrinsic::Super
            && self.in_static
            && arguments.iter().all(|argument| argument.term.is_static())
        {
            // Everything is known: Python evaluates it, with its own builtins and the package's host versions.
            let result = self.call_intrinsic(intrinsic, callee, &arguments, span)?;
            return self.rvalue(result, span);
        }
        self.intrinsic_of(intrinsic, callee, &arguments, span)
    }

    /// The host's version of an intrinsic.
    fn call_intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let result = self.host_result(callee, arguments, span)?;
        result.map_err(|exception| self.intrinsic_error(intrinsic, exception, span))
    }

    /// What an intrinsic refuses is the same mistake inside of `oc.static` as outside.
    fn intrinsic_error(
        &mut self,
        intrinsic: Intrinsic,
        exception: HostException,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let code = match (intrinsic, &*exception.type_name) {
            (Intrinsic::Ndrange, "OctantsTypeError") => Code::NdrangeArgument,
            (Intrinsic::Ndrange, "OctantsSyntaxError") => Code::NdrangeAxes,
            (_, "OctantsTypeError") => Code::IntrinsicArguments,
            _ => return self.host_error(exception, span),
        };
        self.error(code, span, exception.message)
    }

    /// An intrinsic with evaluated arguments.
    pub(crate) fn intrinsic_of(
        &mut self,
        intrinsic: Intrinsic,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        use Intrinsic as I;
        if !self.options.has_blocks && blocks::is_of_blocks(intrinsic) {
            return Err(self.refused_without_blocks(intrinsic, span));
        }
        match intrinsic {
            I::Static => self.static_of(arguments.to_vec()),
            I::StaticAssert => self.static_assert(arguments, span),
            I::LibraryAssert => self.library_assert(arguments, span),
            I::Deprecated => self.deprecated(arguments, span),
            I::StaticPrint => self.static_print(callee, arguments, span),
            I::Range => self.range(arguments, span),
            I::Ndrange => self.ndrange(callee, arguments, span),
            I::Grouped => self.grouped(arguments, span),
            I::LoopConfig => self.loop_config(arguments, span),
            I::BlockDim => self.block_dim(arguments, span),
            I::StreamParallel => Err(self.stray_stream_parallel(span)),
            I::GetAddr => self.get_addr(arguments, span),
            I::RescaleIndex => self.rescale_index(arguments, span),
            I::LoopUnique => self.loop_unique(arguments, span),
            I::AssumeInRange => self.assume_in_range(arguments, span),
            I::BlockLocal | I::CacheReadOnly | I::NoActivate => self.field_hint(intrinsic, arguments),
            I::StopGrad => self.stop_grad(arguments, span),
            I::IsActive | I::Activate | I::Deactivate | I::Append | I::Length => {
                self.sparse_operation(intrinsic, arguments, span)
            }
            I::DeactivateAll => self.deactivate_all_call(arguments, span),
            I::BufferView => self.make_view(arguments, span),
            I::Super => self.parent(callee, arguments, span),
            I::Int => self.builtin_cast(self.options.default_ip, callee, arguments, span),
            I::Float => self.builtin_cast(self.options.default_fp, callee, arguments, span),
            I::Bool => self.builtin_cast(Scalar::U1, callee, arguments, span),
            I::Len => self.length(arguments, span),
            I::Any | I::All => self.any_all(intrinsic, arguments, span),
            I::Print => self.print_call(arguments, span),
            I::Random => self.random_call(arguments, span),
            I::ClockCounter => {
                let [] = self.parameters(intrinsic, arguments, [], 0, span)?;
                Ok(Term::Value(self.at(span).clock()))
            }
            I::Randn => Err(self.unavailable(intrinsic, span)),
            I::Matrix | I::Vector => self.tensor_call(intrinsic, callee, arguments, span),
            I::MatrixType => self.tensor_type_call(callee, arguments, span),
            I::Struct => self.struct_call(arguments, span),
            I::StructType => self.struct_type_call(callee, arguments, span),
            I::Abs | I::Min | I::Max | I::Pow | I::Atan2 | I::RawDiv | I::RawMod | I::BitShr => {
                self.arithmetic(intrinsic, arguments, span)
            }
            I::Round
            | I::Floor
            | I::Ceil
            | I::Sqrt
            | I::Rsqrt
            | I::Exp
            | I::Log
            | I::Log2
            | I::Sin
            | I::Cos
            | I::Tan
            | I::Tanh
            | I::Asin
            | I::Acos
            | I::Erf
            | I::IsNan
            | I::IsInf => self.math_function(intrinsic, arguments, span),
            I::Frexp => self.frexp(arguments, span),
            I::Select => self.select(arguments, span),
            I::Greatest | I::Least => self.extreme_of(intrinsic, arguments, span),
            I::Zero | I::One => self.zero_or_one(intrinsic, arguments, span),
            I::Cast | I::BitCast => self.cast_call(intrinsic, arguments, span),
            I::Popcnt | I::Clz | I::Ffs => self.bit_count(intrinsic, arguments, span),
            I::AtomicAdd => self.atomic(intrinsic, Combine::Add, arguments, span),
            I::AtomicSub => self.atomic(intrinsic, Combine::Sub, arguments, span),
            I::AtomicMul => self.atomic(intrinsic, Combine::Mul, arguments, span),
            I::AtomicMin => self.atomic(intrinsic, Combine::Min, arguments, span),
            I::AtomicMax => self.atomic(intrinsic, Combine::Max, arguments, span),
            I::AtomicAnd => self.atomic(intrinsic, Combine::And, arguments, span),
            I::AtomicOr => self.atomic(intrinsic, Combine::Or, arguments, span),
            I::AtomicXor => self.atomic(intrinsic, Combine::Xor, arguments, span),
            I::AtomicExchange => self.atomic(intrinsic, Combine::Exchange, arguments, span),
            I::AtomicCas | I::AtomicCasWord => self.atomic_cas(intrinsic, arguments, span),
            I::SharedArray => self.shared_array(arguments, span),
            I::BlockSync | I::SubgroupSync | I::BlockFence | I::GridFence => {
                let [] = self.parameters(intrinsic, arguments, [], 0, span)?;
                self.meeting(intrinsic, span)
            }
            I::ThreadIdx | I::BlockThreads | I::GlobalThreadIdx | I::SubgroupLane => {
                let [] = self.parameters(intrinsic, arguments, [], 0, span)?;
                self.thread_position(intrinsic, span)
            }
            I::BlockCount | I::Ballot => self.vote(intrinsic, arguments, span),
            I::Shuffle | I::ShuffleUp | I::ShuffleDown | I::ShuffleXor => {
                self.shuffle(intrinsic, arguments, span)
            }
            I::Outer => self.outer(arguments, span),
            I::VolatileLoad => self.volatile_load(arguments, span),
        }
    }

    /// Arguments by parameter: the first `required` must be there.
    fn parameters<const N: usize>(
        &self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        names: [&str; N],
        required: usize,
        span: Span,
    ) -> Fallible<[Option<Argument<H::Object>>; N]> {
        let mut slots = [const { None }; N];
        let mut next = 0;
        for argument in arguments {
            let position = match &argument.name {
                None => {
                    next += 1;
                    Some(next - 1).filter(|&at| at < N)
                }
                Some(name) => names.iter().position(|known| **known == **name),
            };
            match position {
                Some(at) if slots[at].is_none() => slots[at] = Some(argument.clone()),
                _ => return Err(self.bad_arguments(intrinsic, argument.span)),
            }
        }
        if slots[..required].iter().any(Option::is_none) {
            return Err(self.bad_arguments(intrinsic, span));
        }
        Ok(slots)
    }

    /// Arguments by parameter, all of which must be there.
    pub(crate) fn required<const N: usize>(
        &self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        names: [&str; N],
        span: Span,
    ) -> Fallible<[Argument<H::Object>; N]> {
        let slots = self.parameters(intrinsic, arguments, names, N, span)?;
        let found: Vec<_> = slots.into_iter().flatten().collect();
        <[_; N]>::try_from(found).map_err(|_| self.bad_arguments(intrinsic, span))
    }

    fn bad_arguments(&self, intrinsic: Intrinsic, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::IntrinsicArguments,
            span,
            format!("wrong arguments for `{}`", intrinsic.name()),
            intrinsic.doc(),
        )
    }

    fn unavailable(&self, intrinsic: Intrinsic, span: Span) -> Box<octants_diag::Diagnostic> {
        let diagnostic = self.diagnostic(
            Code::Unavailable,
            span,
            format!("`{}` is not available in kernels of this version", intrinsic.name()),
        );
        Box::new(diagnostic)
    }

    fn length(&mut self, arguments: &[Argument<H::Object>], span: Span) -> Fallible<Term<H::Object>> {
        let [of] = self.required(Intrinsic::Len, arguments, ["obj"], span)?;
        if let Term::Object(object) = &of.term
            && let Some(length) = self.special_length(object, span)?
        {
            return Ok(length);
        }
        if let Some(extents) = self.shared_extents(&of.term) {
            return Ok(Term::Int(extents[0].into()));
        }
        if let Some(items) = self.count(&of.term, of.span)? {
            return Ok(Term::Int(items as i128));
        }
        let what = self.describe(&of.term);
        Err(self.error_with_help(
            Code::IntrinsicArguments,
            of.span,
            format!("{what} has no length that is known at compile time"),
            "use `x.shape[0]` for the extent of an array or field",
        ))
    }

    /// How many items a sequence has, without evaluating them.
    fn count(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Option<usize>> {
        Ok(match term {
            Term::Shape(array) => Some(self.rank(*array) as usize),
            Term::Value(value) => match self.data(*value) {
                Data::Tensor(tensor) => tensor.shape.dims().first().map(|&n| n as usize),
                _ => None,
            },
            Term::Index(values) => Some(values.len()),
            Term::Str(text) => Some(text.chars().count()),
            Term::Object(object) if matches!(self.host.meaning(object), Meaning::Field) => None,
            Term::Object(_) => Some(self.static_items(term, span)?.len()),
            _ => self.items(term, span)?.map(|items| items.len()),
        })
    }

    fn any_all(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [of] = self.required(intrinsic, arguments, ["values"], span)?;
        let count = self.count(&of.term, of.span)?.ok_or_else(|| self.bad_arguments(intrinsic, of.span))?;
        let items = self.unpack(&of.term, count, of.span, of.span)?;
        let mut result = self.condition(Term::Bool(intrinsic == Intrinsic::All), span)?;
        let op = if intrinsic == Intrinsic::All {
            octants_ir::ops::BitOp::And
        } else {
            octants_ir::ops::BitOp::Or
        };
        for item in items {
            let holds = self.condition(item, of.span)?;
            result = self.at(span).bit(op, result, holds);
        }
        Ok(Term::Value(result))
    }
}

/// Whether arguments are calculated with, so that they need not be known while compiling.
fn calculates(intrinsic: Intrinsic) -> bool {
    use Intrinsic as I;
    match intrinsic {
        I::Range
        | I::Ndrange
        | I::Int
        | I::Float
        | I::Bool
        | I::Vector
        | I::Matrix
        | I::Struct
        | I::StructType
        | I::MatrixType
        | I::Abs
        | I::Min
        | I::Max
        | I::Pow
        | I::Atan2
        | I::RawDiv
        | I::RawMod
        | I::BitShr
        | I::Select
        | I::Cast
        | I::BitCast
        | I::Popcnt
        | I::Clz
        | I::Ffs => true,
        _ => crate::math_functions::is_function(intrinsic) || takes_place(intrinsic),
    }
}

/// Whether the first argument is written to, or must be a place.
fn takes_place(intrinsic: Intrinsic) -> bool {
    use Intrinsic as I;
    matches!(
        intrinsic,
        I::AtomicAdd
            | I::AtomicSub
            | I::AtomicMul
            | I::AtomicMin
            | I::AtomicMax
            | I::AtomicAnd
            | I::AtomicOr
            | I::AtomicXor
            | I::AtomicExchange
            | I::AtomicCas
            | I::AtomicCasWord
            | I::VolatileLoad
            | I::Outer
            | I::Grouped
            | I::Matrix
            | I::Vector
            | I::MatrixType
    )
}
