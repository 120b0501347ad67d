//! What takes the place of a program that moves out of the scripts.

/// A Python program that starts the one at `path`, relative to site-packages. Installers replace `#!python` by the
/// environment's interpreter (binary distribution format, "The .data directory").
pub(crate) fn launcher(path: &str) -> Vec<u8> {
    // Member names have no control characters, so that only these two need care in a Python literal.
    let quoted = path.replace('\\', "\\\\").replace('\'', "\\'");
    format!(
        "#!python\n\
         # Starts the program that `abiaudit repair` moved next to the libraries that it needs.\n\
         import os\n\
         import sys\n\
         import sysconfig\n\
         \n\
         program = os.path.join(sysconfig.get_path('platlib'), '{quoted}')\n\
         os.execv(program, [program, *sys.argv[1:]])\n"
    )
    .into_bytes()
}
