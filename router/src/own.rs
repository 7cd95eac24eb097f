//! A call that is boxery itself.

use boxery_pin::{RemotePath, VmName};
use camino::Utf8Path;

use crate::words::quote_words;
use crate::{Questions, parse_simple_command};

/// What a text that names boxery asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnCall {
    /// Harmless as it stands.
    Harmless {
        /// How the program is named.
        naming: Naming,
        /// The text that the VM would run, for the user's own rules.
        inner: Option<String>,
        /// The same call by the absolute path.
        absolute: String,
    },
    /// Not for the model while pinned.
    Refused {
        /// The rule.
        rule: &'static str,
        /// Full sentences.
        reason: String,
    },
}

/// How a text names boxery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By this binary's absolute path.
    Absolute,
    /// By a bare `boxery`, which the shell would look up.
    Bare,
}

/// What the parse depends on.
pub(crate) struct OwnContext<'a> {
    pub(crate) binary: &'a Utf8Path,
    pub(crate) vm: &'a VmName,
    pub(crate) other_vms: &'a [VmName],
    pub(crate) copy: Option<&'a RemotePath>,
    pub(crate) questions: &'a dyn Questions,
}

/// `text` read as a call of boxery by a full parse; `None` when it isn't one.
/// A text that only contains boxery's name is any other text.
pub(crate) fn parse_own_call(text: &str, context: &OwnContext<'_>) -> Option<OwnCall> {
    let words = parse_simple_command(text).ok()?;
    let naming = match words.first()?.as_str() {
        "boxery" => Naming::Bare,
        first if first == context.binary.as_str() => Naming::Absolute,
        _ => return None,
    };
    let mut absolute = words.clone();
    context.binary.as_str().clone_into(&mut absolute[0]);
    let absolute = quote_words(&absolute)?;
    Some(match judge(&words[1..], context) {
        Ok(inner) => OwnCall::Harmless {
            naming,
            inner,
            absolute,
        },
        Err((rule, reason)) => OwnCall::Refused { rule, reason },
    })
}

type Refusal = (&'static str, String);

fn judge(arguments: &[String], context: &OwnContext<'_>) -> Result<Option<String>, Refusal> {
    let vm = context.vm;
    let Some((verb, rest)) = arguments.split_first() else {
        return Err(verb_refusal(vm, "boxery without a verb"));
    };
    let own_part = rest.split(|word| word == "--").next().unwrap_or_default();
    if let Some(other) = own_part
        .iter()
        .find_map(|word| names_other_vm(word, context))
    {
        return Err((
            "other-vm",
            format!(
                "this session is pinned to VM {vm}, and this call names VM {other}; only the user can change the pin"
            ),
        ));
    }
    match verb.as_str() {
        "run" => judge_command(Form::Run, rest, context).map(Some),
        "jobs" if rest.first().is_some_and(|verb| verb == "start") => {
            judge_command(Form::Job, &rest[1..], context).map(Some)
        }
        "sync" => judge_sync(own_part, vm).map(|()| None),
        "drift" | "jobs" | "status" => Ok(None),
        "log" if !own_part.iter().any(|word| word.starts_with("--e")) => Ok(None),
        "cp" => judge_cp(rest, context).map(|()| None),
        _ => Err(verb_refusal(vm, &format!("`boxery {verb}`"))),
    }
}

/// What answers a guard is a person's.
fn judge_sync(arguments: &[String], vm: &VmName) -> Result<(), Refusal> {
    let answers = ["--take", "--allow-deletes"];
    let answer = answers.into_iter().find(|answer| {
        let mut words = arguments.iter();
        words.any(|word| word.split('=').next() == Some(answer))
    });
    match answer {
        None => Ok(()),
        Some(answer) => Err(verb_refusal(vm, &format!("`boxery sync {answer}`"))),
    }
}

fn verb_refusal(vm: &VmName, what: &str) -> Refusal {
    (
        "own-verb",
        format!(
            "{what} isn't for the agent while the session is pinned to VM {vm}; ask the user to run it in a terminal"
        ),
    )
}

fn names_other_vm<'a>(word: &'a str, context: &OwnContext<'_>) -> Option<&'a str> {
    let name = word.split_once(':').map_or(word, |(name, _)| name);
    context
        .other_vms
        .iter()
        .any(|vm| vm.as_str() == name)
        .then_some(name)
}

/// The verbs that take a command for the VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Run,
    Job,
}

