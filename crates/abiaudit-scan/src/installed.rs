//! Where members are once installed: `$ORIGIN` means that place, not the place in the archive.

use abiaudit_wheel::layout::{Scheme, classify};

/// The imagined `site-packages`. The depth matters only for what reaches out of it (`*.data/scripts`,
/// `*.data/data`): `PREFIX/lib/pythonX.Y/site-packages` as in every Linux scheme of `sysconfig`.
pub const SITE_PACKAGES: &str = "/prefix/lib/python3/site-packages";

/// The installed path of a wheel member.
pub fn of_member(name: &str) -> String {
    let (scheme, path) = classify(name);
    match scheme {
        Scheme::Root | Scheme::UnknownData | Scheme::DistInfo => format!("{SITE_PACKAGES}/{name}"),
        Scheme::Purelib | Scheme::Platlib => format!("{SITE_PACKAGES}/{path}"),
        Scheme::Scripts => format!("/prefix/bin/{path}"),
        Scheme::Headers => format!("/prefix/include/{path}"),
        Scheme::Data => format!("/prefix/{path}"),
    }
}

/// The installed path of a file in a `site-packages` directory, where RECORD may name `../../../bin/x`.
pub(crate) fn of_record_path(path: &str) -> String {
    let mut parts: Vec<&str> = SITE_PACKAGES.split('/').skip(1).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_directories_move() {
        assert_eq!(of_member("pkg/m.so"), "/prefix/lib/python3/site-packages/pkg/m.so");
        assert_eq!(of_member("p-1.data/platlib/pkg/m.so"), "/prefix/lib/python3/site-packages/pkg/m.so");
        assert_eq!(of_member("p-1.data/scripts/tool"), "/prefix/bin/tool");
        assert_eq!(of_member("p-1.data/data/lib/l.so"), "/prefix/lib/l.so");
        assert_eq!(of_record_path("../../../bin/tool"), "/prefix/bin/tool");
        assert_eq!(of_record_path("pkg/m.so"), "/prefix/lib/python3/site-packages/pkg/m.so");
    }
}
