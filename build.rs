//! Links the compiler's unwinder into the binary instead of loading it.
//!
//! std asks for `-lgcc_s`. Finding, mapping and relocating that one shared library
//! takes a quarter of the start-up time of a small program, and the hook starts
//! with every tool call of an agent. gcc ships the same code as `libgcc_eh.a`
//! (gcc 14; GPL with the Runtime Library Exception), so a linker script under the
//! name of the shared library takes its place. Where there is no such archive,
//! nothing is changed.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by its environment"
)]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_gnu_linux = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && !variable("CARGO_CFG_TARGET_FEATURE")
            .split(',')
            .any(|feature| feature == "crt-static");
    if !is_gnu_linux || variable("HOST") != variable("TARGET") {
        return;
    }
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let Ok(asked) = Command::new(linker)
        .arg("-print-file-name=libgcc_eh.a")
        .output()
    else {
        return;
    };
    // An archive that isn't there is answered with its bare name.
    if !Path::new(String::from_utf8_lossy(&asked.stdout).trim()).is_absolute() {
        return;
    }
    let folder = variable("OUT_DIR");
    let script = File::create(Path::new(&folder).join("libgcc_s.so"))
        .and_then(|mut file| file.write_all(b"INPUT(-lgcc_eh)\n"));
    if script.is_ok() {
        println!("cargo::rustc-link-search=native={folder}");
    }
}
