//! octants_python
