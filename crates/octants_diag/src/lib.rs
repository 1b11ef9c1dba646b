//! octants_diag
