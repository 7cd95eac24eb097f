//! Turning the machine off.

use super::{Examples, Rule};

pub(super) static RULE: Rule = Rule {
    name: "power",
    about: "it would stop or restart the VM under everybody who uses it",
    patterns: &[
        "shutdown",
        "reboot",
        "halt",
        "poweroff",
        "init 0",
        "init 6",
        "telinit 0",
        "telinit 6",
        "systemctl poweroff",
        "systemctl reboot",
        "systemctl halt",
        "systemctl kexec",
        "systemctl soft-reboot",
        "kexec",
    ],
    also: None,
    examples: Examples {
        denied: &[
            "shutdown -h now",
            "sudo reboot",
            "systemctl --user reboot",
            "/sbin/init 6",
            "ls && kexec -e",
        ],
        passed: &[
            "echo reboot",
            "systemctl status sshd",
            "init 3",
            "man shutdown",
        ],
    },
};
