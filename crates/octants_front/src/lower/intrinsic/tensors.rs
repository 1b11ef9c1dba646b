//! Constructors of vectors and matrices.

use octants_diag::{Code, Span};
use octants_ir::{Data, Scalar, TensorShape, TensorType, Value};

use crate::host::{Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::values::convert::describe_data;
use crate::lower::values::promote::promote;

impl<H: Host> Lowerer<'_, H> {
    /// `Matrix(rows, dt=None)`, `Vector(numbers, dt=None)`
    pub(crate) fn tensor_call(
        &mut self,
        intrinsic: Intrinsic,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [Some(list), dtype] = self.parameters(intrinsic, arguments, ["arr", "dt"], 1, span)? else {
            return Err(self.bad_arguments(intrinsic, span));
        };
        let elem = match &dtype {
            Some(dtype) if !matches!(dtype.term, Term::None) => Some(self.dtype(&dtype.term, dtype.span)?),
            _ => None,
        };
        if let Some(value) = self.tensor_operand(&list.term, list.span)? {
            return Ok(Term::Value(match elem {
                Some(elem) => self.cast(value, elem, span),
                None => value,
            }));
        }
        let Some(items) = self.items(&list.term, list.span)? else {
            if let Term::Object(object) = &list.term
                && !matches!(self.host.meaning(object), Meaning::Expr(_))
            {
                // Arrays, generators and the like: the host makes it.
                let made = self.call_intrinsic(intrinsic, callee, arguments, span)?;
                return self.rvalue(made, span);
            }
            return Err(self.not_entries(intrinsic, &list.term, list.span));
        };
        let mut rows = Vec::new();
        for item in &items {
            rows.push(match self.tensor_operand(item, list.span)? {
                // A vector is a row.
                Some(value) if self.data(value).tensor_shape().is_some_and(|shape| shape.rank() == 1) => {
                    Some(self.tensor_entries(value, list.span).into_iter().map(Term::Value).collect())
                }
                Some(_) => return Err(self.not_entries(intrinsic, item, list.span)),
                None => self.items(item, list.span)?,
            });
        }
        let width = rows.first().and_then(|row| row.as_ref().map(Vec::len));
        let equal = rows.iter().all(|row| row.as_ref().map(Vec::len) == width);
        if items.is_empty() || width == Some(0) {
            let what = if intrinsic == Intrinsic::Vector { "vector" } else { "matrix" };
            let message = format!("a {what} has an entry at least, and this one has none");
            return Err(self.error_with_help(Code::TensorEntries, list.span, message, intrinsic.doc()));
        }
        if !equal {
            return Err(self.error_with_help(
                Code::TensorEntries,
                list.span,
                "the rows of a matrix must be lists of equal length",
                intrinsic.doc(),
            ));
        }
        let (entries, shape) = match width {
            None => (items.clone(), tensor_shape(items.len(), None)),
            Some(width) if intrinsic == Intrinsic::Matrix => {
                (rows.into_iter().flatten().flatten().collect(), tensor_shape(items.len(), Some(width)))
            }
            Some(_) => return Err(self.not_entries(intrinsic, &list.term, list.span)),
        };
        let Some(shape) = shape else {
            return Err(self.error_with_help(
                Code::TensorEntries,
                list.span,
                format!("a vector or matrix has at most {} entries along an axis", u16::MAX),
                "keep many numbers in an array, `oc.ndarray`",
            ));
        };
        self.tensor_of(entries, elem, shape, list.span).map(Term::Value)
    }

    fn not_entries(
        &mut self,
        intrinsic: Intrinsic,
        term: &Term<H::Object>,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        self.error_with_help(
            Code::TensorEntries,
            span,
            format!("`oc.{}` cannot be made from {what}", intrinsic.name()),
            intrinsic.doc(),
        )
    }

    /// The tensor that a term is, in a register.
    pub(crate) fn tensor_operand(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Option<Value>> {
        let is_tensor = match term {
            Term::Object(object) => match self.host.meaning(object) {
                Meaning::Tensor(_) => true,
                Meaning::Expr(id) => {
                    let inner = self.expression(id, span)?;
                    return self.tensor_operand(&inner, span);
                }
                _ => false,
            },
            Term::Static(inner) => return self.tensor_operand(&inner.clone(), span),
            other => self.term_shape(other).is_some(),
        };
        if is_tensor { self.value(term.clone(), span).map(Some) } else { Ok(None) }
    }

    /// A term in a register, where a list or tuple stands for the vector or matrix with these entries.
    pub(crate) fn number_or_tensor(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        match self.sequence_tensor(&term, span)? {
            Some(value) => Ok(value),
            None => self.value(term, span),
        }
    }

    /// The vector or matrix that a list or tuple stands for: its items are numbers, or rows of equal length.
    pub(crate) fn sequence_tensor(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Option<Value>> {
        let is_sequence = match term {
            Term::Tuple(_) | Term::List(_) => true,
            Term::Object(object) => matches!(self.host.meaning(object), Meaning::Tuple | Meaning::List),
            _ => false,
        };
        if !is_sequence {
            return Ok(None);
        }
        let Some(items) = self.items(term, span)? else { return Ok(None) };
        let mut rows = Vec::with_capacity(items.len());
        for item in &items {
            rows.push(self.items(item, span)?);
        }
        let width = rows.first().and_then(|row| row.as_ref().map(Vec::len));
        if items.is_empty() || width == Some(0) || rows.iter().any(|row| row.as_ref().map(Vec::len) != width)
        {
            return Ok(None);
        }
        let (entries, shape) = match width {
            None => (items, tensor_shape(rows.len(), None)),
            Some(width) => {
                (rows.iter().flatten().flatten().cloned().collect(), tensor_shape(rows.len(), Some(width)))
            }
        };
        let Some(shape) = shape else { return Ok(None) };
        self.tensor_of(entries, None, shape, span).map(Some)
    }

    /// A tensor from its entries; without a type, that in which all of them meet.
    pub(crate) fn tensor_of(
        &mut self,
        entries: Vec<Term<H::Object>>,
        elem: Option<Scalar>,
        shape: TensorShape,
        span: Span,
    ) -> Fallible<Value> {
        let mut rvalue = Vec::with_capacity(entries.len());
        let mut meet = None;
        for entry in entries {
            let entry = self.loaded(entry, span)?;
            let ty = match &entry {
                Term::Formula(number) => self.formula_type(number),
                Term::Bool(_) => Scalar::U1,
                Term::Int(_) => self.options.default_ip,
                Term::Float(_) => self.options.default_fp,
                Term::Value(value) if self.data(*value).scalar().is_some() => self.elem(*value),
                other => {
                    let what = self.describe(other);
                    return Err(self.error(
                        Code::TensorEntries,
                        span,
                        format!("an entry of a vector or matrix must be a number, not {what}"),
                    ));
                }
            };
            meet = Some(meet.map_or(ty, |so_far| promote(so_far, ty)));
            rvalue.push(entry);
        }
        let target = elem.or(meet).unwrap_or(self.options.default_ip);
        let mut values = Vec::with_capacity(rvalue.len());
        for entry in rvalue {
            values.push(match elem {
                Some(_) => self.convert(entry, target, span)?,
                None => self.value_as(entry, target, span)?,
            });
        }
        Ok(self.at(span).tensor(Data::Tensor(TensorType { elem: target, shape }), values))
    }

    /// A type of vectors or matrices, called.
    pub(crate) fn tensor_type_call(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let annotation = self.host.annotation(callee);
        let Some(Data::Tensor(tensor)) = self.data_of(&annotation) else {
            return Err(self.error(
                Code::TensorEntries,
                span,
                format!("{} has no values of its own", self.host.repr(callee)),
            ));
        };
        if let Some(named) = arguments.iter().find(|argument| argument.name.is_some()) {
            return Err(self.bad_arguments(Intrinsic::MatrixType, named.span));
        }
        let terms = arguments.iter().map(|argument| argument.term.clone()).collect();
        self.typed_tensor(tensor, terms, span).map(Term::Value)
    }

    /// One number fills the tensor; a tensor of its shape is cast; numbers, vectors and lists are put one after the other.
    pub(crate) fn typed_tensor(
        &mut self,
        tensor: TensorType,
        terms: Vec<Term<H::Object>>,
        span: Span,
    ) -> Fallible<Value> {
        let TensorType { elem, shape } = tensor;
        if let [only] = &*terms
            && let Some(value) = self.tensor_operand(only, span)?
        {
            if self.data(value).tensor_shape() == Some(shape) {
                return Ok(self.cast(value, elem, span));
            }
            let (what, of) = (self.describe(&Term::Value(value)), describe_data(Data::Tensor(tensor)));
            return Err(self.error(Code::TensorEntries, span, format!("{of} cannot be made from {what}")));
        }
        let mut entries = Vec::new();
        for term in &terms {
            self.gather(term, span, &mut entries)?;
        }
        let count = shape.count() as usize;
        if entries.len() == 1 {
            let scalar = self.convert(entries.remove(0), elem, span)?;
            return Ok(self.at(span).splat(Data::Tensor(tensor), scalar));
        }
        if entries.len() != count {
            let of = describe_data(Data::Tensor(tensor));
            let all = if count == 1 { String::new() } else { format!(" or {count} numbers") };
            return Err(self.error(
                Code::TensorEntries,
                span,
                format!("{of} takes one number{all}, got {}", entries.len()),
            ));
        }
        self.tensor_of(entries, Some(elem), shape, span)
    }

    /// A tensor of another shape with as many entries, which it keeps by rows; any other term is left as it is.
    pub(crate) fn reshaped(
        &mut self,
        term: Term<H::Object>,
        shape: TensorShape,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let Some(value) = self.tensor_operand(&term, span)? else { return Ok(term) };
        let known = self.tensor_type(value);
        let Some(TensorType { elem, shape: from }) =
            known.filter(|known| known.shape.count() == shape.count())
        else {
            return Ok(term);
        };
        if from == shape {
            return Ok(term);
        }
        let entries = self.tensor_entries(value, span);
        Ok(Term::Value(self.at(span).tensor(Data::Tensor(TensorType { elem, shape }), entries)))
    }

    /// The numbers of a number, tensor or nested list, by rows.
    fn gather(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
        entries: &mut Vec<Term<H::Object>>,
    ) -> Fallible<()> {
        if let Some(value) = self.tensor_operand(term, span)? {
            entries.extend(self.tensor_entries(value, span).into_iter().map(Term::Value));
        } else if let Some(items) = self.items(term, span)? {
            for item in items {
                self.gather(&item, span, entries)?;
            }
        } else {
            let rvalue = self.loaded(term.clone(), span)?;
            match rvalue {
                Term::Object(_) => {
                    for item in self.static_items(&rvalue, span)? {
                        self.gather(&item, span, entries)?;
                    }
                }
                number => entries.push(number),
            }
        }
        Ok(())
    }
}

/// The shape of a vector, or of a matrix with rows of this width, if there are such large ones.
fn tensor_shape(count: usize, width: Option<usize>) -> Option<TensorShape> {
    let count = u16::try_from(count).ok()?;
    Some(match width {
        None => TensorShape::Vector(count),
        Some(width) => TensorShape::Matrix(count, u16::try_from(width).ok()?),
    })
}
