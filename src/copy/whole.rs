//! Files and repository, one after the other.

use std::sync::Arc;

use boxery_remote::Way;
use boxery_sync::talk::Report;

use super::engine::synchronise;
use super::git::{GitOptions, GitReport, exchange};
use super::pair::{Pair, Wish};
use super::show::Show;
use crate::app::App;
use crate::error::Failure;

/// Make project and copy the same, and their repositories.
pub(crate) async fn make_all_same(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
    show: Show,
) -> Result<(Report, GitReport), Failure> {
    let mut report = files(app, pair, way, wish, show).await?;
    let options = GitOptions {
        direction: wish.direction,
        dry_run: false,
    };
    let repository = exchange(app, pair, way, options).await?;
    if repository.laptop_index {
        // Files that only count now.
        let mut more = files(app, pair, way, wish, show).await?;
        more.plan.laptop.splice(0..0, report.plan.laptop);
        more.plan.vm.splice(0..0, report.plan.vm);
        more.kept.splice(0..0, report.kept);
        more.standing = report.standing;
        report = more;
    }
    Ok((report, repository))
}

async fn files(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
    show: Show,
) -> Result<Report, Failure> {
    let ended = synchronise(app, pair, way, wish, show.tell(app.ui)).await;
    if show == Show::Bar {
        app.ui.progress(None);
    }
    ended
}
