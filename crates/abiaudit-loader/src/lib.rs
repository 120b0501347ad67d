//! What the dynamic loader makes of objects: library search.
