//! `boxery run`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use boxery_pin::{DriftRule, Mode, PathMap, RemotePath, VmName};
use boxery_record::{Event, Kind};
use boxery_remote::{Cancel, Output, RunEnd, RunExit, RunIo, RunRequest, Way, jobs};
use boxery_router::{Spool, Ticket, Tickets};

use crate::app::App;
use crate::config::Config;
use crate::copy::{Around, Show};
use crate::environment::{git_user, variables};
use crate::error::{Failure, OrHint as _};
use crate::exit::Exit;
use crate::place::{self, Here};
use crate::policy::{Asked, Cleared, clear};
use crate::ports::Ports;
use crate::terminal::Raw;
use crate::{env, kept, reach, setup};

/// Run a command in a VM
///
/// Standard output and standard error come back apart, byte for byte, and the exit
/// status is the command's own (128 + signal). Standard input is /dev/null unless it
/// is a pipe or a file. Ctrl-C, SIGTERM and a time-out end the command's whole
/// process tree in the VM.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<String>,
    /// Words that belong behind `--`
    #[arg(hide = true)]
    stray: Vec<OsString>,
    /// Folder on the VM; by default the counterpart of the current folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<RemotePath>,
    /// Set a variable for the command; may be given again
    #[arg(long, value_name = "K=V", value_parser = parse_variable)]
    env: Vec<(String, OsString)>,
    /// End the command after this time, such as `90s`, `10m`, `2h`; the exit status is 124 then
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Give the command this terminal
    #[arg(long, conflicts_with = "json")]
    tty: bool,
    /// Print one JSON object with output, exit status and notes instead
    #[arg(long)]
    json: bool,
    /// Run the text that a hook left under this token
    #[arg(long, hide = true, value_name = "TOKEN", conflicts_with = "command")]
    spool: Option<String>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a run comes down to, once names and folders are settled.
struct Plan {
    vm: VmName,
    cwd: Option<RemotePath>,
    /// What the command sees at another path.
    view: Option<(String, String)>,
    argv: Vec<Vec<u8>>,
    ticket: Option<Ticket>,
    /// The project on the laptop and its copy, for the drift check.
    map: Option<PathMap>,
    drift: DriftRule,
    /// What the policy has to say of the run.
    policy: Cleared,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let config = app.config()?;
    let plan = plan(args, app, &config)?;
    let vm = config.vm(&plan.vm)?;

    let mut notes = Vec::new();
    if vm.is_embedded() {
        notes.push(format!(
            "VM {} is this machine, with no security boundary",
            plan.vm
        ));
    }
    notes.extend(plan.policy.notes.iter().cloned());
    reach::block_on(async {
        let here = env::current_folder()?;
        // Answered while the VM is reached.
        let git = tokio::spawn(async move { git_user(&here).await });
        let way = Arc::new(reach::open(app, &plan.vm, vm).await?);
        setup::ensure(app, &plan.vm, vm, &way).await?;
        let id = jobs::new_id().map_err(|error| reach::failure(&plan.vm, error))?;
        let ports = Ports::new(&way, &plan.vm, vm, &plan.session(), id);
        let show = Show::of(app.ui, args.json);
        let map = plan.map.as_ref();
        let mut around = map.and_then(|map| Around::new(app, &plan.vm, map, plan.drift, show));
        if let Some(around) = &mut around {
            notes.extend(around.before(&way).await?);
        }
        notes.extend(ports.news().await);
        // What the configuration asks for values may ask a person, and may fail.
        let variables = variables(app, &config.env, &args.env).await?;
        let terminal = args.tty.then(Raw::enter).transpose().map_err(|error| {
            Failure::from(error).hint("`--tty` needs a terminal as standard input")
        })?;
        let sizes = terminal.as_ref().map(Raw::sizes).transpose()?;
        let (listener, heard) = kept::listener((!args.json).then_some(app.ui));
        let request = RunRequest {
            terminal: sizes,
            argv: plan.argv.clone(),
            cwd: plan.cwd.as_ref().map(RemotePath::to_string),
            view: plan.view.clone(),
            env: variables,
            git: git.await.ok().flatten(),
            timeout: args.timeout,
            grace: config.grace,
            session: plan.session(),
            id: Some(id),
            keep: plan
                .ticket
                .as_ref()
                .and_then(|ticket| kept::keep(ticket, config.state)),
            listener: Some(listener),
            ..RunRequest::default()
        };
        let mut started = event(Kind::RunStarted, &plan.vm, plan.ticket.as_ref());
        started.detail.clone_from(&plan.policy.detail);
        app.record(&started);
        let end = if args.json {
            let said = (notes, heard);
            run_as_json(app, &plan, args, &request, &ports, said, around.as_mut()).await
        } else {
            for note in &notes {
                app.ui.note(note);
            }
            run_streaming(app, &plan, &request, &ports).await
        };
        drop(terminal);
        let mut ended = event(Kind::RunEnded, &plan.vm, plan.ticket.as_ref());
        match &end {
            Ok(end) => {
                ended.exit = Some(i32::from(end.exit.code()));
                ended.bytes = Some(end.stdout_bytes + end.stderr_bytes);
            }
            Err(error) => ended.detail = Some(error.to_string()),
        }
        app.record(&ended);
        let end = end.map_err(|error| reach::failure(&plan.vm, error))?;
        if !args.json {
            for note in closing_notes(&plan, args, end) {
                app.ui.note(note);
            }
            for note in ports.closing(end).await {
                app.ui.note(note);
            }
            for note in brought_back(around.as_mut(), ports.way(), end).await {
                app.ui.note(note);
            }
        }
        Ok(Exit::Command(end.exit.code()))
    })?
}

