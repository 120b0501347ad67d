//! OpenBLAS's configuration text.
//!
//! `openblas_get_config` returns a text that begins with the version and lists build options (driver/others/
//! openblas_get_config.c). Many builds copy it with vector instructions: then the read-only data has whole pieces of 16
//! bytes and the rest is part of the code. What stands behind the pieces is another text, " SINGLE_THREADED", which
//! builds of every kind have.

/// What the text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenBlasConfig {
    /// The version: `0.3.30`, `0.3.23.dev`.
    pub version: String,
    /// 64-bit integers in the interface (`USE64BITINT`); `None` if the text was cut within it.
    pub int64: Option<bool>,
    /// Kernels for several processors, chosen at run time (`DYNAMIC_ARCH`).
    pub dynamic_arch: bool,
    /// Threads by OpenMP (`USE_OPENMP`); `None` if the text was cut.
    pub openmp: Option<bool>,
    /// The text was cut.
    pub cut: bool,
}

/// Options in the order in which they are written.
const OPTIONS: [&str; 10] = [
    "NO_CBLAS",
    "NO_LAPACK",
    "NO_LAPACKE",
    "NO_AFFINITY",
    "USE64BITINT",
    "DYNAMIC_ARCH",
    "DYNAMIC_OLDER",
    "USE_OPENMP",
    "USE_TLS",
    "ODD",
];

impl OpenBlasConfig {
    /// Reads a text that begins with `OpenBLAS `; `None` if no version follows.
    pub fn parse(text: &str) -> Option<Self> {
        /// Bytes in a vector register (SSE2, NEON).
        const PIECE: usize = 16;
        let mut words = text.strip_prefix("OpenBLAS ")?.split_ascii_whitespace();
        let version = words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut config = Self {
            version: version.to_owned(),
            int64: Some(false),
            dynamic_arch: false,
            openmp: Some(false),
            cut: false,
        };
        let mut part = None;
        for word in words {
            match word {
                "USE64BITINT" => config.int64 = Some(true),
                "DYNAMIC_ARCH" => config.dynamic_arch = true,
                "USE_OPENMP" => config.openmp = Some(true),
                _ if OPTIONS.contains(&word) || word.starts_with("MAX_THREADS") => {}
                // Another text, whose blank before the word is its own.
                _ if word.starts_with("SINGLE_THREADED") => {
                    let own = text.find(" SINGLE_THREADED").unwrap_or(0);
                    config.cut |= own.is_multiple_of(PIECE);
                    break;
                }
                _ if OPTIONS.iter().any(|option| option.starts_with(word)) => part = Some(word),
                // The name of a processor core.
                _ => {}
            }
        }
        config.cut |= part.is_some();
        if config.cut && config.openmp == Some(false) {
            let begun = part.is_some_and(|word| word.len() > "USE_".len() && "USE_OPENMP".starts_with(word));
            config.openmp = begun.then_some(true);
        }
        if config.cut
            && config.int64 == Some(false)
            && part.is_some_and(|word| "USE64BITINT".starts_with(word))
        {
            config.int64 = None;
        }
        Some(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> OpenBlasConfig {
        OpenBlasConfig::parse(text).unwrap()
    }

    #[test]
    fn a_whole_text_says_everything() {
        let config = parse("OpenBLAS 0.3.34.237.2  USE64BITINT DYNAMIC_ARCH NO_AFFINITY ");
        assert_eq!(config.version, "0.3.34.237.2");
        assert_eq!((config.int64, config.dynamic_arch, config.openmp), (Some(true), true, Some(false)));
        assert!(!config.cut);
        let config = parse("OpenBLAS 0.3.31.dev DYNAMIC_ARCH NO_AFFINITY USE_OPENMP ");
        assert_eq!((config.int64, config.openmp), (Some(false), Some(true)));
    }

    /// Texts as they stand in the memory of numpy 1.26.4 and faiss-cpu 1.15.1.
    #[test]
    fn a_cut_text_says_what_it_can() {
        let config = parse("OpenBLAS 0.3.15 DYNAMIC_ARCH NO_AFFINITY USE_OPE SINGLE_THREADED");
        assert_eq!((config.cut, config.openmp, config.int64), (true, Some(true), Some(false)));
        let config =
            parse("OpenBLAS 0.3.23.dev  USE64BITINT DYNAMIC_ARCH NO SINGLE_THREADEDOPENBLAS_VERBOSE");
        assert_eq!((config.cut, config.openmp, config.int64), (true, None, Some(true)));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["OpenBLAS", "OpenBLAS ", "OpenBLAS Warning ... cannot", "BLAS 0.3", ""] {
            assert_eq!(OpenBlasConfig::parse(text), None, "{text}");
        }
    }
}
