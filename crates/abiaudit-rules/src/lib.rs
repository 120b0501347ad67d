//! The verdict and the rules; one file a rule.
