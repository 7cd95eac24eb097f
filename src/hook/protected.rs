//! The files that an agent must not write while pinned.

use boxery_agents::settings_paths;
use boxery_router::ProtectedPaths;

use super::answer::Hook;
use crate::env;

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

/// Everything of promise 11.
pub(crate) fn protected_paths(hook: &Hook<'_>) -> ProtectedPaths {
    let environment = &hook.app.env;
    let mut paths = vec![
        (environment.config.clone(), "boxery's own configuration"),
        (environment.state.clone(), "boxery's own state"),
        // A `Match exec` or `ProxyCommand` there runs on this machine at the next connection.
        (
            environment.home.join(".ssh"),
            "the user's SSH configuration",
        ),
    ];
    paths.extend(
        env::own_binary()
            .ok()
            .map(|binary| (binary, "boxery's own program")),
    );
    let start_up = START_UP.iter().map(|name| environment.home.join(name));
    paths.extend(start_up.map(|path| (path, "a start-up file of a shell")));
    // `core.fsmonitor`, aliases, filters and hooks run with the next git on this machine.
    paths.push((environment.home.join(".gitconfig"), "git's configuration"));
    let configurations = environment.config.parent().map(|folder| folder.join("git"));
    paths.extend(configurations.map(|folder| (folder, "git's configuration")));
    paths.push((environment.home.join(".config/git"), "git's configuration"));
    paths.extend(env::zdotdir().map(|folder| (folder, "the folder of zsh's start-up files")));
    let mut tails = vec![
        ("fence.json*".to_owned(), "a policy file"),
        (".git".to_owned(), "git's own folder"),
    ];
    let settings = settings_paths(&hook.surroundings());
    paths.extend(settings.paths);
    tails.extend(settings.tails);
    ProtectedPaths {
        paths,
        tails,
        home: Some(environment.home.clone()),
    }
}
