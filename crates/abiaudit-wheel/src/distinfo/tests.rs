//! Wheels whose dist-info is well, and wheels whose is not.

use super::*;
use crate::limits::Limits;
use crate::support::{Entry, Zip};

const WHEEL: &str =
    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp312-cp312-manylinux_2_17_x86_64\n";
const METADATA: &str = "Metadata-Version: 2.1\nName: h\nVersion: 1\nRequires-Dist: numpy\n";
const RECORD: &str = "h-1.dist-info/RECORD,,\n";
const FILE_NAME: &str = "h-1-cp312-cp312-manylinux2014_x86_64.whl";

fn read(files: &[(&str, &str)], file_name: &str) -> DistInfo {
    let entries = files.iter().map(|(name, content)| Entry::deflated(name, content.as_bytes())).collect();
    let archive = Archive::from_bytes(Zip::new(entries).write(), &Limits::default()).expect("readable");
    let name = WheelName::parse(file_name).expect("valid");
    DistInfo::read(&archive, Some(&name), &mut Scratch::new())
}

fn clean() -> Vec<(&'static str, &'static str)> {
    vec![
        ("mod.so", ""),
        ("h-1.dist-info/WHEEL", WHEEL),
        ("h-1.dist-info/METADATA", METADATA),
        ("h-1.dist-info/RECORD", RECORD),
    ]
}

#[test]
fn a_clean_wheel_has_no_problems() {
    let info = read(&clean(), FILE_NAME);
    // manylinux2014 and manylinux_2_17 are one tag.
    assert_eq!(info.problems, []);
    assert_eq!(info.directory.as_deref(), Some("h-1.dist-info"));
    assert_eq!(info.wheel.map(|wheel| wheel.tags.len()), Some(1));
    assert_eq!(info.metadata.map(|metadata| metadata.requires_dist.len()), Some(1));
    assert_eq!(info.record.map(|record| record.rows.len()), Some(1));
}

#[test]
fn missing_files_are_named() {
    assert_eq!(read(&[("mod.so", "")], FILE_NAME).problems, [DistInfoProblem::NoDistInfo]);
    let info = read(&[("h-1.dist-info/licenses/LICENSE", "")], FILE_NAME);
    assert_eq!(
        info.problems,
        ["WHEEL", "METADATA", "RECORD"].map(|file| DistInfoProblem::MissingFile { file })
    );
    // A dist-info below the top is somebody else's.
    let info = read(&[("vendor/h-1.dist-info/WHEEL", WHEEL)], FILE_NAME);
    assert_eq!(info.problems, [DistInfoProblem::NoDistInfo]);
}

#[test]
fn of_several_directories_the_best_is_read() {
    let mut files = clean();
    files.push(("a-1.dist-info/RECORD", ""));
    files.push(("h-0.dist-info/RECORD", ""));
    let info = read(&files, FILE_NAME);
    assert_eq!(info.directory.as_deref(), Some("h-1.dist-info"));
    let directories = ["a-1.dist-info", "h-0.dist-info", "h-1.dist-info"].map(str::to_owned).to_vec();
    assert_eq!(info.problems, [DistInfoProblem::SeveralDistInfos { directories }]);
}

#[test]
fn names_are_compared_in_normal_form() {
    let files = [
        ("Foo.Bar-1.0.dist-info/WHEEL", WHEEL),
        ("Foo.Bar-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: foo_bar\nVersion: 1.0.0\n"),
        ("Foo.Bar-1.0.dist-info/RECORD", ""),
    ];
    assert_eq!(read(&files, "foo_bar-1-cp312-cp312-manylinux_2_17_x86_64.whl").problems, []);
    let problems = read(&clean(), "g-2-1-cp312-cp312-manylinux_2_17_x86_64.whl").problems;
    assert_eq!(
        problems,
        [
            DistInfoProblem::DirectoryMismatch {
                directory: "h-1.dist-info".to_owned(),
                expected: "g-2".to_owned()
            },
            DistInfoProblem::NameMismatch { metadata: "h".to_owned(), file_name: "g".to_owned() },
            DistInfoProblem::VersionMismatch { metadata: "1".to_owned(), file_name: "2".to_owned() },
            DistInfoProblem::BuildMismatch { wheel: None, file_name: Some("1".to_owned()) },
        ]
    );
}

#[test]
fn tags_that_disagree_are_listed() {
    let info = read(&clean(), "h-1-cp311.cp312-cp312-manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl");
    let [DistInfoProblem::TagMismatch { only_in_file_name, only_in_wheel }] = info.problems.as_slice() else {
        panic!("{:?}", info.problems)
    };
    let texts: Vec<String> = only_in_file_name.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "cp311-cp312-manylinux_2_17_x86_64",
            "cp311-cp312-manylinux_2_28_x86_64",
            "cp312-cp312-manylinux_2_28_x86_64"
        ]
    );
    assert_eq!(only_in_wheel, &[]);
}

#[test]
fn what_cannot_be_read_is_a_problem() {
    let mut entry = Entry::deflated("h-1.dist-info/WHEEL", WHEEL.as_bytes());
    entry.crc32 ^= 1;
    let archive = Archive::from_bytes(Zip::new(vec![entry]).write(), &Limits::default()).expect("readable");
    let info = DistInfo::read(&archive, None, &mut Scratch::new());
    assert!(matches!(
        info.problems[0],
        DistInfoProblem::Unreadable { file: "WHEEL", error: MemberError::CrcMismatch { .. } }
    ));
}
