//! octants_hal
