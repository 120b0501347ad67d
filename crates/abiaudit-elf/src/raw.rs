//! Reading `object`'s ELF structures out of an [`Image`].

use object::Endianness;
use object::pod::{Pod, from_bytes, slice_from_bytes};
use object::read::elf::FileHeader;

use crate::error::{Fault, ParseError};
use crate::image::Image;

/// ELF of either class with the byte order decided at run time. The trait's `Word` is `u32` or `u64`.
pub(crate) trait Elf: FileHeader<Endian = Endianness> {}
impl<T: FileHeader<Endian = Endianness>> Elf for T {}

impl Image<'_> {
    /// One structure at `offset`.
    pub(crate) fn read<T: Pod>(&self, what: &'static str, offset: u64) -> Result<&T, Fault> {
        let bytes = self.bytes(what, offset, size_of::<T>() as u64)?;
        match from_bytes::<T>(bytes) {
            Ok((value, _)) => Ok(value),
            Err(()) => Err(truncated(what, offset, bytes.len() as u64, self.size())),
        }
    }

    /// `count` structures at `offset`.
    pub(crate) fn read_slice<T: Pod>(
        &self,
        what: &'static str,
        offset: u64,
        count: u64,
    ) -> Result<&[T], Fault> {
        let size = count.checked_mul(size_of::<T>() as u64);
        let size = size.ok_or_else(|| truncated(what, offset, u64::MAX, self.size()))?;
        let bytes = self.bytes(what, offset, size)?;
        match slice_from_bytes::<T>(bytes, bytes.len() / size_of::<T>()) {
            Ok((values, _)) => Ok(values),
            Err(()) => Err(truncated(what, offset, size, self.size())),
        }
    }
}

fn truncated(what: &'static str, offset: u64, size: u64, file_size: u64) -> Fault {
    ParseError::Truncated { what, offset, size, file_size }.into()
}
