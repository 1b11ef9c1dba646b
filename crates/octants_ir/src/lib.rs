//! octants_ir
