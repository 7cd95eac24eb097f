//! Variables whose value makes another program run something.

use super::arg::Arg;
use super::script::{Piece, Word};
use super::walk::{Around, Denied, Place, Walk};
use crate::Span;

/// Variables whose value another program hands to a shell (git 2.47, bash 5.3, less, man,
/// systemd 257, fzf 0.60).
const RUN_BY_OTHERS: &[&str] = &[
    "EDITOR",
    "VISUAL",
    "PAGER",
    "FCEDIT",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "SYSTEMD_EDITOR",
    "GH_PAGER",
    "GH_EDITOR",
    "AWS_PAGER",
    "KUBE_EDITOR",
    "PSQL_PAGER",
    "PSQL_EDITOR",
    "HGEDITOR",
    "SVN_EDITOR",
    "SVN_SSH",
    "CVS_RSH",
    "LESSOPEN",
    "LESSCLOSE",
    "PROMPT_COMMAND",
    "BROWSER",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "FZF_DEFAULT_COMMAND",
    "FZF_CTRL_T_COMMAND",
];

/// Variables that hold more options for a program.
const MORE_OPTIONS: &[(&str, &str)] = &[
    ("TAR_OPTIONS", "tar"),
    ("MAKEFLAGS", "make"),
    ("FZF_DEFAULT_OPTS", "fzf"),
    ("RSYNC_OPTIONS", "rsync"),
];

impl Walk<'_> {
    /// `name=value`, wherever it stands.
    pub(super) fn assigned(
        &mut self,
        name: &str,
        value: &str,
        place: &Place,
        depth: usize,
    ) -> Result<(), Denied> {
        let span = place.span(&(0..value.len()));
        if RUN_BY_OTHERS.contains(&name) {
            // `|program %s` is how less is told to read a program's output.
            let start = value.len() - value.trim_start_matches(['|', '-']).len();
            let place = match place {
                Place::Exact(at) => Place::Exact(at + start),
                within @ Place::Within(_) => *within,
            };
            self.text(&value[start..], &place, depth + 1)?;
        }
        if let Some((_, program)) = MORE_OPTIONS.iter().find(|(known, _)| *known == name) {
            self.probe_text(&format!("{program} {value}"), span, depth)?;
        }
        match name {
            "GIT_CONFIG_PARAMETERS" => {
                for setting in value.split('\'') {
                    if let Some((key, value)) = setting.split_once('=') {
                        self.git_setting(key, value, span, depth)?;
                    }
                }
            }
            "BASH_ALIASES" => self.probe_text(value, span, depth)?,
            // `BASH_CMDS[g]=/usr/bin/git` makes `g` run git.
            "BASH_CMDS" => {
                self.unclear("which program runs is only known when it runs", span);
            }
            "BASH_ENV" | "ENV" | "ZDOTDIR" if value.starts_with("/dev/") => {
                self.unclear("what a shell reads is only known when it runs", span);
            }
            _ if name.starts_with("GIT_CONFIG_VALUE_") => {
                self.git_setting("alias.any", value, span, depth)?;
                self.git_setting("core.pager", value, span, depth)?;
            }
            _ if name.starts_with("BASH_FUNC_") => {
                self.probe_text(&format!("f {value}"), span, depth)?;
            }
            _ => {}
        }
        self.expansions(value, span, depth)
    }

    /// `name=…`, when what it is set to is only known when it runs.
    pub(super) fn assigned_unknown(&mut self, name: &str, value: &Word, span: Span) {
        let process = value
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Process));
        if process && matches!(name, "BASH_ENV" | "ENV") {
            self.unclear("what a shell reads is only known when it runs", span);
        }
    }

    /// `NAME=VALUE` among the words of a program that sets variables.
    pub(super) fn assigning(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        for arg in args {
            if let Some((name, value)) = arg.known().and_then(|arg| arg.split_once('='))
                && !name.is_empty()
            {
                let place = self.inner_place(text, *around.place, &arg.range, value);
                self.assigned(name, value, &place, around.depth)?;
            }
        }
        Ok(())
    }

    /// What runs when a text that was quoted is expanded after all: by a prompt, by
    /// `${x@P}`, by arithmetic.
    pub(super) fn expansions(
        &mut self,
        value: &str,
        span: Span,
        depth: usize,
    ) -> Result<(), Denied> {
        if !value.contains("$(") && !value.contains('`') {
            return Ok(());
        }
        let bare: String = value
            .chars()
            .filter(|letter| !matches!(letter, '"' | '\\'))
            .collect();
        self.probe_text(&format!(": \"{bare}\""), span, depth)
    }

    /// Arguments that a builtin reads as the name of a variable: `a[$(…)]` runs.
    pub(super) fn subscripts(&mut self, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        for arg in args.iter().filter(|arg| arg.text.contains('[')) {
            self.expansions(&arg.text, around.place.span(&arg.range), around.depth)?;
        }
        Ok(())
    }
}
