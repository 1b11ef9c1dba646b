//! What is asked of sparse nodes: whether a cell is there, that it be made or given up, and lists.

use octants_diag::{Code, Span};
use octants_ir::ops::{AssertKind, AtomicOp, CompareOp};
use octants_ir::sparse::TreeChild;
use octants_ir::{NodeKind, Value};

use crate::ast::{Expr, Keyword};
use crate::dependency::{Dependency, Origin, Role};
use crate::host::{Host, Meaning, SparseLeaf};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::{Argument, Passing};
use crate::lower::data::sparse::Sublist;
use crate::lower::data::term::{Place, Term};
use crate::lower::error::{Fallible, counted};
use crate::lower::sparse::{Cell, Need};

/// A cell of a sparse node, as an argument says it.
struct NodeCell {
    tree: usize,
    node: usize,
    /// By axis of the node; of a list without the list's own.
    indices: Vec<Value>,
}

impl<H: Host> Lowerer<'_, H> {
    /// The tree and the node that a node of the host is.
    pub(crate) fn sparse_node(&mut self, object: &H::Object, span: Span) -> Fallible<(usize, usize)> {
        let node = self.host.sparse_node(object).map_err(|exception| self.host_error(exception, span))?;
        let Some(node) = node else {
            return Err(self.error(
                Code::DenseNode,
                span,
                "this node belongs to a tree without sparse nodes",
            ));
        };
        let name = self.text(span);
        // Code is for this tree alone: it does not matter how the program got to it.
        let known = self.members.iter().position(|member| {
            matches!(member.dependency.origin, Origin::Captured)
                && matches!(member.dependency.role, Role::Field { .. })
                && self.host.same(&member.dependency.object, object)
        });
        let field = known.unwrap_or_else(|| {
            let role = Role::Field { pinned: true };
            self.add_member(Dependency { origin: Origin::Captured, object: object.clone(), role, path: name })
        });
        Ok((self.tree_use(&node.tree, node.serial, field, 0), node.node))
    }

    /// `is_active`, `activate`, `deactivate`, `append`, `length`
    pub(crate) fn sparse_operation(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if intrinsic == Intrinsic::Append {
            let [of, index, value] = self.required(intrinsic, arguments, ["node", "indices", "val"], span)?;
            let cell = self.node_cell(intrinsic, &of, &index, span)?;
            return self.append_to(cell.tree, cell.node, &cell.indices, value.term, span).map(Term::Value);
        }
        let [of, index] = self.required(intrinsic, arguments, ["node", "indices"], span)?;
        let cell = self.node_cell(intrinsic, &of, &index, span)?;
        let NodeCell { tree, node, indices } = cell;
        Ok(match intrinsic {
            Intrinsic::IsActive => Term::Value(self.is_active_cell(tree, node, &indices, span)),
            Intrinsic::Activate => {
                self.descend(tree, node, &indices, Need::Active, span);
                Term::None
            }
            Intrinsic::Deactivate => {
                self.require_values("deactivate cells", span)?;
                self.deactivate_node_cell(tree, node, &indices, span);
                Term::None
            }
            _ => Term::Value(self.length_of(tree, node, &indices, span)),
        })
    }

    /// Refuses what a derivative cannot follow back.
    fn require_values(&mut self, what: &str, span: Span) -> Fallible<()> {
        if !self.options.names_elements {
            return Ok(());
        }
        Err(self.error_with_help(
            Code::NotDifferentiable,
            span,
            format!("the derivative of a kernel in which tasks {what} is not supported"),
            "do it in a kernel of its own, which is not differentiated: `@oc.ad.no_grad` keeps it out of a tape",
        ))
    }

    /// The cell that a node and an index are, of a node that an intrinsic is about.
    fn node_cell(
        &mut self,
        intrinsic: Intrinsic,
        of: &Argument<H::Object>,
        index: &Argument<H::Object>,
        span: Span,
    ) -> Fallible<NodeCell> {
        let rvalue = self.rvalue(of.term.clone(), of.span)?;
        let Term::Object(mut object) = rvalue else { return Err(self.bad_arguments(intrinsic, of.span)) };
        match self.host.meaning(&object) {
            Meaning::Node => {}
            Meaning::Field => {
                self.field_kind(&object, of.span)?;
                let host = self.host;
                let node = host.getattr(&object, "_parent_node", self);
                object = node.map_err(|exception| self.host_error(exception, of.span))?;
            }
            _ => return Err(self.bad_arguments(intrinsic, of.span)),
        }
        let cells = self.host.node(&object).map_err(|exception| self.host_error(exception, of.span))?;
        let found =
            self.host.sparse_node(&object).map_err(|exception| self.host_error(exception, of.span))?;
        let kind = found.map_or(NodeKind::Dense, |found| found.tree.nodes[found.node].kind);
        let fits = match intrinsic {
            Intrinsic::Append | Intrinsic::Length => kind == NodeKind::Dynamic,
            Intrinsic::IsActive => matches!(kind, NodeKind::Pointer | NodeKind::Bitmasked),
            _ => kind != NodeKind::Dense,
        };
        if !fits {
            let kinds = match intrinsic {
                Intrinsic::Append | Intrinsic::Length => "dynamic nodes",
                Intrinsic::IsActive => "pointer, hash or bitmasked nodes",
                _ => "sparse nodes",
            };
            let (name, kind) = (intrinsic.name(), kind.name());
            return Err(self.error_with_help(
                Code::DenseNode,
                of.span,
                format!("`oc.{name}` only works on {kinds}; this one is {kind}"),
                "all cells of a dense node are there at all times; a list has a length",
            ));
        }
        let mut indices = Vec::new();
        self.index_term(index.term.clone(), self.narrowing(), index.span, &mut indices)?;
        let (tree, node) = self.sparse_node(&object, of.span)?;
        let name = self.text(of.span);
        if kind == NodeKind::Dynamic && intrinsic != Intrinsic::Activate {
            // The list itself is meant: an index more is of no use.
            let rank = cells.rank() - 1;
            indices.truncate(rank.max(1).min(indices.len()));
            if rank == 0 {
                indices.clear();
            }
            self.check_rank(rank, indices.len(), &format!("`{name}`"), index.span)?;
            let origin = vec![0; indices.len()];
            self.check_list_bounds(tree, node, &origin, &indices, &name, span);
        } else {
            self.check_rank(cells.rank(), indices.len(), &format!("`{name}`"), index.span)?;
            self.check_field_bounds(&cells.origin, &cells.shape, &indices, &name, span);
        }
        Ok(NodeCell { tree, node, indices })
    }

    /// The index of some element of a list, for the index of the list.
    fn list_index(&mut self, tree: usize, node: usize, indices: &[Value], element: Value) -> Vec<Value> {
        let shape = self.trees[tree].tree.clone();
        let axis = shape.nodes[node].splits[0].0;
        let rank = shape.axes(node).iter().position(|&known| known == axis).unwrap_or(0);
        let mut whole = indices.to_vec();
        whole.insert(rank.min(whole.len()), element);
        whole
    }

    pub(crate) fn deactivate_node_cell(&mut self, tree: usize, node: usize, indices: &[Value], span: Span) {
        let kind = self.trees[tree].tree.nodes[node].kind;
        let whole = if kind == NodeKind::Dynamic {
            let zero = self.at(span).i32(0);
            self.list_index(tree, node, indices, zero)
        } else {
            indices.to_vec()
        };
        let origin = vec![0; whole.len()];
        let distances = self.distances(&whole, &origin, span);
        self.deactivate_cell(tree, node, &distances, span);
    }

    fn is_active_cell(&mut self, tree: usize, node: usize, indices: &[Value], span: Span) -> Value {
        let shape = self.trees[tree].tree.clone();
        let of = &shape.nodes[node];
        let origin = vec![0; indices.len()];
        let distances = self.distances(indices, &origin, span);
        let above = of.parent.unwrap_or(0);
        let outer = self.coordinates(&shape, above, node, &distances, span);
        let parent = self.descend(tree, above, &outer, Need::Read, span);
        if of.kind == NodeKind::Bitmasked {
            let cell = self.inner_cell(&shape, parent, node, node, &distances, span);
            return self.is_marked(tree, node, &cell, span);
        }
        let number = self.cell_number(&shape, node, node, &distances, span);
        let word = self.word_of(&parent, of.offset, Some(number), span);
        let entry = self.load_word(tree, &parent, word, span);
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        builder.compare(CompareOp::Gt, entry, zero)
    }

    /// How long a list is.
    pub(crate) fn length_of(&mut self, tree: usize, node: usize, indices: &[Value], span: Span) -> Value {
        let shape = self.trees[tree].tree.clone();
        let above = shape.nodes[node].parent.unwrap_or(0);
        let origin = vec![0; indices.len()];
        let distances = self.distances(indices, &origin, span);
        let parent = self.descend(tree, above, &distances, Need::Read, span);
        let word = self.word_of(&parent, shape.nodes[node].offset, None, span);
        self.load_word(tree, &parent, word, span)
    }

    /// In debug mode: whether there is such a list.
    fn check_list_bounds(
        &mut self,
        tree: usize,
        node: usize,
        origin: &[i32],
        indices: &[Value],
        name: &str,
        span: Span,
    ) {
        let tree = &self.trees[tree].tree;
        let extents = tree.shape(tree.nodes[node].parent.unwrap_or(0));
        self.check_field_bounds(origin, &extents, indices, name, span);
    }

    /// The list that a field has at an index with one number less than it has axes, if it has lists; `of` is the dependency and its leaf.
    pub(crate) fn sublist(
        &mut self,
        leaf: &SparseLeaf,
        path: &[Value],
        of: (usize, usize),
        name: &str,
        span: Span,
    ) -> Option<Sublist> {
        let node = leaf.tree.leaves[leaf.leaf as usize].parent;
        let is_list = leaf.tree.nodes[node].kind == NodeKind::Dynamic;
        if !is_list || path.len() + 1 != leaf.tree.axes(node).len() {
            return None;
        }
        let tree = self.tree_use(&leaf.tree, leaf.serial, of.0, of.1);
        let list_axis = leaf.tree.nodes[node].splits[0].0;
        let axes = leaf.tree.axes(node).into_iter();
        let firsts = axes.zip(&leaf.tree.leaves[leaf.leaf as usize].origin);
        let origin: Vec<i32> =
            firsts.filter(|&(axis, _)| axis != list_axis).map(|(_, &first)| first).collect();
        self.check_list_bounds(tree, node, &origin, path, name, span);
        Some(Sublist { tree, node, indices: self.distances(path, &origin, span) })
    }

    /// `x[i].append(value)`, `x[i].length()`, `x[i].deactivate()`
    pub(crate) fn sublist_call(
        &mut self,
        list: &Sublist,
        name: &str,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let arguments = self.arguments(args, keywords, Passing::ByValue)?;
        match (name, &*arguments) {
            ("append", [value]) => {
                let value = value.term.clone();
                self.append_to(list.tree, list.node, &list.indices, value, span).map(Term::Value)
            }
            ("length", []) => Ok(Term::Value(self.length_of(list.tree, list.node, &list.indices, span))),
            ("deactivate", []) => {
                self.require_values("deactivate cells", span)?;
                self.deactivate_node_cell(list.tree, list.node, &list.indices, span);
                Ok(Term::None)
            }
            _ => Err(self.error_with_help(
                Code::NoAttribute,
                span,
                format!(
                    "a list of a dynamic node has no method `{name}` with {}",
                    counted(arguments.len(), "argument", "arguments")
                ),
                "it has append(value), length() and deactivate()",
            )),
        }
    }

    /// Adds an element to a list, and gives the length before.
    pub(crate) fn append_to(
        &mut self,
        tree: usize,
        node: usize,
        indices: &[Value],
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<Value> {
        self.require_values("append to lists", span)?;
        let shape = self.trees[tree].tree.clone();
        let of = &shape.nodes[node];
        let mut values = Vec::new();
        self.parts(value, &mut values, span)?;
        let above = of.parent.unwrap_or(0);
        let origin = vec![0; indices.len()];
        let distances = self.distances(indices, &origin, span);
        let parent = self.descend(tree, above, &distances, Need::Active, span);
        let word = self.word_of(&parent, of.offset, None, span);
        let one = self.at(span).i32(1);
        let old = self.update_word(AtomicOp::Add, tree, &parent, word, one, span);
        let mut builder = self.at(span);
        let room = builder.i32(of.splits[0].1 as i32);
        let full = builder.compare(CompareOp::Ge, old, room);
        let fits = builder.compare(CompareOp::Lt, old, room);
        // The check stands inside, so that what follows waits for one addition alone: appends to one list follow each other.
        self.when(full, span, |lowerer| {
            lowerer.update_word(AtomicOp::Sub, tree, &parent, word, one, span);
            let message = "append to a full list: it has room for {} elements";
            lowerer.at(span).assert(AssertKind::Memory, fits, message, &[room]);
        });
        let whole = self.list_index(tree, node, &distances, old);
        let cell = self.descend(tree, node, &whole, Need::Appended, span);
        let leaves: Vec<usize> = of
            .children
            .iter()
            .filter_map(|child| match child {
                TreeChild::Leaf(leaf) => Some(*leaf),
                TreeChild::Node(_) => None,
            })
            .collect();
        // A list with a value for each field.
        if let [Term::List(items) | Term::Tuple(items)] = &mut *values
            && leaves.len() > 1
        {
            values = std::mem::take(items);
        }
        // A vector for as many scalar fields, entry by entry.
        if let [Term::Value(one)] = *values
            && leaves.len() > 1
            && self.data(one).tensor_shape().is_some()
        {
            values = self.tensor_entries(one, span).into_iter().map(Term::Value).collect();
        }
        if values.len() != leaves.len() {
            return Err(self.error_with_help(
                Code::IntrinsicArguments,
                span,
                format!(
                    "an element of the list holds {}, but what is appended has {}",
                    counted(leaves.len(), "field", "fields"),
                    counted(values.len(), "value", "values")
                ),
                "append a struct, a list or a vector with a value for each field, in the order in which they were placed",
            ));
        }
        for (leaf, value) in leaves.into_iter().zip(values) {
            let place = self.leaf_place(tree, leaf, &cell);
            self.store(&place, value, span)?;
        }
        Ok(old)
    }

    /// What a value is made of, one part for each field.
    fn parts(&mut self, term: Term<H::Object>, parts: &mut Vec<Term<H::Object>>, span: Span) -> Fallible<()> {
        match self.rvalue(term, span)? {
            Term::Struct(of) => {
                for (_, member) in of.members {
                    self.parts(member, parts, span)?;
                }
            }
            other => parts.push(other),
        }
        Ok(())
    }

    /// `deactivate_all(node)`: all cells of a node and below.
    pub(crate) fn deactivate_all_call(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let intrinsic = Intrinsic::DeactivateAll;
        let [of] = self.required(intrinsic, arguments, ["node"], span)?;
        let Term::Object(object) = self.rvalue(of.term, of.span)? else {
            return Err(self.bad_arguments(intrinsic, of.span));
        };
        self.require_values("deactivate cells", span)?;
        let (tree, node) = self.sparse_node(&object, of.span)?;
        self.deactivate_all(tree, node, span);
        Ok(Term::None)
    }

    /// The place of a leaf's element in a cell that was found.
    fn leaf_place(&mut self, tree: usize, leaf: usize, cell: &Cell) -> Place {
        let base = self.leaf_view(tree, leaf, None);
        let path = cell.slot.into_iter().chain(cell.digits.iter().map(|&(digit, _)| digit)).collect();
        Place { base, path, shared: true, guard: None, sparse: None }
    }
}
