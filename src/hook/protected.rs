//! The files that an agent must not write while pinned.

use boxery_agents::settings_paths;
use boxery_pin::find_project;
use boxery_router::ProtectedPaths;
use camino::{Utf8Path, Utf8PathBuf};

use super::agent_process::{agent_process, executable_of};
use super::answer::Hook;
use crate::env;

type Named = (Utf8PathBuf, &'static str);

/// What the user's shells read when they start (bash 5.3, zsh 5.9, fish 4, tcsh 6,
/// ksh), by themselves or from the start-up files that distributions give them, and
/// what the session manager reads or starts for them.
const START_UP: &[&str] = &[
    ".bash_aliases",
    ".bash_completion",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bashrc.d",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".config/zsh",
    ".cshrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".mkshrc",
    ".oh-my-zsh",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "Library/LaunchAgents",
];

/// Everything of promise 11; `project` is the pinned project's top folder.
pub(crate) fn protected_paths(hook: &Hook<'_>, project: Option<&Utf8Path>) -> ProtectedPaths {
    let environment = &hook.app.env;
    let home = environment.home.as_path();
    let mut paths: Vec<Named> = vec![
        (environment.config.clone(), "boxery's own configuration"),
        (environment.state.clone(), "boxery's own state"),
        // A `Match exec` or `ProxyCommand` there runs on this machine at the next connection.
        (home.join(".ssh"), "the user's SSH configuration"),
        ("/etc".into(), "this machine's configuration"),
    ];
    paths.extend(
        env::own_binary()
            .ok()
            .map(|binary| (binary, "boxery's own program")),
    );
    let agent = agent_process(&hook.ancestors).and_then(|process| executable_of(process).ok());
    paths.extend(agent.map(|executable| (executable.path, "the agent's own program")));
    let start_up: Vec<Utf8PathBuf> = START_UP.iter().map(|name| home.join(name)).collect();
    let sourced = start_up.iter().flat_map(|path| sourced_by(path, home, 0));
    let sourced: Vec<Named> = sourced
        .map(|path| (path, "a file that a shell reads when it starts"))
        .collect();
    paths.extend(
        start_up
            .into_iter()
            .map(|path| (path, "a start-up file of a shell")),
    );
    paths.extend(sourced);
    // `core.fsmonitor`, aliases, filters and hooks run with the next git on this machine.
    paths.push((home.join(".gitconfig"), "git's configuration"));
    let configurations = environment.config.parent().map(|folder| folder.join("git"));
    paths.extend(configurations.map(|folder| (folder, "git's configuration")));
    let fence = environment
        .config
        .parent()
        .map(|folder| folder.join("fence"));
    paths.extend(fence.map(|folder| (folder, "the user's own policy")));
    paths.extend(env::zdotdir().map(|folder| (folder, "the folder of zsh's start-up files")));
    let variables = env::files_that_shells_read().into_iter();
    paths.extend(variables.map(|path| (path, "a file that the agent's shells read")));
    paths.extend(folders_of_programs(home, project));
    paths.extend(git_folder(hook).map(|folder| (folder, "git's own folder")));

    let mut tails = vec![
        ("fence.json*".to_owned(), "a policy file"),
        (".git".to_owned(), "git's own folder"),
    ];
    let settings = settings_paths(&hook.surroundings());
    paths.extend(settings.paths);
    tails.extend(settings.tails);
    let folders = [project, hook.project.as_deref(), hook.folder.as_deref()];
    for folder in folders.into_iter().flatten() {
        paths.extend(linked_tails(folder, &tails));
    }
    let linked: Vec<Named> = paths.iter().flat_map(linked_entries).collect();
    paths.extend(linked);
    let mut open = settings.own;
    // A project that is the home itself opens nothing.
    open.extend(
        project
            .filter(|project| !home.starts_with(project))
            .map(Utf8Path::to_owned),
    );
    ProtectedPaths {
        paths,
        tails,
        home: Some(home.to_owned()),
        open,
    }
}

/// The folders of `PATH`, in which a program could be replaced: not the project's own.
fn folders_of_programs(home: &Utf8Path, project: Option<&Utf8Path>) -> Vec<Named> {
    let mut folders = env::folders_on_path();
    folders.retain(|folder| {
        let holds = |inner: &Utf8Path| inner.starts_with(folder);
        !holds(home)
            && project.is_none_or(|project| !holds(project) && !folder.starts_with(project))
    });
    let folders = folders.into_iter();
    folders
        .map(|folder| (folder, "a folder of programs on this machine"))
        .collect()
}

/// The call's repository, wherever its worktree says that it lies.
fn git_folder(hook: &Hook<'_>) -> Option<Utf8PathBuf> {
    let folder = hook.folder.as_deref()?.canonicalize_utf8().ok()?;
    find_project(&folder).ok()??.git_common
}

/// A start-up file larger than this isn't looked through.
const LARGEST: u64 = 256 << 10;
/// As far as `.` and `source` are followed.
const DEEPEST: u8 = 3;

/// What `path`, a start-up file or a folder of them, reads with `.` or `source`.
fn sourced_by(path: &Utf8Path, home: &Utf8Path, depth: u8) -> Vec<Utf8PathBuf> {
    let is_small = path
        .metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    if depth == DEEPEST || !is_small {
        return Vec::new();
    }
    let text = std::fs::read(path).unwrap_or_default();
    let mut found = Vec::new();
    for path in sourced_words(&String::from_utf8_lossy(&text), home) {
        found.extend(sourced_by(&path, home, depth + 1));
        found.push(path);
    }
    found
}

/// The absolute paths behind `.` and `source` in shell text.
fn sourced_words(text: &str, home: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut words = text
        .split(|c: char| c.is_whitespace() || ";&|()".contains(c))
        .filter(|word| !word.is_empty());
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if !matches!(word, "." | "source" | "\\.") {
            continue;
        }
        let Some(path) = words.next() else { break };
        let path = path.trim_matches(['"', '\'']);
        let path = path
            .replace("${HOME}", home.as_str())
            .replace("$HOME", home.as_str());
        let path = match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => Utf8PathBuf::from(path),
        };
        if path.is_absolute() {
            found.push(path);
        }
    }
    found
}

