//! The syntax tree of a function, as far as the language goes. Spans are absolute in the whole file.
//!
//! What the language does not have is kept as `Unsupported` with the name that Python's own `ast` gives it, so that code in a branch that
//! is never compiled may contain anything.

use std::sync::Arc;

use octants_diag::Span;

use crate::host::{BinaryOp, CompareOp, UnaryOp};

pub type Name = Arc<str>;

#[derive(Debug)]
pub struct Function {
    pub name: Name,
    pub name_span: Span,
    pub params: Vec<Param>,
    /// `*args` and `**kwargs`.
    pub variadic: Vec<Span>,
    pub returns: Option<Span>,
    pub body: Vec<Stmt>,
    pub is_async: bool,
    /// Names that some statement of the body assigns to, sorted: parameters and loop variables among them need a variable of their own.
    pub assigned: Vec<Name>,
}

impl Function {
    pub fn assigns(&self, name: &str) -> bool {
        self.assigned.binary_search_by(|known| (**known).cmp(name)).is_ok()
    }
}

#[derive(Debug)]
pub struct Param {
    pub name: Name,
    pub span: Span,
    pub annotation: Option<Span>,
    pub default: Option<Span>,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    Plain,
    PositionalOnly,
    KeywordOnly,
}

#[derive(Debug)]
pub struct Stmt {
    /// Of a compound statement only its head.
    pub span: Span,
    pub kind: StmtKind,
}

