//! Which mounts can leave a system call without an answer.
//!
//! A thread that waits for a dead FUSE or network server can't be ended, and it
//! keeps its process from ending. Where such a mount exists, the work is done in
//! a process that another one can leave behind.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Mount points of file systems whose server may not answer.
#[derive(Debug, Default)]
pub(crate) struct SlowMounts(Vec<PathBuf>);

/// As many links as Linux follows.
const LINKS: usize = 40;

impl SlowMounts {
    /// Those of this process: `/proc/self/mountinfo`, which never waits for any
    /// of them (`proc_pid_mountinfo(5)`).
    pub(crate) fn read() -> Self {
        let mut text = Vec::with_capacity(16 << 10);
        match File::open("/proc/self/mountinfo").and_then(|mut file| file.read_to_end(&mut text)) {
            Ok(_) => Self::parse(&text),
            // No such list: not Linux, or a bare container. Every path may wait.
            Err(_) => Self(vec![PathBuf::from("/")]),
        }
    }

    fn parse(text: &[u8]) -> Self {
        let slow = text.split(|byte| *byte == b'\n').filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let point = fields.nth(4)?;
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            if !may_wait(kind) {
                return None;
            }
            let point = PathBuf::from(OsStr::from_bytes(&unescape(point)));
            // The desktop's own helpers, and the container's views of /proc.
            let harmless = ["/run/user", "/proc", "/sys", "/dev"];
            (!harmless.iter().any(|folder| point.starts_with(folder))).then_some(point)
        });
        Self(slow.collect())
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `path` can be looked at without touching one of them, links followed.
    pub(crate) fn spare(&self, path: &Path) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut todo: VecDeque<OsString> = path
            .components()
            .map(|part| part.as_os_str().to_owned())
            .collect();
        let mut done = PathBuf::new();
        let mut links = 0;
        while let Some(part) = todo.pop_front() {
            if part == ".." {
                done.pop();
                continue;
            }
            done.push(&part);
            if self.0.iter().any(|point| done.starts_with(point)) {
                return false;
            }
            if let Ok(target) = std::fs::read_link(&done) {
                links += 1;
                if links > LINKS {
                    return false;
                }
                done.pop();
                for part in target.components().rev() {
                    todo.push_front(part.as_os_str().to_owned());
                }
            }
        }
        true
    }
}

fn may_wait(kind: &[u8]) -> bool {
    kind.starts_with(b"fuse") && kind != b"fusectl"
        || matches!(
            kind,
            b"nfs"
                | b"nfs4"
                | b"cifs"
                | b"smb3"
                | b"smbfs"
                | b"9p"
                | b"afs"
                | b"ceph"
                | b"lustre"
                | b"gfs2"
                | b"ocfs2"
                | b"beegfs"
                | b"orangefs"
                | b"pvfs2"
                | b"coda"
                | b"ncpfs"
                | b"virtiofs"
                | b"vboxsf"
                | b"prl_fs"
                | b"autofs"
                | b"glusterfs"
                | b"gpfs"
        )
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut at = 0;
    while let Some(byte) = field.get(at) {
        let digits = field.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(code.unwrap_or(*byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::disk("36 35 98:0 / / rw shared:1 - ext4 /dev/x rw", &[])]
    #[case::network("36 35 0:50 / /home rw shared:1 master:2 - nfs4 s:/x rw", &["/home"])]
    #[case::fuse("36 35 0:50 / /mnt/a\\040b rw - fuse.sshfs x rw", &["/mnt/a b"])]
    #[case::fuse_control("36 35 0:50 / /sys/fs/fuse/connections rw - fusectl x rw", &[])]
    #[case::desktop("36 35 0:50 / /run/user/1000/gvfs rw - fuse.gvfsd-fuse x rw", &[])]
    #[case::container_view("36 35 0:50 / /proc/meminfo rw - fuse.lxcfs x rw", &[])]
    #[case::short("36 35", &[])]
    fn only_mounts_that_may_not_answer_count(#[case] line: &str, #[case] want: &[&str]) {
        let want: Vec<PathBuf> = want.iter().map(PathBuf::from).collect();
        assert_eq!(SlowMounts::parse(format!("{line}\n").as_bytes()).0, want);
    }

    #[test]
    fn a_link_into_a_slow_mount_is_seen_without_touching_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("fast")).unwrap();
        std::os::unix::fs::symlink("slow/x", folder.join("link")).unwrap();
        let mounts = SlowMounts(vec![folder.join("slow")]);
        assert!(mounts.spare(&folder.join("fast/pins")));
        assert!(!mounts.spare(&folder.join("slow/pins")));
        assert!(!mounts.spare(&folder.join("link/pins")));
        assert!(!mounts.spare(&folder.join("fast/../link")));
    }
}
