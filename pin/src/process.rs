//! Which processes stand above this one.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started: field 22 of `/proc/PID/stat`, in clock ticks since boot
    /// (`proc_pid_stat(5)`).
    pub start: u64,
}

impl ProcessId {
    /// The process that has the number `pid` now.
    pub fn of(pid: u32) -> Option<Self> {
        read_stat(pid).map(|stat| stat.id)
    }

    /// Whether this process is gone. "Can't tell" is no.
    pub fn is_gone(self) -> bool {
        match fs::read(format!("/proc/{}/stat", self.pid)) {
            Ok(text) => match parse_stat(self.pid, &text) {
                Some(stat) => stat.id != self || stat.ended,
                None => false,
            },
            // Without `/proc` nothing can be said of any process.
            Err(_) => fs::metadata("/proc/self/stat").is_ok(),
        }
    }

    /// The name that the kernel shows for it: the program's, cut to 15 bytes
    /// unless the program set another (`proc_pid_comm(5)`).
    pub fn name(self) -> Option<String> {
        let text = fs::read(format!("/proc/{}/comm", self.pid)).ok()?;
        let name = String::from_utf8_lossy(&text)
            .trim_end_matches('\n')
            .to_owned();
        (Self::of(self.pid) == Some(self)).then_some(name)
    }

    /// Its argument list; empty when it can't be read.
    pub fn arguments(self) -> Vec<String> {
        let Ok(text) = fs::read(format!("/proc/{}/cmdline", self.pid)) else {
            return Vec::new();
        };
        if Self::of(self.pid) != Some(self) {
            return Vec::new();
        }
        // Each argument ends with NUL, the last one too.
        let text = text.strip_suffix(b"\0").unwrap_or(&text);
        text.split(|byte| *byte == 0)
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    }
}

/// The processes above `pid`, nearest first, up to but without process 1.
pub fn ancestors(pid: u32) -> Vec<ProcessId> {
    let mut above = Vec::new();
    let Some(mut child) = read_stat(pid) else {
        return above;
    };
    while child.parent > 1 {
        let Some(parent) = read_stat(child.parent) else {
            break;
        };
        // A parent that started after its child took the number of one that is gone.
        if parent.id.start > child.id.start || above.contains(&parent.id) {
            break;
        }
        above.push(parent.id);
        child = parent;
    }
    above
}

struct Stat {
    id: ProcessId,
    parent: u32,
    ended: bool,
}

fn read_stat(pid: u32) -> Option<Stat> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name, field 2, stands in parentheses and may hold spaces and
/// parentheses itself, so the fields are counted after the last one.
fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(text.get(after + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat {
        id: ProcessId { pid, start },
        parent,
        ended: matches!(state, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("7 (bash) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9", Some((3, 4711, false)))]
    #[case::spaces("7 (tmux: server) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9", Some((3, 4711, false)))]
    #[case::parentheses("7 (a) R 9 9 (b) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9", Some((3, 4711, false)))]
    #[case::newline("7 (a\nb) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9", Some((3, 4711, false)))]
    #[case::zombie("7 (sh) Z 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9", Some((3, 4711, true)))]
    #[case::short("7 (bash) S 3 7", None)]
    #[case::no_name("7 bash S 3 7", None)]
    #[case::empty("", None)]
    fn stat_fields_are_counted_after_the_last_parenthesis(
        #[case] text: &str,
        #[case] want: Option<(u32, u64, bool)>,
    ) {
        let got =
            parse_stat(7, text.as_bytes()).map(|stat| (stat.parent, stat.id.start, stat.ended));
        assert_eq!(got, want);
    }

    #[test]
    fn a_process_that_runs_is_not_gone_and_has_a_name() {
        let own = ProcessId::of(std::process::id()).unwrap();
        assert!(!own.is_gone());
        assert!(own.name().is_some());
        assert!(!own.arguments().is_empty());
    }

    #[test]
    fn the_number_of_a_process_with_another_start_is_gone() {
        let own = ProcessId::of(std::process::id()).unwrap();
        let earlier = ProcessId {
            start: own.start.wrapping_sub(1),
            ..own
        };
        assert!(earlier.is_gone());
        assert_eq!(earlier.name(), None);
        assert_eq!(earlier.arguments(), Vec::<String>::new());
    }

    #[test]
    fn the_parent_of_a_child_is_this_process() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let above = ancestors(child.id());
        let id = ProcessId::of(child.id()).unwrap();
        child.kill().unwrap();
        // Not yet waited for, it is a zombie: gone as far as a pin is concerned.
        while !id.is_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(id.is_gone());
        assert_eq!(above.first(), ProcessId::of(std::process::id()).as_ref());
        assert!(above.iter().all(|process| process.pid > 1));
    }

    #[test]
    fn a_number_without_process_has_no_ancestors() {
        assert_eq!(ancestors(u32::MAX), Vec::new());
    }
}
