//! octants_interp