impl Plan {
    /// The agent's session; empty outside one.
    fn session(&self) -> String {
        let session = self.ticket.as_ref().and_then(|t| t.session.as_ref());
        let session = session.map(ToString::to_string);
        session.or_else(env::claude_session_id).unwrap_or_default()
    }
}

/// Settle VM, folder, text and ticket; refuse what must not run.
fn plan(args: &Args, app: &App, config: &Config) -> Result<Plan, Failure> {
    if !args.stray.is_empty() {
        let words = args
            .vm
            .iter()
            .map(OsString::from)
            .chain(args.stray.iter().cloned());
        let command: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        return Err(Failure::usage("the command goes behind `--`").hint(format!(
            "did you mean `boxery run -- {}`?",
            shlex::try_join(command.iter().map(String::as_str)).unwrap_or_default()
        )));
    }
    let here = Here::look(app)?;
    let name = match &args.vm {
        Some(name) => {
            let name: VmName = name.parse().map_err(usage_with_hint)?;
            if !config.vm.contains_key(&name) && args.command.is_empty() && args.spool.is_none() {
                return Err(Failure::usage("the command goes behind `--`")
                    .hint(format!("did you mean `boxery run -- {name}`?")));
            }
            name
        }
        None => match here.pin.as_ref() {
            Some(pin) => pin.vm.clone(),
            None => {
                return Err(Failure::usage("no VM is named, and nothing is pinned here")
                    .hint("name one: `boxery run NAME -- COMMAND`, or pin this project: `boxery pin NAME`"));
            }
        },
    };
    let vm = config.vm(&name)?;
    let argv: Vec<Vec<u8>> = match &args.spool {
        Some(token) => {
            let text = Spool::new(app.env.state_path("spool"))
                .take(token)
                .or_hint("the call was not run; let the agent make it again")?
                .ok_or_else(|| {
                    Failure::from(format!("no command waits under the token `{token}`"))
                        .hint("a token works once; let the agent make the call again")
                })?;
            vec![b"bash".to_vec(), b"-c".to_vec(), text.into_bytes()]
        }
        None => args
            .command
            .iter()
            .map(|word| word.clone().into_vec())
            .collect(),
    };
    if argv.is_empty() {
        return Err(Failure::usage("there is no command")
            .hint(format!("`boxery run {name} -- COMMAND [ARG…]`")));
    }
    let ticket = take_ticket(app, &name, args.cwd.as_ref(), &argv)?;
    if ticket.is_some() {
        // Before anything refuses the run: the ticket is used up then, too.
        app.record(&event(Kind::TicketTaken, &name, ticket.as_ref()));
    }
    let policy = clear(
        app,
        config,
        &Asked {
            here: &here,
            vm: name.as_str(),
            argv: &argv,
            ticket: ticket.as_ref(),
        },
    )?;
    let argv = if ticket.is_some() || args.spool.is_some() {
        text_as_text(argv)
    } else {
        argv
    };
    let pinned_here = here.pin.as_ref().is_some_and(|pin| pin.vm == name);
    let root = here.project_root(pinned_here);
    let map = match root {
        Ok(Some(root)) => Some(place::path_map(app, vm, &root)?),
        Ok(None) => None,
        // With --cwd the laptop's folder doesn't decide where the command runs.
        Err(_) if args.cwd.is_some() => None,
        Err(error) => return Err(error.into()),
    };
    let cwd = match (&args.cwd, &map) {
        (Some(cwd), _) => Some(cwd.clone()),
        (None, Some(map)) => Some(map.to_remote(&here.folder)?),
        (None, None) => None,
    };
    // A ticket is left in redirect only.
    let drift = match &ticket {
        Some(ticket) => ticket
            .drift
            .or(config.drift)
            .unwrap_or(DriftRule::of(Mode::Redirect)),
        None => here.drift(config),
    };
    Ok(Plan {
        drift,
        view: map.as_ref().and_then(PathMap::view),
        // Without a pin or a ticket nobody said that the copy matters.
        map: map.filter(|_| ticket.is_some() || pinned_here),
        vm: name,
        cwd,
        argv,
        ticket,
        policy,
    })
}

