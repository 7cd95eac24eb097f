//! Which files the agent's file tools must not write while pinned.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};

/// Files and folders under protection, by what they are.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths {
    /// Single files and whole folders, absolute, each with what it is, such as
    /// `boxery's own configuration`.
    pub paths: Vec<(Utf8PathBuf, &'static str)>,
    /// Ends of paths that are protected wherever they lie, such as
    /// `.claude/settings.json`; a folder's covers what is below it. The last
    /// component may end in `*`. A hidden folder on the way counts too: another one
    /// could be put in its place.
    pub tails: Vec<(String, &'static str)>,
    /// The user's home, for `~/`. What begins with a dot in it is protected too:
    /// programs on this machine read it, or run it.
    pub home: Option<Utf8PathBuf>,
    /// Folders that may be written all the same, in such hidden ones or above a
    /// protected file: tools name the project by its top folder.
    pub open: Vec<Utf8PathBuf>,
}

/// As many links as Linux follows.
const LINKS: usize = 40;

impl ProtectedPaths {
    /// What `path` (as given, relative to `folder`) is, when it is protected:
    /// as written and with its links resolved, whether or not it exists.
    /// White space around it is tried with and without: some agents cut it off.
    pub fn check(&self, path: &str, folder: Option<&Utf8Path>) -> Option<&'static str> {
        let bare = path.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        self.check_as_written(path, folder)
            .or_else(|| self.check_as_written(bare, folder))
    }

    fn check_as_written(&self, path: &str, folder: Option<&Utf8Path>) -> Option<&'static str> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let absolute = match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_) | None, _) => match folder {
                Some(folder) => folder.join(path),
                None => Utf8PathBuf::from(path),
            },
        };
        let written = lexical(absolute.as_std_path());
        let resolved = resolve(absolute.as_std_path());
        let candidates = [Some(written), resolved];
        if candidates.iter().all(Option::is_none) {
            return Some("a path whose links can't be followed");
        }
        candidates
            .into_iter()
            .flatten()
            .find_map(|candidate| self.check_one(&candidate))
    }

    /// Which of the single files and folders lie below `root`, as they are called there,
    /// in lower case: as written and with their links resolved. In a `root` that holds
    /// the user's home, what begins with a dot there can't be listed: see
    /// [`ProtectedPaths::hidden_below`].
    pub fn below(&self, root: &Utf8Path) -> Vec<PathBuf> {
        let roots = forms(root);
        let all = self.paths.iter().flat_map(|(path, _)| forms(path));
        let mut found: Vec<PathBuf> = all
            .flat_map(|path| {
                let inside = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
                inside.map(Path::to_owned).collect::<Vec<_>>()
            })
            .filter(|path| *path != Path::new(""))
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Where the user's home lies below `root`, if it does.
    pub fn hidden_below(&self, root: &Utf8Path) -> Option<PathBuf> {
        let home = self.home.as_ref()?;
        home.strip_prefix(root)
            .ok()
            .map(|home| home.as_std_path().to_owned())
    }

    /// `path` (as given, relative to `folder`) with its links followed as far as it exists.
    pub fn resolved(path: &str, folder: Option<&Utf8Path>) -> Option<PathBuf> {
        let path = folder.map_or_else(|| Utf8PathBuf::from(path), |folder| folder.join(path));
        resolve(path.as_std_path())
    }

    fn check_one(&self, candidate: &Path) -> Option<&'static str> {
        let candidate = folded(candidate);
        let mut open = self.open.iter().flat_map(|path| forms(path));
        let is_open = open.any(|open| open == candidate);
        let by_path = self.paths.iter().find_map(|(path, what)| {
            // A folder above a protected file can't be replaced either.
            forms(path)
                .into_iter()
                .any(|path| {
                    candidate.starts_with(&path) || (!is_open && path.starts_with(&candidate))
                })
                .then_some(*what)
        });
        by_path
            .or_else(|| self.check_hidden(&candidate))
            .or_else(|| {
                let names: Vec<&str> = candidate.iter().filter_map(|part| part.to_str()).collect();
                self.tails.iter().find_map(|(tail, what)| {
                    let tail = tail.to_lowercase();
                    let tail: Vec<&str> = tail.split('/').collect();
                    let is_in_it = names.windows(tail.len()).any(|window| {
                        window
                            .iter()
                            .zip(&tail)
                            .all(|(name, part)| matches(name, part))
                    });
                    let is_on_the_way = tail[0].starts_with('.')
                        && (1..tail.len()).any(|length| names.ends_with(&tail[..length]));
                    (is_in_it || is_on_the_way).then_some(*what)
                })
            })
    }
}

impl ProtectedPaths {
    /// `candidate` is in lower case.
    fn check_hidden(&self, candidate: &Path) -> Option<&'static str> {
        let hidden = forms(self.home.as_deref()?).iter().any(|home| {
            let below = candidate.strip_prefix(home).ok();
            let first = below.and_then(|below| below.iter().next());
            first.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        });
        let mut open = self.open.iter().flat_map(|path| forms(path));
        (hidden && !open.any(|open| candidate.starts_with(open)))
            .then_some("a hidden file of the user's home, which programs on this machine may run")
    }
}

/// `path` as written and with its links followed.
fn forms(path: &Utf8Path) -> Vec<PathBuf> {
    let written = lexical(path.as_std_path());
    [Some(written), resolve(path.as_std_path())]
        .into_iter()
        .flatten()
        .map(|path| folded(&path))
        .collect()
}

