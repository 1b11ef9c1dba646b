//! octants_front
