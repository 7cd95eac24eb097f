//! What is known of a program by its name: one look-up for all tables.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::launcher::{ANYWHERE, LAUNCHERS, Launcher};
use super::options;
use super::program::INTERPRETERS;
use super::runs::SHELLS;
use super::wrapper::Wrapper;
use super::wrappers::WRAPPERS;

/// Everything that is known of one program.
#[derive(Default, Clone, Copy)]
pub(super) struct Known {
    pub(super) shell: bool,
    pub(super) wrapper: Option<&'static Wrapper>,
    pub(super) launcher: Option<&'static Launcher>,
    /// Whether it runs values of its options.
    pub(super) options: bool,
    /// Whether it takes a program in a language of its own.
    pub(super) language: bool,
}

/// Programs and builtins that are looked through by code of their own.
const OTHERS: &[&str] = &[
    "eval",
    "trap",
    "alias",
    "source",
    ".",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "let",
    "test",
    "[",
    "[[",
    "unset",
    "read",
    "printf",
    "compgen",
    "complete",
    "hash",
    "jobs",
    "command",
    "env",
    "find",
    "fd",
    "xargs",
    "parallel",
    "su",
    "runuser",
    "script",
    "flock",
    "sg",
    "git",
    "ssh",
    "autossh",
    "at",
    "crontab",
    "incrontab",
    "make",
    "ed",
    "vim",
    "uv",
    "poetry",
    "pipenv",
    "hatch",
    "pdm",
    "rye",
    "bundle",
    "mise",
    "asdf",
    "pixi",
    "conda",
    "mamba",
    "micromamba",
    "devbox",
    "pnpm",
    "yarn",
    "npm",
    "op",
    "doppler",
    "rbenv",
    "pyenv",
    "nodenv",
    "jenv",
    "goenv",
    "plenv",
    "volta",
    "fnm",
    "opam",
    "stack",
    "cabal",
    "dune",
    "composer",
    "bun",
];

static TABLES: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let mut tables: HashMap<&'static str, Known> = HashMap::new();
    for name in OTHERS.iter().chain(ANYWHERE) {
        tables.entry(name).or_default();
    }
    for name in SHELLS {
        tables.entry(name).or_default().shell = true;
    }
    for wrapper in WRAPPERS {
        tables.entry(wrapper.name).or_default().wrapper = Some(wrapper);
    }
    for launcher in LAUNCHERS {
        for name in launcher.names {
            tables.entry(name).or_default().launcher = Some(launcher);
        }
    }
    for name in options::programs() {
        tables.entry(name).or_default().options = true;
    }
    for (name, _, _) in INTERPRETERS {
        tables.entry(name).or_default().language = true;
    }
    tables
});

/// What is known of a program, and the name by which the tables know it: without a
/// version, one for several that are alike.
pub(super) fn find(program: &str) -> Option<(&str, Known)> {
    if let Some(known) = TABLES.get(program) {
        return Some((program, *known));
    }
    let bare =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || "-.".contains(letter));
    let name = match bare {
        "gfind" | "bfs" => "find",
        "gxargs" => "xargs",
        "gsed" => "sed",
        "gtar" | "bsdtar" => "tar",
        "gawk" | "mawk" | "nawk" | "original-awk" => "awk",
        "genv" => "env",
        "gnice" => "nice",
        "gstdbuf" => "stdbuf",
        "slogin" | "dbclient" | "rsh" | "remsh" | "hpnssh" => "ssh",
        "vi" | "nvim" | "view" | "gvim" | "rvim" | "ex" | "vim.basic" | "vim.tiny" | "nvi" => "vim",
        "nodejs" => "node",
        "gmake" | "bmake" => "make",
        "texlua" => "lua",
        "batch" => "at",
        "fdfind" => "fd",
        _ if is_loader(program) => program,
        bare => bare,
    };
    if is_loader(name) {
        return Some((name, Known::default()));
    }
    TABLES.get(name).map(|known| (name, *known))
}

/// The dynamic linker and user-mode emulators start the program that they are given.
pub(super) fn is_loader(program: &str) -> bool {
    program.starts_with("ld-linux")
        || program.starts_with("ld-musl")
        || program == "ld.so"
        || program.starts_with("qemu-")
}
