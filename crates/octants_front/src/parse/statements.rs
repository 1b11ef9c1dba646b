//! Statements and functions from the parser's tree.

use std::sync::Arc;

use octants_diag::{FileId, Span};
use octants_ir::Scalar;
use ruff_python_ast as py;
use ruff_text_size::{Ranged, TextRange};

use super::convert::{binary_op, expr};
use super::span_of;
use crate::ast::{Expr, ExprKind, Function, Name, Param, ParamKind, Stmt, StmtKind, WithItem};
use crate::intrinsics::Intrinsic;

pub(super) fn function(file: FileId, def: &py::StmtFunctionDef) -> Function {
    let parameters = &def.parameters;
    let kinds = [
        (&parameters.posonlyargs, ParamKind::PositionalOnly),
        (&parameters.args, ParamKind::Plain),
        (&parameters.kwonlyargs, ParamKind::KeywordOnly),
    ];
    let params = kinds
        .into_iter()
        .flat_map(|(list, kind)| list.iter().map(move |parameter| param(file, parameter, kind)))
        .collect();
    let variadic = [&parameters.vararg, &parameters.kwarg].into_iter().flatten();
    let body = suite(file, &def.body);
    let mut assigned = Vec::new();
    collect_assigned(&body, &mut assigned);
    assigned.sort();
    assigned.dedup();
    Function {
        name: def.name.as_str().into(),
        name_span: span_of(file, def.name.range()),
        params,
        variadic: variadic.map(|parameter| span_of(file, parameter.range())).collect(),
        returns: def.returns.as_ref().map(|annotation| span_of(file, annotation.range())),
        body,
        is_async: def.is_async,
        assigned,
    }
}

fn param(file: FileId, parameter: &py::ParameterWithDefault, kind: ParamKind) -> Param {
    Param {
        name: parameter.parameter.name.as_str().into(),
        span: span_of(file, parameter.range()),
        annotation: parameter.parameter.annotation.as_ref().map(|a| span_of(file, a.range())),
        default: parameter.default.as_ref().map(|d| span_of(file, d.range())),
        kind,
    }
}

fn suite(file: FileId, body: &[py::Stmt]) -> Vec<Stmt> {
    body.iter().map(|statement| stmt(file, statement)).collect()
}

/// From a compound statement's start to the end of the last thing in its head.
fn head(file: FileId, whole: TextRange, last: TextRange) -> Span {
    span_of(file, TextRange::new(whole.start(), last.end()))
}

/// The `else` of a loop: its body, which is the only part with a place of its own.
fn loop_else(file: FileId, orelse: &[py::Stmt]) -> Option<Span> {
    orelse.first().map(|first| span_of(file, first.range()))
}

