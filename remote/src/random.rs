//! Random words: marks, ids.

use crate::RemoteError;

/// 128 random bits.
pub(crate) fn bytes() -> Result<[u8; 16], RemoteError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| RemoteError::BadRequest {
        what: format!("this machine gives no random bytes: {error}"),
    })?;
    Ok(bytes)
}

/// 128 random bits in hex.
pub(crate) fn word() -> Result<String, RemoteError> {
    Ok(format!("{:032x}", u128::from_be_bytes(bytes()?)))
}