/// The tails below `folder` on whose way there is a link: what it points to is the
/// settings file too, by another name.
fn linked_tails(folder: &Utf8Path, tails: &[(String, &'static str)]) -> Vec<Named> {
    let is_link = |path: &Utf8Path| path.is_symlink();
    let mut found = Vec::new();
    for (tail, what) in tails {
        let mut path = folder.to_owned();
        for part in tail.split('/') {
            match part.strip_suffix('*') {
                None => path.push(part),
                Some(start) => {
                    let entries = path.read_dir_utf8().into_iter().flatten().flatten();
                    let links = entries.filter(|entry| {
                        entry.file_name().starts_with(start) && is_link(entry.path())
                    });
                    found.extend(links.map(|entry| (entry.into_path(), *what)));
                    break;
                }
            }
            if is_link(&path) {
                found.push((folder.join(tail.trim_end_matches('*')), *what));
                found.push((path.clone(), *what));
                break;
            }
        }
    }
    found
}

/// The links in a protected folder, which lead out of it.
fn linked_entries((folder, what): &Named) -> Vec<Named> {
    let hidden = folder
        .components()
        .any(|part| part.as_str().starts_with('.'));
    if !hidden {
        return Vec::new();
    }
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.path().is_symlink());
    links.map(|entry| (entry.into_path(), *what)).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::rustup(". \"$HOME/.cargo/env\"", &["/h/.cargo/env"])]
    #[case::nvm("[ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"${HOME}/nvm/nvm.sh\"  # loads it", &["/h/nvm/nvm.sh"])]
    #[case::tilde("source ~/dotfiles/zsh/aliases.zsh; x", &["/h/dotfiles/zsh/aliases.zsh"])]
    #[case::inside_a_test("if [ -f /opt/x ]; then . /opt/x; fi", &["/opt/x"])]
    #[case::relative("cd x; . ./env", &[])]
    #[case::no_source("echo a.b source", &[])]
    fn what_a_start_up_file_reads_is_found(#[case] text: &str, #[case] want: &[&str]) {
        let want: Vec<Utf8PathBuf> = want.iter().map(Utf8PathBuf::from).collect();
        assert_eq!(sourced_words(text, Utf8Path::new("/h")), want);
    }
}