fn usage_with_hint(error: boxery_pin::NameError) -> Failure {
    let hint = error.hint();
    Failure::from(error).hint(hint).exit(Exit::Usage)
}

/// The ticket that a hook left for exactly this text in exactly this folder.
fn take_ticket(
    app: &App,
    vm: &VmName,
    cwd: Option<&RemotePath>,
    argv: &[Vec<u8>],
) -> Result<Option<Ticket>, Failure> {
    let (Some(cwd), [program, flag, text]) = (cwd, argv) else {
        return Ok(None);
    };
    if program != b"bash" || flag != b"-c" {
        return Ok(None);
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return Ok(None);
    };
    Tickets::new(app.env.state_path("tickets"))
        .take(vm, cwd, text, env::now())
        .or_hint("mend or remove that file; the command was not run")
}

/// `bash -c TEXT` for a text that an agent evaluates: bash 5 reads one that begins
/// with `-` or `+` as options, unless `--` stands before it.
fn text_as_text(mut argv: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if let [_, _, text] = argv.as_slice()
        && matches!(text.first(), Some(b'-' | b'+'))
    {
        argv.insert(2, b"--".to_vec());
    }
    argv
}

/// Resolves when the user, or whoever started this program, wants the run ended.
pub(crate) async fn cancelled() -> Cancel {
    let streams = [
        (SignalKind::interrupt(), Cancel::Interrupt),
        (SignalKind::terminate(), Cancel::Terminate),
        (SignalKind::hangup(), Cancel::Terminate),
    ]
    .map(|(kind, cancel)| (signal(kind), cancel));
    let mut waits = Vec::new();
    for (stream, cancel) in streams {
        // Without a handler the signal ends this process, and with it the run.
        let Ok(mut stream) = stream else { continue };
        waits.push(Box::pin(async move {
            stream.recv().await;
            cancel
        }));
    }
    std::future::poll_fn(|context| {
        use std::task::Poll;
        for wait in &mut waits {
            if let Poll::Ready(cancel) = wait.as_mut().poll(context) {
                return Poll::Ready(cancel);
            }
        }
        Poll::Pending
    })
    .await
}

async fn run_streaming(
    app: &App,
    plan: &Plan,
    request: &RunRequest,
    ports: &Ports,
) -> Result<RunEnd, boxery_remote::RemoteError> {
    // A call of an agent never reads: what stands on its stdin is the agent's own.
    let wanted = request.terminal.is_some() || env::stdin_is_piped();
    let stdin = if plan.ticket.is_none() && wanted {
        Some(Box::pin(tokio::io::stdin()) as boxery_remote::Input)
    } else {
        None
    };
    let io = RunIo {
        stdin,
        stdout: ports.watched(Box::pin(tokio::io::stdout())),
        stderr: ports.watched(Box::pin(tokio::io::stderr())),
    };
    // Not in the middle of what a terminal of the command's own shows.
    let tell = request.terminal.is_none().then_some(app.ui);
    let running = boxery_remote::run(ports.way(), request, io, cancelled());
    ports.beside(Box::pin(running), tell).await
}

/// A run as one JSON object.
#[derive(Serialize)]
struct Report<'a> {
    vm: &'a VmName,
    cwd: Option<&'a RemotePath>,
    exit: u8,
    timed_out: bool,
    stdout: String,
    stderr: String,
    stdout_bytes: u64,
    stderr_bytes: u64,
    notes: &'a [String],
}

