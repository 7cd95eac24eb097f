//! What marks a copy as this project's, and what of a project counts.

use boxery_pin::{PathMap, VmName};
use boxery_remote::{RunRequest, Way};
use boxery_sync::{Digest, ScanOptions};

use crate::app::App;
use crate::error::Failure;
use crate::{place, reach};

/// What the copy's marker file holds, so that a copy of another laptop or project is
/// never taken for this one's. It gives away neither the laptop's id nor the path.
pub(super) fn marker(app: &App, map: &PathMap) -> Result<String, Failure> {
    let mut text = place::laptop_id(app)?.into_bytes();
    text.push(0);
    text.extend_from_slice(map.project.as_str().as_bytes());
    Ok(format!("boxery copy 1 {}", Digest::of(&text)))
}

/// The user's excludes, which git takes where its settings name none.
pub(super) fn scan_options(app: &App) -> ScanOptions {
    ScanOptions {
        user_excludes: app
            .env
            .config
            .parent()
            .map(|config| config.join("git/ignore")),
    }
}

/// Whether the project's copy lies on the VM at the end of `way`, whole or not.
pub(crate) async fn has_copy(
    app: &App,
    vm: &VmName,
    way: &Way,
    map: &PathMap,
) -> Result<bool, Failure> {
    let path = format!("{}/.boxery-copy", map.folder);
    let request = RunRequest {
        argv: ["cat", "--", &path]
            .map(|word| word.as_bytes().to_vec())
            .to_vec(),
        ..RunRequest::default()
    };
    let found = boxery_remote::capture(way, &request, None, 4096)
        .await
        .map_err(|error| reach::failure(vm, error))?;
    Ok(found.stdout.starts_with(marker(app, map)?.as_bytes()))
}
