//! What the command's process does between fork and exec.

#![expect(
    unsafe_code,
    reason = "the kernel gives a namespace to the calling process only"
)]

use std::ffi::CStr;
use std::io;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::plan::{NEW, OLD, Picture, Step, View};

impl View {
    /// Be in a namespace of one's own in which the copy is seen, with `cwd` as the
    /// folder. System calls only: nothing is allocated, no lock is taken.
    ///
    /// An ordinary user needs a user namespace for that, in which no other user is
    /// known: `sudo` has nobody to become there. Root needs none.
    pub(crate) fn enter(&self, cwd: &CStr) -> io::Result<()> {
        let flags = if self.is_root {
            UnshareFlags::NEWNS
        } else {
            UnshareFlags::NEWUSER | UnshareFlags::NEWNS
        };
        // SAFETY: neither flag unshares the table of open files or the memory, which
        // is what a thread's other code could rely on; the process has one thread.
        unsafe { unshare_unsafe(flags)? };
        if !self.is_root {
            // A group map needs this first (user_namespaces(7)).
            write(c"/proc/self/setgroups", c"deny")?;
            write(c"/proc/self/uid_map", &self.own_uid)?;
            write(c"/proc/self/gid_map", &self.own_gid)?;
        }
        // What is mounted here stays here; what the VM mounts later is seen.
        let ours = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", ours)?;
        if let Some(picture) = &self.picture {
            picture.begin()?;
        }
        mount_bind_recursive(self.bind.0.as_c_str(), self.bind.1.as_c_str())?;
        if self.picture.is_some() {
            Picture::finish()?;
        }
        chdir(cwd)?;
        Ok(())
    }
}

impl Picture {
    /// Make the picture in [`NEW`], with the real root in [`OLD`].
    fn begin(&self) -> io::Result<()> {
        let plain = MountFlags::NOSUID | MountFlags::NODEV;
        let all = Mode::from_raw_mode(0o755);
        let tmpfs = |at: &CStr| mount(c"tmpfs", at, c"tmpfs", plain, c"mode=0755");
        tmpfs(&self.base)?;
        rustix::fs::mkdir(self.new.as_c_str(), all)?;
        rustix::fs::mkdir(self.old.as_c_str(), all)?;
        pivot_root(self.base.as_c_str(), self.old.as_c_str())?;
        chdir(c"/")?;
        tmpfs(c"/new")?;
        for step in &self.steps {
            match step.make(all) {
                // Gone since it was seen, or a file system that is another user's.
                Ok(()) | Err(Errno::NOENT | Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Make [`NEW`] the root, and let go of everything else.
    fn finish() -> io::Result<()> {
        debug_assert_eq!((NEW, OLD), ("/new", "/old"));
        let read_only =
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(c"/new", read_only, c"")?;
        chdir(c"/new")?;
        pivot_root(c".", c".")?;
        unmount(c".", UnmountFlags::DETACH)?;
        Ok(())
    }
}

impl Step {
    fn make(&self, mode: Mode) -> Result<(), Errno> {
        match self {
            Self::Folder(at) => match rustix::fs::mkdir(at.as_c_str(), mode) {
                Err(Errno::EXIST) => Ok(()),
                made => made,
            },
            Self::File(at) => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o644);
                rustix::fs::openat(CWD, at.as_c_str(), flags, mode).map(drop)
            }
            Self::Link { target, at } => rustix::fs::symlink(target.as_c_str(), at.as_c_str()),
            Self::Same { real, at } => mount_bind_recursive(real.as_c_str(), at.as_c_str()),
        }
    }
}

fn write(file: &CStr, text: &CStr) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, file, flags, Mode::empty())?;
    let bytes = text.to_bytes();
    if rustix::io::write(&file, bytes)? == bytes.len() {
        Ok(())
    } else {
        Err(Errno::IO.into())
    }
}
