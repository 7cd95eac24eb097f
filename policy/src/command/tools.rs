//! Programs that run commands on the side: git, ssh, package managers.

use super::arg::Arg;
use super::script::Feed;
use super::walk::{Around, Denied, Place, Walk, deeper};
use crate::ssh;

impl Walk<'_> {
    /// What git runs by settings given on the command line.
    pub(super) fn git(
        &mut self,
        text: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        for pair in rest.windows(2) {
            let [flag, setting] = pair else { continue };
            if !matches!(flag.text.as_str(), "-c" | "--config-env") {
                continue;
            }
            let Some((key, value)) = setting.text.split_once('=') else {
                continue;
            };
            let key = key.to_ascii_lowercase();
            let place = Place::Within(around.place.span(&setting.range));
            if key.starts_with("alias.") {
                let run = match value.strip_prefix('!') {
                    Some(shell) => shell.to_owned(),
                    None => format!("git {value}"),
                };
                self.text(&run, &place, around.depth + 1)?;
            } else if [
                "core.pager",
                "core.editor",
                "core.sshcommand",
                "core.fsmonitor",
                "sequence.editor",
                "diff.external",
            ]
            .contains(&key.as_str())
            {
                self.text(value, &place, around.depth + 1)?;
            }
        }
        // `git submodule foreach`, `git bisect run`, `git rebase --exec`.
        let words: Vec<&str> = rest.iter().map(|arg| arg.text.as_str()).collect();
        let at = words
            .windows(2)
            .position(|pair| matches!(pair, ["submodule", "foreach"] | ["bisect", "run"]));
        if let Some(at) = at {
            let mut command = &rest[at + 2..];
            while command
                .first()
                .is_some_and(|arg| arg.text.starts_with("--"))
            {
                command = &command[1..];
            }
            if words[at] == "bisect" {
                return self.command(text, command, deeper(around));
            }
            return self.joined(text, command, around);
        }
        if words.contains(&"rebase") {
            for (at, word) in words.iter().enumerate() {
                if matches!(*word, "-x" | "--exec")
                    && let Some(arg) = rest.get(at + 1)
                {
                    self.one_text(text, arg, around)?;
                } else if let Some(value) = word.strip_prefix("--exec=") {
                    self.text(
                        value,
                        &Place::Within(around.place.span(&rest[at].range)),
                        around.depth + 1,
                    )?;
                }
            }
        }
        Ok(())
    }

    /// The remote command of ssh: it runs elsewhere, and the rules mean it all the same.
    pub(super) fn remote(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let call = ssh::read_call(args);
        for option in call.runs_here {
            self.text(
                &option,
                &Place::Within(around.place.span(&args[0].range)),
                around.depth + 1,
            )?;
        }
        match call.command {
            [] => match (call.host, around.feed) {
                // Without a command the far shell reads the standard input.
                (Some(_), Feed::Unknown | Feed::Text(_)) => self.fed(text, around, &args[0]),
                _ => Ok(()),
            },
            command => self.joined(text, command, around),
        }
    }

    /// `uv run …`, `npm exec -- …` and their like.
    pub(super) fn tool_run(
        &mut self,
        text: &str,
        program: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let verbs: &[&str] = match program {
            "bundle" | "mise" | "asdf" | "op" => &["exec", "x", "run"],
            "pnpm" | "yarn" | "npm" => &["exec", "dlx", "x"],
            "nix" => &["develop", "shell", "run"],
            _ => &["run"],
        };
        let Some(verb) = rest
            .iter()
            .position(|arg| verbs.contains(&arg.text.as_str()))
        else {
            return Ok(());
        };
        // Everything behind the verb that may begin the command: which options take a
        // value differs from tool to tool.
        let mut command = &rest[verb + 1..];
        if let Some(dashes) = command.iter().position(|arg| arg.text == "--") {
            command = &command[dashes + 1..];
            return self.command(text, command, deeper(around));
        }
        let mut after_option = false;
        while let Some(first) = command.first() {
            let option = first.head().starts_with('-');
            if !option && first.program().is_some() {
                self.command(text, command, deeper(around))?;
                if !after_option {
                    break;
                }
            }
            after_option = option && !first.text.contains('=');
            command = &command[1..];
        }
        Ok(())
    }
}
