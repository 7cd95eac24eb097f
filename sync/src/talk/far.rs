//! The copy's side of a sync.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::{Answer, Ask, BATCH, Listed, Marked, PIECE, RESUMED, What};
use crate::apply::{Applying, apply, settle};
use crate::index::{Began, Stamp, StatIndex};
use crate::own::{EPOCH, INDEX, MARKER};
use crate::plan::Change;
use crate::root::Root;
use crate::stage::{Stage, hash};
use crate::watch::{LIMIT, Moment, Watch, is_limit};
use crate::{Digest, Entry, EntryKind, EntryPath, Source, State, store};

/// Answer until the laptop closes. The folder `copy` is the only one that is touched.
///
/// `next` gives what the laptop asks, `say` sends the answers; `wait` waits until the
/// descriptor is readable or the laptop has said something more, and tells whether it
/// has. An error of the disk is told before it ends the conversation.
pub fn serve(
    copy: &Path,
    machine: &str,
    mut next: impl FnMut() -> io::Result<Ask>,
    mut say: impl FnMut(&Answer) -> io::Result<()>,
    mut wait: impl FnMut(Option<BorrowedFd<'_>>) -> io::Result<bool>,
) -> io::Result<()> {
    let mut far = Far {
        copy,
        machine,
        root: None,
        stage: None,
        index: StatIndex::default(),
        seen: StatIndex::default(),
        began: Began::now(),
        changes: Vec::new(),
        watch: None,
        says: &mut say,
    };
    let ended = far.talk(&mut next, &mut wait);
    if let Err(error) = &ended {
        let trouble = Answer::Trouble {
            what: error.to_string(),
            errno: error.raw_os_error().unwrap_or(0),
        };
        // If the line itself is broken nobody hears it.
        say(&trouble).ok();
    }
    ended
}

struct Far<'a> {
    copy: &'a Path,
    machine: &'a str,
    root: Option<Root>,
    stage: Option<Stage>,
    /// What was known at the beginning.
    index: StatIndex,
    /// What is known now.
    seen: StatIndex,
    began: Began,
    changes: Vec<Change>,
    /// Of this conversation alone, and from when on it is asked.
    watch: Option<(Watch, Moment)>,
    says: &'a mut dyn FnMut(&Answer) -> io::Result<()>,
}

/// A marker that isn't whole yet.
const NEW: &str = ".boxery-new";

fn describe(error: &io::Error) -> String {
    if is_limit(error) {
        format!("{error}: the limit is {LIMIT}")
    } else {
        error.to_string()
    }
}

fn unasked() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a message that has no place here",
    )
}

