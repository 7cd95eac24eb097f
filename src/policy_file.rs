//! Whether a Fence policy file applies, which this version can find but not enforce.

use camino::{Utf8Path, Utf8PathBuf};

use crate::app::App;
use crate::config::{Config, PolicyRule};

/// The names of a policy file, in the order in which Fence looks for them.
const NAMES: [&str; 2] = ["fence.jsonc", "fence.json"];

/// The policy file that applies in `folder`: the nearest one upwards, else the user's.
pub(crate) fn find(app: &App, folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let in_folder = |folder: &Utf8Path| {
        NAMES
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.symlink_metadata().is_ok())
    };
    let user = app.env.config.parent().map(|config| config.join("fence"));
    folder
        .ancestors()
        .find_map(in_folder)
        .or_else(|| user.as_deref().and_then(in_folder))
}

/// Why a command must not run in `folder`: a policy applies, and the user hasn't
/// accepted that it isn't enforced. A full sentence.
pub(crate) fn refusal(
    app: &App,
    config: &Config,
    folder: &Utf8Path,
    pinned_to_hook: Option<&str>,
) -> Option<String> {
    match config.policy {
        PolicyRule::Ignore => None,
        PolicyRule::Enforce => {
            let path = pinned_to_hook.map_or_else(
                || find(app, folder).map(Utf8PathBuf::into_string),
                |name| Some(name.to_owned()),
            )?;
            Some(format!(
                "The policy `{path}` applies here, and this version of boxery can't enforce policies yet, so \
                 nothing runs. The user can accept that with `policy = \"ignore\"` in {}.",
                app.config_path()
            ))
        }
    }
}
