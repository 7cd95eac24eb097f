//! A log for one test.

use std::io::Write as _;

use boxery_record::{CheckReport, Entry, Event, Filter, Kind, Log, ProblemKind, sha256_hex};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

/// 2027-01-15T08:00:00Z
pub(crate) const NOW: u64 = 1_800_000_000;
/// One day in seconds.
pub(crate) const DAY: u64 = 24 * 3600;
/// The segment of `NOW`.
pub(crate) const TODAY: &str = "2027-01-15.jsonl";
/// The segment of the day after.
pub(crate) const TOMORROW: &str = "2027-01-16.jsonl";

pub(crate) struct Scene {
    folder: TempDir,
    pub(crate) log: Log,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let top = Utf8Path::from_path(folder.path()).unwrap().to_owned();
        Self {
            log: Log::new(top.join("state/log")),
            folder,
        }
    }

    /// A log with one event per moment in `times`.
    pub(crate) fn with(times: &[u64]) -> Self {
        let scene = Self::new();
        for time in times {
            scene.log.append(&decision(*time)).unwrap();
        }
        scene
    }

    pub(crate) fn top(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.log.folder.join(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Replace a file's content.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let mut options = std::fs::OpenOptions::new();
        // Not cut to nothing first: ext4 would write such a file out at once.
        let options = options.write(true).create(true).truncate(false);
        let mut file = options.open(self.path(name)).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = String::from_utf8(self.bytes(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn put_lines(&self, name: &str, lines: &[String]) {
        let mut text = lines.join("\n");
        text.push('\n');
        self.put(name, text.as_bytes());
    }

    /// Every event that can be read.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.entries()
            .into_iter()
            .map(|entry| entry.event)
            .collect()
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = self.log.entries(Filter::default()).unwrap();
        entries.filter_map(Result::ok).collect()
    }

    pub(crate) fn check(&self) -> CheckReport {
        self.log.check().unwrap()
    }

    /// Segment, line and kind of what is wrong.
    pub(crate) fn problem(&self) -> Option<(String, u64, ProblemKind)> {
        let problem = self.check().problem?;
        assert!(!problem.to_string().is_empty());
        Some((problem.segment, problem.line, problem.kind))
    }

    /// Every file of the log.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .log
            .folder
            .read_dir_utf8()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_owned())
            .collect();
        names.sort_unstable();
        names
    }
}

/// What a hook would write.
pub(crate) fn decision(time: u64) -> Event {
    Event {
        agent: Some("claude-code".to_owned()),
        session: Some("3f2c".to_owned()),
        call: Some("toolu_01".to_owned()),
        tool: Some("Bash".to_owned()),
        vm: Some("dev".to_owned()),
        mode: Some("guard".to_owned()),
        decision: Some("deny".to_owned()),
        rule: Some("guard".to_owned()),
        command_sha256: Some(sha256_hex(b"npm test")),
        ..Event::new(time, Kind::Decision)
    }
}
