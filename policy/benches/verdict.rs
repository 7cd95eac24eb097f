//! How long a verdict takes: `cargo bench -p boxery-policy`.
//!
//! Aims: 50 µs for a command of 200 bytes, 20 ms for one of 100 KiB.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that fails says so, and prints its figures"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use boxery_policy::{Action, Found, Origin, Places, Policy, Reader, Roots, resolve_policy};

struct NoDisk;

impl Reader for NoDisk {
    fn read(&self, _: &str) -> Found {
        Found::Missing
    }
    fn canonical(&self, path: &str) -> String {
        path.to_owned()
    }
}

const SHORT: &str = "cd /srv/app && git status --short | grep -v '^??' | head -20; for f in src/*.rs; do wc -l \"$f\"; done \
                     && cargo test --workspace -- --nocapture 2>&1 | tail -40 && echo \"done in $(date +%s)\"; ls -la target/debug";

fn code() -> Policy {
    let resolved =
        resolve_policy(Origin::Hook("code".to_owned()), &Places::default(), &NoDisk).unwrap();
    let links = |_: &str| None;
    Policy::new(
        &resolved,
        &Roots {
            home: "/home/u",
            folder: "/w",
            links: &links,
        },
    )
}

/// The times of one call; on a busy machine the best one says most.
fn measure(name: &str, rounds: usize, mut call: impl FnMut()) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            call();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!(
        "{name}: best {:?}, median {:?}, worst of {rounds} {:?}",
        times[0],
        times[rounds / 2],
        times[rounds - 1]
    );
}

fn main() {
    let policy = code();
    let long: String = std::iter::repeat_n(SHORT, 100 * 1024 / (SHORT.len() + 1) + 1)
        .collect::<Vec<_>>()
        .join("\n");
    let document = format!(
        "cat > big.txt <<'END'\n{}\nEND\nls",
        "some line of text, it's \"fine\" $(really)\n".repeat(2500)
    );
    measure("load the template `code`", 500, || drop(black_box(code())));
    measure(&format!("verdict on {} bytes", SHORT.len()), 2000, || {
        drop(black_box(policy.evaluate(Action::Command(SHORT))));
    });
    measure(
        &format!("verdict on {} KiB of commands", long.len() / 1024),
        50,
        || {
            drop(black_box(policy.evaluate(Action::Command(&long))));
        },
    );
    measure(
        &format!("verdict on {} KiB of here-document", document.len() / 1024),
        50,
        || {
            drop(black_box(policy.evaluate(Action::Command(&document))));
        },
    );
}
