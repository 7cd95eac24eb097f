//! What git runs: aliases, settings, hooks of its own subcommands.

use super::arg::Arg;
use super::script::Feed;
use super::walk::{Around, Denied, Place, Walk, deeper};
use crate::Span;

/// Settings that git hands to a shell, by the end of their name (git 2.47).
const SETTINGS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "sequence.editor",
    "diff.external",
    ".textconv",
    ".clean",
    ".smudge",
    ".process",
    ".driver",
    ".command",
    ".cmd",
    ".helper",
    ".program",
    "interactive.difffilter",
    ".update",
    ".uploadpack",
    ".receivepack",
    "uploadpack.packobjectshook",
    "sendemail.sendmailcmd",
    "sendemail.tocmd",
    "sendemail.cccmd",
];

/// Options of subcommands whose value git runs; a short one only where it stands for that.
const OPTIONS: &[(&str, &[&str])] = &[
    ("rebase", &["-x", "--exec"]),
    ("difftool", &["-x", "--extcmd"]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("clone", &["-u", "--upload-pack"]),
    ("fetch", &["--upload-pack"]),
    ("pull", &["--upload-pack"]),
    ("ls-remote", &["--upload-pack", "--exec"]),
    ("push", &["--receive-pack", "--exec"]),
    ("archive", &["--exec"]),
    ("send-email", &["--sendmail-cmd", "--to-cmd", "--cc-cmd"]),
    (
        "filter-branch",
        &[
            "--setup",
            "--env-filter",
            "--tree-filter",
            "--index-filter",
            "--parent-filter",
            "--msg-filter",
            "--commit-filter",
            "--tag-name-filter",
        ],
    ),
];

impl Walk<'_> {
    /// One setting, and what it makes git run.
    pub(super) fn git_setting(
        &mut self,
        key: &str,
        value: &str,
        span: Span,
        depth: usize,
    ) -> Result<(), Denied> {
        let key = key.to_ascii_lowercase();
        let place = Place::Within(span);
        let shell = value.strip_prefix('!');
        if key.starts_with("alias.") {
            return match shell {
                Some(shell) => self.text(shell, &place, depth + 1),
                None => self.text(&format!("git {value}"), &place, depth + 1),
            };
        }
        if key.starts_with("pager.") || SETTINGS.iter().any(|known| key.ends_with(known)) {
            return self.probe_text(shell.unwrap_or(value), span, depth);
        }
        Ok(())
    }

    /// What git with these arguments runs besides itself.
    pub(super) fn git(
        &mut self,
        text: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        for (at, arg) in rest.iter().enumerate() {
            let span = around.place.span(&arg.range);
            let word = arg.text.as_str();
            let setting = match word {
                "-c" => rest.get(at + 1).map(|arg| arg.text.as_str()),
                _ => word.strip_prefix("-c").filter(|glued| glued.contains('.')),
            };
            if let Some((key, value)) = setting.and_then(|setting| setting.split_once('=')) {
                self.git_setting(key, value, span, around.depth)?;
            }
            // `ext::` runs a command that speaks git's protocol; `% ` is a blank in a word.
            if let Some(command) = word.strip_prefix("ext::") {
                let plain = command.replace("% ", "\u{1}");
                let args: Vec<Arg> = plain
                    .split(' ')
                    .map(|word| Arg::exact(&word.replace('\u{1}', " "), arg.range.clone()))
                    .collect();
                self.probe(|walk| walk.command(text, &args, deeper(around)))?;
                self.probe_text(command, span, around.depth)?;
            }
        }
        let verb = rest.iter().position(|arg| {
            matches!(arg.text.as_str(), "submodule" | "bisect" | "config")
                || OPTIONS.iter().any(|(verb, _)| *verb == arg.text)
        });
        let Some(verb) = verb else { return Ok(()) };
        let behind = &rest[verb + 1..];
        match rest[verb].text.as_str() {
            "submodule" => match operand_behind(behind, "foreach") {
                Some(command) => self.joined(text, command, around),
                None => Ok(()),
            },
            "bisect" => match operand_behind(behind, "run") {
                Some(command) => self.command(text, command, deeper(around)),
                None => Ok(()),
            },
            "config" => {
                let operands: Vec<&Arg> = behind
                    .iter()
                    .filter(|arg| {
                        !arg.text.starts_with('-') && !matches!(arg.text.as_str(), "set" | "edit")
                    })
                    .collect();
                for pair in operands.windows(2) {
                    let [key, value] = pair else { continue };
                    if key.text.contains('.') {
                        let span = around.place.span(&value.range);
                        self.git_setting(&key.text, &value.text, span, around.depth)?;
                    }
                }
                Ok(())
            }
            verb => self.git_options(text, verb, behind, around),
        }
    }

    fn git_options(
        &mut self,
        text: &str,
        verb: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let options = OPTIONS.iter().find(|(known, _)| *known == verb);
        for (at, arg) in rest.iter().enumerate() {
            for option in options.map_or(&[] as &[&str], |(_, options)| options) {
                let Some(glued) = arg.text.strip_prefix(option) else {
                    continue;
                };
                if glued.is_empty() {
                    if let Some(value) = rest.get(at + 1) {
                        self.one_text(text, value, around)?;
                    }
                } else if let Some(value) = glued
                    .strip_prefix('=')
                    .or((option.len() == 2).then_some(glued))
                {
                    let place = self.inner_place(text, *around.place, &arg.range, value);
                    self.text(value, &place, around.depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

/// The words behind `verb`, without the options before them.
fn operand_behind<'a>(words: &'a [Arg], verb: &str) -> Option<&'a [Arg]> {
    let at = words
        .iter()
        .position(|arg| !arg.text.starts_with('-'))
        .filter(|at| words[*at].text == verb)?;
    let mut command = &words[at + 1..];
    while command
        .first()
        .is_some_and(|arg| arg.text.starts_with("--"))
    {
        command = &command[1..];
    }
    Some(command)
}

impl Walk<'_> {
    /// Words that another program runs, of which nothing is known but themselves.
    pub(super) fn foreign(
        &mut self,
        args: &[Arg],
        place: &Place,
        depth: usize,
    ) -> Result<(), Denied> {
        let variables = super::arg::Variables::default();
        let around = Around {
            place,
            feed: &Feed::Inherited,
            own_feed: true,
            variables: &variables,
            writes: false,
            depth,
            wrapped: 1,
        };
        self.command("", args, around)
    }
}
