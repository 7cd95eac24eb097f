//! Builds the helper for the VMs and embeds it.
//!
//! A nested cargo builds the package `boxery-helper` with the profile `helper`:
//! for x86-64 and arm64 with musl where the target's standard library is
//! installed, linked by the `rust-lld` that comes with the compiler, so that no C
//! compiler is needed; else for this build's own target, static, where it is
//! Linux with glibc. The nested build has a target folder of its own below the
//! outer one, or the two would wait for each other's lock, and none of the outer
//! build's flags, wrappers and variables.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by its environment"
)]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Architectures of VMs, as the kernel names them.
const ARCHITECTURES: &[&str] = &["x86_64", "aarch64"];

/// Variables of the outer build that would change the nested one.
const OUTER: &[&str] = &[
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INCREMENTAL",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_DIR",
    "CARGO_TARGET_TMPDIR",
    "DEBUG",
    "HOST",
    "LD_LIBRARY_PATH",
    "MAKEFLAGS",
    "MFLAGS",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
];
const OUTER_PREFIXES: &[&str] = &[
    "CARGO_BIN_",
    "CARGO_CFG_",
    "CARGO_CRATE_",
    "CARGO_FEATURE_",
    "CARGO_PKG_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "DEP_",
];

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // What the nested cargo said, as it said it. Were stderr closed, nobody
            // would be there to be told.
            drop(writeln!(std::io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Answer<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("..");
    for file in [
        "Cargo.lock",
        "Cargo.toml",
        "helper/Cargo.toml",
        "wire/Cargo.toml",
    ] {
        println!("cargo::rerun-if-changed={}", workspace.join(file).display());
    }
    let mut table = String::from("[\n");
    for architecture in ARCHITECTURES {
        match build(architecture, &workspace, &out)? {
            Ok(program) => {
                let bytes = fs::read(&program)?;
                let name = format!("helper-{architecture}");
                fs::File::create(out.join(&name))?.write_all(&bytes)?;
                writeln!(
                    table,
                    "    (\"{architecture}\", Ok((include_bytes!({name:?}), \"{}\"))),",
                    blake3::hash(&bytes)
                )?;
            }
            Err(why) => writeln!(table, "    (\"{architecture}\", Err({why:?})),")?,
        }
    }
    table.push_str("]\n");
    fs::File::create(out.join("images.rs"))?.write_all(table.as_bytes())?;
    Ok(())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Build the helper for one architecture: its file, or why there is none.
fn build(architecture: &str, workspace: &Path, out: &Path) -> Answer<Result<PathBuf, String>> {
    let musl = format!("{architecture}-unknown-linux-musl");
    let own = variable("TARGET");
    if has_std(&musl)? {
        let flags = ["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"];
        return cargo(&musl, &flags, workspace, out).map(Ok);
    }
    if own.starts_with(architecture) && own.ends_with("-linux-gnu") {
        return cargo(&own, &["-Ctarget-feature=+crt-static"], workspace, out).map(Ok);
    }
    Ok(Err(format!(
        "boxery was built without it: `rustup target add {musl}` was missing"
    )))
}

fn has_std(target: &str) -> Answer<bool> {
    let asked = Command::new(variable("RUSTC"))
        .args(["--print", "target-libdir", "--target", target])
        .output()?;
    let folder = String::from_utf8(asked.stdout)?;
    // Made anew when a target comes or goes.
    if let Some(targets) = Path::new(folder.trim()).ancestors().nth(2) {
        println!("cargo::rerun-if-changed={}", targets.display());
    }
    let Ok(entries) = fs::read_dir(folder.trim()) else {
        return Ok(false);
    };
    Ok(entries
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-")))
}

/// Run the nested cargo.
fn cargo(target: &str, flags: &[&str], workspace: &Path, out: &Path) -> Answer<PathBuf> {
    // TARGET/PROFILE/build/PACKAGE/out, where nothing marks the target folder.
    let outer = out
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").exists())
        .or_else(|| out.ancestors().nth(4))
        .unwrap_or(out);
    let folder = outer.join("helper-build");
    let mut command = Command::new(variable("CARGO"));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if OUTER.contains(&&*text) || OUTER_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    let built = command
        .args(["build", "--package", "boxery-helper", "--profile", "helper"])
        .args(["--target", target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .output()?;
    if !built.status.success() {
        return Err(format!(
            "the helper for {target} can't be built:\n{}",
            String::from_utf8_lossy(&built.stderr)
        )
        .into());
    }
    let program = folder.join(target).join("helper").join("boxery-helper");
    // What cargo itself noted that the program was made of.
    let made_of = fs::read_to_string(program.with_extension("d"))?;
    let sources = made_of.split_once(": ").map_or("", |(_, sources)| sources);
    for source in sources.replace("\\ ", "\0").split_whitespace() {
        println!("cargo::rerun-if-changed={}", source.replace('\0', " "));
    }
    Ok(program)
}
