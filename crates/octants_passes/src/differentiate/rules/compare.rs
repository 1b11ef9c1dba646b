//! Comparisons have no derivative; what they choose has.

use octants_ir::Value;

use super::Partial;

/// Of `select`, by one of its arms.
pub(super) fn select(condition: Value, operand: usize) -> Partial {
    Partial::Where(condition, operand == 1)
}
