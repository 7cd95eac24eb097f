//! Random names that nobody can guess.

use std::io;

/// 128 random bits as 32 hex digits.
pub(crate) fn hex() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
