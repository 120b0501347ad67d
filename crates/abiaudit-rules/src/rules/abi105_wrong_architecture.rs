//! An object is of another architecture than the tag.
//!
//! ## What it does
//! Compares the machine of every program and library with the architecture that the platform tags name. Code for
//! devices (CUDA, AMD GPUs, BPF) is data to a processor and left alone, and so are object files.
//!
//! ## Why is this bad?
//! `ImportError: wrong ELF class` or `cannot open shared object file`: the loader passes over such a file.
//!
//! ## Example
//! A cross build that packed the host's `protoc` or a stale `.so` of an earlier build for x86_64 into an aarch64 wheel.
//!
//! ## How to mend it
//! Build in a clean tree; give each architecture a wheel of its own.
//!
//! ## References
//! gABI chapter 4 (`e_machine`); glibc elf/dl-load.c (`open_verify`).

use crate::audit::{Audit, Role};
use crate::finding::{Evidence, Sink};

super::rule!("ABI105", "wrong-architecture", Error, "abi105_wrong_architecture.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(platform) = audit.platform else { return };
    if !names_one(audit) {
        return;
    }
    for entry in audit.objects.iter().filter(|o| is_host_code(o)) {
        let identity = &entry.object.identity;
        if identity.arch() != Some(platform.arch.tag()) {
            let machine = identity.machine_name();
            sink.member(&entry.member.name, format!("is {machine} code in a wheel for {}", platform.arch))
                .help("build it for the tag's architecture, or leave it out")
                .evidence([Evidence::note(format!("e_machine {}", identity.machine))]);
        }
    }
}

/// The tags name one architecture, or the user did.
pub(super) fn names_one(audit: &Audit<'_>) -> bool {
    let mut named: Vec<&str> = audit
        .claims
        .iter()
        .map(|c| &c.tag)
        .chain(audit.platform_tags.iter().filter(|_| audit.settings.target.is_none()))
        .filter_map(abiaudit_wheel::PlatformTag::arch)
        .collect();
    named.sort_unstable();
    named.dedup();
    named.len() == 1
}

/// A processor is meant to run it: not device code, not an object file, not debug information.
pub(super) fn is_host_code(entry: &crate::audit::AuditObject<'_>) -> bool {
    /// EM_CUDA, EM_AMDGPU, EM_BPF, EM_QDSP6 and machines of accelerators beside them (gABI registry of `e_machine`).
    const DEVICES: [u16; 5] = [190, 224, 247, 164, 251];
    !matches!(entry.role, Role::NotLinked | Role::Debug) && !DEVICES.contains(&entry.object.identity.machine)
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    #[test]
    fn foreign_objects_are_named() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module())
            .elf("p/be.so", &ElfWriter::new(Arch::S390x).define("PyInit_be"))
            .elf("p/old.so", &ElfWriter::new(Arch::I686));
        let found = findings("ABI105", &wheel);
        let messages: Vec<&str> = found.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(messages, ["is s390x code in a wheel for x86_64", "is i686 code in a wheel for x86_64"]);
        assert!(findings("ABI106", &wheel).is_empty(), "one rule is enough");
    }

    #[test]
    fn silent_about_device_code_and_object_files() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module())
            .elf("p/kernel.cubin", &ElfWriter::new(Arch::X86_64).machine(190).object_type(2))
            .elf("p/x.o", &ElfWriter::new(Arch::Aarch64).object_type(1));
        assert!(findings("ABI105", &wheel).is_empty());
    }
}
