//! How statements may leave the loop or the function around them, read from the tree alone.

use crate::ast::{Stmt, StmtKind};

/// Whether some statement may leave the enclosing loop or its iteration.
pub(crate) fn may_leave(stmts: &[Stmt]) -> bool {
    // What leaves a loop inside leaves that one.
    some(stmts, false, &|stmt| matches!(stmt.kind, StmtKind::Break | StmtKind::Continue))
}

/// Whether some statement may leave the enclosing loop for good.
pub(crate) fn may_break(stmts: &[Stmt]) -> bool {
    some(stmts, false, &|stmt| matches!(stmt.kind, StmtKind::Break))
}

/// Whether some statement returns.
pub(crate) fn may_return(stmts: &[Stmt]) -> bool {
    some(stmts, true, &|stmt| matches!(stmt.kind, StmtKind::Return(_)))
}

/// Whether a condition holds for some statement of a block or of the blocks in it.
pub(crate) fn any_statement(stmts: &[Stmt], holds: &dyn Fn(&Stmt) -> bool) -> bool {
    some(stmts, true, holds)
}

/// Whether a condition holds for some statement: one of a block, of a block in it, or of a loop in it if `in_loops`.
fn some(stmts: &[Stmt], in_loops: bool, holds: &dyn Fn(&Stmt) -> bool) -> bool {
    stmts.iter().any(|stmt| {
        let is_loop = matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let is_searched = in_loops || !is_loop;
        holds(stmt) || is_searched && stmt.blocks().into_iter().any(|block| some(block, in_loops, holds))
    })
}

/// Whether a block surely leaves, at its end and nowhere else.
pub(crate) fn always_leaves(stmts: &[Stmt], returns: bool) -> bool {
    match stmts {
        [before @ .., last] => {
            let leaves = match last.kind {
                StmtKind::Break | StmtKind::Continue => true,
                StmtKind::Return(_) => returns,
                _ => false,
            };
            leaves && !may_leave(before) && !(returns && may_return(before))
        }
        [] => false,
    }
}

/// Whether every path through a block returns. A loop whose body does, and does nothing else to leave, counts: what it gives where it
/// does not run at all is the program's own affair.
pub(crate) fn always_returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Return(_) => true,
        StmtKind::If { body, orelse, .. } => always_returns(body) && always_returns(orelse),
        StmtKind::For { body, .. } | StmtKind::While { body, .. } => !may_leave(body) && always_returns(body),
        StmtKind::With { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Expr(_)
        | StmtKind::Assign { .. }
        | StmtKind::AugAssign { .. }
        | StmtKind::AnnAssign { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Pass
        | StmtKind::Unsupported(_) => false,
    })
}
