//! Leaving the sandbox.

use super::{Examples, Rule};

pub(super) static RULE: Rule = Rule {
    name: "namespaces",
    about: "it would leave the namespaces that hold the run",
    patterns: &["chroot", "unshare", "nsenter"],
    also: None,
    examples: Examples {
        denied: &["chroot /mnt sh", "unshare -r", "sudo nsenter -t 1 -a"],
        passed: &["lsns", "which unshare", "schroot -l"],
    },
};
