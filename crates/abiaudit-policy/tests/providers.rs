//! Who brings a library, and which systems have what.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;

use abiaudit_policy::{
    Libc, Provider, ProviderClass, Scheme, declaration_keys, distributions, normalize_name, providers,
};

fn requires(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// `DISTRIBUTION by DECLARATION` for the provider that is accepted, or `none`.
fn accepted(soname: &str, names: &[&str]) -> String {
    let requires = requires(names);
    let Some(accepted) = providers().accepts(soname, &requires, "me") else { return "none".to_owned() };
    let distribution = accepted.provider.distribution.as_deref().unwrap_or("nobody");
    format!("{distribution} by {}", accepted.declared_by.unwrap_or("nothing"))
}

/// Real wheels: torch 1.13.1, torchvision 0.20.1, vllm 0.6.4, PyQt5 5.15.11, mkl 2026.2.0, tbb 2022.0.0.
#[test]
fn declared_distributions_are_accepted() {
    let torch = ["nvidia-cublas-cu11", "nvidia-cudnn-cu11", "nvidia-cuda-nvrtc-cu11", "typing-extensions"];
    assert_eq!(accepted("libcublas.so.11", &torch), "nvidia-cublas-cu11 by nvidia-cublas-cu11");
    assert_eq!(accepted("libcudnn.so.8", &torch), "nvidia-cudnn-cu11 by nvidia-cudnn-cu11");
    assert_eq!(accepted("libnvrtc.so.11.2", &torch), "nvidia-cuda-nvrtc-cu11 by nvidia-cuda-nvrtc-cu11");
    for soname in ["libc10.so", "libc10_cuda.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"] {
        assert_eq!(accepted(soname, &["torch", "numpy"]), "torch by torch", "{soname}");
    }
    assert_eq!(accepted("libcudart.so.12", &["torch"]), "nvidia-cuda-runtime-cu12 by torch");
    assert_eq!(accepted("libQt5Core.so.5", &["pyqt5-qt5", "pyqt5-sip"]), "pyqt5-qt5 by pyqt5-qt5");
    assert_eq!(accepted("libtbb.so.12", &["intel-openmp", "tbb"]), "tbb by tbb");
    assert_eq!(accepted("libhwloc.so.15", &["tcmlib"]), "tcmlib by tcmlib");
}

#[test]
fn what_nothing_declares_is_not_accepted() {
    assert_eq!(accepted("libtbb.so.12", &["llvmlite", "numpy"]), "none", "numba 0.60.0");
    assert_eq!(accepted("libcublas.so.12", &["numpy", "fastrlock"]), "none", "cupy-cuda12x 13.3.0");
    assert_eq!(accepted("libgomp.so.1", &["numpy", "scipy"]), "none", "lightgbm 2.2.3");
    assert_eq!(accepted("libhwloc.so.5", &["tcmlib"]), "none", "tbb 2022.0.0");
    assert_eq!(accepted("libquadmath.so.0", &["torch"]), "none", "torch 2.15.0");
    assert_eq!(accepted("libcublas.so.13", &["cuda-toolkit", "cuda-toolkit[nvrtc]"]), "none");
}

#[test]
fn cuda_13_drops_the_suffix_of_toolkit_parts_only() {
    for (soname, distribution, directory) in [
        ("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib"),
        ("libcudart.so.12", "nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/lib"),
        ("libcublasLt.so.13", "nvidia-cublas", "nvidia/cu13/lib"),
        ("libnvrtc-builtins.so.13.5", "nvidia-cuda-nvrtc", "nvidia/cu13/lib"),
        ("libnvtx3interop.so.1", "nvidia-nvtx", "nvidia/cu13/lib"),
        ("libcudnn_graph.so.9", "nvidia-cudnn-cu13", "nvidia/cudnn/lib"),
        ("libnccl.so.2", "nvidia-nccl-cu13", "nvidia/nccl/lib"),
        ("libcusparseLt.so.0", "nvidia-cusparselt-cu13", "nvidia/cu13/lib"),
        ("libnvshmem_host.so.3", "nvidia-nvshmem-cu13", "nvidia/nvshmem/lib"),
    ] {
        let requires = requires(&[distribution]);
        let provider = providers().accepts(soname, &requires, "me").unwrap().provider;
        assert_eq!(provider.lib_dir.as_deref(), Some(directory), "{soname}");
        assert_eq!(provider.scheme, Scheme::Platlib);
    }
    let keys: BTreeSet<String> = declaration_keys("cuda_toolkit", ["cublas", "cudart"]).into_iter().collect();
    let accepted = providers().accepts("libcublas.so.13", &keys, "me").unwrap();
    assert_eq!(accepted.provider.distribution.as_deref(), Some("nvidia-cublas"));
    assert_eq!(accepted.declared_by, Some("cuda-toolkit[cublas]"));
}

/// libcusolver kept its soname from CUDA 11 to 12: the declared one is meant, not the first of the table.
#[test]
fn a_declared_distribution_goes_before_one_that_is_brought_along() {
    let names = ["nvidia-cusolver-cu12", "torch"];
    assert_eq!(accepted("libcusolver.so.11", &names), "nvidia-cusolver-cu12 by nvidia-cusolver-cu12");
    assert_eq!(providers().lookup("libcusolver.so.11").len(), 2);
}

#[test]
fn a_driver_is_accepted_and_a_host_package_is_not() {
    for soname in ["libcuda.so.1", "libnvidia-ml.so.1", "libnvcuvid.so.1"] {
        let none = BTreeSet::new();
        let accepted = providers().accepts(soname, &none, "me").unwrap();
        assert_eq!((accepted.provider.class, accepted.declared_by), (ProviderClass::Driver, None));
        assert_eq!(accepted.provider.distribution, None);
    }
    for soname in ["libOpenCL.so.1", "libibverbs.so.1", "libmlx5.so.1", "librdmacm.so.1"] {
        assert_eq!(accepted(soname, &["nvidia-cufile"]), "none");
        let found = providers().lookup(soname);
        assert!(found.iter().any(|row| row.class == ProviderClass::Host && !row.note.is_empty()), "{soname}");
    }
}

#[test]
fn a_wheel_does_not_provide_for_itself() {
    let requires = requires(&["tbb"]);
    assert!(providers().accepts("libtbb.so.12", &requires, "tbb").is_none());
    assert!(providers().accepts("libtbb.so.12", &requires, "mkl").is_some());
}

#[test]
fn own_providers_come_first() {
    let own: Provider = toml::from_str(
        "sonames = ['libfarm.so.*', 'libtbb.so.12']\nclass = 'wheel'\ndistribution = 'farm'\nlib_dir = 'farm/lib'",
    )
    .unwrap();
    let table = providers().with(&[own]);
    let requires = requires(&["farm", "tbb"]);
    let accepted = table.accepts("libtbb.so.12", &requires, "me").unwrap();
    assert_eq!(accepted.provider.distribution.as_deref(), Some("farm"));
    assert!(toml::from_str::<Provider>("sonames = []\nclass = 'wheel'\nlibdir = 'x'").is_err());
}

#[test]
fn the_table_is_well_formed() {
    for row in providers().iter() {
        assert!(!row.sonames.is_empty() && !row.source.is_empty(), "{row:?}");
        assert_eq!(row.class == ProviderClass::Wheel, row.lib_dir.is_some(), "{row:?}");
        for name in row.distribution.iter().chain(&row.through) {
            let (name, extra) = name.trim_end_matches(']').split_once('[').unwrap_or((name, ""));
            assert_eq!((normalize_name(name).as_str(), normalize_name(extra).as_str()), (name, extra));
        }
        let directory = row.lib_dir.as_deref().unwrap_or_default();
        assert!(!directory.starts_with('/') && !directory.contains(".."), "{row:?}");
    }
}

#[test]
fn names_are_normalised() {
    assert_eq!(normalize_name("PyQt5_Qt5"), "pyqt5-qt5");
    assert_eq!(normalize_name("a.-_b"), "a-b");
    assert_eq!(declaration_keys("Cuda.Toolkit", ["NVRTC"]), ["cuda-toolkit", "cuda-toolkit[nvrtc]"]);
}

#[test]
fn distributions_by_what_they_have() {
    let names = |rows: Vec<_>| -> Vec<String> {
        rows.iter()
            .map(|row: &&abiaudit_policy::Distribution| format!("{} {}", row.name, row.release))
            .collect()
    };
    let glibc_2_35 = names(distributions().with_glibc((2, 35)).collect());
    assert!(glibc_2_35.contains(&"Ubuntu 22.04".into()) && glibc_2_35.contains(&"Debian 12".into()));
    assert!(
        !glibc_2_35.contains(&"RHEL 9".into()) && !glibc_2_35.iter().any(|name| name.starts_with("Alpine"))
    );
    let gcc_9 = names(distributions().with_glibcxx("GLIBCXX_3.4.26").collect());
    assert!(gcc_9.contains(&"Debian 11".into()) && gcc_9.contains(&"RHEL 9".into()));
    assert!(!gcc_9.contains(&"RHEL 8".into()) && !gcc_9.contains(&"Debian 10".into()));
    for none in ["GLIBC_2.17", "GLIBCXX_LDBL_3.4", "3.4.26", ""] {
        assert_eq!(distributions().with_glibcxx(none).count(), 0, "{none:?}");
    }
    let relr = names(distributions().with_musl((1, 2, 4)).collect());
    assert_eq!(relr.first().map(String::as_str), Some("Alpine 3.18"));
}

/// Within a distribution a newer release has no older library.
#[test]
fn releases_only_grow() {
    let rows: Vec<_> = distributions().iter().collect();
    for pair in rows.windows(2).filter(|pair| pair[0].name == pair[1].name) {
        let [older, newer] = pair else { unreachable!() };
        let grows = |old: &str, new: &str| {
            abiaudit_policy::compare_versions(old, new).is_some_and(std::cmp::Ordering::is_le)
        };
        assert!(grows(older.libc_version, newer.libc_version), "{older:?} {newer:?}");
        if let (Some(old), Some(new)) = (older.glibcxx, newer.glibcxx) {
            assert!(grows(old, new), "{older:?} {newer:?}");
        }
        assert_eq!(older.libc, newer.libc);
    }
    assert!(rows.iter().any(|row| row.libc == Libc::Musl));
    assert!(rows.iter().all(|row| matches!(row.source, "dump" | "table" | "general")));
}
