//! Where a process's own control group lies.

use std::fs;
use std::path::{Path, PathBuf};

/// The kinds that can end a whole group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// One tree for everything.
    Two,
    /// The tree of the freezer.
    Freezer,
}

/// The folders of the groups that the process `pid` is in, the best kind first.
pub(super) fn of(pid: u32) -> Vec<PathBuf> {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    // Who looks may see other mounts than whoever is looked at; what counts is ours.
    let mounts = read("/proc/self/mountinfo".to_owned());
    let groups = read(format!("/proc/{pid}/cgroup"));
    [Version::Two, Version::Freezer]
        .into_iter()
        .filter_map(|version| find(&mounts, &groups, version))
        .collect()
}

/// The group of that kind in `/proc/PID/cgroup`, as `/proc/self/mountinfo` shows it.
fn find(mounts: &str, groups: &str, version: Version) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (kinds, path) = rest.split_once(':')?;
        let fits = match version {
            Version::Two => kinds.is_empty(),
            Version::Freezer => kinds.split(',').any(|kind| kind == "freezer"),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let [_, _, _, root, at, options, ..] = left.as_slice() else {
            return None;
        };
        let (kind, rest) = right.split_once(' ')?;
        let fits = match version {
            Version::Two => kind == "cgroup2",
            Version::Freezer => {
                let more = rest.split_once(' ').map_or("", |(_, more)| more);
                kind == "cgroup" && more.split(',').any(|option| option == "freezer")
            }
        };
        let writable = options.split(',').any(|option| option == "rw");
        // A path with a space in it is written otherwise, and isn't worth the trouble.
        let below = Path::new(group).strip_prefix(root).ok()?;
        (fits && writable && !at.contains('\\')).then(|| Path::new(at).join(below))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const UNIFIED: &str =
        "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const READ_ONLY: &str = "25 30 0:23 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
    const INSIDE: &str = "25 30 0:23 /lxc/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    const SESSION: &str = "0::/user.slice/user-1000.slice/session-3.scope\n";
    const MANY: &str = "9:name=systemd:/\n6:freezer:/a/b\n4:memory:/c\n0::/\n";

    #[rstest]
    #[case::unified(
        UNIFIED,
        SESSION,
        Version::Two,
        Some("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope")
    )]
    #[case::hybrid(HYBRID, MANY, Version::Two, Some("/sys/fs/cgroup/unified"))]
    #[case::freezer(HYBRID, MANY, Version::Freezer, Some("/sys/fs/cgroup/freezer/a/b"))]
    #[case::no_freezer(UNIFIED, SESSION, Version::Freezer, None)]
    #[case::read_only(READ_ONLY, SESSION, Version::Two, None)]
    #[case::part_of_the_tree(INSIDE, "0::/lxc/a/init\n", Version::Two, Some("/sys/fs/cgroup/init"))]
    #[case::outside_that_part(INSIDE, "0::/lxc/b\n", Version::Two, None)]
    #[case::nothing("", "", Version::Two, None)]
    fn a_group_is_found_below_its_mount(
        #[case] mounts: &str,
        #[case] groups: &str,
        #[case] version: Version,
        #[case] want: Option<&str>,
    ) {
        assert_eq!(find(mounts, groups, version), want.map(PathBuf::from));
    }
}
