//! What has to be mounted, found out before the command's process is made.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

/// Where the picture is put together. The first one there is gets covered meanwhile,
/// for nobody but the process that does it.
const BASES: [&str; 4] = ["/tmp", "/mnt", "/var/tmp", "/run"];
/// The kernel's own, which is no place for a copy.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// The picture and the real root while it is put together.
pub(super) const NEW: &str = "/new";
pub(super) const OLD: &str = "/old";

/// How a copy is shown at another path.
#[derive(Debug)]
pub(crate) struct View {
    at: PathBuf,
    folder: PathBuf,
    pub(super) is_root: bool,
    pub(super) own_uid: CString,
    pub(super) own_gid: CString,
    pub(super) bind: (CString, CString),
    /// The root is a picture of the real one, since the place can't be made there.
    pub(super) picture: Option<Picture>,
}

/// The root as it is shown.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) base: CString,
    pub(super) new: CString,
    pub(super) old: CString,
    pub(super) steps: Vec<Step>,
}

/// One thing of the picture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An empty folder.
    Folder(CString),
    /// An empty file, for something to be shown there.
    File(CString),
    /// The same link.
    Link { target: CString, at: CString },
    /// What is really there.
    Same { real: CString, at: CString },
}

impl View {
    /// Show `folder` at `at`. What of either has to be there is made. The error says
    /// why it can't be shown.
    pub(crate) fn plan(at: &[u8], folder: &[u8]) -> Result<Self, String> {
        let at = absolute(at)?;
        let folder = absolute(folder)?;
        if at == Path::new("/") || KERNELS.iter().any(|kernels| at.starts_with(kernels)) {
            return Err(format!("`{}` is no place for a copy", at.display()));
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| format!("`{}`: {error}", path.display())
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let above = above(&at)?;
        let is_root = rustix::process::geteuid().is_root();
        let picture = if above == at {
            let mut entries = fs::read_dir(&at).map_err(failed(&at))?;
            if entries.next().is_some() {
                return Err(format!(
                    "`{}` has files of the VM's own, which the copy would hide",
                    at.display()
                ));
            }
            None
        } else if is_writable(&above) {
            fs::create_dir_all(&at).map_err(failed(&at))?;
            None
        } else {
            Some(Picture::plan(&at, &above).map_err(failed(&above))?)
        };
        let number = |id: u32| text(format!("{id} {id} 1\n").as_bytes());
        let bind = match &picture {
            Some(_) => (under(OLD, &folder)?, under(NEW, &at)?),
            None => (
                text(folder.as_os_str().as_bytes())?,
                text(at.as_os_str().as_bytes())?,
            ),
        };
        Ok(Self {
            at,
            folder,
            is_root,
            own_uid: number(rustix::process::geteuid().as_raw())?,
            own_gid: number(rustix::process::getegid().as_raw())?,
            bind,
            picture,
        })
    }

    /// Where what the run sees at `path` really is.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.at) {
            Ok(below) => self.folder.join(below),
            Err(_) => path.to_owned(),
        }
    }
}

impl Picture {
    /// A picture of `/` and of the folders down to `above`, with an empty folder at
    /// `at` below it.
    fn plan(at: &Path, above: &Path) -> io::Result<Self> {
        let base = BASES.iter().find(|base| Path::new(base).is_dir());
        let base = base.ok_or_else(|| io::Error::other("there is no folder to begin in"))?;
        let mut steps = Vec::new();
        let path = |root: &str, path: &Path| under(root, path).map_err(io::Error::other);
        let mut shown: Vec<&Path> = above.ancestors().collect();
        shown.reverse();
        for (depth, folder) in shown.iter().enumerate() {
            if is_writable(folder) {
                return Err(io::Error::other(format!(
                    "`{}` would be shown as a picture, in which nothing new can be made",
                    folder.display()
                )));
            }
            for entry in fs::read_dir(folder)? {
                let real = entry?.path();
                let Ok(kind) = fs::symlink_metadata(&real).map(|found| found.file_type()) else {
                    continue;
                };
                let at = path(NEW, &real)?;
                if shown.get(depth + 1) == Some(&real.as_path()) {
                    steps.insert(depth, Step::Folder(at));
                    continue;
                }
                if kind.is_symlink() {
                    let target = fs::read_link(&real)?;
                    let target = text(target.as_os_str().as_bytes()).map_err(io::Error::other)?;
                    steps.push(Step::Link { target, at });
                    continue;
                }
                steps.push(if kind.is_dir() {
                    Step::Folder(at.clone())
                } else {
                    Step::File(at.clone())
                });
                let real = path(OLD, &real)?;
                steps.push(Step::Same { real, at });
            }
        }
        let mut made: Vec<&Path> = at
            .ancestors()
            .take_while(|folder| *folder != above)
            .collect();
        made.reverse();
        for folder in made {
            steps.push(Step::Folder(path(NEW, folder)?));
        }
        let join = |name: &str| text(format!("{base}{name}").as_bytes()).map_err(io::Error::other);
        Ok(Self {
            base: join("")?,
            new: join(NEW)?,
            old: join(OLD)?,
            steps,
        })
    }
}

