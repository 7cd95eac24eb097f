//! The copy's folder on a VM: made empty, or moved from where it lay before.

use boxery_remote::{RunExit, RunRequest, Way, capture};

use super::engine::elsewhere;
use super::pair::Pair;
use crate::error::Failure;
use crate::reach;

/// As much as a VM may say of it.
const LARGEST: usize = 64 << 10;

/// What the user said of a copy that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Making {
    /// Refuse it.
    Once,
    /// Take it.
    Over,
    /// Take what lies where the copy was seen before.
    Move,
}

impl Making {
    fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Over => "over",
            Self::Move => "move",
        }
    }
}

/// Make the copy's folder on the VM at the end of `way`, with its marker in it. Where the
/// user can't, root is asked for it.
pub(crate) async fn make(pair: &Pair, way: &Way, making: Making) -> Result<(), Failure> {
    let (vm, folder, other) = (&pair.vm, &pair.map.folder, &pair.other);
    let words = [
        "sh",
        "-c",
        include_str!("make.sh"),
        "sh",
        folder.as_str(),
        &pair.marker,
        making.word(),
        other,
    ];
    let request = RunRequest {
        argv: words.map(|word| word.as_bytes().to_vec()).to_vec(),
        ..RunRequest::default()
    };
    let made = capture(way, &request, None, LARGEST).await;
    let made = made.map_err(|error| reach::failure(vm, error))?;
    let said = made.complaint();
    let is_full = ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|words| said.contains(words));
    Err(match made.exit {
        RunExit::Code(0) => return Ok(()),
        RunExit::Code(80) => Failure::from(format!("`{other}` on {vm} is no copy of this project"))
            .hint(format!("send the project: `boxery sync {vm}`")),
        RunExit::Code(81) => Failure::from(format!(
            "`{folder}` on {vm} is the copy of another project"
        ))
        .hint(elsewhere(pair)),
        RunExit::Code(82) => Failure::from(format!(
            "`{folder}` on {vm} is not empty and not a copy that boxery made"
        ))
        .hint(elsewhere(pair)),
        RunExit::Code(84) => Failure::from(format!("this project has a copy on {vm} already"))
            .hint(format!(
                "`boxery drift {vm}` tells what differs; `boxery sync {vm}` makes both the same"
            )),
        RunExit::Code(87) => Failure::from(format!("`{folder}` on {vm} is a symbolic link"))
            .hint(elsewhere(pair)),
        RunExit::Code(88) => Failure::from(format!(
            "the copy of this project on {vm} lies in `{other}`, and its `paths` now want it in `{folder}`"
        ))
        .hint(format!(
            "`boxery vm seed {vm} --move` moves it there, with all that is in it"
        )),
        RunExit::Code(_) if is_full => {
            Failure::from(format!("{vm} has no space left for the copy")).hint(format!(
                "free some there; then `boxery sync {vm}` goes on where it was"
            ))
        }
        RunExit::Code(_) | RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed => {
            Failure::from(format!("{vm} cannot make `{folder}`: {said}"))
        }
    })
}
