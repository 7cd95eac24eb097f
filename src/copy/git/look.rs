//! How a repository stands: the laptop's and the copy's are looked at by one script.

use std::collections::{BTreeMap, BTreeSet};

use boxery_pin::VmName;
use boxery_remote::{RunRequest, Way, capture};
use camino::Utf8Path;

use super::names::{Oid, RefName};
use crate::error::Failure;
use crate::reach;

/// What stands before every script here.
pub(super) const QUIET: &str = include_str!("quiet.sh");
const LOOK: &str = concat!(include_str!("quiet.sh"), include_str!("look.sh"));
/// As much as a repository may say of itself.
const LARGEST: usize = 64 << 20;
/// How long what we run on a VM waits there for a connection that broke.
pub(super) const GRACE: std::time::Duration = std::time::Duration::from_secs(30);

/// Where HEAD points.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Head {
    /// To a branch, which need not be there yet.
    Branch(RefName),
    /// To a commit.
    Detached(Oid),
}

impl Head {
    /// As git's commands take it.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Branch(name) => name.as_str(),
            Self::Detached(oid) => oid.as_str(),
        }
    }

    /// As people call it.
    pub(super) fn called(&self) -> String {
        match self {
            Self::Branch(name) => name.called(),
            Self::Detached(oid) => oid.short().to_owned(),
        }
    }

    /// The branch, if it is one.
    pub(super) fn branch(&self) -> Option<&RefName> {
        match self {
            Self::Branch(name) => Some(name),
            Self::Detached(_) => None,
        }
    }
}

/// A repository as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// Which one it is and how far the last exchange came; the copy's only.
    pub(super) id: Option<(String, u64)>,
    /// Its object format.
    pub(super) format: String,
    /// The name of the linked worktree that it is.
    pub(super) worktree: Option<String>,
    /// Where HEAD points.
    pub(super) head: Head,
    /// The commit at HEAD; none on a branch that isn't there yet.
    pub(super) at: Option<Oid>,
    /// The index as a tree; none while it holds a merge.
    pub(super) index: Option<Oid>,
    /// A commit of that tree, if the one at HEAD has another.
    pub(super) staged: Option<Oid>,
    /// What is going on that must not be disturbed.
    pub(super) busy: Option<String>,
    /// Branches that something else than HEAD holds: other worktrees, a rebase.
    pub(super) held: BTreeSet<RefName>,
    /// Every reference that counts.
    pub(super) refs: BTreeMap<RefName, Oid>,
    /// References to references, which stay where they are.
    pub(super) aliases: BTreeSet<RefName>,
    /// Whether objects are fetched when they are needed.
    pub(super) partial: bool,
    /// Its own list of ignored files, relative to its folder.
    pub(super) exclude: Option<String>,
    /// The user's list of ignored files, if the configuration names one.
    pub(super) user_exclude: Option<String>,
    /// What of its configuration travels.
    pub(super) settings: Vec<(String, String)>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Looked {
    /// A repository.
    Found(Box<Repository>),
    /// There is none.
    Nothing,
    /// There is no git.
    NoGit,
    /// There is something else, in words.
    Odd(String),
}

/// Look at the project's.
pub(super) async fn laptop(project: &Utf8Path) -> Result<Looked, Failure> {
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args(["-c", LOOK, "sh", project.as_str(), "", ""])
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    Ok(read(&shell.output().await?.stdout)?)
}

/// Look at the copy's, and leave the number of the last exchange there.
pub(super) async fn vm(
    way: &Way,
    vm: &VmName,
    copy: &str,
    marker: &str,
    number: u64,
) -> Result<Looked, Failure> {
    let request = request(LOOK, &[copy, marker, &number.to_string()]);
    let said = capture(way, &request, None, LARGEST)
        .await
        .map_err(|error| reach::failure(vm, error))?;
    Ok(read(&said.stdout)?)
}

/// Run git in the project as the scripts do.
pub(super) async fn git(
    project: &Utf8Path,
    words: &[&str],
) -> Result<std::process::Output, Failure> {
    let script = format!("{QUIET}\ncd -- \"$1\" && shift && quiet \"$@\"");
    Ok(tokio::process::Command::new("sh")
        .args(["-c", &script, "sh", project.as_str()])
        .args(words)
        .stdin(std::process::Stdio::null())
        .output()
        .await?)
}

/// A run of one of our scripts on a VM.
pub(super) fn request(script: &str, words: &[&str]) -> RunRequest {
    let argv = ["sh", "-c", script, "sh"];
    RunRequest {
        argv: argv
            .iter()
            .chain(words)
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        grace: Some(GRACE),
        ..RunRequest::default()
    }
}

/// A repository that says of itself what can't be.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    /// It broke off.
    #[error("git's answer broke off")]
    Truncated,
    /// A fact is no fact.
    #[error("git said something that is not understood: `{0}`")]
    Unknown(String),
}

