//! How far a sync is, told while it goes on.

use std::time::{Duration, Instant};

use boxery_sync::talk::Progress;
use serde_json::json;

use super::engine::Tell;
use crate::ui::Ui;

/// Where it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// In a bar, on a terminal.
    Bar,
    /// In lines of JSON.
    Json,
    /// Nowhere.
    Nothing,
}

/// How often lines of JSON say how far it is.
const EVERY: Duration = Duration::from_secs(1);

/// From when on a bar is worth its place, and how often it moves.
const FRAME: Duration = Duration::from_millis(50);

impl Show {
    /// Lines `as_json`, or a bar where somebody sees it.
    pub(crate) fn of(ui: Ui, as_json: bool) -> Self {
        match (as_json, ui.is_watched()) {
            (true, _) => Self::Json,
            (false, true) => Self::Bar,
            (false, false) => Self::Nothing,
        }
    }

    /// What tells it so.
    pub(crate) fn tell(self, ui: Ui) -> Tell {
        let mut told = Instant::now();
        let began = told;
        Box::new(move |progress| match self {
            Self::Json if told.elapsed() >= EVERY => {
                told = Instant::now();
                ui.line(json!({
                    "event": "progress", "files": progress.files, "bytes": progress.bytes,
                    "total_files": progress.all_files, "total_bytes": progress.all_bytes,
                }));
            }
            Self::Bar if told.elapsed() >= FRAME => {
                told = Instant::now();
                ui.progress(Some(&bar(progress, began.elapsed())));
            }
            Self::Json | Self::Bar | Self::Nothing => {}
        })
    }
}

/// `[#####.....]  50 %  3 of 7 files  1.2 MB of 2.4 MB  11.0 MB/s`.
fn bar(progress: Progress, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let speed = size(progress.bytes.saturating_mul(1000) / millis.max(1));
    let part = |whole: u64| progress.bytes.saturating_mul(whole) / progress.all_bytes.max(1);
    let filled = usize::try_from(part(20)).unwrap_or(20).min(20);
    format!(
        "[{}{}] {:3} %  {} of {} files  {} of {}  {speed}/s",
        "#".repeat(filled),
        ".".repeat(20 - filled),
        part(100).min(100),
        progress.files,
        progress.all_files,
        size(progress.bytes),
        size(progress.all_bytes),
    )
}

/// Bytes in words: `17 B`, `4.2 kB`, `1.3 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let (mut whole, mut tenth, mut unit) = (bytes, 0, None);
    for name in units {
        if whole < 1000 {
            break;
        }
        (whole, tenth, unit) = (whole / 1000, whole % 1000 / 100, Some(name));
    }
    match unit {
        None => format!("{whole} B"),
        Some(unit) => format!("{whole}.{tenth} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0 B")]
    #[case(999, "999 B")]
    #[case(1000, "1.0 kB")]
    #[case(1_999_999, "1.9 MB")]
    #[case(2_345_000_000, "2.3 GB")]
    fn sizes_are_told_in_words(#[case] bytes: u64, #[case] want: &str) {
        assert_eq!(size(bytes), want);
    }

    #[test]
    fn the_bar_fills_up() {
        let progress = Progress {
            files: 3,
            all_files: 7,
            bytes: 50,
            all_bytes: 100,
        };
        assert_eq!(
            bar(progress, Duration::from_secs(1)),
            "[##########..........]  50 %  3 of 7 files  50 B of 100 B  50 B/s"
        );
    }
}
