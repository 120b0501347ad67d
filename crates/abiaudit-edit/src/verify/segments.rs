//! Invariants of one file: segments, program headers, pointers. What was wrong before is not reported.

use super::{Case, Invariant, Violation, plain_addresses};
use crate::abi::{
    PF_W, PT_DYNAMIC, PT_GNU_RELRO, PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_NULL, PT_PHDR, PT_TLS,
};
use crate::headers::ProgramHeader;
use crate::image::ElfImage;
use crate::layout::{Warning, is_empty_load};
use crate::table::Table;

pub(super) fn check(case: &Case, violations: &mut Vec<Violation>) {
    let known = violations_of(case.before);
    violations.extend(violations_of(case.after).into_iter().filter(|violation| !known.contains(violation)));
    check_kept(case, violations);
    check_relro(case, violations);
}

/// What is wrong with one file.
pub(crate) fn violations_of(image: &ElfImage) -> Vec<Violation> {
    let mut violations = Vec::new();
    check_loads(image, &mut violations);
    check_program_headers(image, &mut violations);
    for index in (0..image.segments.len()).filter(|&i| is_empty_load(image, i, image.header.phoff, &[])) {
        let detail = format!("PT_LOAD at {:#x}", image.segments[index].vaddr);
        violations.push(Violation::new(Invariant::EmptySegment, detail));
    }
    check_pointers(image, &mut violations);
    violations
}

fn check_loads(image: &ElfImage, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Segments, detail));
    let loads: Vec<&ProgramHeader> = image.segments.iter().filter(|s| s.is_load()).collect();
    for pair in loads.windows(2) {
        if pair[0].memory_end() > pair[1].vaddr {
            wrong(format!("PT_LOAD at {:#x} begins before the end of the one before it", pair[1].vaddr));
        }
    }
    for load in loads {
        if load.file_end() > image.bytes.len() as u64 {
            wrong(format!("PT_LOAD at {:#x} ends behind the file", load.vaddr));
        }
        if load.filesz > load.memsz {
            wrong(format!("PT_LOAD at {:#x} has more bytes in the file than in memory", load.vaddr));
        }
        for align in [load.align, image.machine_page()].into_iter().filter(|align| *align > 1) {
            if load.offset % align != load.vaddr % align {
                let place = format!("offset {:#x}, address {:#x}", load.offset, load.vaddr);
                wrong(format!("PT_LOAD with {place} is not congruent to {align:#x}"));
            }
        }
    }
}

fn check_program_headers(image: &ElfImage, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::ProgramHeaders, detail));
    let offset = image.header.phoff;
    let size = u64::from(image.header.phnum) * image.encoding.program_header_size();
    let load = image
        .segments
        .iter()
        .find(|s| s.is_load() && s.offset <= offset && s.file_end() >= offset.saturating_add(size));
    let Some(load) = load else {
        return wrong("the program headers are in no segment".to_owned());
    };
    let address = load.vaddr + (offset - load.offset);
    for segment in image.segments.iter().filter(|s| s.kind == PT_PHDR) {
        if (segment.offset, segment.vaddr, segment.filesz, segment.memsz) != (offset, address, size, size) {
            wrong("PT_PHDR does not say where the program headers are".to_owned());
        }
    }
    if image.sections_agree {
        let end = offset + size;
        let mut sections = image.sections.iter().filter(|s| s.is_allocated() && s.has_bytes());
        if let Some(section) = sections.find(|s| s.offset < end && s.file_end() > offset) {
            wrong(format!("the program headers overlap the section at {:#x}", section.addr));
        }
    }
}

fn check_pointers(image: &ElfImage, violations: &mut Vec<Violation>) {
    for (tag, address) in plain_addresses(image) {
        let is_mapped =
            image.segments.iter().any(|s| s.is_load() && address >= s.vaddr && address <= s.memory_end());
        if !is_mapped && address != 0 {
            let detail = format!("the dynamic entry {tag:#x} points to {address:#x}, which is not mapped");
            violations.push(Violation::new(Invariant::Pointers, detail));
        }
    }
    for table in Table::ALL {
        match image.table(table) {
            Ok(Some(extent)) if image.sections_agree => {
                if image.section_at(extent.address, table.section_kind()).is_none() {
                    let detail = format!("no section is where {table} is");
                    violations.push(Violation::new(Invariant::Pointers, detail));
                }
            }
            Ok(_) => {}
            Err(error) => violations.push(Violation::new(Invariant::Pointers, error.to_string())),
        }
    }
    let dynamic = image.segments.iter().find(|s| s.kind == PT_DYNAMIC);
    let is_writable = dynamic.is_none_or(|dynamic| {
        let load = image.segments.iter().find(|s| s.is_load() && s.maps(dynamic.vaddr, dynamic.filesz));
        load.is_some_and(|load| load.flags & PF_W != 0)
    });
    if !is_writable {
        violations.push(Violation::new(Invariant::DynamicSection, "the loader cannot write to it"));
    }
}

/// Segments that do not move are as they were, in the same order.
fn check_kept(case: &Case, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Segments, detail));
    let places = |segments: &[ProgramHeader]| -> Vec<ProgramHeader> {
        segments.iter().filter(|s| s.is_load()).copied().collect()
    };
    let added = |load: &ProgramHeader| case.layout.added.iter().any(|new| new.extent.address == load.vaddr);
    let dropped = |load: &ProgramHeader| {
        case.layout.dropped.iter().any(|old| old.address == load.vaddr && old.offset == load.offset)
    };
    let mut before = places(&case.before.segments);
    before.retain(|load| !dropped(load));
    let mut after = places(&case.after.segments);
    after.retain(|load| !added(load));
    if before != after {
        wrong("a PT_LOAD that the plan has nothing to do with changed".to_owned());
    }
    if case.layout.added.iter().filter(|new| new.is_writable).count() > 1 || case.layout.added.len() > 2 {
        wrong("more than one segment of a kind was added".to_owned());
    }
    let others = |image: &ElfImage| -> Vec<(u32, u64)> {
        let kept = image.segments.iter();
        let kept = kept.filter(|s| {
            !matches!(s.kind, PT_LOAD | PT_NULL | PT_PHDR | PT_INTERP | PT_DYNAMIC | PT_GNU_STACK)
        });
        let mut kept: Vec<(u32, u64)> = kept.map(|s| (s.kind, s.filesz)).collect();
        kept.sort_unstable();
        kept
    };
    if others(case.before) != others(case.after) {
        wrong("a segment was lost, or changed its size".to_owned());
    }
}

fn check_relro(case: &Case, violations: &mut Vec<Violation>) {
    let of = |image: &ElfImage, kind| image.segments.iter().find(|s| s.kind == kind).copied();
    if of(case.before, PT_GNU_RELRO) != of(case.after, PT_GNU_RELRO)
        || of(case.before, PT_TLS) != of(case.after, PT_TLS)
    {
        violations.push(Violation::new(Invariant::Segments, "PT_GNU_RELRO or PT_TLS changed"));
    }
    let is_inside = |image: &ElfImage| {
        let (relro, dynamic) = (of(image, PT_GNU_RELRO)?, of(image, PT_DYNAMIC)?);
        Some(dynamic.vaddr >= relro.vaddr && dynamic.memory_end() <= relro.memory_end())
    };
    let is_said = case.layout.warnings.contains(&Warning::DynamicLeftRelro);
    if is_inside(case.before) == Some(true) && is_inside(case.after) == Some(false) && !is_said {
        violations.push(Violation::new(Invariant::DynamicSection, "it left RELRO"));
    }
}
