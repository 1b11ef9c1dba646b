//! octants_runtime
