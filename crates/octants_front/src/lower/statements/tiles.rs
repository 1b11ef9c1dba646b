//! Assignments of tiles: loaded from slices of arrays, stored to them, and less products of columns.
//!
//! What a tile is, and how its elements are accessed, says its type: the funcs that are its `slices`. All other types have none.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{Scalar, Type};

use crate::ast::{Expr, ExprKind};
use crate::host::{BinaryOp, FieldKind, Host};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{ArraySlice, Struct, Term};
use crate::lower::error::Fallible;
use crate::lower::places::slice::is_whole;
use crate::lower::values::promote::loses;

impl<H: Host> Lowerer<'_, H> {
    /// The func that a slice stands for in an operation of a tile; `None` if the struct is no tile.
    fn tile_func(&mut self, of: &Struct<H::Object>, name: &str) -> Option<H::Object> {
        let (host, ty) = (self.host, of.ty.clone()?);
        let slices = host.getattr(&ty, "slices", self).ok()?;
        let named =
            |key: &H::Object| matches!(host.meaning(key), crate::host::Meaning::Str(known) if known == name);
        host.pairs(&slices).into_iter().find(|(key, _)| named(key)).map(|(_, function)| function)
    }

    pub(crate) fn is_tile(&mut self, of: &Struct<H::Object>) -> bool {
        self.tile_func(of, "load").is_some()
    }

    /// `t[…]` of a tile: `t[:]` is all of it.
    pub(crate) fn tile_subscript(
        &mut self,
        of: Struct<H::Object>,
        index: &Expr,
    ) -> Fallible<Term<H::Object>> {
        if is_whole(index) {
            return Ok(Term::Struct(of));
        }
        Err(self.error_with_help(
            Code::TileAssign,
            index.span,
            "a tile has no elements: lanes have its rows",
            "write `t[:]` for all of it, and store it to an array to read elements",
        ))
    }

    /// `targets = slice`
    pub(crate) fn assign_slice(
        &mut self,
        targets: &[Expr],
        slice: &ArraySlice<H::Object>,
        from: Span,
    ) -> Fallible<()> {
        for target in targets {
            let ExprKind::Subscript { index, .. } = &target.kind else { return Err(self.stray_slice(from)) };
            let loaded = match self.expr(target)? {
                Term::Struct(of) if is_whole(index) => {
                    self.tile_func(&of, "load").map(|function| (function, of))
                }
                _ => None,
            };
            let Some((function, tile)) = loaded else { return Err(self.stray_slice(from)) };
            self.lanes_here("a tile", from)?;
            self.warn_of_loss(self.slice_elem(slice), self.tile_elem(&tile), target.span);
            self.tile_access(&function, tile, slice, from)?;
        }
        Ok(())
    }

    /// `slice = tile`
    pub(crate) fn store_tile(
        &mut self,
        slice: &ArraySlice<H::Object>,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let Term::Struct(tile) = term else { return Err(self.stray_slice(span)) };
        let Some(function) = self.tile_func(tile, "store").filter(|_| !slice.is_column) else {
            return Err(self.stray_slice(span));
        };
        self.lanes_here("a tile", span)?;
        self.warn_of_loss(self.tile_elem(tile), self.slice_elem(slice), span);
        self.tile_access(&function, tile.clone(), slice, span)
    }

    fn tile_access(
        &mut self,
        function: &H::Object,
        tile: Struct<H::Object>,
        slice: &ArraySlice<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let array = Argument { name: None, term: slice.array.clone(), span, is_literal: false };
        let arguments = [array].into_iter().chain(slice.arguments(span)).collect();
        self.inline_method(function, (Term::Struct(tile), true), arguments, span).map(|_| ())
    }

    /// `tile op= value`
    pub(crate) fn augment_tile(
        &mut self,
        tile: Struct<H::Object>,
        op: BinaryOp,
        value: &Expr,
        span: Span,
    ) -> Fallible<()> {
        let term = self.expr(value)?;
        let function = match (op, &term) {
            (BinaryOp::Sub, Term::Outer(..)) => self.tile_func(&tile, "subtract_outer"),
            _ => None,
        };
        let (Some(function), Term::Outer(a, b)) = (function, &term) else {
            // What is wrong with the value comes first.
            if !matches!(term, Term::Outer(..)) {
                self.loaded(term, value.span)?;
            }
            return Err(self.error_with_help(
                Code::TileAssign,
                span,
                "unsupported augmented assignment to a tile",
                "the only one is `t -= oc.outer(a, b)`; for another sign write `oc.outer(-a, b)`",
            ));
        };
        let argument =
            |&number| Argument { name: None, term: Term::Value(number), span: value.span, is_literal: false };
        let arguments = [a, b].map(argument).into();
        self.inline_method(&function, (Term::Struct(tile), true), arguments, span).map(|_| ())
    }

    /// A target of a tile that is assigned something else than a slice.
    pub(crate) fn not_loaded_from(&mut self, term: &Term<H::Object>, span: Span) -> Box<Diagnostic> {
        let what = self.describe(term);
        self.error_with_help(
            Code::TileAssign,
            span,
            format!("a tile is loaded from a slice of an array, not from {what}"),
            "write `t[:] = x[a:b, c:d]`, or `t = u` for a copy of a tile",
        )
    }

    /// `outer(a, b)`
    pub(crate) fn outer(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let factors = self.required(Intrinsic::Outer, arguments, ["a", "b"], span)?;
        self.lanes_here("`oc.outer`", span)?;
        let mut entries = Vec::new();
        for Argument { term, span: at, .. } in factors {
            let term = self.column_entry(term, at)?;
            let entry = self.value(term, at)?;
            if self.data(entry).scalar().is_none() {
                let what = self.describe(&Term::Value(entry));
                return Err(self.error_with_help(
                    Code::OuterProduct,
                    at,
                    format!(
                        "each lane gives `oc.outer` its entries of two columns, which are numbers, not {what}"
                    ),
                    "for the product of two vectors that a thread has write `a.outer_product(b)`",
                ));
            }
            entries.push(entry);
        }
        Ok(Term::Outer(entries[0], entries[1]))
    }

    /// `outer(…)` somewhere else.
    pub(crate) fn stray_outer(&self, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::OuterProduct,
            span,
            "`oc.outer` does not support composition: it is no value",
            "write `t -= oc.outer(a, b)`, a statement for each product; numbers go inside, `oc.outer(2 * a, b)`",
        )
    }

    fn tile_elem(&self, tile: &Struct<H::Object>) -> Option<Scalar> {
        match &tile.members.first()?.1 {
            Term::Place(place) => self.place_data(place).elem(),
            Term::Value(value) => Some(self.elem(*value)),
            _ => None,
        }
    }

    fn slice_elem(&self, slice: &ArraySlice<H::Object>) -> Option<Scalar> {
        let of = |array| match self.kernel.ty(array) {
            Type::Array(ty) => ty.elem.elem(),
            _ => None,
        };
        match &slice.array {
            Term::Array(array) => of(*array),
            Term::View(view) => of(view.array),
            Term::Object(field) => match &*self.host.field(field).ok()? {
                FieldKind::Leaf { elem, .. } => elem.elem(),
                _ => None,
            },
            _ => None,
        }
    }

    fn warn_of_loss(&mut self, from: Option<Scalar>, to: Option<Scalar>, span: Span) {
        let Some((from, to)) = from.zip(to).filter(|&(from, to)| loses(from, to)) else { return };
        let message = format!("assignment may lose precision: {} <- {}", to.name(), from.name());
        let warning = self.diagnostic(Code::LossyStore, span, message);
        self.warn(warning.help("give the array and the tile the same type"));
    }
}