async fn run_as_json(
    app: &App,
    plan: &Plan,
    args: &Args,
    request: &RunRequest,
    ports: &Ports,
    (mut notes, heard): (Vec<String>, Receiver<String>),
    around: Option<&mut Around<'_>>,
) -> Result<RunEnd, boxery_remote::RemoteError> {
    let (mut stdout, stdout_end) = tokio::io::duplex(1 << 16);
    let (mut stderr, stderr_end) = tokio::io::duplex(1 << 16);
    let stdin = env::stdin_is_piped().then(|| Box::pin(tokio::io::stdin()) as boxery_remote::Input);
    let output = |end| -> Output { Box::pin(end) };
    let io = RunIo {
        stdin,
        stdout: output(stdout_end),
        stderr: output(stderr_end),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let running = boxery_remote::run(ports.way(), request, io, cancelled());
    let (end, _, _) = tokio::join!(
        ports.beside(Box::pin(running), None),
        tokio::io::AsyncReadExt::read_to_end(&mut stdout, &mut out),
        tokio::io::AsyncReadExt::read_to_end(&mut stderr, &mut err),
    );
    let end = end?;
    notes.extend(heard.try_iter());
    notes.extend(closing_notes(plan, args, end));
    notes.extend(ports.closing(end).await);
    notes.extend(brought_back(around, ports.way(), end).await);
    let report = Report {
        vm: &plan.vm,
        cwd: plan.cwd.as_ref(),
        exit: end.exit.code(),
        timed_out: end.exit == RunExit::TimedOut,
        stdout: String::from_utf8_lossy(&out).into_owned(),
        stderr: String::from_utf8_lossy(&err).into_owned(),
        stdout_bytes: end.stdout_bytes,
        stderr_bytes: end.stderr_bytes,
        notes: &notes,
    };
    if let Ok(text) = serde_json::to_string(&report) {
        app.ui.line(text);
    }
    Ok(end)
}

/// Bring back what the command wrote, unless somebody waits for the end of a run that was
/// cancelled: then the next sync does.
async fn brought_back(around: Option<&mut Around<'_>>, way: &Way, end: RunEnd) -> Vec<String> {
    let Some(around) = around else {
        return Vec::new();
    };
    match end.exit {
        RunExit::Cancelled(_) => Vec::new(),
        RunExit::Code(_) | RunExit::TimedOut | RunExit::OutputClosed => tokio::select! {
            notes = around.after(way) => notes,
            _ = cancelled() => vec![
                "ended; the next sync brings the rest of what the command wrote".to_owned(),
            ],
        },
    }
}

/// What stands after the command's last byte.
fn closing_notes(plan: &Plan, args: &Args, end: RunEnd) -> Vec<String> {
    let mut notes = Vec::new();
    if end.reconnected > 0 {
        notes.push(format!(
            "the connection to {} broke while the command ran; it went on, and nothing of its output is missing",
            plan.vm
        ));
    }
    let told = if end.left.is_some() {
        format!("its processes in {} were ended", plan.vm)
    } else {
        format!(
            "{} could not be told; it ends the command's processes when nobody comes back",
            plan.vm
        )
    };
    match end.exit {
        RunExit::TimedOut => {
            let seconds = args.timeout.unwrap_or_default().as_secs_f64();
            notes.push(format!("the command's {seconds} s are over; {told}"));
        }
        RunExit::Cancelled(_) if end.left.is_some() => notes.push(format!(
            "cancelled; the command's processes in {} were ended",
            plan.vm
        )),
        RunExit::Cancelled(_) => notes.push(format!("cancelled; {told}")),
        RunExit::Code(_) | RunExit::OutputClosed => {}
    }
    if let (Some(count @ 1..), true) = (end.left, !matches!(end.exit, RunExit::Code(_))) {
        notes.push(format!(
            "{count} processes in {} could not be ended",
            plan.vm
        ));
    }
    notes
}

fn event(kind: Kind, vm: &VmName, ticket: Option<&Ticket>) -> Event {
    let mut event = Event::new(env::now(), kind);
    event.vm = Some(vm.to_string());
    if let Some(ticket) = ticket {
        event.agent = Some(ticket.agent.to_string());
        event.session = ticket.session.as_ref().map(ToString::to_string);
        event.subagent.clone_from(&ticket.subagent);
        event.call.clone_from(&ticket.call);
        event.mode = Some(Mode::Redirect.to_string());
        event.command_sha256 = Some(ticket.text_sha256.clone());
    }
    event
}

pub(crate) fn parse_variable(text: &str) -> Result<(String, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.into())),
        Some(_) | None => Err("give NAME=VALUE".to_owned()),
    }
}

/// A whole number with `ms`, `s`, `m`, `h` or `d`; seconds without one.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let wrong = || "give a whole number with ms, s, m, h or d, such as 90s".to_owned();
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let seconds = |factor: u64| {
        number
            .checked_mul(factor)
            .map(Duration::from_secs)
            .ok_or_else(wrong)
    };
    match &text[digits..] {
        "ms" => Ok(Duration::from_millis(number)),
        "" | "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        "d" => seconds(86_400),
        _ => Err(wrong()),
    }
}
