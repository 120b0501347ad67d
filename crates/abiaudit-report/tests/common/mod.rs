//! Sample reports that cover every shape of the model.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;

use abiaudit_report::model::*;
use abiaudit_report::{Format, RenderOptions, RuleInfo, render};

pub fn report(wheels: Vec<Wheel>) -> Report {
    Report::new(Tool { name: "abiaudit".into(), version: "0.1.0".into() }, wheels)
}

pub fn rules() -> Vec<RuleInfo> {
    [
        ("ABI101", "symbol-too-new", Severity::Error),
        ("ABI401", "unresolved-library", Severity::Error),
        ("ABI501", "executable-stack", Severity::Error),
        ("ABI601", "claim-too-low", Severity::Warning),
    ]
    .into_iter()
    .map(|(id, name, default_severity)| RuleInfo {
        id: id.into(),
        name: name.into(),
        summary: format!("what {name} finds"),
        explanation: format!("## What it does\nFinds `{name}`.\n"),
        help_uri: format!("https://abiaudit.example/rules#{id}"),
        default_severity,
    })
    .collect()
}

pub fn options() -> RenderOptions {
    RenderOptions { rules: rules(), ..RenderOptions::default() }
}

pub fn rendered(format: Format, report: &Report, options: &RenderOptions) -> String {
    let mut out = Vec::new();
    render(format, report, options, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("reports are UTF-8")
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn criteria(symbols: &str, libraries: &str) -> Criteria {
    Criteria {
        symbols: symbols.into(),
        libraries: libraries.into(),
        forbidden: "manylinux_2_5_x86_64".into(),
        isa: "manylinux_2_5_x86_64".into(),
        python: "manylinux_2_5_x86_64".into(),
    }
}

fn filesystem_symbol(index: usize) -> (String, String) {
    (
        format!("_ZNKSt10filesystem7__cxx114path{index}compareERKS1_"),
        format!(
            "std::filesystem::__cxx11::path::compare{index}(std::filesystem::__cxx11::path const&) const"
        ),
    )
}

fn too_new(count: usize) -> Vec<Evidence> {
    (0..count)
        .map(|index| {
            let (symbol, demangled) = filesystem_symbol(index);
            Evidence {
                symbol: Some(symbol),
                demangled: Some(demangled),
                version: Some("GLIBCXX_3.4.26".into()),
                since: Some("GCC 9".into()),
                library: Some("libstdc++.so.6".into()),
                note: Some("manylinux_2_28 ends at 3.4.24".into()),
                ..Evidence::default()
            }
        })
        .collect()
}

/// Claims more than it honours; leans on providers; findings of every kind.
pub fn lying_wheel() -> Wheel {
    let blockers: Vec<LadderSymbol> = (0..14)
        .map(|index| {
            let (symbol, demangled) = filesystem_symbol(index);
            LadderSymbol {
                member: if index < 12 { "torch/lib/libtorch_cpu.so" } else { "torch/lib/libtorch.so" }.into(),
                symbol,
                version: Some("GLIBCXX_3.4.26".into()),
                library: Some("libstdc++.so.6".into()),
                demangled: Some(demangled),
                since: Some("GCC 9".into()),
            }
        })
        .collect();
    let clock = LadderSymbol {
        member: "torch/lib/libtorch_cpu.so".into(),
        symbol: "clock_gettime".into(),
        version: Some("GLIBC_2.17".into()),
        library: Some("libc.so.6".into()),
        since: Some("glibc 2.17".into()),
        ..LadderSymbol::default()
    };
    let jbuf = LadderSymbol {
        symbol: "PyFPE_jbuf".into(),
        version: None,
        library: None,
        since: None,
        ..clock.clone()
    };
    let rung = |tag: &str, symbols: Vec<LadderSymbol>| Rung {
        tag: tag.into(),
        symbols,
        libraries: strings(&["libcuda.so.1", "libnope.so.1"]),
        ..Rung::default()
    };
    Wheel {
        path: "dist/torch-2.6.0-cp312-cp312-manylinux_2_28_x86_64.whl".into(),
        name: Some("torch".into()),
        version: Some("2.6.0".into()),
        sha256: Some("ab".repeat(32)),
        tags: strings(&["cp312-cp312-manylinux_2_28_x86_64"]),
        arch: Some("x86_64".into()),
        libc: Some("glibc".into()),
        verdict: Some(Verdict {
            tag: "linux_x86_64".into(),
            tag_with_providers: "manylinux_2_35_x86_64".into(),
            by: criteria("manylinux_2_35_x86_64", "linux_x86_64"),
            claim_ok: false,
            claim: Some("manylinux_2_28_x86_64".into()),
            reasons: strings(&["libcuda.so.1 is not promised by any policy"]),
            python_abi: PythonAbi::default(),
        }),
        objects: vec![
            Object {
                member: "torch/lib/libtorch_cpu.so".into(),
                soname: Some("libtorch_cpu.so".into()),
                needed: strings(&["libc.so.6", "libstdc++.so.6", "libcuda.so.1"]),
                runpath: strings(&["$ORIGIN", "$ORIGIN/../../nvidia/cublas/lib"]),
                versions: BTreeMap::from([
                    ("GLIBC".into(), "2.17".into()),
                    ("GLIBCXX".into(), "3.4.26".into()),
                ]),
                runtimes: vec![Runtime {
                    kind: "libstdc++".into(),
                    class: "partial".into(),
                    exposure: "exported".into(),
                    evidence: strings(&["135 exported std:: symbols"]),
                }],
                arch: Some("x86_64".into()),
                object_type: Some("shared".into()),
                build_id: Some("0123456789abcdef".into()),
                versions_by_library: BTreeMap::from([
                    ("libc.so.6".into(), strings(&["GLIBC_2.2.5", "GLIBC_2.17"])),
                    ("ld-linux-x86-64.so.2".into(), strings(&["GLIBC_2.3"])),
                    ("libstdc++.so.6".into(), strings(&["GLIBCXX_3.4.26"])),
                ]),
                ..Object::default()
            },
            Object {
                member: "torch/lib/libtorch.so".into(),
                needed: strings(&["libtorch_cpu.so", "libnope.so.1"]),
                rpath: strings(&["/opt/build/lib"]),
                ..Object::default()
            },
        ],
        external: vec![
            External {
                soname: "libc.so.6".into(),
                needed_by: strings(&["torch/lib/libtorch_cpu.so"]),
                provider: None,
                class: ExternalClass::System,
            },
            External {
                soname: "libcublas.so.12".into(),
                needed_by: strings(&["torch/lib/a.so", "torch/lib/b.so", "torch/lib/c.so"]),
                provider: Some(Provider {
                    distribution: "nvidia-cublas-cu12".into(),
                    lib_dir: Some("nvidia/cublas/lib".into()),
                    declared_as: Some("nvidia-cublas-cu12==12.8.4.1".into()),
                }),
                class: ExternalClass::Provider,
            },
            External {
                soname: "libcuda.so.1".into(),
                needed_by: strings(&["torch/lib/libtorch_cpu.so"]),
                provider: None,
                class: ExternalClass::Driver,
            },
            External {
                soname: "libnope.so.1".into(),
                needed_by: strings(&["torch/lib/libtorch.so"]),
                provider: None,
                class: ExternalClass::Unprovided,
            },
        ],
        ladder: vec![
            rung("manylinux_2_35_x86_64", vec![]),
            rung("manylinux_2_28_x86_64", blockers.clone()),
            rung("manylinux_2_17_x86_64", blockers.clone()),
            Rung {
                forbidden: vec![LadderSymbol {
                    library: Some("libz.so.1".into()),
                    symbol: "_dist_code".into(),
                    version: None,
                    since: None,
                    ..clock.clone()
                }],
                other: strings(&["references PyFPE_jbuf (PEP 513)"]),
                ..rung("manylinux_2_12_x86_64", [blockers, vec![clock, jbuf]].concat())
            },
        ],
        findings: vec![
            Finding {
                rule: "ABI901".into(),
                name: "carries-runtime".into(),
                severity: Severity::Info,
                member: Some("torch/lib/libtorch_cpu.so".into()),
                message: "carries a part of libstdc++".into(),
                count: 1,
                ..Finding::default()
            },
            Finding {
                rule: "ABI601".into(),
                name: "claim-too-low".into(),
                severity: Severity::Warning,
                message: "the file name promises more than the content honours".into(),
                help: Some("rename the wheel to manylinux_2_35_x86_64".into()),
                count: 1,
                ..Finding::default()
            },
            Finding {
                rule: "ABI101".into(),
                name: "symbol-too-new".into(),
                severity: Severity::Error,
                member: Some("torch/lib/libtorch_cpu.so".into()),
                message: "12 symbols are newer than manylinux_2_28".into(),
                help: Some("link through the split toolchain (abiaudit toolchain create --target manylinux_2_28_x86_64)".into()),
                evidence: too_new(12),
                count: 12,
                ..Finding::default()
            },
            Finding {
                rule: "ABI101".into(),
                name: "symbol-too-new".into(),
                severity: Severity::Error,
                member: Some("torch/lib/libtorch.so".into()),
                message: "2 symbols are newer than manylinux_2_28".into(),
                help: Some("link through the split toolchain (abiaudit toolchain create --target manylinux_2_28_x86_64)".into()),
                evidence: too_new(2),
                count: 2,
                ..Finding::default()
            },
            Finding {
                rule: "ABI401".into(),
                name: "unresolved-library".into(),
                severity: Severity::Error,
                member: Some("torch/lib/libtorch.so".into()),
                message: "libnope.so.1 is not in the wheel and nothing declared provides it".into(),
                evidence: vec![
                    Evidence {
                        library: Some("libnope.so.1".into()),
                        note: Some("searched $ORIGIN".into()),
                        ..Evidence::default()
                    },
                    Evidence { member: Some("torch/lib/other.so".into()), ..Evidence::default() },
                    Evidence { note: Some("no Requires-Dist names it".into()), ..Evidence::default() },
                ],
                count: 3,
                ..Finding::default()
            },
            Finding {
                rule: "ABI501".into(),
                name: "executable-stack".into(),
                severity: Severity::Error,
                member: Some("torch/lib/libtorch.so".into()),
                message: "asks for an executable stack".into(),
                suppressed: Some(Suppression {
                    reason: "trampolines of a vendored library, tracked upstream".into(),
                    expires: Some("2027-06-30".into()),
                }),
                count: 1,
                ..Finding::default()
            },
        ],
        ..Wheel::default()
    }
}

/// Honest by itself.
pub fn honest_wheel() -> Wheel {
    Wheel {
        path: "dist/numpy-2.3.5-cp312-cp312-manylinux_2_27_x86_64.whl".into(),
        name: Some("numpy".into()),
        version: Some("2.3.5".into()),
        sha256: Some("cd".repeat(32)),
        tags: strings(&["cp312-cp312-manylinux_2_27_x86_64", "cp312-cp312-manylinux_2_28_x86_64"]),
        arch: Some("x86_64".into()),
        libc: Some("glibc".into()),
        verdict: Some(Verdict {
            tag: "manylinux_2_27_x86_64".into(),
            tag_with_providers: "manylinux_2_27_x86_64".into(),
            by: criteria("manylinux_2_27_x86_64", "manylinux_2_5_x86_64"),
            claim_ok: true,
            claim: Some("manylinux_2_27_x86_64".into()),
            reasons: vec![],
            python_abi: PythonAbi::default(),
        }),
        ..Wheel::default()
    }
}

/// Honest with its providers, and a warning.
pub fn provided_wheel() -> Wheel {
    let lying = lying_wheel();
    Wheel {
        path: "dist/ext-1.0-cp312-cp312-manylinux_2_28_x86_64.whl".into(),
        name: Some("ext".into()),
        version: Some("1.0".into()),
        verdict: Some(Verdict {
            tag: "linux_x86_64".into(),
            tag_with_providers: "manylinux_2_28_x86_64".into(),
            by: criteria("manylinux_2_17_x86_64", "linux_x86_64"),
            claim_ok: true,
            claim: Some("manylinux_2_28_x86_64".into()),
            reasons: vec![],
            python_abi: PythonAbi::default(),
        }),
        external: lying.external.into_iter().filter(|e| e.class == ExternalClass::Provider).collect(),
        findings: lying.findings.into_iter().filter(|f| f.severity == Severity::Warning).collect(),
        arch: Some("x86_64".into()),
        ..Wheel::default()
    }
}

/// No native code.
pub fn pure_wheel() -> Wheel {
    Wheel {
        path: "dist/six-1.17.0-py2.py3-none-any.whl".into(),
        name: Some("six".into()),
        version: Some("1.17.0".into()),
        sha256: Some("ef".repeat(32)),
        tags: strings(&["py2-none-any", "py3-none-any"]),
        pure: true,
        ..Wheel::default()
    }
}

/// Could not be read.
pub fn broken_wheel() -> Wheel {
    Wheel {
        path: "dist/broken name-1-py3-none-any.whl".into(),
        error: Some(WheelError {
            kind: "not-a-zip".into(),
            message: "end of central directory not found".into(),
        }),
        ..Wheel::default()
    }
}

/// A bare ELF file that promises nothing.
pub fn bare_file() -> Wheel {
    Wheel {
        path: "build/libfast.so".into(),
        kind: InputKind::File,
        name: None,
        version: None,
        tags: vec![],
        ..Wheel {
            verdict: honest_wheel().verdict.map(|verdict| Verdict { claim: None, ..verdict }),
            ..honest_wheel()
        }
    }
}

pub fn all_shapes() -> Report {
    report(vec![lying_wheel(), honest_wheel(), provided_wheel(), pure_wheel(), broken_wheel(), bare_file()])
}
