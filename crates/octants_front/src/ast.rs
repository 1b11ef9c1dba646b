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

impl Expr {
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
