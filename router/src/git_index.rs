//! Just enough of git's index to see whether it names a submodule
//! (gitformat-index(5), versions 2 to 4 with SHA-1 names).

/// The fixed part of an entry: ten numbers and the object's name.
const FIXED: usize = 40 + 20;
/// The mode of a submodule's entry.
const GITLINK: u32 = 0o160_000;
/// The flag for two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// Whether `index` has an entry for a submodule; `None` when it can't be read to
/// the end, or when a part of it lies in another file.
pub(crate) fn has_submodule(index: &[u8]) -> Option<bool> {
    let version = number(index, 4)?;
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let count = number(index, 8)?;
    let mut at = 12;
    for _ in 0..count {
        let start = at;
        if number(index, start + 24)? & 0o170_000 == GITLINK {
            return Some(true);
        }
        let flags = index.get(start + FIXED..start + FIXED + 2)?;
        let extended = u16::from_be_bytes([flags[0], flags[1]]) & EXTENDED != 0;
        at = start + FIXED + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            while index.get(at)? & 0x80 != 0 {
                at += 1;
            }
            at += 1;
        }
        at += index.get(at..)?.iter().position(|byte| *byte == 0)?;
        at = if version == 4 {
            at + 1
        } else {
            start + (at - start + 8) / 8 * 8
        };
    }
    // Behind the entries stand extensions, then the checksum. `link` is a split index.
    while at + 20 < index.len() {
        if index.get(at..at + 4)? == b"link" {
            return None;
        }
        at = at + 8 + usize::try_from(number(index, at + 4)?).ok()?;
    }
    (at + 20 == index.len()).then_some(false)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_be_bytes)
}
