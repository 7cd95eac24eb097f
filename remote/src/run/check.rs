//! What can't be asked for.

use crate::{RemoteError, RunRequest};

/// Longest command that is sent: a text of 1 MiB and the words around it.
const COMMAND_LIMIT: usize = 1024 * 1024 + 4096;

/// Refuse a request that no VM could carry out as it is meant.
pub(crate) fn check(request: &RunRequest) -> Result<(), RemoteError> {
    let bad = |what: String| Err(RemoteError::BadRequest { what });
    if request.argv.is_empty() {
        return bad("there is no command to run".to_owned());
    }
    let length: usize = request.argv.iter().map(Vec::len).sum();
    if length > COMMAND_LIMIT {
        return bad(format!(
            "the command has {length} bytes, and 1 MiB is the most"
        ));
    }
    let nul = |bytes: &[u8]| bytes.contains(&0);
    if request.argv.iter().any(|argument| nul(argument))
        || request.cwd.as_ref().is_some_and(|cwd| nul(cwd.as_bytes()))
        || request.env.iter().any(|(_, value)| nul(value))
    {
        return bad("a command can't hold NUL bytes".to_owned());
    }
    if let Some(cwd) = &request.cwd
        && !cwd.starts_with('/')
    {
        return bad(format!("`{cwd}` is not an absolute folder of the VM"));
    }
    for (name, _) in &request.env {
        let mut bytes = name.bytes();
        let first = bytes
            .next()
            .is_some_and(|b| b == b'_' || b.is_ascii_alphabetic());
        if !first || !bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return bad(format!("`{name}` is not the name of a variable"));
        }
    }
    Ok(())
}
