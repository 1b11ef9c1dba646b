//! Fields: arrays whose layout is known when a kernel is compiled.
//!
//! A field stays a host object until it is indexed or looped over. Then its leaves become parameters of the kernel, once each; a
//! launch passes their addresses. What a field is otherwise asked for (`x.shape`, `x.grad`) is answered by the host.

use std::sync::Arc;

use octants_diag::{Code, Span};
use octants_ir::ops::{ASSERT_ARGUMENTS, AssertKind, BitOp, CompareOp};
use octants_ir::{ArrayType, Boundary, Layout, OpKind, Type, Value};

use crate::ast::Expr;
use crate::dependency::{Dependency, FieldParam, Origin, Role};
use crate::host::{FieldKind, Host, Meaning, SparseLeaf};
use crate::lower::Lowerer;
use crate::lower::data::sparse::Sublist;
use crate::lower::data::term::{Entries, Ndrange, Place, Struct, Term};
use crate::lower::error::Fallible;
use crate::lower::places::slice::has_slice;

/// What follows from a field's kind: reading it ties a kernel to no one field.
const IMPLIED: &[&str] = &["shape", "dtype", "n", "m", "ndim"];

/// A field that is a member of a field of structs: the whole, and the number that its first leaf has there. `p.x[i]` and `p[i].x` are
/// one parameter then, so that accesses of the one are known to be accesses of the other.
pub(crate) struct Part<O> {
    field: O,
    whole: O,
    first_leaf: usize,
}

/// Companions of a field, which hide its members of these names.
const COMPANIONS: &[&str] = &["grad", "dual"];

/// A field in use: its dependency, how the user calls it, and its leaves counted so far.
struct Use {
    field: usize,
    /// As the program names it, with the members of structs that lead to the next leaf.
    name: String,
    next_leaf: usize,
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn is_field_or_node(&self, term: &Term<H::Object>) -> bool {
        let Term::Object(object) = term else { return false };
        matches!(self.host.meaning(object), Meaning::Field | Meaning::Node)
    }

    /// What a field is made of. One that was never placed has no memory.
    pub(crate) fn field_kind(&self, object: &H::Object, span: Span) -> Fallible<Arc<FieldKind>> {
        self.host.field(object).map_err(|exception| {
            let mut diagnostic = self.diagnostic(Code::FieldNotPlaced, span, exception.message);
            diagnostic.cause = exception.cause;
            Box::new(diagnostic)
        })
    }

    /// `field[index]`: a place, a struct of places, or the places of a tensor's entries.
    pub(crate) fn field_element(
        &mut self,
        object: &H::Object,
        base_expr: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if has_slice(index) {
            return self.array_slice(Term::Object(object.clone()), base_expr, index, span);
        }
        let items = self.index_operands(index)?;
        let name = self.text(base_expr.span);
        self.field_place(object, &name, items, span)
    }

    /// As [`Self::field_element`], with indices that are evaluated.
    pub(crate) fn field_place(
        &mut self,
        object: &H::Object,
        name: &str,
        items: Vec<(Term<H::Object>, Span)>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let kind = self.field_kind(object, span)?;
        let Some(layout) = kind.layout().cloned() else {
            return Err(self.error(Code::NotIndexable, span, format!("`{name}` has no members")));
        };
        let mut path = Vec::new();
        for (item, at) in items {
            let origin = layout.origin.get(path.len()).copied().unwrap_or(0);
            self.index_from(item, origin, at, &mut path)?;
        }
        if let Some((at, leaf)) = first_sparse(&kind).filter(|_| path.len() < layout.rank()) {
            let leaf = Arc::clone(leaf);
            let field = self.field_member(object, name);
            if let Some(list) = self.sublist(&leaf, &path, (field, at), name, span) {
                return Ok(Term::Sublist(Box::new(list)));
            }
        }
        self.check_rank(layout.rank(), path.len(), &format!("`{name}`"), span)?;
        self.check_field_bounds(&layout.origin, &layout.shape, &path, name, span);
        let ty = self.host.field_type(object);
        let (whole, next_leaf) = self.whole_field(object);
        let field = self.field_member(&whole, name);
        self.element_of(&kind, ty, &path, &mut Use { field, name: name.to_owned(), next_leaf }, span)
    }

    /// The field that memory is asked for, and the number of a field's first leaf in it.
    pub(crate) fn whole_field(&self, object: &H::Object) -> (H::Object, usize) {
        let (mut whole, mut first_leaf) = (object.clone(), 0);
        while let Some(part) = self.parts.iter().find(|part| self.host.same(&part.field, &whole)) {
            first_leaf += part.first_leaf;
            whole = part.whole.clone();
        }
        (whole, first_leaf)
    }

