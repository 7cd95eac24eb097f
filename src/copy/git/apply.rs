//! Branches, HEAD and the index of one repository, moved by one script on either side.

use std::process::Stdio;

use boxery_remote::{RunExit, capture};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::carry::Ends;
use super::look::request;
use super::names::{Oid, RefName};
use crate::error::Failure;
use crate::reach;

const APPLY: &str = concat!(include_str!("quiet.sh"), include_str!("apply.sh"));

/// What shall be made of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// HEAD as it is and as it shall be.
    pub(super) head: Option<(String, String)>,
    /// The index's tree as it is and as it shall be.
    pub(super) index: Option<(Oid, Oid)>,
    /// References that shall be, each with what it is now.
    pub(super) set: Vec<(String, Oid, Option<Oid>)>,
    /// References that shall go.
    pub(super) delete: Vec<(String, Oid)>,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is done.
    Done,
    /// Something isn't any more what it was.
    Moved,
    /// Somebody holds the index.
    Locked,
    /// Git refuses, and why.
    Refused(String),
}

impl Orders {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the script reads. What shall be comes first, so that a crash leaves a branch
    /// too many and not one too few; but git's files have no room for `a` beside `a/b`.
    fn references(&self) -> String {
        let mut set = String::new();
        for (name, new, old) in &self.set {
            match old {
                Some(old) => {
                    set.extend(["update ", name, " ", new.as_str(), " ", old.as_str(), "\n"]);
                }
                None => set.extend(["create ", name, " ", new.as_str(), "\n"]),
            }
        }
        let mut delete = String::new();
        for (name, old) in &self.delete {
            delete.extend(["delete ", name, " ", old.as_str(), "\n"]);
        }
        if self.collide() {
            format!("-- before\n-- after\n{delete}-- last\n{set}-- end\n")
        } else {
            format!("-- before\n{set}-- after\n{delete}-- last\n-- end\n")
        }
    }

    /// Whether something can come only where something else has gone.
    fn collide(&self) -> bool {
        let names = |text: &str| RefName::parse(text);
        let gone: Vec<RefName> = self
            .delete
            .iter()
            .filter_map(|(name, _)| names(name))
            .collect();
        let new = self.set.iter().filter(|(_, _, old)| old.is_none());
        new.filter_map(|(name, _, _)| names(name))
            .any(|name| gone.iter().any(|gone| gone.collides(&name)))
    }

    fn words<'a>(&'a self, folder: &'a str, from: &'a str) -> [&'a str; 6] {
        let (index, new_index) = match &self.index {
            Some((old, new)) => (old.as_str(), new.as_str()),
            None => ("", ""),
        };
        let (head, new_head) = match &self.head {
            Some((old, new)) => (old.as_str(), new.as_str()),
            None => ("", ""),
        };
        [folder, from, index, new_index, head, new_head]
    }
}

/// Carry them out in the project.
pub(super) async fn laptop(ends: Ends<'_>, orders: &Orders) -> Result<Outcome, Failure> {
    let mut shell = Command::new("sh")
        .args(["-c", APPLY, "sh"])
        .args(orders.words(ends.project.as_str(), ends.vm.as_str()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = shell.stdin.take() {
        // A script that gives up early says so by its status.
        stdin.write_all(orders.references().as_bytes()).await.ok();
    }
    let output = shell.wait_with_output().await?;
    Ok(outcome(
        output.status.code(),
        &String::from_utf8_lossy(&output.stderr),
    ))
}

/// Carry them out in the copy.
pub(super) async fn vm(ends: Ends<'_>, orders: &Orders) -> Result<Outcome, Failure> {
    let references = std::io::Cursor::new(orders.references().into_bytes());
    let said = capture(
        ends.way,
        &request(APPLY, &orders.words(ends.copy, "the laptop")),
        Some(Box::pin(references)),
        1 << 16,
    )
    .await
    .map_err(|error| reach::failure(ends.vm, error))?;
    let code = match said.exit {
        RunExit::Code(code) => Some(i32::from(code)),
        RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed => None,
    };
    Ok(outcome(code, &String::from_utf8_lossy(&said.stderr)))
}

fn outcome(code: Option<i32>, said: &str) -> Outcome {
    match code {
        Some(0) => Outcome::Done,
        Some(75) => Outcome::Locked,
        Some(76) => Outcome::Moved,
        _ => {
            let line = said.lines().find(|line| !line.trim().is_empty());
            Outcome::Refused(line.unwrap_or("it gave no reason").trim().to_owned())
        }
    }
}
