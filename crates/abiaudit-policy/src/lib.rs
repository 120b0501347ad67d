//! What a target system offers: libraries, versions, symbols.
