//! octants