/// Read what the script says.
fn read(said: &[u8]) -> Result<Looked, LookError> {
    let text = String::from_utf8_lossy(said);
    if !text.ends_with("end\n") {
        return Err(LookError::Truncated);
    }
    let mut repository = Repository {
        id: None,
        format: "sha1".to_owned(),
        worktree: None,
        // Replaced below: a repository has a branch or a commit at HEAD.
        head: Head::Branch(RefName::parse("refs/heads/main").ok_or(LookError::Truncated)?),
        at: None,
        index: None,
        staged: None,
        busy: None,
        held: BTreeSet::new(),
        refs: BTreeMap::new(),
        aliases: BTreeSet::new(),
        partial: false,
        exclude: None,
        user_exclude: None,
        settings: Vec::new(),
    };
    let (mut head, mut locked, mut held) = (None, false, Vec::new());
    for line in text.lines() {
        let unknown = || LookError::Unknown(line.chars().take(200).collect());
        let oid = |text: &str| Oid::parse(text).ok_or_else(unknown);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "none" => return Ok(Looked::Nothing),
            "nogit" => return Ok(Looked::NoGit),
            "odd" => return Ok(Looked::Odd(rest.to_owned())),
            "format" => rest.clone_into(&mut repository.format),
            "worktree" => repository.worktree = Some(rest.to_owned()),
            "locked" => locked = true,
            "busy" => repository.busy = Some(going_on(rest).to_owned()),
            "held" => held.extend(RefName::parse(rest)),
            "head" => head = Some(rest.to_owned()),
            "at" => repository.at = Some(oid(rest)?),
            "index" => repository.index = Some(oid(rest)?),
            "staged" => repository.staged = Some(oid(rest)?),
            "id" => {
                let (id, number) = rest.split_once(' ').unwrap_or((rest, ""));
                repository.id = Some((id.to_owned(), number.parse().unwrap_or(0)));
            }
            "exclude" => repository.exclude = Some(rest.to_owned()),
            "set" => set(&mut repository, rest),
            "ref" => {
                let mut fields = rest.split(' ');
                let value = oid(fields.next().unwrap_or_default())?;
                // A name that no repository of ours would have stays where it is.
                if let Some(name) = fields.next().and_then(RefName::parse) {
                    if fields.next().is_some_and(|alias| !alias.is_empty()) {
                        repository.aliases.insert(name);
                    } else {
                        repository.refs.insert(name, value);
                    }
                }
            }
            "dir" | "shallow" | "end" => {}
            _ => return Err(unknown()),
        }
    }
    match (head, &repository.at) {
        (Some(name), _) => match RefName::parse(&name).filter(RefName::is_branch) {
            Some(branch) => repository.head = Head::Branch(branch),
            None => return Ok(Looked::Odd(format!("its HEAD is `{name}`"))),
        },
        (None, Some(at)) => repository.head = Head::Detached(at.clone()),
        (None, None) => return Ok(Looked::Odd("its HEAD is no commit".to_owned())),
    }
    // Worktrees are listed with this one, once.
    if let Some(own) = repository.head.branch()
        && let Some(at) = held.iter().position(|branch| branch == own)
    {
        held.remove(at);
    }
    repository.held = held.into_iter().collect();
    if repository.index.is_none() {
        let merge = || "a merge with conflicts is open".to_owned();
        repository.busy.get_or_insert_with(merge);
    }
    if locked {
        repository.busy = Some("another git holds `index.lock`".to_owned());
    }
    Ok(Looked::Found(Box::new(repository)))
}

/// What one setting says.
fn set(repository: &mut Repository, setting: &str) {
    let (name, value) = setting.split_once(' ').unwrap_or((setting, "true"));
    match name {
        "core.excludesfile" => repository.user_exclude = Some(value.to_owned()),
        "core.autocrlf" | "core.eol" => {
            repository
                .settings
                .push((name.to_owned(), value.to_owned()));
        }
        _ if name == "extensions.partialclone" || value == "true" => repository.partial = true,
        _ => {}
    }
}

/// What git's file stands for.
fn going_on(file: &str) -> &'static str {
    match file {
        "MERGE_HEAD" => "a merge is going on",
        "BISECT_LOG" => "a bisection is going on",
        "CHERRY_PICK_HEAD" | "sequencer" => "a cherry-pick is going on",
        "REVERT_HEAD" => "a revert is going on",
        _ => "a rebase is going on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789012345678901234567890123456789";

    fn found(text: &str) -> Repository {
        match read(text.as_bytes()).unwrap() {
            Looked::Found(found) => *found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_own_branch_is_not_held_by_the_own_worktree() {
        let text = format!(
            "head refs/heads/main\nheld refs/heads/main\nheld refs/heads/other\nindex {A}\nend\n"
        );
        let held: Vec<_> = found(&text).held.into_iter().map(|h| h.called()).collect();
        assert_eq!(held, ["other"]);
    }

    #[test]
    fn what_breaks_off_is_no_repository_with_fewer_branches() {
        let text = format!("head refs/heads/main\nref {A} refs/heads/main \n");
        assert!(matches!(read(text.as_bytes()), Err(LookError::Truncated)));
    }

    #[test]
    fn names_that_lead_elsewhere_are_left_out() {
        let text = format!(
            "head refs/heads/main\nindex {A}\nref {A} refs/heads/../../config \nref {A} refs/heads/a refs/heads/b\nend\n"
        );
        let found = found(&text);
        assert!(found.refs.is_empty());
        assert_eq!(found.aliases.len(), 1);
    }

    #[test]
    fn an_index_that_is_no_tree_is_an_open_merge() {
        let text = "head refs/heads/main\nend\n";
        assert_eq!(
            found(text).busy.as_deref(),
            Some("a merge with conflicts is open")
        );
    }
}
