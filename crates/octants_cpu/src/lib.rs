//! octants_cpu