impl Far<'_> {
    fn say(&mut self, answer: &Answer) -> io::Result<()> {
        (self.says)(answer)
    }

    fn root(&self) -> io::Result<&Root> {
        self.root.as_ref().ok_or_else(unasked)
    }

    fn talk(
        &mut self,
        next: &mut impl FnMut() -> io::Result<Ask>,
        wait: &mut impl FnMut(Option<BorrowedFd<'_>>) -> io::Result<bool>,
    ) -> io::Result<()> {
        loop {
            match next()? {
                Ask::Greet { marker, create } => self.greet(&marker, create)?,
                Ask::List(folders) => {
                    for folder in &folders {
                        self.list(folder.as_ref())?;
                    }
                }
                Ask::Hash(paths) => {
                    let hashed = paths.iter().map(|path| self.hash(path));
                    let hashed = hashed.collect::<io::Result<_>>()?;
                    self.say(&Answer::Hashed(hashed))?;
                }
                Ask::Stage => {
                    self.keep_index();
                    let stage = Stage::open(self.root()?)?;
                    let leftovers = stage.leftovers()?;
                    self.stage = Some(stage);
                    self.say(&Answer::Leftovers(leftovers))?;
                }
                Ask::Sweep { known, all } => {
                    let (Some(root), Some(stage)) = (&self.root, &self.stage) else {
                        return Err(unasked());
                    };
                    let kept = stage.sweep(root, all, |digest| known.contains(digest))?;
                    self.say(&Answer::Kept(kept))?;
                }
                Ask::Put { digest, size } => self.put(digest, size, next)?,
                Ask::Data(_) | Ask::PutEnd => return Err(unasked()),
                Ask::Get {
                    path,
                    state,
                    position,
                } => self.get(&path, &state, position)?,
                Ask::Changes(changes) => self.changes.extend(changes),
                Ask::Apply => self.apply()?,
                Ask::Publish(epoch) => {
                    let file = self.copy.join(EPOCH);
                    store::write(&file, &epoch, store::Durability::OnDisk)?;
                    self.say(&Answer::Done)?;
                }
                Ask::Watch(folders) => {
                    let watched = self.watch(&folders);
                    self.say(&Answer::Watching {
                        new: watched.as_ref().is_ok_and(|new| *new),
                        why_not: watched.err().map(|error| describe(&error)),
                    })?;
                }
                Ask::Await => {
                    let woken = self.wait_for_news(wait)?;
                    self.say(&Answer::Woken(woken))?;
                }
                Ask::Close => {
                    self.keep_index();
                    if let (Some(stage), Some(root)) = (self.stage.take(), &self.root) {
                        stage.close(root)?;
                    }
                    return self.say(&Answer::Done);
                }
            }
        }
    }

    /// Whether any of them wasn't watched before.
    fn watch(&mut self, folders: &[Option<EntryPath>]) -> io::Result<bool> {
        if self.root.is_none() {
            return Err(unasked());
        }
        if self.watch.is_none() {
            let mut watch = Watch::open(self.copy, 0)?;
            let now = watch.now()?;
            self.watch = Some((watch, now));
        }
        let mut new = false;
        if let Some((watch, _)) = &mut self.watch {
            for folder in folders {
                new |= watch.folder(folder.as_ref())?;
            }
        }
        Ok(new)
    }

    /// Whether something changed; not if the laptop says something before.
    fn wait_for_news(
        &mut self,
        wait: &mut impl FnMut(Option<BorrowedFd<'_>>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let Some((watch, moment)) = &mut self.watch else {
            wait(None)?;
            return Ok(false);
        };
        loop {
            if watch.has_news(*moment)? {
                *moment = watch.now()?;
                return Ok(true);
            }
            if wait(Some(watch.as_fd()))? {
                return Ok(false);
            }
        }
    }

    /// What was hashed needn't be hashed again, also if this sync writes nothing. A copy
    /// that can't hold the index has every file hashed each time.
    fn keep_index(&mut self) {
        if self.root.is_some() && self.seen != self.index {
            self.seen.write(&self.copy.join(INDEX)).ok();
            self.index.clone_from(&self.seen);
        }
    }

    fn greet(&mut self, marker: &str, create: bool) -> io::Result<()> {
        let mut marked = self.look(marker)?;
        if marked == Marked::Nothing && create {
            fs::create_dir_all(self.copy)?;
            let new = self.copy.join(NEW);
            let mut file = File::create(&new)?;
            io::Write::write_all(&mut file, format!("{marker}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(new, self.copy.join(MARKER))?;
            marked = Marked::Ours;
        }
        let mut epoch = 0;
        let mut folds = (false, false);
        if marked == Marked::Ours {
            self.root = Some(Root::open(self.copy)?);
            self.index = StatIndex::read(&self.copy.join(INDEX));
            epoch = store::read(&self.copy.join(EPOCH))
                .ok()
                .flatten()
                .unwrap_or(0);
            // The marker is there under another case: then the disk folds.
            folds.0 = self.copy.join(MARKER.to_uppercase()).exists();
            folds.1 = folds.0;
        }
        self.say(&Answer::Greeting {
            marked,
            machine: self.machine.to_owned(),
            epoch,
            folds_case: folds.0,
            folds_unicode: folds.1,
        })
    }

    fn look(&self, marker: &str) -> io::Result<Marked> {
        match self.copy.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(Marked::NoCopy),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Marked::Nothing),
            Err(error) => return Err(error),
        }
        let file = self.copy.join(MARKER);
        match file.symlink_metadata() {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Ok(Marked::NoCopy),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A marker that was being written when its writer was killed is nobody's.
                let mut names = fs::read_dir(self.copy)?.map(|entry| Ok(entry?.file_name()));
                let is_empty = names.all(|name: io::Result<_>| name.is_ok_and(|n| n == NEW));
                return Ok(if is_empty {
                    Marked::Nothing
                } else {
                    Marked::NoCopy
                });
            }
            Err(error) => return Err(error),
        }
        let mut text = String::new();
        File::open(file)?.take(1000).read_to_string(&mut text)?;
        let text = text.trim_end_matches('\n');
        Ok(if text == marker {
            Marked::Ours
        } else if text.strip_suffix(" unfinished") == Some(marker) {
            Marked::Unfinished
        } else {
            Marked::Other
        })
    }

    /// Everything in one folder. A folder that can't be read is an error, never an
    /// empty one.
    fn list(&mut self, path: Option<&EntryPath>) -> io::Result<()> {
        let folder = match self.root()?.folder(path) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if path.is_some() => {
                return self.say(&Answer::Folder {
                    entries: None,
                    more: false,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            let stat = match statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let what = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => What::Folder,
                FileType::RegularFile => {
                    let path = EntryPath::child(path, OsStr::from_bytes(&name));
                    let stamp = Stamp::of(&stat);
                    let known = self.index.get(&path, &stamp).cloned();
                    known.map_or(What::File, |entry| {
                        let state = State::of(&entry);
                        self.seen.note(self.began, stamp, entry);
                        What::Known(state)
                    })
                }
                FileType::Symlink => {
                    match rustix::fs::readlinkat(&folder, name.as_slice(), Vec::new()) {
                        Ok(target) => What::Known(State::Link {
                            size: target.as_bytes().len() as u64,
                            digest: Digest::of(target.as_bytes()),
                        }),
                        Err(Errno::NOENT | Errno::INVAL) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => What::Special,
            };
            entries.push(Listed { name, what });
            if entries.len() == BATCH {
                let entries = Some(std::mem::take(&mut entries));
                self.say(&Answer::Folder {
                    entries,
                    more: true,
                })?;
            }
        }
        self.say(&Answer::Folder {
            entries: Some(entries),
            more: false,
        })
    }

    fn hash(&mut self, path: &EntryPath) -> io::Result<Option<State>> {
        let wanted = State::File {
            executable: false,
            size: 0,
            digest: Digest::NONE,
        };
        let Some(Source::File(file)) = Source::open(self.root()?, path, &wanted)? else {
            return Ok(None);
        };
        let before = Stamp::of_metadata(&file.metadata()?);
        let mut hasher = blake3::Hasher::new();
        let size = hash(&file, &mut hasher)?;
        let meta = file.metadata()?;
        let after = Stamp::of_metadata(&meta);
        let entry = Entry {
            path: path.clone(),
            kind: EntryKind::File {
                executable: std::os::unix::fs::MetadataExt::mode(&meta) & 0o100 != 0,
            },
            size,
            digest: Digest(*hasher.finalize().as_bytes()),
        };
        let state = State::of(&entry);
        if before == after {
            self.seen.note(self.began, after, entry);
        }
        Ok(Some(state))
    }

    /// Take content up to its end. What isn't what was announced isn't staged, and
    /// the change that needs it says so.
    fn put(
        &mut self,
        digest: Digest,
        size: u64,
        next: &mut impl FnMut() -> io::Result<Ask>,
    ) -> io::Result<()> {
        let says = &mut *self.says;
        let stage = self.stage.as_ref().ok_or_else(unasked)?;
        let mut incoming = stage.begin(digest, size)?;
        if size >= RESUMED {
            says(&Answer::Have(incoming.position()))?;
        } else {
            incoming.restart()?;
        }
        loop {
            match next()? {
                Ask::Data(bytes) => incoming.push(&bytes)?,
                Ask::PutEnd => return incoming.finish().map(drop),
                _ => return Err(unasked()),
            }
        }
    }

    fn get(&mut self, path: &EntryPath, state: &State, position: u64) -> io::Result<()> {
        if let Some(mut source) = Source::open(self.root()?, path, state)? {
            source.skip(position)?;
            loop {
                let mut bytes = vec![0; PIECE];
                let count = source.read(&mut bytes)?;
                if count == 0 {
                    break;
                }
                bytes.truncate(count);
                self.say(&Answer::Data(bytes))?;
            }
        }
        self.say(&Answer::GetEnd)
    }

    fn apply(&mut self) -> io::Result<()> {
        let changes = std::mem::take(&mut self.changes);
        let seen = &self.seen;
        let root = self.root.as_ref().ok_or_else(unasked)?;
        let stage = self.stage.as_mut().ok_or_else(unasked)?;
        let mut applying = Applying {
            known: &|path| seen.stamp(path),
            modes: true,
            probe: &mut |_| Ok(()),
        };
        let applied = apply(root, stage, &changes, &mut applying)?;
        settle(root, &changes)?;
        self.say(&Answer::Applied {
            left: applied.left,
            occupied: applied.occupied,
        })
    }
}
