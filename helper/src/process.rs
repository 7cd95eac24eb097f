//! The table of processes, and how all of a tree is ended.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) is_zombie: bool,
    /// It computes, or waits for a disk: it may be about to print.
    pub(crate) is_busy: bool,
}

/// Every process there is.
fn table() -> Vec<Entry> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Read `/proc/PID/stat`: the name in it may hold spaces and brackets.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Entry> {
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(name + 2..)?).ok()?;
    let mut fields = text.split(' ');
    let state = fields.next()?;
    Some(Entry {
        pid,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        is_zombie: matches!(state, "Z" | "X"),
        is_busy: matches!(state, "R" | "D"),
    })
}

/// Everybody below `root`, zombies included.
pub(crate) fn descendants(root: Pid) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in table() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found: Vec<Entry> = children.remove(&root.as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while let Some(entry) = found.get(next).copied() {
        next += 1;
        found.extend(children.remove(&entry.pid).unwrap_or_default());
    }
    found
}

/// How many processes below `root` still run.
pub(crate) fn count(root: Pid) -> u32 {
    let alive = descendants(root)
        .iter()
        .filter(|entry| !entry.is_zombie)
        .count();
    u32::try_from(alive).unwrap_or(u32::MAX)
}

/// Whether anybody below `root` is about to do something.
pub(crate) fn is_busy(root: Pid) -> bool {
    descendants(root).iter().any(|entry| entry.is_busy)
}

/// Kill everybody below `root`, by groups as well: the kernel kills all of a group
/// at once, so that a chain of forks in one can't outrun it.
pub(crate) fn kill_below(root: Pid) {
    let own = rustix::process::getpgrp().as_raw_pid();
    let mut groups = HashSet::new();
    for entry in descendants(root) {
        if entry.is_zombie {
            continue;
        }
        if entry.group > 1
            && entry.group != own
            && groups.insert(entry.group)
            && let Some(group) = Pid::from_raw(entry.group)
        {
            let _: rustix::io::Result<()> = kill_process_group(group, Signal::KILL);
        }
        if let Some(pid) = Pid::from_raw(entry.pid) {
            kill(pid);
        }
    }
}

/// Kill every process of this user that was started with `name=value` in its
/// environment: what is left of a run whose supervisor was killed.
pub(crate) fn kill_marked(mark: &str) {
    let own = rustix::process::getpid().as_raw_pid();
    for entry in table() {
        if entry.pid == own || entry.is_zombie {
            continue;
        }
        let Ok(environment) = fs::read(format!("/proc/{}/environ", entry.pid)) else {
            continue;
        };
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes())
            && let Some(pid) = Pid::from_raw(entry.pid)
        {
            kill(pid);
        }
    }
}

/// Let a process go on that was stopped.
pub(crate) fn wake(pid: Option<Pid>) {
    if let Some(pid) = pid {
        let _: rustix::io::Result<()> = kill_process(pid, Signal::CONT);
    }
}

/// Kill one process; one that is gone already is as good.
pub(crate) fn kill(pid: Pid) {
    let _: rustix::io::Result<()> = kill_process(pid, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let entry = parse_stat(7, b"7 (a) Z 9 (b) S 41 42 43 0 -1").unwrap();
        let want = Entry {
            pid: 7,
            parent: 41,
            group: 42,
            is_zombie: false,
            is_busy: false,
        };
        assert_eq!(entry, want);
        assert_eq!(parse_stat(7, b"7 (a"), None);
    }
}
