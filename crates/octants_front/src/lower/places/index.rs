//! Subscripts: elements of arrays, items of sequences, entries of tensors.

use octants_diag::{Code, Span};
use octants_ir::ops::{ASSERT_ARGUMENTS, AssertKind, BitOp, CompareOp};
use octants_ir::{Boundary, Const, Data, OpKind, Scalar, Type, Value};

use super::entries::Part;
use crate::ast::{Expr, ExprKind};
use crate::host::{Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::term::{Place, Term};
use crate::lower::error::{Fallible, counted};
use crate::lower::places::slice::has_slice;
use crate::lower::values::convert::describe_data;

/// What indexes a dict or a list of the host.
const STATIC_INDEX: &str = "a constant, or the variable of a loop over `oc.static(range(n))`";

/// How an integer of another type becomes an index, which is an `i32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Narrowing {
    /// As a cast does it.
    Wrap,
    /// What does not fit becomes the nearest index that does, which lies outside of every array.
    Saturate,
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn subscript(
        &mut self,
        base: Term<H::Object>,
        base_expr: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match base {
            Term::Static(inner) => self.subscript(*inner, base_expr, index, span),
            Term::Array(array) => self.array_element(array, base_expr, index, span),
            Term::View(view) => self.view_subscript(&view, base_expr, index, span),
            Term::Structs(array) => self.struct_of_array(&array, base_expr, index, span),
            tensor @ (Term::Place(_) | Term::Value(_) | Term::Entries(_) | Term::Encoded(_))
                if self.term_shape(&tensor).is_some() =>
            {
                let parts = self.index_parts(index)?;
                self.tensor_item(tensor, parts, index.span)
            }
            Term::Struct(of) if has_slice(index) && self.is_tile(&of) => self.tile_subscript(of, index),
            Term::Struct(of) => {
                let key = self.operand(index)?;
                let Term::Str(name) = &key else {
                    return Err(self.constant_index("a struct", "the name of a member", index.span));
                };
                match of.member(name) {
                    Some(member) => Ok(member.clone()),
                    None => self.struct_attribute(of, name, index.span),
                }
            }
            Term::Object(object) => {
                if let Meaning::Expr(id) = self.host.meaning(&object) {
                    let inner = self.expression(id, span)?;
                    return self.subscript(inner, base_expr, index, span);
                }
                if let Meaning::Field = self.host.meaning(&object) {
                    return self.field_element(&object, base_expr, index, span);
                }
                if self.is_encoded(&Term::Object(object.clone())) {
                    return self.encoded_element(&object, base_expr, index, span);
                }
                if !self.in_static
                    && let Meaning::Tensor(constant) = self.host.meaning(&object)
                {
                    let parts = self.index_parts(index)?;
                    let is_known =
                        |part: &Part<H::Object>| !matches!(part, Part::Index(term, _) if !term.is_static());
                    if !parts.iter().all(is_known) {
                        let value = self.tensor_constant(&constant, span);
                        return self.tensor_item(Term::Value(value), parts, index.span);
                    }
                }
                self.host_item(&object, index, span)
            }
            Term::Dict(entries) => {
                let key = self.operand(index)?;
                self.dict_item(&entries, &key, index.span)
            }
            sequence @ (Term::Tuple(_) | Term::List(_) | Term::Shape(_) | Term::Index(_)) => {
                let item = self.sequence_item(&sequence, index, span);
                item.map_err(|mut error| {
                    if error.code == Code::StaticIndex && self.unpacked.contains(&base_expr.span) {
                        error.code = Code::UnpackedIndex;
                        let text = "an unpacked vector can be indexed with compile-time integers only";
                        text.clone_into(&mut error.message);
                    }
                    error
                })
            }
            literal @ Term::Str(_) => {
                let object = self.host_object(&literal)?;
                self.host_item(&object, index, span)
            }
            other => {
                let what = self.describe(&other);
                Err(self.error(Code::NotIndexable, base_expr.span, format!("{what} cannot be indexed")))
            }
        }
    }

    fn array_element(
        &mut self,
        array: Value,
        base_expr: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if has_slice(index) {
            return self.array_slice(Term::Array(array), base_expr, index, span);
        }
        let items = self.index_operands(index)?;
        if let [(Term::Int(row), at)] = *items
            && self.rank(array) == 2
            && let Some(row) = self.host_array_row(array, row, at)?
        {
            return Ok(row);
        }
        let name = format!("`{}`", self.text(base_expr.span));
        self.array_place(array, &name, items, span).map(Term::Place)
    }

    /// The place of an array's element.
    pub(crate) fn array_place(
        &mut self,
        array: Value,
        name: &str,
        items: Vec<(Term<H::Object>, Span)>,
        span: Span,
    ) -> Fallible<Place> {
        let spans: Vec<_> = items.iter().map(|&(_, at)| at).collect();
        let path = self.array_path(array, name, items, span)?;
        self.check_constant_indices(array, &path, name, &spans, span)?;
        self.check_bounds(array, &path, 0, name, span);
        let guard = self.guard(array, None, span);
        Ok(Place { base: array, path, shared: true, guard, sparse: None })
    }

    /// The indices of an array's element.
    pub(crate) fn array_path(
        &mut self,
        array: Value,
        name: &str,
        items: Vec<(Term<H::Object>, Span)>,
        span: Span,
    ) -> Fallible<Vec<Value>> {
        let Type::Array(ty) = self.kernel.ty(array) else { unreachable!("a term `Array` is an array") };
        let narrowing = match ty.boundary {
            Boundary::Unsafe => self.narrowing(),
            Boundary::Clamp => Narrowing::Saturate,
        };
        let mut path = Vec::new();
        for (item, at) in items {
            self.index_term(item, narrowing, at, &mut path)?;
        }
        self.check_rank(ty.rank.into(), path.len(), name, span)?;
        Ok(path)
    }

    /// As many indices as there are axes.
    pub(crate) fn check_rank(&self, rank: usize, count: usize, name: &str, span: Span) -> Fallible<()> {
        if count == rank {
            return Ok(());
        }
        let indices = if count == 1 { "index" } else { "indices" };
        Err(self.error_with_help(
            Code::IndexCount,
            span,
            format!("{name} has rank {rank} but is indexed with {count} {indices}"),
            match rank {
                0 => "write `x[None]` for rank 0".to_owned(),
                1 => "write one index, `x[i]`".to_owned(),
                _ => format!(
                    "write {rank} indices, as in `x[{}]`",
                    ["i", "j", "k", "l"][..4.min(rank)].join(", ")
                ),
            },
        ))
    }

    /// What the parts of an index give, with where they stand.
    pub(crate) fn index_operands(&mut self, index: &Expr) -> Fallible<Vec<(Term<H::Object>, Span)>> {
        index.index_items().iter().map(|item| Ok((self.index_operand(item)?, item.span))).collect()
    }

    fn index_operand(&mut self, item: &Expr) -> Fallible<Term<H::Object>> {
        if let ExprKind::Slice { .. } = item.kind {
            return Err(self.error_with_help(
                Code::SliceUnsupported,
                item.span,
                "slices of arrays are not supported in a kernel",
                "index one element at a time, in a loop, or make a view of an array: `oc.BufferView(a, offset, size)`",
            ));
        }
        self.operand(item)
    }

    /// One index: a number, `None` for rank 0, or the index of a grouped loop.
    pub(crate) fn index_term(
        &mut self,
        term: Term<H::Object>,
        narrowing: Narrowing,
        span: Span,
        path: &mut Vec<Value>,
    ) -> Fallible<()> {
        match self.loaded(term, span)? {
            Term::None => Ok(()),
            Term::Index(values) => {
                path.extend(values);
                Ok(())
            }
            term @ (Term::Tuple(_) | Term::List(_)) => {
                for item in self.items(&term, span)?.unwrap_or_default() {
                    self.index_term(item, narrowing, span, path)?;
                }
                Ok(())
            }
            Term::Object(object) => {
                self.exposed(&Term::Object(object.clone()), span)?;
                let host = self.host;
                let items = host.iterate(&object, self).map_err(|_| {
                    let what = self.describe(&Term::Object(object.clone()));
                    self.error(Code::IndexType, span, format!("indices must be integers, not {what}"))
                })?;
                for item in items {
                    self.index_term(Term::Object(item), narrowing, span, path)?;
                }
                Ok(())
            }
            Term::Value(value) if self.data(value).tensor_shape().is_some() => {
                let count = self.data(value).tensor_shape().map_or(0, octants_ir::TensorShape::count);
                for entry in 0..count {
                    let component = self.at(span).i32(entry as i32);
                    let scalar = self.at(span).tensor_get(value, &[component]);
                    path.push(self.index_value(Term::Value(scalar), narrowing, span)?);
                }
                Ok(())
            }
            number => {
                path.push(self.index_value(number, narrowing, span)?);
                Ok(())
            }
        }
    }

    /// What becomes of an index that `i32` cannot hold: checks must see that it is outside.
    pub(crate) fn narrowing(&self) -> Narrowing {
        if self.options.check_bounds { Narrowing::Saturate } else { Narrowing::Wrap }
    }

    /// An index as it was before it became an `i32`, for a message.
    pub(crate) fn whole_index(&self, index: Value) -> Value {
        self.whole_indices[index].unwrap_or(index)
    }

    /// An index as `i32`.
    pub(crate) fn index_value(
        &mut self,
        term: Term<H::Object>,
        narrowing: Narrowing,
        span: Span,
    ) -> Fallible<Value> {
        let term = match term {
            Term::Formula(number) if self.fits_i32(&number, 0) => {
                return Ok(self.formula_i32(*number, 0, span));
            }
            other => self.pinned(other),
        };
        match &term {
            Term::Int(value) => {
                if *value < 0 {
                    return Err(self.error_with_help(
                        Code::NegativeIndex,
                        span,
                        "Negative indices are not supported in a kernel",
                        "count from the end with the shape: `x[x.shape[0] - 1]`",
                    ));
                }
                if let Ok(value) = i32::try_from(*value) {
                    return Ok(self.at(span).i32(value));
                }
                Err(self.error(Code::LiteralRange, span, format!("index {value} exceeded the range of i32")))
            }
            Term::Bool(_) | Term::Value(_) => {
                let value = self.value(term, span)?;
                if !matches!(self.data(value), Data::Scalar(_)) {
                    let what = describe_data(self.data(value));
                    return Err(self.error(
                        Code::IndexType,
                        span,
                        format!("an index is one integer, not {what}"),
                    ));
                }
                let ty = self.elem(value);
                if ty.is_real() {
                    return Err(self.float_index(ty, span));
                }
                if ty != Scalar::I32 && self.kernel.as_const(value).is_none() {
                    let warning = self.diagnostic(
                        Code::IndexCast,
                        span,
                        format!("an index of type {} is cast to i32", ty.name()),
                    );
                    self.warn(warning.help("cast it yourself, `oc.i32(...)`, to silence this"));
                }
                Ok(match narrowing {
                    Narrowing::Wrap => self.cast(value, Scalar::I32, span),
                    Narrowing::Saturate => {
                        let narrow = self.saturated(value, span);
                        if narrow != value {
                            self.whole_indices.set(narrow, Some(value));
                        }
                        narrow
                    }
                })
            }
            Term::Float(_) => Err(self.float_index(self.options.default_fp, span)),
            other => {
                let what = self.describe(other);
                Err(self.error(Code::IndexType, span, format!("indices must be integers, not {what}")))
            }
        }
    }

    fn float_index(&self, ty: Scalar, span: Span) -> Box<octants_diag::Diagnostic> {
        Box::new(
            self.diagnostic(Code::IndexType, span, "indices must be integers")
                .marked(format!("this is {}", ty.name()))
                .help("write `int(...)` around it if truncation is meant"),
        )
    }

    /// Debug mode: an assertion that every index is inside of its extent, from some axis on.
    pub(crate) fn check_bounds(
        &mut self,
        array: Value,
        path: &[Value],
        first: usize,
        name: &str,
        span: Span,
    ) {
        let Type::Array(ty) = self.kernel.ty(array) else { return };
        if !self.options.check_bounds || ty.boundary != Boundary::Unsafe {
            return;
        }
        let mut inside = None;
        let mut extents = Vec::new();
        for (axis, &index) in path.iter().enumerate() {
            let mut builder = self.at(span);
            let extent = builder.extent(array, axis as u8);
            extents.push(extent);
            if axis < first {
                continue;
            }
            let zero = builder.constant(Const::i32(0));
            let above = builder.compare(CompareOp::Ge, index, zero);
            let below = builder.compare(CompareOp::Lt, index, extent);
            let both = builder.bit(BitOp::And, above, below);
            inside = Some(match inside {
                None => both,
                Some(so_far) => builder.bit(BitOp::And, so_far, both),
            });
        }
        let Some(inside) = inside else { return };
        let shown: Vec<Value> = path.iter().map(|&index| self.whole_index(index)).collect();
        let places = |n: usize| vec!["{}"; n].join(", ");
        let tuple = |n: usize| if n == 1 { "({},)".to_owned() } else { format!("({})", places(n)) };
        let (message, arguments): (String, Vec<Value>) = match path.len() {
            n if 2 * n <= ASSERT_ARGUMENTS => (
                format!("index {} is out of bounds of {name} with shape {}", tuple(n), tuple(n)),
                shown.iter().chain(&extents).copied().collect(),
            ),
            n if n <= ASSERT_ARGUMENTS => (format!("index {} is out of bounds of {name}", tuple(n)), shown),
            _ => (format!("an index is out of bounds of {name}"), Vec::new()),
        };
        let operands = std::iter::once(inside).chain(arguments).collect::<Vec<_>>();
        self.at(span).op(OpKind::Assert(AssertKind::Bounds, message.into()), operands, [], []);
    }

    /// The user's own text.
    pub(crate) fn text(&self, span: Span) -> String {
        let file = self.sources.map().file(span.file);
        let text =
            file.and_then(|file| file.text.get(span.start as usize..span.end as usize).map(str::to_owned));
        text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// An item of a sequence whose length is known.
    fn sequence_item(
        &mut self,
        sequence: &Term<H::Object>,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let ExprKind::Slice { start, stop, step } = &index.kind {
            return self.sequence_slice(sequence, [start, stop, step].map(Option::as_deref), span);
        }
        let index_term = self.operand(index)?;
        self.item_at(sequence, index_term, index.span, span)
    }

    pub(crate) fn item_at(
        &mut self,
        sequence: &Term<H::Object>,
        index: Term<H::Object>,
        index_span: Span,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let count = match sequence {
            Term::Shape(array) => self.rank(*array) as usize,
            Term::Tuple(items) | Term::List(items) => items.len(),
            Term::Index(values) => values.len(),
            _ => 0,
        };
        let index = self.pinned(index);
        let position = match index {
            Term::Int(value) => value,
            Term::Bool(value) => value.into(),
            // The index of a grouped loop is a vector, which may be indexed at run time.
            Term::Value(_) if matches!(sequence, Term::Index(_)) => {
                let vector = self.value(sequence.clone(), span)?;
                let component = self.index_value(index, self.narrowing(), index_span)?;
                return Ok(Term::Value(self.tensor_entry(vector, &[component], span)));
            }
            other => {
                let (what, of) = (self.describe(&other), self.describe(sequence));
                return Err(self.error_with_help(
                    Code::StaticIndex,
                    index_span,
                    format!("{of} can be indexed with compile-time integers only, not with {what}"),
                    "use a constant, or the variable of a loop over `oc.static(range(n))`",
                ));
            }
        };
        let wrapped = if position < 0 { position + count as i128 } else { position };
        let Some(position) = usize::try_from(wrapped).ok().filter(|&at| at < count) else {
            let mut of = self.describe(sequence);
            // Tuples and lists say it themselves.
            if let Term::Shape(_) | Term::Index(_) = sequence {
                of = format!("{of} with {}", counted(count, "entry", "entries"));
            }
            return Err(self.error(
                Code::StaticIndexRange,
                index_span,
                format!("index {position} is out of range of {of}"),
            ));
        };
        Ok(match sequence {
            Term::Shape(array) => Term::Value(self.at(span).extent(*array, position as u8)),
            Term::Tuple(items) | Term::List(items) => items[position].clone(),
            Term::Index(values) => Term::Value(values[position]),
            _ => Term::None,
        })
    }

    fn sequence_slice(
        &mut self,
        sequence: &Term<H::Object>,
        parts: [Option<&Expr>; 3],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let slice = self.slice_object(parts)?;
        let items = self.items(sequence, span)?.unwrap_or_default();
        let positions = (0..items.len()).map(|at| self.host.make_int(at as i128)).collect();
        let positions = self.host.make_list(positions);
        let host = self.host;
        let chosen = host.getitem(&positions, &slice, self).map_err(|e| self.host_error(e, span))?;
        let mut picked = Vec::new();
        for position in self.items(&Term::Object(chosen), span)?.unwrap_or_default() {
            if let Term::Int(at) = self.rvalue(position, span)? {
                picked.push(items[at as usize].clone());
            }
        }
        Ok(if matches!(sequence, Term::List(_)) { Term::List(picked) } else { Term::Tuple(picked) })
    }

    fn slice_object(&mut self, parts: [Option<&Expr>; 3]) -> Fallible<H::Object> {
        let mut objects = Vec::with_capacity(3);
        for part in parts {
            let term = match part {
                Some(expr) => self.operand(expr)?,
                None => Term::None,
            };
            if !term.is_static() {
                let span = part.map_or(self.call_span, |expr| expr.span);
                return Err(self.error_with_help(
                    Code::StaticIndex,
                    span,
                    "the bounds of a slice must be compile-time constants",
                    "use constants or variables of static loops",
                ));
            }
            objects.push(self.host_object(&term)?);
        }
        let mut next = objects.into_iter();
        let mut take = || next.next().unwrap_or_else(|| self.host.make_none());
        Ok(self.host.make_slice(take(), take(), take()))
    }

    fn dict_item(
        &mut self,
        entries: &[(Term<H::Object>, Term<H::Object>)],
        key: &Term<H::Object>,
        key_span: Span,
    ) -> Fallible<Term<H::Object>> {
        if !key.is_static() {
            return Err(self.constant_index("a dict", STATIC_INDEX, key_span));
        }
        for (known, value) in entries {
            let same = self.compare(
                crate::host::CompareOp::Eq,
                (known.clone(), key_span),
                (key.clone(), key_span),
                key_span,
            )?;
            if self.static_truth(&same, key_span)? {
                return Ok(value.clone());
            }
        }
        Err(self.error(Code::StaticIndexRange, key_span, "the dict has no such key"))
    }

    /// A run-time index into something that exists at compile time only.
    fn constant_index(&self, what: &str, right: &str, span: Span) -> Box<octants_diag::Diagnostic> {
        let message = format!("{what} can be indexed with compile-time constants only");
        self.error_with_help(Code::StaticIndex, span, message, format!("use {right}"))
    }

    /// An item of a host object.
    fn host_item(&mut self, object: &H::Object, index: &Expr, span: Span) -> Fallible<Term<H::Object>> {
        if let Some(method) = self.special_method(object, "__getitem__") {
            let key = self.operand(index)?;
            return self.call_special(&method, key, span);
        }
        // Says what is wrong with an array that is not an argument.
        let resolved = match self.host.meaning(object) {
            Meaning::Tensor(_) | Meaning::Struct { .. } | Meaning::Str(_) => Term::Object(object.clone()),
            _ => self.resolve(object.clone(), span)?,
        };
        let Term::Object(object) = resolved else {
            let what = self.describe(&resolved);
            return Err(self.error(Code::NotIndexable, span, format!("{what} cannot be indexed")));
        };
        let key = if let ExprKind::Slice { start, stop, step } = &index.kind {
            self.slice_object([start, stop, step].map(Option::as_deref))?
        } else {
            let term = self.operand(index)?;
            if !term.is_static() {
                if matches!(self.host.meaning(&object), Meaning::HostArray) {
                    return Err(self.captured_array(&object, span));
                }
                let what = self.describe(&Term::Object(object));
                return Err(self.constant_index(&what, STATIC_INDEX, index.span));
            }
            self.host_object(&term)?
        };
        if let Some(of) = self.member_of(&object) {
            return self.member_item(of, key, span);
        }
        let host = self.host;
        let item = self
            .evaluating(span, |lowerer| host.evaluate_item(&object, &key, lowerer))
            .map_err(|e| self.host_error(e, span))?;
        Ok(self.captured(item))
    }
}
