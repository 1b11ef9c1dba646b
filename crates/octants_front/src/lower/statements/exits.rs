//! How statements may leave the loop or the function around them, read from the tree alone.

use crate::ast::{Stmt, StmtKind};

/// Whether some statement may leave the enclosing loop or its iteration.
pub(crate) fn may_leave(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { body, orelse, .. } => may_leave(body) || may_leave(orelse),
        StmtKind::With { body, .. } => may_leave(body),
        // What leaves a loop inside leaves that one.
        StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Return(_) => false,
        StmtKind::Expr(_)
        | StmtKind::Assign { .. }
        | StmtKind::AugAssign { .. }
        | StmtKind::AnnAssign { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Pass
        | StmtKind::Unsupported(_) => false,
    })
}

/// Whether some statement may leave the enclosing loop for good.
pub(crate) fn may_break(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break => true,
        StmtKind::If { body, orelse, .. } => may_break(body) || may_break(orelse),
        StmtKind::With { body, .. } => may_break(body),
        StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Return(_) | StmtKind::Continue => false,
        StmtKind::Expr(_)
        | StmtKind::Assign { .. }
        | StmtKind::AugAssign { .. }
        | StmtKind::AnnAssign { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Pass
        | StmtKind::Unsupported(_) => false,
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

/// Whether some statement returns.
pub(crate) fn may_return(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Return(_) => true,
        StmtKind::If { body, orelse, .. } => may_return(body) || may_return(orelse),
        StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
            may_return(body)
        }
        StmtKind::Break | StmtKind::Continue => false,
        StmtKind::Expr(_)
        | StmtKind::Assign { .. }
        | StmtKind::AugAssign { .. }
        | StmtKind::AnnAssign { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Pass
        | StmtKind::Unsupported(_) => false,
    })
}
