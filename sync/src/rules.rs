//! What counts: one set of rules, the laptop's, for both trees.
//!
//! Tracked files always count. Of the others, what `.gitignore`, `.boxeryignore`,
//! the repository's `info/exclude` and the user's excludes ignore doesn't. The
//! order of precedence is that of the `ignore` crate's walker: `.boxeryignore`
//! before `.gitignore`, the deepest file first, and nothing below an ignored
//! folder comes back. The walker itself isn't used, because the same question
//! must be answered for paths that exist on the VM only.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::git::{self, GitFacts};
use crate::own::is_fenced_off;
use crate::{EntryPath, ScanOptions, SyncError};

/// The ignore file that is boxery's own, stronger than `.gitignore`.
const OWN_FILE: &str = ".boxeryignore";
const GIT_FILE: &str = ".gitignore";

/// What counts in a project and in its copies.
#[derive(Debug)]
pub struct Rules {
    root: Utf8PathBuf,
    tracked: HashSet<EntryPath>,
    /// Every folder above one of them.
    tracked_folders: HashSet<EntryPath>,
    ignore_case: bool,
    /// The rules of folders above the project, nearest first: a project can be
    /// a part of a repository.
    above: Vec<FolderRules>,
    /// The rules at the project's top.
    top: FolderRules,
    /// The rules of folders in the project that have any.
    folders: HashMap<EntryPath, FolderRules>,
    /// `info/exclude`, then the user's excludes.
    outer: Vec<Gitignore>,
}

#[derive(Debug, Default)]
struct FolderRules {
    own: Option<Gitignore>,
    git: Option<Gitignore>,
}

impl Rules {
    /// The rules at the top of `root`; those of its folders are added while it is read.
    pub(crate) fn read(root: &Utf8Path, options: &ScanOptions) -> Result<Self, SyncError> {
        let worktree = root
            .ancestors()
            .find(|folder| folder.join(".git").as_std_path().symlink_metadata().is_ok());
        let facts = match worktree {
            Some(_) => git::read_facts(root)?,
            None => GitFacts::default(),
        };
        let mut rules = Self {
            root: root.to_owned(),
            tracked_folders: facts.tracked.iter().flat_map(EntryPath::folders).collect(),
            tracked: facts.tracked,
            ignore_case: facts.ignore_case,
            above: Vec::new(),
            top: FolderRules::default(),
            folders: HashMap::new(),
            outer: Vec::new(),
        };
        if let Some(worktree) = worktree {
            for folder in root
                .ancestors()
                .skip(1)
                .take_while(|f| f.starts_with(worktree))
            {
                rules.above.push(rules.read_folder(folder.as_std_path())?);
            }
        }
        rules.top = rules.read_folder(root.as_std_path())?;
        let user = facts
            .user_excludes
            .or_else(|| options.user_excludes.clone().map(PathBuf::from));
        let base = worktree.unwrap_or(root).as_std_path();
        for file in [facts.exclude, user].into_iter().flatten() {
            rules.outer.extend(rules.read_file(base, &file)?);
        }
        Ok(rules)
    }

    /// The project's top folder.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The tracked files, in no order.
    pub(crate) fn tracked(&self) -> impl Iterator<Item = &EntryPath> {
        self.tracked.iter()
    }

    /// Add the ignore files of a folder that is about to be walked.
    pub(crate) fn enter(&mut self, folder: &EntryPath) -> Result<(), SyncError> {
        let rules = self.read_folder(&self.root.as_std_path().join(folder.as_path()))?;
        if rules.own.is_some() || rules.git.is_some() {
            self.folders.insert(folder.clone(), rules);
        }
        Ok(())
    }

    /// Whether an entry counts whose folders are known to be walked.
    pub(crate) fn counts_here(&self, path: &EntryPath, is_folder: bool) -> bool {
        if is_fenced_off(path) {
            return false;
        }
        self.tracked.contains(path) || !self.ignores(path, is_folder)
    }

    /// Whether the rules ignore `path` itself, whatever its folders are.
    fn ignores(&self, path: &EntryPath, is_folder: bool) -> bool {
        let full = self.root.as_std_path().join(path.as_path());
        let inner = std::iter::successors(path.parent(), EntryPath::parent)
            .filter_map(|folder| self.folders.get(&folder));
        let chain: Vec<&FolderRules> = inner.chain([&self.top]).chain(self.above.iter()).collect();
        let own = chain.iter().filter_map(|rules| rules.own.as_ref());
        let git = chain.iter().filter_map(|rules| rules.git.as_ref());
        for file in own.chain(git).chain(self.outer.iter()) {
            match file.matched(&full, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn read_folder(&self, folder: &Path) -> Result<FolderRules, SyncError> {
        Ok(FolderRules {
            own: self.read_file(folder, &folder.join(OWN_FILE))?,
            git: self.read_file(folder, &folder.join(GIT_FILE))?,
        })
    }

    /// The rules in `file` for what lies below `base`. A link isn't followed, as
    /// git hasn't since 2.32; a line that is no pattern is skipped.
    fn read_file(&self, base: &Path, file: &Path) -> Result<Option<Gitignore>, SyncError> {
        let failed = |source| self.unreadable(file, source);
        match file.symlink_metadata() {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Ok(None),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let bytes = std::fs::read(file).map_err(failed)?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let mut builder = GitignoreBuilder::new(base);
        // These calls fail on a pattern at most, and a bad one is skipped as git does.
        builder.case_insensitive(self.ignore_case).ok();
        for line in bytes.split(|b| *b == b'\n') {
            if let Ok(line) = std::str::from_utf8(line) {
                builder
                    .add_line(None, line.strip_suffix('\r').unwrap_or(line))
                    .ok();
            }
        }
        Ok(builder.build().ok().filter(|rules| !rules.is_empty()))
    }

    fn unreadable(&self, file: &Path, source: io::Error) -> SyncError {
        use std::os::unix::ffi::OsStrExt as _;
        let inside = file
            .strip_prefix(&self.root)
            .ok()
            .map(|p| p.as_os_str().as_bytes());
        match inside.and_then(EntryPath::parse) {
            Some(path) => SyncError::Read { path, source },
            None => SyncError::Root {
                root: self.root.clone(),
                source,
            },
        }
    }
}

/// Asks [`Rules`] about many paths in any order, and remembers the folders.
#[derive(Debug)]
pub struct Sieve<'a> {
    rules: &'a Rules,
    walked: HashMap<EntryPath, bool>,
}

impl<'a> Sieve<'a> {
    /// A sieve by `rules`.
    pub fn new(rules: &'a Rules) -> Self {
        Self {
            rules,
            walked: HashMap::new(),
        }
    }

    /// Whether an entry at `path` counts.
    pub fn counts(&mut self, path: &EntryPath, is_folder: bool) -> bool {
        !is_fenced_off(path)
            && (self.rules.tracked.contains(path)
                || (self.reaches(path) && !self.rules.ignores(path, is_folder)))
    }

    /// Whether a tracked file lies below a folder, which may itself be ignored.
    pub(crate) fn leads_on(&self, folder: &EntryPath) -> bool {
        self.rules.tracked_folders.contains(folder)
    }

    /// Whether a walk comes to the folder that holds `path`: none on the way is
    /// ignored.
    pub(crate) fn reaches(&mut self, path: &EntryPath) -> bool {
        let Some(folder) = path.parent() else {
            return true;
        };
        if let Some(known) = self.walked.get(&folder) {
            return *known;
        }
        let mut walked = true;
        for step in path.folders() {
            walked = walked && self.rules.counts_here(&step, true);
            self.walked.insert(step, walked);
        }
        walked
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