/// The deepest folder of the path that is there. A link on the way would lead
/// elsewhere.
fn above(at: &Path) -> Result<PathBuf, String> {
    let mut found = PathBuf::from("/");
    for part in at.components().skip(1) {
        let next = found.join(part);
        match fs::symlink_metadata(&next) {
            Ok(entry) if entry.is_dir() => found = next,
            Ok(entry) if entry.is_symlink() => {
                return Err(format!("`{}` is a symbolic link on the VM", next.display()));
            }
            Ok(_) => return Err(format!("`{}` is a file on the VM", next.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(format!("`{}`: {error}", next.display())),
        }
    }
    Ok(found)
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK).is_ok()
}

/// The path, absolute and without any `..`.
fn absolute(path: &[u8]) -> Result<PathBuf, String> {
    let path = Path::new(OsStr::from_bytes(path));
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain {
        Ok(path.components().collect())
    } else {
        Err(format!("`{}` is not an absolute path", path.display()))
    }
}

fn under(root: &str, path: &Path) -> Result<CString, String> {
    text(&[root.as_bytes(), path.as_os_str().as_bytes()].concat())
}

fn text(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "a path holds NUL".to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::root("/")]
    #[case::kernels("/proc/copy")]
    #[case::relative("copy")]
    #[case::upwards("/srv/../etc/copy")]
    #[case::others("/etc")]
    #[case::file("/etc/passwd/copy")]
    #[case::link("/proc/self/cwd/copy")]
    fn nothing_of_the_vms_own_is_hidden(#[case] at: &str) {
        let folder = tempfile::tempdir().unwrap();
        let error = View::plan(at.as_bytes(), folder.path().as_os_str().as_bytes());
        assert!(error.is_err(), "{error:?}");
    }

    #[test]
    fn a_path_below_the_place_is_one_of_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("at");
        let copy = folder.path().join("copy");
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let view = View::plan(&bytes(&at), &bytes(&copy)).unwrap();
        assert!(view.picture.is_none(), "it can be made");
        assert_eq!(view.outside(&at.join("a/b")), copy.join("a/b"));
        assert_eq!(view.outside(Path::new("/usr")), Path::new("/usr"));
        // There now, and empty: the same once more.
        View::plan(&bytes(&at), &bytes(&copy)).unwrap();
        fs::create_dir(at.join("theirs")).unwrap();
        View::plan(&bytes(&at), &bytes(&copy)).unwrap_err();
    }

    #[test]
    fn a_picture_has_everything_but_the_way_to_the_copy() {
        let above = Path::new("/");
        // As root everything is writable, and no picture is ever needed.
        if rustix::process::geteuid().is_root() {
            Picture::plan(Path::new("/none/copy"), above).unwrap_err();
            return;
        }
        let picture = Picture::plan(Path::new("/none/copy"), above).unwrap();
        let real = |path: &str| Step::Same {
            real: under(OLD, Path::new(path)).unwrap(),
            at: under(NEW, Path::new(path)).unwrap(),
        };
        assert!(picture.steps.contains(&real("/etc")));
        let made = |path: &str| Step::Folder(under(NEW, Path::new(path)).unwrap());
        assert!(
            picture
                .steps
                .ends_with(&[made("/none"), made("/none/copy")])
        );
    }
}
