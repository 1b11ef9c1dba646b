//! octants_passes