#[derive(Debug)]
pub enum StmtKind {
    Expr(Expr),
    Assign { targets: Vec<Expr>, value: Expr },
    AugAssign { target: Expr, op: BinaryOp, value: Expr },
    AnnAssign { target: Expr, annotation: Expr, value: Option<Expr> },
    If { test: Expr, body: Vec<Stmt>, orelse: Vec<Stmt> },
    While { test: Expr, body: Vec<Stmt>, orelse: Option<Span> },
    For { target: Expr, iter: Expr, body: Vec<Stmt>, orelse: Option<Span> },
    Break,
    Continue,
    Return(Option<Expr>),
    Assert { test: Expr, message: Option<Expr> },
    Pass,
    With { items: Vec<WithItem>, body: Vec<Stmt> },
    Unsupported(&'static str),
}

/// `context as target`
#[derive(Debug)]
pub struct WithItem {
    pub context: Expr,
    pub target: Option<Expr>,
}

#[derive(Debug)]
pub struct Expr {
    pub span: Span,
    pub kind: ExprKind,
}

impl Stmt {
    /// The expressions that are its own, in the order of the text.
    pub fn expressions(&self) -> Vec<&Expr> {
        match &self.kind {
            StmtKind::Expr(value) => vec![value],
            StmtKind::Assign { targets, value } => targets.iter().chain([value]).collect(),
            StmtKind::AugAssign { target, value, .. } => vec![target, value],
            StmtKind::AnnAssign { target, annotation, value } => {
                [target, annotation].into_iter().chain(value).collect()
            }
            StmtKind::If { test, .. } | StmtKind::While { test, .. } => vec![test],
            StmtKind::For { target, iter, .. } => vec![target, iter],
            StmtKind::Return(value) => value.iter().collect(),
            StmtKind::Assert { test, message } => [test].into_iter().chain(message).collect(),
            StmtKind::With { items, .. } => {
                items.iter().flat_map(|item| [&item.context].into_iter().chain(&item.target)).collect()
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Pass | StmtKind::Unsupported(_) => Vec::new(),
        }
    }

    /// The blocks of statements in it.
    pub fn blocks(&self) -> Vec<&[Stmt]> {
        match &self.kind {
            StmtKind::If { body, orelse, .. } => vec![body, orelse],
            StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::With { body, .. } => {
                vec![body]
            }
            StmtKind::Expr(_)
            | StmtKind::Assign { .. }
            | StmtKind::AugAssign { .. }
            | StmtKind::AnnAssign { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Assert { .. }
            | StmtKind::Pass
            | StmtKind::Unsupported(_) => Vec::new(),
        }
    }
}

impl Expr {
    /// The expressions directly inside, of a chain of operators all its operands.
    pub fn parts(&self) -> Vec<&Expr> {
        fn generated(generators: &[Generator]) -> impl Iterator<Item = &Expr> {
            generators.iter().flat_map(|one| [&one.iter].into_iter().chain(&one.conditions))
        }
        match &self.kind {
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::HugeInt
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_)
            | ExprKind::Unsupported(_) => Vec::new(),
            ExprKind::FString(parts) => fields(parts),
            ExprKind::Attribute { value, .. } | ExprKind::Starred(value) | ExprKind::Named { value, .. } => {
                vec![value]
            }
            ExprKind::Subscript { value, index } => vec![value, index],
            ExprKind::Slice { start, stop, step } => {
                [start, stop, step].into_iter().flatten().map(|bound| &**bound).collect()
            }
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { operands: items, .. } => {
                items.iter().collect()
            }
            ExprKind::Dict(items) => {
                items.iter().flat_map(|(key, value)| key.iter().chain([value])).collect()
            }
            ExprKind::ListComp { element, generators } => {
                [&**element].into_iter().chain(generated(generators)).collect()
            }
            ExprKind::DictComp { key, value, generators } => {
                [&**key, value].into_iter().chain(generated(generators)).collect()
            }
            ExprKind::Binary { .. } => {
                let (chain, leftmost) = self.operator_chain();
                let rights = chain.into_iter().rev().filter_map(|node| match &node.kind {
                    ExprKind::Binary { right, .. } => Some(&**right),
                    _ => None,
                });
                [leftmost].into_iter().chain(rights).collect()
            }
            ExprKind::Unary { operand, .. } => vec![operand],
            ExprKind::Compare { left, rest } => {
                [&**left].into_iter().chain(rest.iter().map(|(_, item)| item)).collect()
            }
            ExprKind::IfElse { test, body, orelse } => vec![test, body, orelse],
            ExprKind::Call { callee, args, keywords } => {
                let keywords = keywords.iter().map(|keyword| &keyword.value);
                [&**callee].into_iter().chain(args).chain(keywords).collect()
            }
        }
    }

    /// Whether a condition holds for it or for an expression inside.
    pub fn any(&self, holds: &dyn Fn(&Expr) -> bool) -> bool {
        holds(self) || self.parts().into_iter().any(|part| part.any(holds))
    }

    /// The operators of `a + b + c + …` from the outermost inward, and the leftmost operand. A walk over expressions goes along this chain in
    /// a loop: generated code has thousands of terms.
    pub fn operator_chain(&self) -> (Vec<&Expr>, &Expr) {
        let mut chain = Vec::new();
        let mut leftmost = self;
        while let ExprKind::Binary { left, .. } = &leftmost.kind {
            chain.push(leftmost);
            leftmost = left;
        }
        (chain, leftmost)
    }

    /// What stands between the brackets: `x[i, j]` has a tuple as its index, `x[()]` an empty one.
    pub fn index_items(&self) -> &[Expr] {
        match &self.kind {
            ExprKind::Tuple(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// Whether evaluating it may do more than give a value: it calls something, or assigns a name.
    pub fn may_have_effects(&self) -> bool {
        let any = |list: &[Expr]| list.iter().any(Self::may_have_effects);
        match &self.kind {
            ExprKind::Call { .. } | ExprKind::Named { .. } => true,
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::HugeInt
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_)
            | ExprKind::Unsupported(_) => false,
            ExprKind::FString(parts) => parts
                .iter()
                .any(|part| matches!(part, TextPart::Field { value, .. } if value.may_have_effects())),
            ExprKind::Attribute { value, .. } => value.may_have_effects(),
            ExprKind::Subscript { value, index } => value.may_have_effects() || index.may_have_effects(),
            ExprKind::Slice { start, stop, step } => {
                [start, stop, step].into_iter().flatten().any(|bound| bound.may_have_effects())
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => any(items),
            ExprKind::Dict(items) => items.iter().any(|(key, value)| {
                key.as_ref().is_some_and(Self::may_have_effects) || value.may_have_effects()
            }),
            ExprKind::ListComp { element, .. } => element.may_have_effects(),
            ExprKind::DictComp { key, value, .. } => key.may_have_effects() || value.may_have_effects(),
            ExprKind::Starred(inner) => inner.may_have_effects(),
            ExprKind::Binary { .. } => {
                let (chain, leftmost) = self.operator_chain();
                let right = |node: &Self| match &node.kind {
                    ExprKind::Binary { right, .. } => right.may_have_effects(),
                    _ => false,
                };
                leftmost.may_have_effects() || chain.into_iter().any(right)
            }
            ExprKind::Unary { operand, .. } => operand.may_have_effects(),
            ExprKind::Logical { operands, .. } => any(operands),
            ExprKind::Compare { left, rest } => {
                left.may_have_effects() || rest.iter().any(|(_, item)| item.may_have_effects())
            }
            ExprKind::IfElse { test, body, orelse } => {
                [test, body, orelse].into_iter().any(|part| part.may_have_effects())
            }
        }
    }
}

#[derive(Debug)]
pub enum ExprKind {
    None,
    Bool(bool),
    Int(i128),
    /// An integer literal of more than 127 bits.
    HugeInt,
    Float(f64),
    Str(Name),
    FString(Vec<TextPart>),
    Name(Name),
    Attribute {
        value: Box<Expr>,
        name: Name,
    },
    Subscript {
        value: Box<Expr>,
        index: Box<Expr>,
    },
    Slice {
        start: Option<Box<Expr>>,
        stop: Option<Box<Expr>>,
        step: Option<Box<Expr>>,
    },
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    /// An item without a key is `**mapping`.
    Dict(Vec<(Option<Expr>, Expr)>),
    ListComp {
        element: Box<Expr>,
        generators: Vec<Generator>,
    },
    DictComp {
        key: Box<Expr>,
        value: Box<Expr>,
        generators: Vec<Generator>,
    },
    Starred(Box<Expr>),
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    /// `and`, `or`.
    Logical {
        op: LogicalOp,
        operands: Vec<Expr>,
    },
    Compare {
        left: Box<Expr>,
        rest: Vec<(CompareOp, Expr)>,
    },
    IfElse {
        test: Box<Expr>,
        body: Box<Expr>,
        orelse: Box<Expr>,
    },
    Call {
        callee: Box<Expr>,
        args: Vec<Expr>,
        keywords: Vec<Keyword>,
    },
    /// `name := value`
    Named {
        name: Name,
        name_span: Span,
        value: Box<Expr>,
    },
    Unsupported(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogicalOp {
    And,
    Or,
}

#[derive(Debug)]
pub struct Keyword {
    /// `None` for `**mapping`.
    pub name: Option<Name>,
    pub span: Span,
    pub value: Expr,
}

#[derive(Debug)]
pub struct Generator {
    pub target: Expr,
    pub iter: Expr,
    pub conditions: Vec<Expr>,
}

/// The values in an f-string and in the specs of its fields.
fn fields(parts: &[TextPart]) -> Vec<&Expr> {
    let mut found = Vec::new();
    for part in parts {
        if let TextPart::Field { value, spec, .. } = part {
            found.push(value);
            found.extend(fields(spec));
        }
    }
    found
}

/// A part of an f-string.
#[derive(Debug)]
pub enum TextPart {
    Text(Name),
    /// `{value!r:spec}`; the spec may have fields of its own.
    Field {
        value: Expr,
        /// `!r` or `!a`: the text is that of `repr`.
        is_repr: bool,
        spec: Vec<TextPart>,
    },
}
