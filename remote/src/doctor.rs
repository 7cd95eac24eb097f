//! Each step of the way to a VM, and what is found at its end.

use std::time::Duration;

use serde::Serialize;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use crate::jobs;
use crate::link::Link;
use crate::{
    Ask, Captured, Laptop, Pipe, PipeChoice, Plan, RemoteError, RunRequest, Target, Way, capture,
};

/// A step, in the order in which they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The ssh configuration says where the host is.
    Configuration,
    /// Its name has an address.
    Resolve,
    /// Something listens there.
    Tcp,
    /// Its host key is one that is trusted.
    HostKey,
    /// It takes one of our keys.
    Auth,
    /// Our helper is there, or was sent, and is the one we know.
    Helper,
    /// It is the machine that was added.
    Machine,
    /// Its login shell starts commands, and bash is there.
    Shell,
    /// The folder for copies can be written.
    Folder,
    /// Where commands see the copy of a project.
    Paths,
    /// What ends all of a run's processes.
    Tree,
    /// Its clock and ours agree.
    Clock,
}

impl Step {
    /// The step in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Resolve => "name",
            Self::Tcp => "TCP",
            Self::HostKey => "host key",
            Self::Auth => "login",
            Self::Helper => "helper",
            Self::Machine => "machine",
            Self::Shell => "shell",
            Self::Folder => "folder",
            Self::Paths => "paths",
            Self::Tree => "process tree",
            Self::Clock => "clock",
        }
    }
}

/// What became of a step.
#[derive(Debug)]
pub enum Outcome {
    /// Well, with what was found.
    Well(String),
    /// It works, but a person should know this.
    Doubtful(String),
    /// It failed; what follows wasn't tried.
    Failed(RemoteError),
    /// It can't be looked at from here, for this reason.
    Skipped(&'static str),
}

/// A step and what became of it.
#[derive(Debug)]
pub struct Check {
    /// The step.
    pub step: Step,
    /// What became of it.
    pub outcome: Outcome,
}

impl Check {
    fn new(step: Step, outcome: Outcome) -> Self {
        Self { step, outcome }
    }

    fn well(step: Step, found: impl Into<String>) -> Self {
        Self::new(step, Outcome::Well(found.into()))
    }

    /// Whether the way ends here.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }
}

/// What is at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// The user that commands run as.
    pub user: String,
    /// That user's home folder.
    pub home: String,
    /// The machine's own id; empty where it has none.
    pub machine_id: String,
    /// Whether there is a bash.
    pub bash: bool,
    /// Whether `sudo -n` works.
    pub sudo: bool,
    /// Such as `Linux 6.12.0 x86_64`.
    pub system: String,
    /// What ends all of a run's processes.
    pub tree: Tree,
    /// Its clock minus ours, in seconds.
    pub clock_skew: i64,
}

/// What ends all of a run's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tree {
    /// A control group of its own.
    CgroupV2,
    /// One of the freezer's, as older systems have them.
    CgroupV1,
    /// Its supervisor, whose children they are: not those of another user, nor any once
    /// it was killed together with its helper.
    Subreaper,
}

impl Tree {
    /// It in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Subreaper => "subreaper",
        }
    }
}

const PROBE: &str = r#"
id -un
echo "$HOME"
{ cat /etc/machine-id 2>/dev/null || cat /var/lib/dbus/machine-id 2>/dev/null || echo; } | head -n 1
command -v bash >/dev/null && echo yes || echo no
sudo -n true >/dev/null 2>&1 && echo yes || echo no
uname -srm
t=subreaper
while read -r line; do
    case $line in
    0::*/boxery-*/run-*) t=v2 && break ;;
    *:freezer:*/boxery-*/run-*) t=v1 ;;
    esac
done 2>/dev/null </proc/self/cgroup
echo "$t"
date +%s
"#;

/// Differences below this are the second's rounding and the way's own time.
const SKEW: u64 = 3;

