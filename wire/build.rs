//! Computes the build hash: what must be the same at both ends of a pipe.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by its environment"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Everything that decides what the two ends understand.
const SOURCES: &[&str] = &[
    "src",
    "Cargo.toml",
    "../helper/src",
    "../helper/keep/src",
    "../helper/build.rs",
    "../helper/Cargo.toml",
    "../sync/src",
    "../sync/Cargo.toml",
];

fn main() -> io::Result<()> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(&folder.join(source), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let name = file.strip_prefix(&folder).unwrap_or(&file);
        let text = fs::read(&file)?;
        hasher.update(name.as_os_str().as_encoded_bytes());
        hasher.update(&[0]);
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(&text);
    }
    let hash = hasher.finalize();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut file = fs::File::create(out.join("build_hash.rs"))?;
    io::Write::write_all(&mut file, format!("{:?}", hash.as_bytes()).as_bytes())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.is_file() {
        files.push(path.to_owned());
    }
    Ok(())
}
