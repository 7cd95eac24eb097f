//! The helpers that this build of boxery carries, one for each architecture.

/// A helper for VMs of one architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelperImage {
    /// The program.
    pub bytes: &'static [u8],
    /// Its BLAKE3, in hexadecimal digits.
    pub hash: &'static str,
}

impl HelperImage {
    /// The name of its file on a VM. Helpers of other builds lie beside it under
    /// their own names, and are removed by a helper that finds them unused.
    pub fn file_name(&self) -> String {
        format!("helper-{}", self.hash)
    }
}

type Row = (
    &'static str,
    Result<(&'static [u8], &'static str), &'static str>,
);

const IMAGES: &[Row] = &include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The helper for Linux on `architecture`, as `uname -m` names it, or why there is
/// none.
pub fn helper_image(architecture: &str) -> Result<HelperImage, &'static str> {
    let name = match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    };
    IMAGES.iter().find(|(known, _)| *known == name).map_or(
        Err("boxery has no helper for this kind of machine"),
        |(_, image)| image.map(|(bytes, hash)| HelperImage { bytes, hash }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_static_program_of_its_architecture() {
        for (architecture, machine) in [("x86_64", 62_u16), ("aarch64", 183)] {
            let Ok(image) = helper_image(architecture) else {
                continue;
            };
            assert_eq!(image.bytes[..4], *b"\x7fELF", "{architecture}");
            assert_eq!(image.bytes[18..20], machine.to_le_bytes(), "{architecture}");
            assert!(
                image.bytes.len() <= 4 * 1024 * 1024,
                "{}",
                image.bytes.len()
            );
            assert!(
                !has_interpreter(image.bytes),
                "{architecture} wants a loader"
            );
        }
        assert!(helper_image("x86_64").is_ok() || helper_image("aarch64").is_ok());
        assert!(helper_image("riscv64").is_err());
    }

    /// Whether the ELF file has a program header that names a loader.
    fn has_interpreter(elf: &[u8]) -> bool {
        let number = |at: usize, length: usize| {
            elf[at..at + length]
                .iter()
                .rev()
                .fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
        };
        let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        (0..count).any(|header| number(table + header * size, 4) == 3)
    }
}
