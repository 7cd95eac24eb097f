//! What the helper's crate may hold: its dependencies, its lints, its unsafe code.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use boxery_wire::Request;
use tokio::process::Command;

use crate::support::{Home, bash, eventually};

/// Every package in the helper. One more is a decision: it goes to each VM.
const PACKAGES: &[&str] = &[
    "arrayvec",
    "bitflags",
    "blake3",
    "boxery-helper",
    "boxery-sync",
    "boxery-wire",
    "bytes",
    "cfg-if",
    "cobs",
    "constant_time_eq",
    "cpufeatures",
    "errno",
    "libc",
    "linux-raw-sys",
    "mio",
    "pin-project-lite",
    "postcard",
    "rustix",
    "serde",
    "serde_bytes",
    "serde_core",
    "signal-hook-registry",
    "socket2",
    "thiserror",
    "tokio",
];

/// Files with unsafe code, each with the reason.
const UNSAFE: &[(&str, &str)] = &[
    (
        "group/fork.rs",
        "a process is started in a control group, which the standard library can't",
    ),
    (
        "keep.rs",
        "two descriptors are made inheritable between fork and exec",
    ),
    (
        "sandbox/enter.rs",
        "a namespace is made for the calling process between fork and exec",
    ),
    (
        "stdio.rs",
        "tokio wants a promise that a descriptor stays the same",
    ),
    (
        "supervise/command.rs",
        "what a child does between fork and exec, and the descriptor of signals",
    ),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Asked of `cargo tree`: the metadata's features are also those of the tests.
#[test]
fn the_helper_is_made_of_these_packages() {
    let words = "tree --locked -e normal,no-proc-macro --prefix none --format {p} \
                 --target x86_64-unknown-linux-musl";
    let output = std::process::Command::new(env!("CARGO"))
        .args(words.split_whitespace())
        .current_dir(folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<&str> = lines
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(found, PACKAGES.iter().copied().collect());
}

#[test]
fn every_lint_of_the_workspace_holds_but_the_one_on_unsafe_code() {
    let lints = |file: &str, heading: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        ["rust", "clippy"]
            .into_iter()
            .flat_map(|tool| {
                let (_, rest) = text.split_once(&format!("[{heading}.{tool}]\n")).unwrap();
                let table = rest.split("\n[").next().unwrap();
                table.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
            .filter(|line| !line.is_empty() && !line.starts_with("unsafe_code"))
            .collect()
    };
    assert_eq!(
        lints("Cargo.toml", "lints"),
        lints("../Cargo.toml", "workspace.lints")
    );
}

/// What becomes the preloaded file is no package, so that nobody but this looks at it.
#[rstest::rstest]
#[case::formatted("rustfmt", &["--check", "--edition=2024"])]
#[case::linted("clippy-driver", &[
    "--edition=2024", "--crate-type=lib", "--emit=metadata",
    "-Dwarnings", "-Dmissing_docs", "-Dunreachable_pub", "-Dunsafe_op_in_unsafe_fn",
    "-Dclippy::all", "-Dclippy::undocumented_unsafe_blocks", "-Dclippy::missing_safety_doc",
])]
fn the_preloaded_file_is_held_to_the_same(#[case] tool: &str, #[case] arguments: &[&str]) {
    let made = tempfile::tempdir().unwrap();
    let done = std::process::Command::new(tool)
        .args(arguments)
        .arg(folder().join("keep/src/lib.rs"))
        .current_dir(made.path())
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn unsafe_code_is_where_the_list_says_and_each_block_says_why_it_is_sound() {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let source = folder().join("src");
    let mut files = Vec::new();
    walk(&source, &mut files);
    let mut with_unsafe = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let blocks = text.matches("unsafe {").count() + text.matches("unsafe fn").count();
        if blocks > 0 {
            let name = file.strip_prefix(&source).unwrap().display().to_string();
            assert!(text.matches("// SAFETY: ").count() >= blocks, "{name}");
            with_unsafe.insert(name);
        }
    }
    let listed: BTreeSet<String> = UNSAFE.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(with_unsafe, listed);
}

#[tokio::test]
async fn an_old_helper_is_removed_once_nothing_uses_it() {
    let home = Home::new();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let hours_ago = SystemTime::now() - Duration::from_hours(2);
    let program = fs::read(env!("CARGO_BIN_EXE_boxery-helper")).unwrap();
    let put = |name: Option<&str>, mark: &[u8]| {
        // The kernel doesn't mind what stands behind a program.
        let bytes = [&program, mark].concat();
        let own = format!("helper-{}", blake3::hash(&bytes));
        let path = bin.join(name.unwrap_or(&own));
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o755))
            .unwrap();
        file.set_modified(hours_ago).unwrap();
        path
    };
    let used = put(None, b"a");
    let other = put(Some("helper-of-somebody"), b"");
    let old = home.connect_to(Command::new(&used)).await;
    let request = bash("echo ready; read -t 300 <> go");
    let fifo = home.path().join("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let (_, mut talk) = old.ask(&Request::Run(Box::new(request))).await;
    talk.until("ready").await;
    // Its run lives on, and so does its file.
    old.kill().await;
    let (new, unused) = (put(None, b"c"), put(None, b"b"));
    let helper = home.connect_to(Command::new(&new)).await;
    helper.bash("true").await;
    eventually("the unused one's end", || !unused.exists()).await;
    assert!(used.exists() && new.exists() && other.exists());
    let mut go = fs::File::options().write(true).open(&fifo).unwrap();
    std::io::Write::write_all(&mut go, b"\n").unwrap();
}