fn stmt(file: FileId, statement: &py::Stmt) -> Stmt {
    let mut span = span_of(file, statement.range());
    let kind = match statement {
        py::Stmt::Expr(s) => StmtKind::Expr(expr(file, &s.value)),
        py::Stmt::Assign(s) => StmtKind::Assign {
            targets: s.targets.iter().map(|target| expr(file, target)).collect(),
            value: expr(file, &s.value),
        },
        py::Stmt::AugAssign(s) => StmtKind::AugAssign {
            target: expr(file, &s.target),
            op: binary_op(s.op),
            value: expr(file, &s.value),
        },
        py::Stmt::AnnAssign(s) => StmtKind::AnnAssign {
            target: expr(file, &s.target),
            annotation: expr(file, &s.annotation),
            value: s.value.as_ref().map(|value| expr(file, value)),
        },
        py::Stmt::If(s) => {
            span = head(file, s.range, s.test.range());
            StmtKind::If {
                test: expr(file, &s.test),
                body: suite(file, &s.body),
                orelse: clauses(file, &s.elif_else_clauses),
            }
        }
        py::Stmt::While(s) => {
            span = head(file, s.range, s.test.range());
            StmtKind::While {
                test: expr(file, &s.test),
                body: suite(file, &s.body),
                orelse: loop_else(file, &s.orelse),
            }
        }
        py::Stmt::For(s) if s.is_async => {
            span = head(file, s.range, s.iter.range());
            StmtKind::Unsupported("AsyncFor")
        }
        py::Stmt::For(s) => {
            span = head(file, s.range, s.iter.range());
            StmtKind::For {
                target: expr(file, &s.target),
                iter: expr(file, &s.iter),
                body: suite(file, &s.body),
                orelse: loop_else(file, &s.orelse),
            }
        }
        py::Stmt::Break(_) => StmtKind::Break,
        py::Stmt::Continue(_) => StmtKind::Continue,
        py::Stmt::Return(s) => StmtKind::Return(s.value.as_ref().map(|value| expr(file, value))),
        py::Stmt::Assert(s) => StmtKind::Assert {
            test: expr(file, &s.test),
            message: s.msg.as_ref().map(|message| expr(file, message)),
        },
        py::Stmt::Pass(_) => StmtKind::Pass,
        py::Stmt::With(s) => {
            let items = s.items.iter().map(Ranged::range).reduce(TextRange::cover);
            span = head(file, s.range, items.unwrap_or(s.range));
            if s.is_async {
                StmtKind::Unsupported("AsyncWith")
            } else {
                StmtKind::With {
                    items: s.items.iter().map(|item| with_item(file, item)).collect(),
                    body: suite(file, &s.body),
                }
            }
        }
        py::Stmt::FunctionDef(s) => {
            span = head(file, TextRange::empty(s.name.start()), s.name.range());
            StmtKind::Unsupported(if s.is_async { "AsyncFunctionDef" } else { "FunctionDef" })
        }
        py::Stmt::ClassDef(s) => {
            span = span_of(file, s.name.range());
            StmtKind::Unsupported("ClassDef")
        }
        py::Stmt::Match(s) => {
            span = head(file, s.range, s.subject.range());
            StmtKind::Unsupported("Match")
        }
        py::Stmt::Try(s) => {
            span = Span::new(file, span.start, span.start + 3);
            StmtKind::Unsupported(if s.is_star { "TryStar" } else { "Try" })
        }
        py::Stmt::Delete(_) => StmtKind::Unsupported("Delete"),
        py::Stmt::TypeAlias(_) => StmtKind::Unsupported("TypeAlias"),
        py::Stmt::Raise(_) => StmtKind::Unsupported("Raise"),
        py::Stmt::Import(_) => StmtKind::Unsupported("Import"),
        py::Stmt::ImportFrom(_) => StmtKind::Unsupported("ImportFrom"),
        py::Stmt::Global(_) => StmtKind::Unsupported("Global"),
        py::Stmt::Nonlocal(_) => StmtKind::Unsupported("Nonlocal"),
        py::Stmt::IpyEscapeCommand(_) => StmtKind::Unsupported("IpyEscapeCommand"),
    };
    Stmt { span, kind }
}

fn with_item(file: FileId, item: &py::WithItem) -> WithItem {
    WithItem {
        context: expr(file, &item.context_expr),
        target: item.optional_vars.as_ref().map(|target| expr(file, target)),
    }
}

/// `elif` clauses become an `if` that is the only statement of the `else`.
fn clauses(file: FileId, list: &[py::ElifElseClause]) -> Vec<Stmt> {
    match list {
        [] => Vec::new(),
        [first, rest @ ..] => match &first.test {
            None => suite(file, &first.body),
            Some(test) => vec![Stmt {
                span: head(file, first.range, test.range()),
                kind: StmtKind::If {
                    test: expr(file, test),
                    body: suite(file, &first.body),
                    orelse: clauses(file, rest),
                },
            }],
        },
    }
}

fn collect_assigned(body: &[Stmt], names: &mut Vec<Name>) {
    for statement in body {
        match &statement.kind {
            StmtKind::Expr(value) => collect_named(value, names),
            StmtKind::Assign { targets, value } => {
                for target in targets {
                    collect_target(target, names);
                }
                collect_named(value, names);
            }
            StmtKind::AugAssign { target, value, .. } => {
                collect_target(target, names);
                collect_named(value, names);
            }
            StmtKind::AnnAssign { target, value, .. } => {
                collect_target(target, names);
                if let Some(value) = value {
                    collect_named(value, names);
                }
            }
            StmtKind::If { test, body, orelse } => {
                collect_named(test, names);
                collect_assigned(body, names);
                collect_assigned(orelse, names);
            }
            StmtKind::While { test, body, .. } => {
                collect_named(test, names);
                collect_assigned(body, names);
            }
            StmtKind::For { iter, body, .. } => {
                collect_named(iter, names);
                collect_assigned(body, names);
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    collect_named(value, names);
                }
            }
            StmtKind::Assert { test, .. } => collect_named(test, names),
            StmtKind::With { items, body } => {
                for item in items {
                    collect_named(&item.context, names);
                    if let Some(target) = &item.target {
                        collect_target(target, names);
                    }
                }
                collect_assigned(body, names);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Pass | StmtKind::Unsupported(_) => {}
        }
    }
}

