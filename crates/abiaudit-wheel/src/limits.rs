//! Bounds on what an archive may make the reader do.

/// Bounds applied while opening and reading an archive. All sizes are bytes.
///
/// The reader never produces more than a member's declared size, so these bounds are checked against
/// declarations, before any work: the answer depends neither on the order of reading nor on threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most members in the central directory. Default: 1,000,000.
    pub max_members: u64,
    /// Largest uncompressed size of one member. Default: 8 GiB.
    pub max_member_size: u64,
    /// Largest sum of uncompressed sizes, counted in central-directory order over the members that are
    /// readable at all; what comes after is refused. Default: 32 GiB.
    pub max_total_size: u64,
    /// Largest ratio of uncompressed to compressed size, applied to members whose uncompressed size is
    /// above [`Limits::ratio_floor`]. Default: 1200.
    ///
    /// DEFLATE cannot exceed 1032:1 (a 258-byte match costs at least two bits), so by default this bound
    /// concerns bzip2, LZMA and Zstandard, which have no such ceiling; a DEFLATE member is bounded by
    /// [`Limits::max_member_size`].
    pub max_ratio: u64,
    /// Uncompressed size up to which any ratio is accepted. Default: 64 MiB.
    pub ratio_floor: u64,
    /// Largest dictionary (LZMA) or window (Zstandard) that a decoder may allocate. Default: 128 MiB,
    /// twice what the strongest preset of `xz` asks for.
    pub max_dictionary: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_members: 1_000_000,
            max_member_size: 8 << 30,
            max_total_size: 32 << 30,
            max_ratio: 1200,
            ratio_floor: 64 << 20,
            max_dictionary: 128 << 20,
        }
    }
}