/// Look around on the VM. `now` is our clock, in seconds since 1970.
pub async fn probe(way: &Way, now: u64) -> Result<Probe, RemoteError> {
    let start = Instant::now();
    let captured = ask(way, PROBE, &[]).await?;
    let text = String::from_utf8_lossy(&captured.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let [user, home, machine_id, bash, sudo, system, tree, clock] = lines[..] else {
        return Err(RemoteError::NoGreeting {
            output: captured.complaint(),
        });
    };
    // The clock was read somewhere between the question and the answer.
    let ours = now.saturating_add(start.elapsed().as_secs() / 2);
    let theirs: u64 = clock.parse().unwrap_or(ours);
    Ok(Probe {
        user: user.to_owned(),
        home: home.to_owned(),
        machine_id: machine_id.to_owned(),
        bash: bash == "yes",
        sudo: sudo == "yes",
        system: system.to_owned(),
        tree: match tree {
            "v2" => Tree::CgroupV2,
            "v1" => Tree::CgroupV1,
            _ => Tree::Subreaper,
        },
        clock_skew: i64::try_from(i128::from(theirs) - i128::from(ours)).unwrap_or(0),
    })
}

const WRITE: &str = r#"
mkdir -p "$1" || exit 1
cd "$1" || exit 1
f=.boxery-probe.$$
trap 'rm -f "$f"' EXIT
dd if=/dev/zero of="$f" bs=65536 count=1 2>&1 | grep -v -e records -e copied >&2
[ "$(wc -c <"$f")" -eq 65536 ] || exit 1
"#;

/// Make `folder` on the VM when it isn't there, and write into it.
pub async fn check_folder(way: &Way, folder: &str) -> Result<(), RemoteError> {
    let captured = ask(way, WRITE, &[folder]).await?;
    if captured.succeeded() {
        return Ok(());
    }
    let detail = captured.complaint();
    let path = folder.to_owned();
    let said = String::from_utf8_lossy(&captured.stderr).to_lowercase();
    Err(
        if said.contains("no space left") || said.contains("quota exceeded") {
            RemoteError::NoSpace { path }
        } else {
            RemoteError::NotWritable { path, detail }
        },
    )
}

/// Whether a command can see `folder` at `at`; why not, otherwise.
pub async fn check_view(
    way: &Way,
    at: &str,
    folder: &str,
) -> Result<Result<(), String>, RemoteError> {
    let request = RunRequest {
        argv: vec![b"true".to_vec()],
        cwd: Some(at.to_owned()),
        view: Some((at.to_owned(), folder.to_owned())),
        timeout: Some(Duration::from_mins(1)),
        ..RunRequest::default()
    };
    match capture(way, &request, None, 1024).await {
        Ok(captured) if captured.succeeded() => Ok(Ok(())),
        Ok(captured) => Ok(Err(captured.complaint())),
        Err(RemoteError::NoView { detail }) => Ok(Err(detail)),
        Err(error) => Err(error),
    }
}

/// How a folder could be made on a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Making {
    /// The user may.
    Own,
    /// `sudo` may, without a password.
    Sudo,
    /// Not at all.
    No,
}

