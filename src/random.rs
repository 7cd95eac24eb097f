//! Random names that nobody can guess.

use std::fmt::Write as _;
use std::io;

/// 128 random bits as 32 hex digits.
pub(crate) fn hex() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(32);
    for byte in bytes {
        // Writing to a string doesn't fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
