//! What the rules are held against: every list that names an exception gives the
//! reason.

/// `docs/ARCHITECTURE.md`, "Layout": crate, and the crates of ours it may use.
pub(crate) const EDGES: &[(&str, &[&str])] = &[
    ("policy", &[]),
    ("pin", &[]),
    ("record", &[]),
    ("sync", &[]),
    ("wire", &["policy", "sync"]),
    ("helper", &["wire", "policy", "sync"]),
    ("remote", &["wire", "policy", "sync"]),
    ("router", &["policy", "pin", "record"]),
    ("agents", &["router"]),
    (
        "mcp",
        &["router", "policy", "pin", "record", "sync", "remote"],
    ),
    (
        "boxery",
        &[
            "agents", "mcp", "policy", "pin", "record", "remote", "router", "sync", "wire",
        ],
    ),
];

/// Crates that stay synchronous: nothing in their dependency tree is an async runtime.
pub(crate) const SYNCHRONOUS: &[&str] = &["policy", "pin", "record", "router", "agents"];

/// The folder of an open set, the file that lists its members, and the files in the
/// folder that are no members, each with the reason.
pub(crate) type OpenSet = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Every open set of the project.
pub(crate) const OPEN_SETS: &[OpenSet] = &[
    ("agents/src/adapter", "agents/src/adapter/mod.rs", &[]),
    ("mcp/src/tool", "mcp/src/tool/mod.rs", &[]),
    ("policy/src/rule", "policy/src/rule/mod.rs", &[]),
    (
        "remote/src/pipe",
        "remote/src/pipe/mod.rs",
        &[
            ("auth", "what the native pipe proves to a server"),
            ("log", "what the system pipe reads from ssh's log"),
            ("open", "chooses the pipe"),
        ],
    ),
    ("src/cmd", "src/cmd/mod.rs", &[]),
    ("src/cmd/copies", "src/cmd/copies/mod.rs", &[]),
    ("src/cmd/daemon", "src/cmd/daemon/mod.rs", &[]),
    (
        "src/cmd/hook",
        "src/cmd/hook/mod.rs",
        &[("target", "which agents and settings files a verb is about")],
    ),
    ("src/cmd/jobs", "src/cmd/jobs/mod.rs", &[]),
    ("src/cmd/log", "src/cmd/log/mod.rs", &[]),
    ("src/cmd/policy", "src/cmd/policy/mod.rs", &[]),
    ("src/cmd/vm", "src/cmd/vm/mod.rs", &[]),
];

/// Licences that a dependency may be used under.
pub(crate) const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Files over the limit of [`MAX_LINES`], each with the reason.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[(
    "agents/tests/settings_corpus.rs",
    "a corpus: one row a settings file",
)];
/// Files over this many lines need a reason.
pub(crate) const MAX_LINES: usize = 600;

/// Files besides `src/env.rs` that read the environment, each with the reason.
pub(crate) const READ_ENVIRONMENT: &[(&str, &str)] = &[
    (
        "helper/src/main.rs",
        "what sshd and the login shell gave the helper is what it passes on",
    ),
    (
        "remote/src/pipe/system.rs",
        "names the folder that tempfile chose, in an error",
    ),
];

/// Files besides `src/ui.rs` that write to standard output or error, each with the reason.
pub(crate) const PRINT: &[(&str, &str)] = &[
    (
        "helper/src/stdio.rs",
        "the pipe to the laptop, and why the helper ended",
    ),
    (
        "remote/src/daemon/serve.rs",
        "tells its starter that it is ready",
    ),
    (
        "remote/src/embedded/keeper.rs",
        "tells its starter that it is ready",
    ),
    (
        "remote/src/embedded/server.rs",
        "tells its keeper the port that the kernel chose",
    ),
    (
        "src/cmd/jobs/tail.rs",
        "the job's own streams, byte for byte",
    ),
    ("src/cmd/run.rs", "the command's own streams, byte for byte"),
    ("src/cmd/shell.rs", "the shell's own terminal"),
    (
        "src/hook/finish.rs",
        "the reply, exactly as the adapter made it",
    ),
    ("src/setup.rs", "the script's own output"),
];

/// Files of tests that poll, each with what it is that tells nobody.
pub(crate) const POLL: &[(&str, &str)] = &[
    (
        "helper/tests/helper/support.rs",
        "the end of processes that are nobody's children",
    ),
    (
        "remote/tests/support/mod.rs",
        "the end of processes that are nobody's children",
    ),
    (
        "tests/rounds/place.py",
        "what the kernel tells nobody of, and how long a link stays dead",
    ),
];
