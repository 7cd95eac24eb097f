//! What the hook costs: whole processes, interleaved in one run, as ratios.
//!
//! `cargo bench --bench hook` prints a Markdown table. Nothing here passes or
//! fails; the aims stand in `docs/performance.md`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its table, and has nobody to hand an error to"
)]

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use boxery_agents::{ADAPTERS, Surroundings, hook_command};
use boxery_pin::{AgentId, Mode, PinFile, PinKey, PinStore, SessionId};
use boxery_router::{ExecutableId, Proof, Proofs};
use camino::{Utf8Path, Utf8PathBuf};

const BOXERY: &str = env!("CARGO_BIN_EXE_boxery");
const ROUNDS: usize = 600;
const SESSION: &str = "5d4e";

/// One way to start a process.
struct Case {
    name: &'static str,
    /// The case that it is compared with.
    against: usize,
    program: String,
    arguments: Vec<String>,
    home: Utf8PathBuf,
    payload: Utf8PathBuf,
    times: Vec<Duration>,
}

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    let unpinned = home(&folder.join("unpinned"), None);
    let guard = home(&folder.join("guard"), Some(Mode::Guard));
    let redirect = home(&folder.join("redirect"), Some(Mode::Redirect));

    let policed = home(&folder.join("policed"), Some(Mode::Redirect));
    write(
        &policed.join("project/fence.jsonc"),
        "{\"extends\": \"code\"} // what `boxery policy init` writes\n",
    );

    let boxery = Utf8Path::new(BOXERY).canonicalize_utf8().unwrap();
    let hook = ["hook", "run", "claude-code"];
    let entry = hook_command(&boxery, "claude-code").unwrap();
    let boxery = boxery.into_string();
    let case = |name, against, program: &str, arguments: &[&str], home: &Utf8Path| Case {
        name,
        against,
        program: program.to_owned(),
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        home: home.to_owned(),
        payload: home.join("payload.json"),
        times: Vec::with_capacity(ROUNDS),
    };
    let mut cases = [
        case("`/bin/true`", 0, "/bin/true", &[], &unpinned),
        case("hook, unpinned", 0, &boxery, &hook, &unpinned),
        case("hook, guard", 0, &boxery, &hook, &guard),
        case("hook, redirect", 0, &boxery, &hook, &redirect),
        case("hook, redirect, a policy file", 0, &boxery, &hook, &policed),
        case(
            "`sh -c /bin/true`",
            5,
            "/bin/sh",
            &["-c", "/bin/true"],
            &unpinned,
        ),
        case(
            "installed entry, unpinned",
            5,
            "/bin/sh",
            &["-c", &entry],
            &unpinned,
        ),
        case(
            "installed entry, guard",
            5,
            "/bin/sh",
            &["-c", &entry],
            &guard,
        ),
    ];
    // The first rounds load the files.
    for round in 0..ROUNDS + 20 {
        for case in &mut cases {
            let took = run(case);
            if round >= 20 {
                case.times.push(took);
            }
        }
    }
    report(&mut cases);
    ExitCode::SUCCESS
}

/// A home with a project, and a session of it pinned in `mode`.
fn home(home: &Utf8Path, mode: Option<Mode>) -> Utf8PathBuf {
    let project = home.join("project");
    std::fs::create_dir_all(&project).unwrap();
    let payload = format!(
        r#"{{"session_id":"{SESSION}","cwd":"{project}","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"cargo test --workspace 2>&1 | tail -n 20","description":"Run the tests"}},"tool_use_id":"toolu_1"}}"#
    );
    write(&home.join("payload.json"), &payload);
    write(
        &home.join(".config/boxery/config.toml"),
        "allow = [\"git status\"]\n\n[vm.dev]\ntarget = \"me@dev\"\ndir = \"/vm\"\n",
    );
    let Some(mode) = mode else {
        return home.to_owned();
    };
    let state = home.join(".local/state/boxery");
    let agent = AgentId("claude-code".to_owned());
    let key = PinKey::Session {
        agent: agent.clone(),
        session: SessionId(SESSION.to_owned()),
    };
    let mut pin = PinFile::new(key, "dev".parse().unwrap(), "a benchmark", "to measure", 1);
    pin.mode = Some(mode);
    pin.project = Some(project);
    PinStore::new(state.join("pins")).write(&pin).unwrap();
    let own = std::env::current_exe().unwrap().canonicalize().unwrap();
    let surroundings = Surroundings {
        machine: Utf8Path::new("/"),
        arguments: &[],
        home,
        settings: None,
        project: None,
        folder: None,
    };
    let proof = Proof {
        version: Proof::VERSION,
        agent,
        executable: ExecutableId::read(&Utf8PathBuf::from_path_buf(own).unwrap()).unwrap(),
        permission_mode: "default".to_owned(),
        sandbox_mode: ADAPTERS[0].sandbox_mode(&surroundings),
        agent_version: "0".to_owned(),
        proven_at: 1,
    };
    Proofs::new(state.join("proofs")).write(&proof).unwrap();
    home.to_owned()
}

fn write(path: &Utf8Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn run(case: &Case) -> Duration {
    let mut command = Command::new(&case.program);
    command
        .args(&case.arguments)
        .env_clear()
        .env("HOME", &case.home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(File::open(&case.payload).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.status().unwrap();
    let took = begin.elapsed();
    if !status.success() {
        eprintln!("{} ended with {status}", case.name);
    }
    took
}

fn report(cases: &mut [Case]) {
    for case in &mut *cases {
        case.times.sort_unstable();
    }
    let median = |case: &Case| case.times[case.times.len() / 2].as_secs_f64() * 1e6;
    println!("| process | median, µs | compared with | ratio |");
    println!("|---|---:|---|---:|");
    for case in &*cases {
        let other = &cases[case.against];
        println!(
            "| {} | {:.0} | {} | {:.2} |",
            case.name,
            median(case),
            other.name,
            median(case) / median(other)
        );
    }
}
