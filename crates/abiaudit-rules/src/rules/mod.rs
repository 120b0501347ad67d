//! One file a rule. The head comment of a file is the rule's documentation, in these headings: What it does, Why
//! is this bad?, Example, How to mend it, References.

use crate::rule::rule;

pub mod abi101_symbol_too_new;
