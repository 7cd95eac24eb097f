//! `boxery log check`.

use serde_json::json;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Tone;

/// Find the first line of the record that was changed, dropped, moved or cut
///
/// The exit status is 1 when there is one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let report = app.log().check().map_err(|error| {
        let hint = error.hint();
        let failure = Failure::from(error).exit(Exit::CannotSay);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let exit = match &report.problem {
        Some(_) => Exit::No,
        None => Exit::Done,
    };
    if args.json {
        let notes: Vec<_> = report
            .notes
            .iter()
            .map(|note| json!({ "segment": note.segment, "line": note.line, "text": note.text }))
            .collect();
        app.ui.line(json!({
            "intact": report.problem.is_none(),
            "lines": report.lines,
            "last_seq": report.last_seq,
            "last_hash": report.last_hash,
            "notes": notes,
            "problem": report.problem.as_ref().map(|problem| json!({
                "segment": problem.segment, "line": problem.line, "text": problem.to_string(),
            })),
        }));
        return Ok(exit);
    }
    for note in &report.notes {
        app.ui.line(format_args!(
            "{}:{}: {}",
            note.segment, note.line, note.text
        ));
    }
    match &report.problem {
        Some(problem) => {
            app.ui.line(app.ui.paint(Tone::Bad, problem));
            app.ui
                .line(format_args!("{} events before it are good", report.lines));
        }
        None if report.lines == 0 => app.ui.line("no event is on record yet"),
        None => {
            app.ui.line(format_args!(
                "{}: {} events, the last is number {} with hash {}",
                app.ui.paint(Tone::Good, "intact"),
                report.lines,
                report.last_seq,
                report.last_hash
            ));
        }
    }
    Ok(exit)
}