fn collect_target(target: &Expr, names: &mut Vec<Name>) {
    match &target.kind {
        ExprKind::Name(name) => names.push(Arc::clone(name)),
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            for item in items {
                collect_target(item, names);
            }
        }
        ExprKind::Starred(inner) => collect_target(inner, names),
        // The base of `v[i] = …` changes too when it is a vector held in a variable.
        ExprKind::Subscript { value, .. } | ExprKind::Attribute { value, .. } => collect_target(value, names),
        _ => {}
    }
}

/// Names that `:=` assigns inside an expression, and variables that an atomic operation may write.
fn collect_named(value: &Expr, names: &mut Vec<Name>) {
    let mut each = |list: &[&Expr]| {
        for item in list {
            collect_named(item, names);
        }
    };
    match &value.kind {
        ExprKind::Named { name, value, .. } => {
            names.push(Arc::clone(name));
            collect_named(value, names);
        }
        ExprKind::Attribute { value, .. } | ExprKind::Starred(value) => each(&[value]),
        ExprKind::Subscript { value, index } => each(&[value, index]),
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { operands: items, .. } => {
            each(&items.iter().collect::<Vec<_>>());
        }
        ExprKind::Binary { .. } => {
            let (chain, leftmost) = value.operator_chain();
            each(&[leftmost]);
            for node in chain {
                if let ExprKind::Binary { right, .. } = &node.kind {
                    collect_named(right, names);
                }
            }
        }
        ExprKind::Unary { operand, .. } => each(&[operand]),
        ExprKind::Compare { left, rest } => {
            each(&[left]);
            for (_, item) in rest {
                collect_named(item, names);
            }
        }
        ExprKind::IfElse { test, body, orelse } => each(&[test, body, orelse]),
        ExprKind::Call { callee, args, keywords } => {
            each(&[callee]);
            if let ExprKind::Attribute { value, name } = &callee.kind
                && &**name == "fill"
            {
                collect_target(value, names);
            }
            let by_value = is_plain_intrinsic(callee);
            for argument in args.iter().chain(keywords.iter().map(|keyword| &keyword.value)) {
                if !by_value {
                    collect_target(argument, names);
                }
                collect_named(argument, names);
            }
        }
        _ => {}
    }
}

/// Whether a callee is called like an operation of the language that only reads its arguments. Anything else may take a bare name by
/// reference: an atomic operation, or a func with a template parameter.
fn is_plain_intrinsic(callee: &Expr) -> bool {
    let (ExprKind::Name(name) | ExprKind::Attribute { name, .. }) = &callee.kind else { return false };
    !name.starts_with("atomic") && (Intrinsic::from_name(name).is_some() || Scalar::from_name(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Function {
        let module = ruff_python_parser::parse_module(text).expect("valid Python").into_syntax();
        let [py::Stmt::FunctionDef(def)] = &module.body[..] else { panic!("one function") };
        function(FileId(0), def)
    }

    #[test]
    fn a_with_statement_keeps_its_managers_and_its_body() {
        let tree = parse("def f():\n    with a(), b() as c:\n        x = 1\n        with d: y = 2\n");
        let [Stmt { kind: StmtKind::With { items, body }, .. }] = &tree.body[..] else {
            panic!("one `with`")
        };
        assert_eq!(items.iter().map(|item| item.target.is_some()).collect::<Vec<_>>(), [false, true]);
        assert!(matches!(&body[..], [first, second]
            if matches!(first.kind, StmtKind::Assign { .. }) && matches!(second.kind, StmtKind::With { .. })));
        assert!(["c", "x", "y"].iter().all(|name| tree.assigns(name)), "{:?}", tree.assigned);
    }
}
