//! zlib. Its map file versions what came after 1.2.0; the older functions have no version. The list is of
//! Debian's x86_64 builds; zlib's interface does not depend on the architecture.

use super::{Export, Pool, exports};

pub(super) const POOL: Pool = Pool::new(include_bytes!("../../../../policies/symbols/zlib.bin"));

/// The exports of `libz.so.1`.
#[derive(Debug, Clone, Copy)]
pub struct ZlibTable {
    _private: (),
}

/// The table of zlib.
pub fn libz() -> ZlibTable {
    ZlibTable { _private: () }
}

impl ZlibTable {
    /// Every version of a symbol; empty if zlib does not export it. A row without a version is of before
    /// 1.2.0.
    pub fn exports(&self, symbol: &str) -> Vec<Export> {
        exports(POOL, u16::MAX, symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Release;
    use super::*;

    #[test]
    fn nodes_are_releases_of_zlib() {
        let rows = libz().exports("adler32_z");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].version, Some("ZLIB_1.2.9"));
        assert_eq!(rows[0].since, Some(Release::with_patch(1, 2, 9)));
        let rows = libz().exports("inflate");
        assert_eq!((rows.len(), rows[0].version, rows[0].until), (1, None, None));
        assert!(libz().exports("inflateMagic").is_empty());
    }
}
