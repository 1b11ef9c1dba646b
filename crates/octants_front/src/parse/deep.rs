//! Deep trees: a stack for what walks the parser's tree, and the depth from which on a function is refused.
//!
//! The parser, the conversion and the end of a tree recurse once for each level. They call no host code, so they run on a thread with a stack
//! of their own; what walks the converted tree later runs on the caller's.

use octants_diag::Span;

use crate::ast::{Expr, ExprKind, Function, Generator, Stmt, StmtKind, TextPart};

/// Expressions nested deeper than this are refused, about where Python itself refuses them. A chain of operators, `a + b + c`, is one level.
pub(crate) const MAX_EXPR_DEPTH: usize = 1000;

/// The stack of a walk, in bytes: the parser takes about 4 KiB for each level without optimisation, and Python itself refuses to compile more
/// than some thousand levels. Memory that is never touched costs nothing.
const STACK_BYTES: usize = 256 << 20;

/// Runs a walk on a stack of its own; starting the thread takes about 50 µs.
pub(crate) fn on_deep_stack<R: Send>(walk: impl FnOnce() -> R + Send) -> R {
    let mut walk = Some(walk);
    let walked = std::thread::scope(|scope| {
        let walk = &mut walk;
        let thread = std::thread::Builder::new().name("octants-parse".to_owned()).stack_size(STACK_BYTES);
        let spawned = thread.spawn_scoped(scope, move || walk.take().map(|walk| walk()));
        spawned.ok().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (walked.flatten(), walk) {
        (Some(result), _) => result,
        // No thread could be had.
        (None, Some(walk)) => walk(),
        (None, None) => unreachable!("what ran has a result"),
    }
}

/// Where a function has an expression that is nested too deeply.
pub(crate) fn too_deep(function: &Function) -> Option<Span> {
    in_block(&function.body)
}

fn in_block(stmts: &[Stmt]) -> Option<Span> {
    stmts.iter().find_map(in_statement)
}

fn in_statement(stmt: &Stmt) -> Option<Span> {
    let whole = |expr: &Expr| in_expr(expr, 0);
    match &stmt.kind {
        StmtKind::Expr(value) => whole(value),
        StmtKind::Assign { targets, value } => targets.iter().find_map(whole).or_else(|| whole(value)),
        StmtKind::AugAssign { target, value, .. } => whole(target).or_else(|| whole(value)),
        StmtKind::AnnAssign { target, annotation, value } => {
            whole(target).or_else(|| whole(annotation)).or_else(|| value.as_ref().and_then(whole))
        }
        StmtKind::If { test, body, orelse } => {
            whole(test).or_else(|| in_block(body)).or_else(|| in_block(orelse))
        }
        StmtKind::While { test, body, .. } => whole(test).or_else(|| in_block(body)),
        StmtKind::For { target, iter, body, .. } => {
            whole(target).or_else(|| whole(iter)).or_else(|| in_block(body))
        }
        StmtKind::Return(value) => value.as_ref().and_then(whole),
        StmtKind::Assert { test, message } => whole(test).or_else(|| message.as_ref().and_then(whole)),
        StmtKind::With { body, .. } => in_block(body),
        StmtKind::Break | StmtKind::Continue | StmtKind::Pass | StmtKind::Unsupported(_) => None,
    }
}

fn in_expr(expr: &Expr, depth: usize) -> Option<Span> {
    if depth > MAX_EXPR_DEPTH {
        return Some(expr.span);
    }
    let below = |expr: &Expr| in_expr(expr, depth + 1);
    let all = |exprs: &[Expr]| exprs.iter().find_map(below);
    let generated = |generators: &[Generator]| {
        generators.iter().find_map(|one| below(&one.iter).or_else(|| all(&one.conditions)))
    };
    match &expr.kind {
        ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::HugeInt
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Name(_)
        | ExprKind::Unsupported(_) => None,
        ExprKind::FString(parts) => in_text(parts, depth),
        ExprKind::Attribute { value, .. } | ExprKind::Starred(value) | ExprKind::Named { value, .. } => {
            below(value)
        }
        ExprKind::Subscript { value, index } => below(value).or_else(|| below(index)),
        ExprKind::Slice { start, stop, step } => {
            [start, stop, step].into_iter().flatten().find_map(|bound| below(bound))
        }
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { operands: items, .. } => {
            all(items)
        }
        ExprKind::Dict(items) => {
            items.iter().find_map(|(key, value)| key.as_ref().and_then(below).or_else(|| below(value)))
        }
        ExprKind::ListComp { element, generators } => below(element).or_else(|| generated(generators)),
        ExprKind::DictComp { key, value, generators } => {
            below(key).or_else(|| below(value)).or_else(|| generated(generators))
        }
        ExprKind::Binary { .. } => {
            let (chain, leftmost) = expr.operator_chain();
            let right = |node: &Expr| match &node.kind {
                ExprKind::Binary { right, .. } => below(right),
                _ => None,
            };
            below(leftmost).or_else(|| chain.into_iter().find_map(right))
        }
        ExprKind::Unary { operand, .. } => below(operand),
        ExprKind::Compare { left, rest } => {
            below(left).or_else(|| rest.iter().find_map(|(_, item)| below(item)))
        }
        ExprKind::IfElse { test, body, orelse } => {
            below(test).or_else(|| below(body)).or_else(|| below(orelse))
        }
        ExprKind::Call { callee, args, keywords } => below(callee)
            .or_else(|| all(args))
            .or_else(|| keywords.iter().find_map(|keyword| below(&keyword.value))),
    }
}

fn in_text(parts: &[TextPart], depth: usize) -> Option<Span> {
    parts.iter().find_map(|part| match part {
        TextPart::Text(_) => None,
        TextPart::Field { value, spec, .. } => in_expr(value, depth + 1).or_else(|| in_text(spec, depth + 1)),
    })
}
