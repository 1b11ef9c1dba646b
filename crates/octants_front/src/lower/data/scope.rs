//! Functions being lowered, their blocks, and what names mean in them.

use std::sync::Arc;

use octants_diag::Span;
use octants_ir::{Loc, Value};

use super::term::Term;
use crate::ast::{Function, Name};
use crate::lower::data::flow::{Exit, Loop};

/// What a local name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Binding<O> {
    /// A variable: a `local` place.
    Variable {
        place: Value,
        /// Whether it was made inside a parallel loop, so that each iteration has its own.
        in_parallel: bool,
        span: Span,
    },
    /// Another name for a term; cannot be assigned to, but for a reference to a place.
    Alias { term: Term<O>, kind: AliasKind, span: Span },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AliasKind {
    /// A kernel's parameter.
    Argument,
    /// A func's template parameter, or one that is not a number: whatever the caller passed.
    Reference,
    /// `x = oc.static(…)`, or the variable of a static loop.
    Static,
    /// Never assigned to, so that no variable is needed.
    Constant,
    /// A variable that holds an array, a tuple, a function, …
    Named,
}

/// A block's names, oldest first.
#[derive(Debug)]
pub(crate) struct Scope<O> {
    pub names: Vec<(Name, Binding<O>)>,
    /// Of a comprehension: what an expression in it assigns belongs to the block around it.
    is_comprehension: bool,
}

/// The call that a function is being lowered for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub span: Span,
    /// Where it is inlined; `None` for a function of the kernel's own, which has many callers.
    pub inlined_at: Option<Loc>,
}

/// A function being lowered.
#[derive(Debug)]
pub(crate) struct Frame<O> {
    pub object: O,
    pub function: Arc<Function>,
    /// For diagnostics and locations.
    pub name: Name,
    /// `None` for the kernel.
    pub call: Option<Call>,
    scopes: Vec<Scope<O>>,
    /// Variables of blocks that have ended, for diagnostics.
    out_of_scope: Vec<(Name, Span)>,
    pub loops: Vec<Loop>,
    /// How many run-time `if`s and loops of this function are open.
    pub depth: usize,
    pub returned: Option<(Term<O>, Span)>,
    /// Whether control cannot come to what follows: every path has returned, or left the loop's iteration.
    pub ended: bool,
    /// How a function that is not inlined returns.
    pub exit: Option<Exit>,
}

impl<O> Binding<O> {
    /// Where the name was bound.
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Variable { span, .. } | Self::Alias { span, .. } => *span,
        }
    }
}

impl<O> Frame<O> {
    pub(crate) fn new(object: O, function: Arc<Function>, name: Name) -> Self {
        Self {
            object,
            function,
            name,
            call: None,
            scopes: vec![Scope { names: Vec::new(), is_comprehension: false }],
            out_of_scope: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            returned: None,
            ended: false,
            exit: None,
        }
    }

    pub(crate) fn push_scope(&mut self) {
        self.scopes.push(Scope { names: Vec::new(), is_comprehension: false });
    }

    pub(crate) fn push_comprehension(&mut self) {
        self.scopes.push(Scope { names: Vec::new(), is_comprehension: true });
    }

    pub(crate) fn pop_scope(&mut self, span: Span) {
        let scope = self.scopes.pop().expect("a scope is open");
        self.out_of_scope.extend(scope.names.into_iter().map(|(name, _)| (name, span)));
    }

    /// Whether the innermost scope is that of a comprehension, whose variables may hide others.
    pub(crate) fn in_comprehension(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.is_comprehension)
    }

    /// Binds a name in the innermost block.
    pub(crate) fn declare(&mut self, name: Name, binding: Binding<O>) {
        self.scopes.last_mut().expect("a scope is open").names.push((name, binding));
    }

    /// The innermost block's names.
    pub(crate) fn names(&self) -> &[(Name, Binding<O>)] {
        &self.scopes.last().expect("a scope is open").names
    }

    pub(crate) fn names_mut(&mut self) -> &mut [(Name, Binding<O>)] {
        &mut self.scopes.last_mut().expect("a scope is open").names
    }

    /// Binds a name that an expression assigns.
    pub(crate) fn declare_in_statement(&mut self, name: Name, binding: Binding<O>) {
        let block = self.scopes.iter_mut().rev().find(|scope| !scope.is_comprehension);
        block.expect("a function has a scope").names.push((name, binding));
    }

    /// Lets the newest name of the innermost block stand for something else.
    pub(crate) fn rebind(&mut self, name: &str, to: Term<O>, at: Span) {
        let binding = self.names_mut().iter_mut().rev().find(|(known, _)| **known == *name);
        if let Some((_, binding)) = binding {
            *binding = Binding::Alias { term: to, kind: AliasKind::Named, span: at };
        }
    }

    /// What a name stands for that was bound to a compile-time value.
    pub(crate) fn static_alias(&mut self, name: &str) -> Option<&mut Term<O>> {
        let names = self.scopes.iter_mut().rev().flat_map(|scope| scope.names.iter_mut().rev());
        match names.into_iter().find(|(known, _)| **known == *name) {
            Some((_, Binding::Alias { term, kind: AliasKind::Static, .. })) => Some(term),
            _ => None,
        }
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<&Binding<O>> {
        let names = self.scopes.iter().rev().flat_map(|scope| scope.names.iter().rev());
        names.into_iter().find(|(known, _)| **known == *name).map(|(_, binding)| binding)
    }

    /// Where the block ended that had a variable of this name.
    pub(crate) fn block_that_had(&self, name: &str) -> Option<Span> {
        self.out_of_scope.iter().rev().find(|(known, _)| **known == *name).map(|&(_, span)| span)
    }

    /// The names that can be seen here, innermost first.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Name> {
        self.scopes.iter().rev().flat_map(|scope| scope.names.iter().rev()).map(|(name, _)| name)
    }
}
