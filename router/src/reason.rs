//! What the model reads when a call is denied.

use boxery_pin::VmName;
use camino::Utf8Path;

use crate::words::quote_word;

/// Above this many bytes a command isn't repeated in a reason: agents cut long
/// ones, and half a command is worse than none.
const LONGEST_REPEATED: usize = 2000;

/// The way to run `command` on the VM from a shell.
pub(crate) fn run_line(binary: &Utf8Path, vm: &VmName, command: &str) -> String {
    let binary = quote_word(binary.as_str()).unwrap_or_else(|| "boxery".to_owned());
    let quoted = quote_word(command)
        .filter(|quoted| quoted.len() <= LONGEST_REPEATED)
        .unwrap_or_else(|| "'COMMAND'".to_owned());
    format!("{binary} run {vm} -- bash -c {quoted}")
}

/// The denial of a shell call in guard.
pub(crate) fn guard(binary: &Utf8Path, vm: &VmName, command: &str) -> String {
    format!(
        "this session is pinned to VM {vm}; run it with vm_bash, or vm_jobs for long-running \
         commands; without those tools run `{}`",
        run_line(binary, vm, command)
    )
}
