//! octants_filetests
