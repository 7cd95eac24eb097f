//! The copies that lie on a VM, and their end.

use boxery_pin::{RemotePath, VmName};
use boxery_remote::{RunRequest, Way, capture};
use camino::Utf8PathBuf;

use super::known;
use crate::app::App;
use crate::config::Vm;
use crate::error::Failure;
use crate::reach;

/// As much as a VM may say of its copies.
const LARGEST: usize = 4 << 20;

/// A folder with a marker of boxery's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCopy {
    /// The folder.
    pub(crate) copy: String,
    /// What its marker holds.
    pub(crate) marker: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// When it was last used, seconds since 1970; for a copy of another laptop, when it
    /// was made.
    pub(crate) used: u64,
    /// Whose it is.
    pub(crate) owner: Owner,
}

/// Whose a copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Of a project here.
    Project(Utf8PathBuf),
    /// Of a project that was here.
    Gone(Utf8PathBuf),
    /// Of another laptop, or of a project that this one doesn't remember.
    Unknown,
}

/// The copies on the VM at the end of `way`.
pub(crate) async fn list(
    app: &App,
    name: &VmName,
    vm: &Vm,
    way: &Way,
) -> Result<Vec<FoundCopy>, Failure> {
    let known = known::list(app, name)?;
    let mut words = vec!["sh", "-c", include_str!("copies.sh"), "sh", vm.dir.as_str()];
    words.extend(known.iter().map(|(known, _)| known.copy.as_str()));
    let said = ask(name, way, &words).await?;
    let text = String::from_utf8_lossy(&said);
    let fields: Vec<&str> = text.split('\0').collect();
    let mut found: Vec<FoundCopy> = Vec::new();
    for field in fields.chunks_exact(4) {
        let [copy, marker, size, made] = field else {
            continue;
        };
        if found.iter().any(|found| found.copy == *copy) {
            continue;
        }
        let marker = marker.strip_suffix(" unfinished").unwrap_or(marker);
        let ours = known
            .iter()
            .find(|(known, _)| known.copy.as_str() == *copy && known.marker == marker);
        let (owner, used) = match ours {
            None => (Owner::Unknown, made.parse().unwrap_or(0)),
            Some((known, used)) if is_gone(&known.project) => {
                (Owner::Gone(known.project.clone()), *used)
            }
            Some((known, used)) => (Owner::Project(known.project.clone()), *used),
        };
        found.push(FoundCopy {
            copy: (*copy).to_owned(),
            marker: marker.to_owned(),
            bytes: size.parse::<u64>().unwrap_or(0) * 1024,
            used,
            owner,
        });
    }
    Ok(found)
}

/// Whether a project isn't here any more. One that can't be looked at may be.
fn is_gone(project: &Utf8PathBuf) -> bool {
    project
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Remove a copy whose project is gone.
pub(crate) async fn prune(
    app: &App,
    name: &VmName,
    way: &Way,
    found: &FoundCopy,
) -> Result<(), Failure> {
    let script = include_str!("prune.sh");
    let words = ["sh", "-c", script, "sh", &found.copy, &found.marker];
    ask(name, way, &words).await?;
    if let Owner::Gone(project) = &found.owner {
        known::forget(app, name, &found.copy.parse::<RemotePath>()?, project)?;
    }
    Ok(())
}

async fn ask(name: &VmName, way: &Way, words: &[&str]) -> Result<Vec<u8>, Failure> {
    let request = RunRequest {
        argv: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env: vec![("LC_ALL".to_owned(), b"C".to_vec())],
        ..RunRequest::default()
    };
    let captured = capture(way, &request, None, LARGEST)
        .await
        .map_err(|error| reach::failure(name, error))?;
    if captured.succeeded() {
        return Ok(captured.stdout);
    }
    Err(Failure::from(format!(
        "{name} said: {}",
        captured.complaint()
    )))
}
