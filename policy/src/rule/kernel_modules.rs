//! Changing the running kernel.

use super::{Examples, Rule};

pub(super) static RULE: Rule = Rule {
    name: "kernel-modules",
    about: "it would change the running kernel",
    patterns: &["insmod", "rmmod", "modprobe"],
    also: None,
    examples: Examples {
        denied: &[
            "insmod evil.ko",
            "sudo modprobe -r nf_tables",
            "/sbin/rmmod x",
        ],
        passed: &["lsmod", "modinfo ext4", "grep insmod notes"],
    },
};
