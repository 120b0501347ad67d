//! New segments at the end: what is in them, and at which addresses.

use super::SEGMENT_ALIGN;
use super::arrangement::Arrangement;
use super::arrangement::HeaderPlace;
use crate::abi::{PF_R, PF_W, PT_LOAD};
use crate::encoding::align_up;
use crate::error::EditError;
use crate::headers::ProgramHeader;
use crate::refusal::Refusal;
use crate::relocations;
use crate::symbols::RawSymbol;
use crate::table::Extent;
use crate::table::Table;
use crate::units::Unit;
use crate::units::place;

/// The new tail, and where units went.
pub(super) struct Tail {
    pub(super) bytes: Vec<u8>,
    pub(super) begin: u64,
    pub(super) segments: Vec<ProgramHeader>,
    /// For each unit its new place.
    pub(super) places: Vec<Option<Extent>>,
    /// Place of the program headers, if they are in the tail.
    pub(super) headers: Option<Extent>,
}

impl Arrangement<'_, '_> {
    /// Gives every moving unit its place: the read-only ones, then the writable one.
    pub(super) fn lay_out_tail(&self) -> Result<Tail, EditError> {
        let mut tail = Tail {
            bytes: Vec::new(),
            begin: self.tail,
            segments: Vec::new(),
            places: vec![None; self.units.len()],
            headers: None,
        };
        let header_bytes = match self.headers {
            HeaderPlace::Tail => self.header_count() as u64 * self.image.encoding.program_header_size(),
            HeaderPlace::Fixed(_) => 0,
        };
        let mut end = self.address_end();
        if self.moves(false) || header_bytes > 0 {
            end = end.max(self.relocated_end(end)?);
            end = self.lay_out_segment(&mut tail, false, header_bytes, end)?;
        }
        if self.moves(true) {
            self.lay_out_segment(&mut tail, true, 0, end)?;
        }
        Ok(tail)
    }

    pub(super) fn address_end(&self) -> u64 {
        let loads = self.image.segments.iter().enumerate();
        let loads = loads.filter(|(index, s)| s.is_load() && !self.dropped.contains(index));
        loads.map(|(_, s)| s.vaddr + s.memsz.max(s.filesz)).max().unwrap_or(0)
    }

    /// End of what relocations seem to write: `eu-elflint` takes a relocation to be as large as its symbol, and reports
    /// a text relocation if that reaches into a read-only segment. Addresses cost nothing, so it gets none to report.
    pub(super) fn relocated_end(&self, end: u64) -> Result<u64, EditError> {
        const FARTHEST: u64 = 1 << 24;
        let symbols = self.image.table_bytes(Table::DynamicSymbols)?;
        let size = self.image.encoding.symbol_size() as usize;
        let symbol_size = |index: u32| {
            let at = usize::try_from(index).ok()?.checked_mul(size)?;
            RawSymbol::read(self.image.encoding, symbols, at).map(|symbol| symbol.size)
        };
        let mut farthest = end;
        for table in relocations::tables(self.image)? {
            for relocation in relocations::entries(self.image, table)? {
                let size = symbol_size(relocation.symbol).unwrap_or(0);
                let reach = relocation.place.saturating_add(size).saturating_add(1);
                if reach > farthest && reach - end <= FARTHEST {
                    farthest = reach;
                }
            }
        }
        Ok(farthest)
    }

    /// The alignment of new segments: the largest of the file's, and of the machine's pages.
    pub(super) fn page(&self) -> u64 {
        let loads = self.image.segments.iter().filter(|s| s.is_load());
        let largest = loads.map(|s| s.align).filter(|align| align.is_power_of_two()).max().unwrap_or(0);
        largest.min(1 << 30).max(self.image.machine_page())
    }

    /// Fills one new segment, and gives the end of the address space used.
    pub(super) fn lay_out_segment(
        &self,
        tail: &mut Tail,
        is_writable: bool,
        header_bytes: u64,
        address_end: u64,
    ) -> Result<u64, EditError> {
        let exhausted = || EditError::from(Refusal::AddressSpaceExhausted { end: address_end });
        let page = self.page();
        let chosen = |unit: &Unit| unit.is_moving && unit.kind.is_writable() == is_writable;
        let first = self.units.iter().find(|unit| chosen(unit)).map_or(1, |unit| unit.align);
        let align = if header_bytes > 0 { SEGMENT_ALIGN } else { first.max(SEGMENT_ALIGN) };
        let offset = align_up(tail.begin + tail.bytes.len() as u64, align).ok_or_else(exhausted)?;
        let base = align_up(address_end, page).ok_or_else(exhausted)?;
        let address = base.checked_add(offset % page).ok_or_else(exhausted)?;
        let mut end = offset + header_bytes;
        if header_bytes > 0 {
            tail.headers = Some(Extent { address, offset, size: header_bytes });
        }
        for (index, unit) in self.units.iter().enumerate().filter(|(_, unit)| chosen(unit)) {
            let at = place(unit, end).ok_or_else(exhausted)?;
            let moved = address.checked_add(at - offset).ok_or_else(exhausted)?;
            tail.places[index] = Some(Extent { address: moved, offset: at, size: unit.size() });
            end = at.checked_add(unit.size()).ok_or_else(exhausted)?;
        }
        let size = end - offset;
        let address_end = address.checked_add(size).filter(|&end| self.image.encoding.fits_word(end));
        let address_end = address_end.ok_or_else(exhausted)?;
        if !self.image.encoding.fits_word(end) {
            return Err(exhausted());
        }
        tail.bytes.resize((end - tail.begin) as usize, 0);
        tail.segments.push(ProgramHeader {
            kind: PT_LOAD,
            flags: if is_writable { PF_R | PF_W } else { PF_R },
            offset,
            vaddr: address,
            paddr: address,
            filesz: size,
            memsz: size,
            align: page,
        });
        Ok(address_end)
    }
}
