//! The `abiaudit` command.
fn main() {}
