//! Makes the shared object that is preloaded into an agent's bash, of the one file
//! `keep/src/lib.rs`, for the same machine as the helper.
//!
//! It is no package: it needs neither `std` nor any library, so the compiler is
//! all that it takes, and the lock of a second nested cargo is spared.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by its environment"
)]

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=keep/src");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = variable("TARGET");
    let mut compiler = Command::new(variable("RUSTC"));
    compiler
        .args(["--edition", "2024", "--crate-name", "keep"])
        .args(["--crate-type", "cdylib", "--target", &target])
        .args(["-Cpanic=abort", "-Copt-level=s", "-Clto=fat"])
        .args(["-Cstrip=symbols", "-Ctarget-feature=-crt-static"])
        .arg("-o")
        .arg(PathBuf::from(variable("OUT_DIR")).join("keep.so"))
        .arg("keep/src/lib.rs");
    if target.ends_with("-musl") {
        // What the build script of `remote` links the helper with, too.
        compiler.args(["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"]);
        compiler.arg("-Clink-self-contained=no");
    } else {
        compiler.args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles"]);
        let linker = variable("RUSTC_LINKER");
        if !linker.is_empty() {
            compiler.arg(format!("-Clinker={linker}"));
        }
    }
    let made = compiler.output()?;
    if made.status.success() {
        return Ok(());
    }
    Err(format!(
        "`keep` can't be made for {target}:\n{}",
        String::from_utf8_lossy(&made.stderr)
    )
    .into())
}
