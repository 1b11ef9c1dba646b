//! Deep trees: a stack for what walks the parser's tree, and the depth from which on a function is refused.
//!
//! The parser, the conversion and the end of a tree recurse once for each level. They call no host code, so they run on a thread with a stack
//! of their own; what walks the converted tree later runs on the caller's.

use octants_diag::Span;

use crate::ast::{Expr, Function, Stmt};

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
    stmts.iter().find_map(|stmt| {
        let own = stmt.expressions().into_iter().find_map(|expr| in_expr(expr, 0));
        own.or_else(|| stmt.blocks().into_iter().find_map(in_block))
    })
}

fn in_expr(expr: &Expr, depth: usize) -> Option<Span> {
    if depth > MAX_EXPR_DEPTH {
        return Some(expr.span);
    }
    expr.parts().into_iter().find_map(|part| in_expr(part, depth + 1))
}