/// The command that `run` or `jobs start` is given, when everything before it is the
/// pinned VM and what can't lead elsewhere.
fn judge_command(
    verb: Form,
    arguments: &[String],
    context: &OwnContext<'_>,
) -> Result<String, Refusal> {
    let vm = context.vm;
    let shape = match verb {
        Form::Run => format!("boxery run {vm} [--cwd DIR] [--timeout D] -- COMMAND [ARG…]"),
        Form::Job => format!("boxery jobs start {vm} [--cwd DIR] -- COMMAND [ARG…]"),
    };
    let form = |problem: &str| {
        (
            "own-run",
            format!("{problem}; while the session is pinned, the form is `{shape}`"),
        )
    };
    let mut words = arguments.iter();
    let mut named = false;
    loop {
        let Some(word) = words.next() else {
            return Err(form("there is no `--` with a command after it"));
        };
        let (option, attached) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word.as_str(), None),
        };
        match option {
            "--" if attached.is_none() => break,
            "--cwd" | "--timeout" if option == "--cwd" || verb == Form::Run => {
                let value = attached.or_else(|| words.next().map(String::as_str));
                let Some(value) = value else {
                    return Err(form(&format!("`{option}` has no value")));
                };
                if option == "--cwd" {
                    let inside = value.parse::<RemotePath>().is_ok_and(|folder| {
                        context.copy.is_some_and(|copy| folder.is_within(copy))
                    });
                    if !inside {
                        return Err(form(&format!(
                            "`--cwd {value}` is not inside the project's copy on VM {vm}"
                        )));
                    }
                } else if !is_duration(value) {
                    return Err(form(&format!("`{value}` is not a duration")));
                }
            }
            name if !named && name == vm.as_str() && attached.is_none() => named = true,
            name if name.starts_with('-') => {
                return Err(form(&format!("`{name}` isn't for the agent")));
            }
            _ if !named => {
                return Err((
                    "other-vm",
                    format!(
                        "this session is pinned to VM {vm}, and `{word}` isn't it; the form is `{shape}`"
                    ),
                ));
            }
            _ => return Err(form(&format!("`{word}` stands before `--`"))),
        }
    }
    let command: Vec<&String> = words.collect();
    match command.as_slice() {
        _ if !named => Err(form("the VM isn't named")),
        [] => Err(form("there is no command after `--`")),
        [shell, flag, text] if *shell == "bash" && *flag == "-c" => Ok((*text).clone()),
        words => quote_words(words).ok_or_else(|| form("the command holds NUL")),
    }
}

fn is_duration(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=9).contains(&digits) && matches!(&text[digits..], "" | "ms" | "s" | "m" | "h" | "d")
}

fn judge_cp(arguments: &[String], context: &OwnContext<'_>) -> Result<(), Refusal> {
    let vm = context.vm;
    let refuse = |reason: String| Err(("own-cp", reason));
    let [from, to] = arguments else {
        return refuse(format!(
            "while pinned, the form is `boxery cp SRC DST`, where one of them is `{vm}:PATH`"
        ));
    };
    if from.starts_with('-') || to.starts_with('-') {
        return refuse("`boxery cp` takes no options from the agent while pinned".to_owned());
    }
    let remote = |word: &str| {
        word.strip_prefix(vm.as_str())
            .and_then(|rest| rest.strip_prefix(':'))
            .map(str::to_owned)
    };
    let (local, remote) = match (remote(from), remote(to)) {
        (Some(path), None) => (to, path),
        (None, Some(path)) => (from, path),
        (Some(_), Some(_)) | (None, None) => {
            return refuse(format!(
                "one side of `boxery cp` must be `{vm}:PATH`, the other a file of this project"
            ));
        }
    };
    if let Some(what) = context.questions.protected(local) {
        return refuse(format!(
            "`{local}` is {what}, which the agent can't change while pinned"
        ));
    }
    if local.contains(':') || !context.questions.in_project(local) {
        return refuse(format!("`{local}` is not inside this project"));
    }
    let inside = if remote.starts_with('/') {
        remote
            .parse::<RemotePath>()
            .is_ok_and(|path| context.copy.is_some_and(|copy| path.is_within(copy)))
    } else {
        // `~` is the home there, nothing at all the copy.
        !remote.starts_with('~') && remote.split('/').all(|part| part != "..")
    };
    if inside {
        Ok(())
    } else {
        refuse(format!("`{vm}:{remote}` is not inside the project's copy"))
    }
}
