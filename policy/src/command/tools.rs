//! Programs that run commands on the side: ssh, package managers, containers.

use super::arg::Arg;
use super::script::Feed;
use super::stdin::Input;
use super::walk::{Around, Denied, Place, Walk, deeper};
use crate::ssh;

impl Walk<'_> {
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
                (Some(_), Feed::Unknown | Feed::Text(_) | Feed::File(_)) => {
                    self.fed(text, around, &args[0])
                }
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
            "bun" => &["x"],
            "rbenv" | "pyenv" | "nodenv" | "jenv" | "goenv" | "plenv" | "fnm" | "opam"
            | "stack" | "cabal" | "dune" | "composer" => &["exec"],
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
                // `pnpm -c exec 'a b'` is a text of shell.
                if first.text.contains(' ') {
                    let span = around.place.span(&first.range);
                    self.probe_text(&first.text, span, around.depth)?;
                }
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

    /// `docker build -`: what the recipe on its input runs.
    pub(super) fn docker_build(
        &mut self,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let builds = matches!(program, "docker" | "podman" | "nerdctl" | "buildah")
            && args
                .iter()
                .any(|arg| matches!(arg.text.as_str(), "build" | "bud"));
        if !builds {
            return Ok(());
        }
        let span = around.place.span(&args[0].range);
        if let Input::Text(recipe) = self.input(around) {
            for line in recipe.replace("\\\n", " ").lines() {
                if let Some(command) = line.trim_start().strip_prefix("RUN ") {
                    self.probe_text(command, span, around.depth)?;
                }
            }
        }
        Ok(())
    }
}
