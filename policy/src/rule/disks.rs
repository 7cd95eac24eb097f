//! Making file systems and partitions.

use super::{Examples, Rule};
use crate::command::Command;

pub(super) static RULE: Rule = Rule {
    name: "disks",
    about: "it would overwrite a file system or a partition table",
    patterns: &[
        "fdisk",
        "parted",
        "sfdisk",
        "cfdisk",
        "gdisk",
        "sgdisk",
        "mke2fs",
        "wipefs -a",
        "wipefs --all",
    ],
    also: Some(makes_file_system),
    examples: Examples {
        denied: &[
            "mkfs.ext4 /dev/sda1",
            "mkfs -t xfs x",
            "sudo mkfs.f2fs x",
            "sfdisk -d x",
            "fdisk -l",
        ],
        passed: &["lsblk", "df -h", "echo mkfs", "mkfsutil x"],
    },
};

/// `mkfs`, and every `mkfs.TYPE`.
fn makes_file_system(program: &str, _: &Command<'_>) -> Option<(&'static str, usize)> {
    (program == "mkfs" || program.starts_with("mkfs.")).then_some(("mkfs", 0))
}