const MAKING: &str = r#"
p=$1
while [ -n "$p" ] && [ ! -e "$p" ] && [ ! -h "$p" ]; do p=${p%/*}; done
if [ -w "${p:-/}" ] && [ -d "${p:-/}" ]; then echo own
elif [ -d "${p:-/}" ] && sudo -n true >/dev/null 2>&1; then echo sudo
else echo no
fi
"#;

/// Whether `folder` could be made on the VM, or be written if it is there.
pub async fn making(way: &Way, folder: &str) -> Result<Making, RemoteError> {
    let captured = ask(way, MAKING, &[folder]).await?;
    Ok(match captured.stdout.trim_ascii() {
        b"own" => Making::Own,
        b"sudo" => Making::Sudo,
        _ => Making::No,
    })
}

async fn ask(way: &Way, script: &str, arguments: &[&str]) -> Result<Captured, RemoteError> {
    let mut argv: Vec<Vec<u8>> = ["sh", "-c", script, "sh"]
        .map(|word| word.as_bytes().to_vec())
        .to_vec();
    argv.extend(arguments.iter().map(|word| word.as_bytes().to_vec()));
    let request = RunRequest {
        argv,
        env: vec![("LC_ALL".to_owned(), b"C".to_vec())],
        timeout: Some(Duration::from_mins(1)),
        ..RunRequest::default()
    };
    capture(way, &request, None, 64 * 1024).await
}

/// Take the steps up to a helper that answers.
pub async fn check_way(
    target: &Target,
    choice: PipeChoice,
    laptop: &Laptop,
    ask: Ask<'_>,
) -> (Vec<Check>, Option<Way>) {
    let mut checks = Vec::new();
    let plan = match Plan::resolve(target, choice, laptop).await {
        Ok(plan) => plan,
        Err(error) => {
            let outcome = Outcome::Failed(error);
            return (vec![Check::new(Step::Configuration, outcome)], None);
        }
    };
    let options = plan.options().clone();
    let (found, proxied) = match &plan {
        Plan::Native(_) => ("native pipe".to_owned(), false),
        Plan::System { because: None, .. } => ("system pipe".to_owned(), true),
        Plan::System {
            because: Some(line),
            ..
        } => (
            format!("system pipe, because of `{line}`"),
            line.starts_with("proxy"),
        ),
    };
    checks.push(Check::well(Step::Configuration, found));
    if proxied {
        let by_ssh = "ssh does it";
        checks.push(Check::new(Step::Resolve, Outcome::Skipped(by_ssh)));
        checks.push(Check::new(Step::Tcp, Outcome::Skipped(by_ssh)));
    } else if let Err(check) = check_network(&options, &mut checks).await {
        checks.push(check);
        return (checks, None);
    }
    let opened = match Pipe::open_plan(target, plan, laptop, ask).await {
        // The system pipe connects with its first command.
        Ok(pipe) => Link::over(pipe).await,
        Err(error) => Err(error),
    };
    match opened {
        Ok(link) => {
            let key = link.host_key();
            let fingerprint = key.map_or_else(|| "trusted".to_owned(), |key| key.fingerprint);
            checks.push(Check::well(Step::HostKey, fingerprint));
            checks.push(Check::well(Step::Auth, format!("as {}", options.user)));
            let build = link.describe();
            let way = Way::over(link);
            let mut check = check_helper(&way).await;
            if let Outcome::Well(found) = &mut check.outcome {
                *found = format!("{build}; {found}");
            }
            checks.push(check);
            (checks, Some(way))
        }
        Err(error) => {
            let step = step_of(&error);
            if step != Step::HostKey && step != Step::Tcp && step != Step::Resolve {
                checks.push(Check::well(Step::HostKey, "trusted"));
            }
            if matches!(step, Step::Helper | Step::Shell) {
                checks.push(Check::well(Step::Auth, format!("as {}", options.user)));
            }
            // ssh may find out about the network when the check before did not.
            checks.retain(|check| check.step != step);
            checks.push(Check::new(step, Outcome::Failed(error)));
            (checks, None)
        }
    }
}

fn step_of(error: &RemoteError) -> Step {
    match error {
        RemoteError::BadTarget { .. }
        | RemoteError::NoSshProgram { .. }
        | RemoteError::SshConfig { .. }
        | RemoteError::NotNative { .. }
        | RemoteError::Start { .. }
        | RemoteError::File { .. }
        | RemoteError::Told { .. }
        | RemoteError::BadRequest { .. } => Step::Configuration,
        RemoteError::Resolve { .. } => Step::Resolve,
        RemoteError::Refused { .. }
        | RemoteError::Unreachable { .. }
        | RemoteError::Timeout { .. }
        | RemoteError::Embedded { .. } => Step::Tcp,
        RemoteError::HostKeyUnknown { .. }
        | RemoteError::HostKeyChanged { .. }
        | RemoteError::HostKeyRevoked { .. }
        | RemoteError::HostKeyAuthority { .. }
        | RemoteError::Ssh { .. } => Step::HostKey,
        RemoteError::OtherMachine { .. } => Step::Machine,
        RemoteError::Auth { .. } | RemoteError::EncryptedKey { .. } => Step::Auth,
        RemoteError::WrongMachine { .. }
        | RemoteError::NoFolder { .. }
        | RemoteError::NoState { .. }
        | RemoteError::Helper { .. } => Step::Helper,
        RemoteError::NoGreeting { .. }
        | RemoteError::Lost
        | RemoteError::GracePassed
        | RemoteError::VmRefused { .. }
        | RemoteError::NoStatus
        | RemoteError::Restarted
        | RemoteError::NoBash => Step::Shell,
        RemoteError::FolderGone { .. }
        | RemoteError::FolderDenied { .. }
        | RemoteError::NoView { .. }
        | RemoteError::NoSpace { .. }
        | RemoteError::Misplaced { .. }
        | RemoteError::Copy { .. }
        | RemoteError::CopyLost
        | RemoteError::NotWritable { .. } => Step::Folder,
    }
}

async fn check_network(options: &crate::HostOptions, checks: &mut Vec<Check>) -> Result<(), Check> {
    let limit = options.connect_timeout;
    let lookup = timeout(limit, lookup_host((&*options.host, options.port)));
    let Ok(Ok(addresses)) = lookup.await else {
        let host = options.host.clone();
        let outcome = Outcome::Failed(RemoteError::Resolve { host });
        return Err(Check::new(Step::Resolve, outcome));
    };
    let addresses: Vec<_> = addresses.collect();
    let names: Vec<String> = addresses
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    checks.push(Check::well(Step::Resolve, names.join(", ")));
    let start = Instant::now();
    let address = options.address();
    let error = match timeout(limit, TcpStream::connect(&addresses[..])).await {
        Ok(Ok(_)) => {
            let millis = start.elapsed().as_secs_f64() * 1000.0;
            checks.push(Check::well(Step::Tcp, format!("{address}, {millis:.1} ms")));
            return Ok(());
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            RemoteError::Refused { address }
        }
        Ok(Err(error)) => RemoteError::Unreachable {
            address,
            detail: error.to_string(),
        },
        Err(_) => RemoteError::Timeout {
            address,
            seconds: limit.as_secs(),
            step: "TCP connection",
        },
    };
    Err(Check::new(Step::Tcp, Outcome::Failed(error)))
}

/// Ask the helper at the end of `way` how it finds the VM.
pub async fn check_helper(way: &Way) -> Check {
    let machine = match jobs::machine(way).await {
        Ok(machine) => machine,
        Err(error) => return Check::new(Step::Helper, Outcome::Failed(error)),
    };
    let outcome = match (machine.state, machine.no_login) {
        (Err(detail), _) => Outcome::Failed(RemoteError::NoState { detail }),
        (Ok(_), Some(why)) => Outcome::Doubtful(why),
        (Ok(folder), None) => Outcome::Well(format!(
            "runs are kept in {}",
            String::from_utf8_lossy(&folder)
        )),
    };
    Check::new(Step::Helper, outcome)
}

/// Take the steps on the VM itself: shell, folder, clock.
pub async fn check_inside(way: &Way, folder: &str, now: u64) -> (Vec<Check>, Option<Probe>) {
    let probe = match probe(way, now).await {
        Ok(probe) => probe,
        Err(error) => {
            let step = step_of(&error);
            return (vec![Check::new(step, Outcome::Failed(error))], None);
        }
    };
    let mut checks = Vec::new();
    let shell = if probe.bash {
        let sudo = if probe.sudo { ", sudo" } else { "" };
        Check::well(Step::Shell, format!("{}, bash{sudo}", probe.system))
    } else {
        Check::new(Step::Shell, Outcome::Failed(RemoteError::NoBash))
    };
    checks.push(shell);
    checks.push(match check_folder(way, folder).await {
        Ok(()) => Check::well(Step::Folder, folder),
        Err(error) => Check::new(Step::Folder, Outcome::Failed(error)),
    });
    checks.push(Check::well(Step::Tree, probe.tree.name()));
    let skew = probe.clock_skew;
    checks.push(if skew.unsigned_abs() < SKEW {
        Check::well(Step::Clock, "agrees with ours")
    } else {
        let side = if skew > 0 { "ahead of" } else { "behind" };
        let text = format!("{} s {side} ours; set it by NTP", skew.unsigned_abs());
        Check::new(Step::Clock, Outcome::Doubtful(text))
    });
    (checks, Some(probe))
}