    /// Remembers whose member a field is.
    pub(crate) fn note_part(&mut self, whole: &H::Object, name: &str, field: &H::Object) {
        if COMPANIONS.contains(&name) || self.parts.iter().any(|part| self.host.same(&part.field, field)) {
            return;
        }
        if let Ok(kind) = self.host.field(whole)
            && let FieldKind::Struct { members } = &*kind
            && let Some(at) = members.iter().position(|(member, _)| member == name)
        {
            let first_leaf = members[..at].iter().map(|(_, member)| member.leaf_count()).sum();
            self.parts.push(Part { field: field.clone(), whole: whole.clone(), first_leaf });
        }
    }

    /// The list that a field is as a whole, if its one axis is that of a list.
    pub(crate) fn list_of_field(&mut self, term: &Term<H::Object>, expr: &Expr) -> Fallible<Option<Sublist>> {
        let Term::Object(object) = term else { return Ok(None) };
        if !matches!(self.host.meaning(object), Meaning::Field) {
            return Ok(None);
        }
        let kind = self.field_kind(object, expr.span)?;
        let Some((at, leaf)) = first_sparse(&kind) else { return Ok(None) };
        let leaf = Arc::clone(leaf);
        let name = self.text(expr.span);
        let field = self.field_member(object, &name);
        Ok(self.sublist(&leaf, &[], (field, at), &name, expr.span))
    }

    /// One index. A literal may be negative where the field begins below zero.
    pub(crate) fn index_from(
        &mut self,
        item: Term<H::Object>,
        origin: i32,
        span: Span,
        path: &mut Vec<Value>,
    ) -> Fallible<()> {
        if !matches!(&item, Term::Formula(number) if self.fits_i32(number, 0))
            && let Term::Int(value @ i128::MIN..0) = self.rvalue(item.clone(), span)?
            && i128::from(origin) <= value
        {
            path.push(self.at(span).i32(value as i32));
            return Ok(());
        }
        self.index_term(item, self.narrowing(), span, path)
    }

    fn element_of(
        &mut self,
        kind: &FieldKind,
        ty: Option<H::Object>,
        path: &[Value],
        within: &mut Use,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        Ok(match kind {
            FieldKind::Leaf { sparse: Some(leaf), layout, .. } => {
                let of = (within.field, within.next_leaf);
                within.next_leaf += 1;
                Term::Place(self.sparse_place(leaf, layout, path, of, &within.name, span))
            }
            FieldKind::Leaf { elem, layout, sparse: None } => {
                let base = self.leaf_param(*elem, layout, within);
                Term::Place(Place { base, path: path.to_vec(), shared: true, guard: None, sparse: None })
            }
            FieldKind::Entries { shape, entries } => {
                let mut places = Vec::with_capacity(entries.len());
                for entry in entries {
                    if let Term::Place(place) = self.element_of(entry, None, path, within, span)? {
                        places.push(place);
                    }
                }
                Term::Entries(Entries { places, shape: *shape })
            }
            FieldKind::Struct { members } => {
                let types = match &ty {
                    Some(ty) => self.members_of(ty, span)?,
                    None => Vec::new(),
                };
                let mut terms = Vec::with_capacity(members.len());
                let whole = within.name.clone();
                for (name, member) in members {
                    let ty = types.iter().find(|(known, _)| **known == **name).map(|(_, ty)| ty.clone());
                    within.name = format!("{whole}.{name}");
                    terms.push((name.as_str().into(), self.element_of(member, ty, path, within, span)?));
                }
                within.name = whole;
                // Other iterations see it, wherever it is named.
                Term::Struct(Struct { members: terms, ty, in_parallel: true })
            }
        })
    }

    /// The parameter that a leaf is, added when it is first used.
    fn leaf_param(&mut self, elem: octants_ir::Data, layout: &Arc<Layout>, within: &mut Use) -> Value {
        let leaf = within.next_leaf;
        within.next_leaf += 1;
        if let Some(known) = self
            .fields
            .iter()
            .find(|known| known.field == within.field && known.leaf == leaf && known.view.is_none())
        {
            return self.kernel.regions[self.kernel.body].params[known.param];
        }
        let rank = layout.rank() as u8;
        let layout = Some(self.kernel.intern_layout((**layout).clone()));
        let ty = ArrayType { layout, ..ArrayType::array(elem, rank, Boundary::Unsafe) };
        let param = self.kernel.params.len();
        self.fields.push(FieldParam { field: within.field, leaf, view: None, param });
        self.kernel.add_param(&within.name, Type::Array(ty))
    }

    /// The dependency that a field is; one that no argument led to is the kernel's own.
    fn field_member(&mut self, object: &H::Object, name: &str) -> usize {
        self.member_of(object).unwrap_or_else(|| {
            let role = Role::Field { pinned: true };
            self.add_member(Dependency {
                origin: Origin::Captured,
                object: object.clone(),
                role,
                path: name.to_owned(),
            })
        })
    }

