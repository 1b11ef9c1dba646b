//! What is asked of fields and nodes, and promises about indices.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp};
use octants_ir::{OpKind, Scalar, Type, Value};

use crate::host::{Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Place, Term};
use crate::lower::error::Fallible;
use crate::lower::sparse::Need;

impl<H: Host> Lowerer<'_, H> {
    /// `get_addr(field, index)`
    pub(crate) fn get_addr(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let intrinsic = Intrinsic::GetAddr;
        let [of, index] = self.required(intrinsic, arguments, ["f", "indices"], span)?;
        let of = self.placed_field(of)?;
        let object = self.field_argument(intrinsic, &of)?;
        let name = self.text(of.span);
        let element = self.field_place(&object, &name, vec![(index.term, index.span)], span)?;
        let Some(place) = first_place(&element) else {
            return Err(self.bad_arguments(intrinsic, of.span));
        };
        let slot_at = place.sparse.as_deref().and_then(|sparse| self.slot_position(sparse));
        let Place { base, mut path, .. } = self.place_for(&place, Need::Read, span).into_owned();
        let slot = slot_at.map(|at| path[at]);
        // Of a tensor: its first entry.
        let data =
            self.place_data(&Place { base, path: path.clone(), shared: true, guard: None, sparse: None });
        for _ in 0..data.component_rank() {
            path.push(self.at(span).i32(0));
        }
        let operands: Vec<Value> = std::iter::once(base).chain(path).collect();
        let op = self.at(span).op(OpKind::Address, operands, [Type::from(Scalar::U64)], []);
        let address = self.kernel.ops[op].results[0];
        let Some(slot) = slot else { return Ok(Term::Value(address)) };
        // An element that is not there has no address.
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let there = builder.compare(CompareOp::Gt, slot, zero);
        let nowhere = builder.constant(octants_ir::Const::from_bits(Scalar::U64, 0));
        Ok(Term::Value(builder.select(there, address, nowhere)))
    }

    /// The field, where an argument is the place of one, `x.snode`.
    fn placed_field(&mut self, argument: Argument<H::Object>) -> Fallible<Argument<H::Object>> {
        let term = self.rvalue(argument.term.clone(), argument.span)?;
        let Term::Object(object) = term else { return Ok(argument) };
        if !matches!(self.host.meaning(&object), Meaning::Node) {
            return Ok(argument);
        }
        let host = self.host;
        let field = host.getattr(&object, "_placed_field", self);
        let field = field.map_err(|exception| self.host_error(exception, argument.span))?;
        Ok(match self.host.meaning(&field) {
            Meaning::Field => Argument { term: Term::Object(field), ..argument },
            _ => argument,
        })
    }

    /// An argument that must be a field.
    fn field_argument(
        &mut self,
        intrinsic: Intrinsic,
        argument: &Argument<H::Object>,
    ) -> Fallible<H::Object> {
        match self.rvalue(argument.term.clone(), argument.span)? {
            Term::Object(object) if matches!(self.host.meaning(&object), Meaning::Field) => Ok(object),
            other => {
                let what = self.describe(&other);
                Err(self.error_with_help(
                    Code::IntrinsicArguments,
                    argument.span,
                    format!("`{}` takes a field, not {what}", intrinsic.name()),
                    intrinsic.doc(),
                ))
            }
        }
    }

    /// The shape of a field or of a node.
    fn field_or_node_shape(
        &mut self,
        intrinsic: Intrinsic,
        argument: &Argument<H::Object>,
    ) -> Fallible<Vec<u32>> {
        if let Term::Object(object) = self.rvalue(argument.term.clone(), argument.span)? {
            match self.host.meaning(&object) {
                Meaning::Field => {
                    let kind = self.field_kind(&object, argument.span)?;
                    return Ok(kind.layout().map_or_else(Vec::new, |layout| layout.shape.clone()));
                }
                Meaning::Node => {
                    let node = self.host.node(&object).map_err(|e| self.host_error(e, argument.span))?;
                    return Ok(node.shape.clone());
                }
                _ => {}
            }
        }
        Err(self.bad_arguments(intrinsic, argument.span))
    }

    /// `rescale_index(a, b, I)`: an index into `a` as one into `b`, which has more or fewer cells.
    pub(crate) fn rescale_index(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let intrinsic = Intrinsic::RescaleIndex;
        let [a, b, index] = self.required(intrinsic, arguments, ["a", "b", "I"], span)?;
        let from = self.field_or_node_shape(intrinsic, &a)?;
        let to = self.field_or_node_shape(intrinsic, &b)?;
        let mut indices = Vec::new();
        self.index_term(index.term, self.narrowing(), index.span, &mut indices)?;
        for (at, index) in indices.iter_mut().enumerate() {
            let (Some(&from), Some(&to)) = (from.get(at), to.get(at)) else { continue };
            let (op, factor) =
                if from > to { (ArithOp::FloorDiv, from / to) } else { (ArithOp::Mul, to / from) };
            if factor > 1 {
                let mut builder = self.at(span);
                let factor = builder.i32(factor as i32);
                *index = builder.arith(op, *index, factor);
            }
        }
        Ok(Term::Index(indices))
    }

    /// `assume_in_range(val, base, low, high)`: the value; debug mode checks the promise.
    pub(crate) fn assume_in_range(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let intrinsic = Intrinsic::AssumeInRange;
        let [val, base, low, high] =
            self.required(intrinsic, arguments, ["val", "base", "low", "high"], span)?;
        let value = self.index_value_of(&val)?;
        let base = self.index_value_of(&base)?;
        let (low, high) = (self.index_value_of(&low)?, self.index_value_of(&high)?);
        if self.options.kernel.debug {
            let mut builder = self.at(span);
            let distance = builder.arith(ArithOp::Sub, value, base);
            let above = builder.compare(CompareOp::Ge, distance, low);
            let below = builder.compare(CompareOp::Lt, distance, high);
            let inside = builder.bit(BitOp::And, above, below);
            let message = "assume_in_range: {} is not in the range from {} + {} to {} + {}";
            builder.op(
                OpKind::Assert(AssertKind::Condition, message.into()),
                [inside, value, base, low, base, high],
                [],
                [],
            );
        }
        Ok(Term::Value(value))
    }

    fn index_value_of(&mut self, argument: &Argument<H::Object>) -> Fallible<Value> {
        let rvalue = self.rvalue(argument.term.clone(), argument.span)?;
        // A bound may be negative, unlike an index.
        if let Term::Int(value) = rvalue {
            let value = i32::try_from(value)
                .map_err(|_| self.bad_arguments(Intrinsic::AssumeInRange, argument.span))?;
            return Ok(self.at(argument.span).i32(value));
        }
        self.index_value(rvalue, self.narrowing(), argument.span)
    }

    /// `loop_unique(val, covers=None)`: the value. That no two iterations have the same is a promise.
    pub(crate) fn loop_unique(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let intrinsic = Intrinsic::LoopUnique;
        let [Some(val), _] = self.parameters(intrinsic, arguments, ["val", "covers"], 1, span)? else {
            return Err(self.bad_arguments(intrinsic, span));
        };
        Ok(val.term)
    }

    /// Hints about fields and nodes: what they say must be known, and costs nothing. That a loop only reads a field is held against it.
    pub(crate) fn field_hint(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
    ) -> Fallible<Term<H::Object>> {
        for argument in arguments {
            let argument = &self.placed_field(argument.clone())?;
            let rvalue = self.rvalue(argument.term.clone(), argument.span)?;
            if !self.is_field_or_node(&rvalue) {
                let what = self.describe(&rvalue);
                return Err(self.error_with_help(
                    Code::IntrinsicArguments,
                    argument.span,
                    format!("`{}` takes fields, not {what}", intrinsic.name()),
                    intrinsic.doc(),
                ));
            }
            let Term::Object(field) = rvalue else { continue };
            match intrinsic {
                Intrinsic::CacheReadOnly => {
                    self.next_loop.get_or_insert_default().read_only.push((field, argument.span));
                }
                Intrinsic::BlockLocal => self.next_loop.get_or_insert_default().block_local.push(field),
                _ => {}
            }
        }
        Ok(Term::None)
    }
}

/// The place that an element of a field begins with.
fn first_place<O>(term: &Term<O>) -> Option<Place> {
    match term {
        Term::Place(place) => Some(place.clone()),
        Term::Entries(entries) => entries.places.first().cloned(),
        Term::Struct(of) => of.members.iter().find_map(|(_, member)| first_place(member)),
        _ => None,
    }
}
