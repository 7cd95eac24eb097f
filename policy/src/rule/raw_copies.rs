//! Raw copies.

use super::{Examples, Rule};

pub(super) static RULE: Rule = Rule {
    name: "raw-copies",
    about: "a raw copy can overwrite a disk",
    patterns: &["dd if="],
    also: None,
    examples: Examples {
        denied: &[
            "dd if=/dev/zero of=/dev/sda",
            "dd of=x bs=1M if=y",
            "sudo dd if=a of=/dev/sdb",
        ],
        passed: &["dd --help", "dd of=x", "add if=x", "echo dd if=x"],
    },
};
