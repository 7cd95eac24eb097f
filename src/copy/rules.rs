//! What marks a copy as this project's, and what of a project counts.

use boxery_pin::PathMap;
use boxery_sync::{Digest, ScanOptions};

use crate::app::App;
use crate::error::Failure;
use crate::place;

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
