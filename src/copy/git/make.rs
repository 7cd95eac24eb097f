//! The copy's repository: made, and told what git can't know there.

use boxery_remote::capture;
use boxery_sync::EntryPath;

use super::carry::Ends;
use super::exchange::Work;
use super::look::{Repository, git, request};
use super::names::RefName;
use crate::copy::rules::scan_options;
use crate::error::Failure;
use crate::reach;

const MAKE: &str = concat!(include_str!("quiet.sh"), include_str!("make.sh"));
/// As long as a list of what is ignored may be to travel.
const LONGEST_EXCLUDE: usize = 64 << 10;

impl Work<'_> {
    /// A tracked file that a policy keeps from the VM.
    pub(super) async fn withheld(&self) -> Result<Option<EntryPath>, Failure> {
        if !self.pair.has_policies() {
            return Ok(None);
        }
        let listed = git(self.ends.project, &["ls-files", "-z"]).await?.stdout;
        let mut paths = listed.split(|byte| *byte == 0).filter_map(EntryPath::parse);
        Ok(paths.find(|path| self.pair.is_never_sent(path)))
    }

    /// What git ignores here and can't know there.
    pub(super) fn exclude(&self, laptop: &Repository) -> String {
        let own = laptop
            .exclude
            .as_ref()
            .map(|path| self.ends.project.join(path).into_std_path_buf());
        let user = laptop.user_exclude.as_ref().map(std::path::PathBuf::from);
        let user = user.or_else(|| {
            scan_options(self.app)
                .user_excludes
                .map(camino::Utf8PathBuf::into_std_path_buf)
        });
        let mut text = String::new();
        for path in [own, user].into_iter().flatten() {
            if let Ok(found) = std::fs::read_to_string(path)
                && text.len() + found.len() < LONGEST_EXCLUDE
            {
                text.push_str(&found.replace('\0', ""));
                text.push('\n');
            }
        }
        text
    }

    /// Make the copy's repository, or tell it what is new. Says why it can't be made.
    pub(super) async fn make(
        &self,
        laptop: &Repository,
        exclude: &str,
        id: &str,
        number: u64,
    ) -> Result<Option<String>, Failure> {
        let Ends { way, vm, copy, .. } = self.ends;
        let number = number.to_string();
        let branch = laptop.head.branch().map_or("", RefName::as_str);
        let mut words = vec![
            copy,
            self.pair.marker.as_str(),
            id,
            &number,
            &laptop.format,
            branch,
            exclude,
        ];
        for (name, value) in &laptop.settings {
            words.extend([name.as_str(), value.as_str()]);
        }
        let said = capture(way, &request(MAKE, &words), None, 1 << 16)
            .await
            .map_err(|error| reach::failure(vm, error))?;
        Ok((!said.succeeded()).then(|| {
            format!(
                "{vm} can't make a repository in the copy: {}",
                said.complaint()
            )
        }))
    }
}
