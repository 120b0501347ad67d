//! What one ELF file says: one bounded pass into an Object.