    /// `field.name`
    pub(crate) fn field_attribute(
        &mut self,
        object: &H::Object,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let child = self.host_attribute(object, name, span)?;
        // A member of that name hides the method.
        if name == "fill" && !matches!(self.host.meaning(&child), Meaning::Field) {
            return Ok(Term::Fill(Box::new(Term::Object(object.clone()))));
        }
        if let Meaning::Field = self.host.meaning(&child) {
            self.note_part(object, name, &child);
        }
        let from_argument = |&of: &usize| !matches!(self.members[of].dependency.origin, Origin::Captured);
        let of = self.member_of(object).filter(from_argument).filter(|_| !IMPLIED.contains(&name));
        let Some(of) = of else { return Ok(self.captured(child)) };
        if let Meaning::Field = self.host.meaning(&child) {
            return self.member_attribute(of, name, span);
        }
        self.pin_field(of);
        Ok(Term::Object(child))
    }

    /// The code is for this field alone: host code may have looked at anything of it.
    pub(crate) fn pin_field(&mut self, of: usize) {
        if let Role::Field { pinned } = &mut self.members[of].dependency.role {
            *pinned = true;
        }
    }

    /// Debug mode: an assertion that every index is inside of the field.
    pub(crate) fn check_field_bounds(
        &mut self,
        origin: &[i32],
        shape: &[u32],
        path: &[Value],
        name: &str,
        span: Span,
    ) {
        if !self.options.check_bounds || path.is_empty() {
            return;
        }
        let shown: Vec<Value> = path.iter().map(|&index| self.whole_index(index)).collect();
        let mut builder = self.at(span);
        let mut inside = None;
        for ((&index, &origin), &extent) in path.iter().zip(origin).zip(shape) {
            let first = builder.i32(origin);
            let end = builder.i32(origin.wrapping_add(extent as i32));
            let above = builder.compare(CompareOp::Ge, index, first);
            let below = builder.compare(CompareOp::Lt, index, end);
            let both = builder.bit(BitOp::And, above, below);
            inside = Some(match inside {
                None => both,
                Some(so_far) => builder.bit(BitOp::And, so_far, both),
            });
        }
        let tuple = |items: Vec<String>| match &*items {
            [one] => format!("({one},)"),
            several => format!("({})", several.join(", ")),
        };
        let shape = tuple(shape.iter().map(u32::to_string).collect());
        let offset = if origin.iter().all(|&origin| origin == 0) {
            String::new()
        } else {
            format!(" and offset {}", tuple(origin.iter().map(i32::to_string).collect()))
        };
        let told = path.len() <= ASSERT_ARGUMENTS;
        let index = if told { tuple(vec!["{}".to_owned(); path.len()]) } else { "(...)".to_owned() };
        let message =
            format!("Out of bound access to field `{name}`: index {index} with shape {shape}{offset}");
        let arguments = if told { &shown[..] } else { &[] };
        let operands = inside.into_iter().chain(arguments.iter().copied()).collect::<Vec<_>>();
        builder.op(OpKind::Assert(AssertKind::Bounds, message.into()), operands, [], []);
    }

    /// What a loop over a field or a node runs over; `None` if the object is neither.
    pub(crate) fn field_domain(&mut self, object: &H::Object, span: Span) -> Fallible<Option<Ndrange>> {
        match self.host.meaning(object) {
            Meaning::Field => {
                let kind = self.field_kind(object, span)?;
                let Some(layout) = kind.layout().cloned() else {
                    return Err(self.error(
                        Code::LoopIterable,
                        span,
                        "a field without members has no elements",
                    ));
                };
                // The kernel depends on the field even if it does not touch its memory.
                let name = self.text(span);
                let field = self.field_member(object, &name);
                if let Some((at, leaf)) = first_sparse(&kind) {
                    let tree = self.tree_use(&leaf.tree, leaf.serial, field, at);
                    let node = leaf.tree.leaves[leaf.leaf as usize].parent;
                    return Ok(Some(self.sparse_range(tree, node, layout.origin.clone(), span)));
                }
                Ok(Some(Ndrange { layout: Some(layout), ..Ndrange::new(Vec::new()) }))
            }
            Meaning::Node => {
                let cells = self.host.node(object).map_err(|exception| self.host_error(exception, span))?;
                if cells.is_sparse() {
                    let (tree, node) = self.sparse_node(object, span)?;
                    return Ok(Some(self.sparse_range(tree, node, cells.origin.clone(), span)));
                }
                Ok(Some(Ndrange { layout: Some(cells), ..Ndrange::new(Vec::new()) }))
            }
            _ => Ok(None),
        }
    }
}

/// The first leaf, if elements of it may not be there, and its number.
fn first_sparse(kind: &FieldKind) -> Option<(usize, &Arc<SparseLeaf>)> {
    match kind {
        FieldKind::Leaf { sparse, .. } => sparse.as_ref().map(|leaf| (0, leaf)),
        FieldKind::Entries { entries, .. } => entries.first().and_then(|entry| first_sparse(entry)),
        FieldKind::Struct { members } => members.first().and_then(|(_, member)| first_sparse(member)),
    }
}