fn matches(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Case is folded everywhere: on a disk that tells cases apart this denies a few
/// names too many. `ſ` is a small letter of its own, and folds to `s` on macOS.
fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase().replace('ſ', "s"))
}

/// `path` with `.` and `..` taken out, nothing looked up.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// `path` with every link followed as far as it exists, dangling links too;
/// `None` for a loop, or when a folder on the way can't be looked at.
fn resolve(path: &Path) -> Option<PathBuf> {
    let mut todo: VecDeque<OsString> = path
        .components()
        .map(|part| part.as_os_str().to_owned())
        .collect();
    let mut done = PathBuf::new();
    let mut links = 0;
    while let Some(part) = todo.pop_front() {
        match part.to_str() {
            Some("/") => {
                done = PathBuf::from("/");
                continue;
            }
            Some(".") => continue,
            Some("..") => {
                done.pop();
                continue;
            }
            Some(_) | None => done.push(&part),
        }
        match std::fs::read_link(&done) {
            Ok(target) => {
                links += 1;
                if links > LINKS {
                    return None;
                }
                done.pop();
                for part in target.components().rev() {
                    todo.push_front(part.as_os_str().to_owned());
                }
            }
            Err(error) => match error.kind() {
                // Not a link, not there, or below a file.
                std::io::ErrorKind::InvalidInput
                | std::io::ErrorKind::NotFound
                | std::io::ErrorKind::NotADirectory => {}
                _ => return None,
            },
        }
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rstest::rstest;

    use super::*;

    fn protected(home: &Utf8Path) -> ProtectedPaths {
        ProtectedPaths {
            paths: vec![
                (home.join(".config/boxery"), "boxery's own configuration"),
                (home.join("bin/boxery"), "boxery itself"),
                (home.join(".bashrc"), "a start-up file of the shell"),
            ],
            tails: vec![
                (".claude/settings*".to_owned(), "an agent's settings"),
                (".claude/hooks".to_owned(), "an agent's hooks"),
                ("fence.json*".to_owned(), "a policy file"),
                (".mcp.json".to_owned(), "a list of MCP servers"),
            ],
            home: Some(home.to_owned()),
            open: vec![home.join(".claude/plans"), home.join(".dotfiles")],
        }
    }

    #[rstest]
    #[case::plain("src/main.rs", false)]
    #[case::absolute("/etc/hosts", false)]
    #[case::similar_name("src/.bashrc.md", false)]
    #[case::config("~/.config/boxery/config.toml", true)]
    #[case::config_folder("~/.config/boxery", true)]
    #[case::folder_above("~/.config", true)]
    #[case::binary("../bin/boxery", true)]
    #[case::dots("src/../../bin/./boxery", true)]
    #[case::dots_through_nothing("nothing/../../bin/boxery", true)]
    #[case::start_up("../.bashrc", true)]
    #[case::settings(".claude/settings.json", true)]
    #[case::local_settings("deep/er/.claude/settings.local.json", true)]
    #[case::other_case(".Claude/Settings.JSON", true)]
    #[case::folds_to_the_name(".claude/\u{17f}ettings.json", true)]
    #[case::hook_script(".claude/hooks/x/y.sh", true)]
    #[case::folder_of_settings("deep/er/.claude", true)]
    #[case::in_a_folder_of_settings(".claude/notes.md", false)]
    #[case::like_a_folder_of_settings("x.claude", false)]
    #[case::hidden_in_the_home("~/.cargo/env", true)]
    #[case::hidden_folder("../.nvm", true)]
    #[case::the_agents_own_notes("~/.claude/plans/a.md", false)]
    #[case::a_project_in_a_hidden_folder("~/.dotfiles/.vimrc", false)]
    #[case::policy_there("~/.dotfiles/fence.json", true)]
    #[case::hidden_in_the_project(".env", false)]
    #[case::policy("sub/fence.jsonc", true)]
    #[case::mcp(".mcp.json", true)]
    #[case::link_to_folder("link/config.toml", true)]
    #[case::link_to_missing_file("dangling", true)]
    #[case::chain_of_links("chain/new", true)]
    #[case::loop_of_links("loop/x", false)]
    #[case::blank_before(" ~/.bashrc", true)]
    #[case::blank_around("\t../.bashrc\n", true)]
    #[case::file_url("file:///nowhere/.mcp.json", true)]
    fn file_tools_are_kept_off(#[case] path: &str, #[case] want: bool) {
        let folder = tempfile::tempdir().unwrap();
        let home = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let project = home.join("project");
        std::fs::create_dir_all(home.join(".config/boxery")).unwrap();
        std::fs::create_dir_all(project.join("src")).unwrap();
        symlink(home.join(".config/boxery"), project.join("link")).unwrap();
        symlink("../.config/boxery/not-there.toml", project.join("dangling")).unwrap();
        symlink("link", project.join("chain")).unwrap();
        symlink("loop", project.join("loop")).unwrap();

        let found = protected(&home).check(path, Some(&project));
        assert_eq!(found.is_some(), want, "{found:?}");
    }

    #[test]
    fn a_protected_folder_behind_a_link_is_found_by_its_real_name() {
        let folder = tempfile::tempdir().unwrap();
        let home = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(home.join("dotfiles/boxery")).unwrap();
        std::fs::create_dir_all(home.join(".config")).unwrap();
        symlink(home.join("dotfiles/boxery"), home.join(".config/boxery")).unwrap();
        let real = home.join("dotfiles/boxery/config.toml");
        assert_eq!(
            protected(&home).check(real.as_str(), None),
            Some("boxery's own configuration")
        );
    }
}
