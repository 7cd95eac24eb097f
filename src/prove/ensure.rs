//! Redirect was asked for: prove the agent unless it is proven already.

use boxery_router::{ExecutableId, ProofState, Proofs};

use super::{Candidate, PERMISSION_MODES, SANDBOX_MODE, find_candidate, prove};
use crate::app::App;
use crate::env;
use crate::error::Failure;

/// Prove the installed Claude Code, and say on standard error what came of it.
/// Whatever fails, the pin stands, and its calls are denied as in guard.
pub(crate) fn ensure_proven(app: &App) {
    let say = |text: &str| app.ui.say(text);
    let candidate = match find_candidate("claude-code", None) {
        Ok(candidate) => candidate,
        Err(failure) => {
            say(&format!(
                "redirect isn't live, calls are denied as in guard: {}",
                first_line(&failure)
            ));
            return say("once it is installed, run `boxery hook prove claude-code`");
        }
    };
    let proofs = Proofs::new(app.env.state_path("proofs"));
    if is_proven(&proofs, &candidate) {
        return;
    }
    say(
        "proving that Claude Code does what the hook says (no account, no tokens; a few seconds) …",
    );
    let report = env::own_binary()
        .and_then(|binary| prove(&binary, &candidate, PERMISSION_MODES))
        .and_then(|report| {
            report.store(&proofs, env::now())?;
            app.record(&report.event(env::now()));
            Ok(report)
        });
    match report {
        Ok(report) if report.holds() => say(&format!(
            "proven: Claude Code {} in permission modes {} ({:.1} s)",
            report.version,
            report.proven().join(", "),
            report.seconds
        )),
        Ok(report) => {
            let proven = report.proven();
            let but = if proven.is_empty() {
                String::new()
            } else {
                format!(" but in {}", proven.join(", "))
            };
            say(&format!(
                "not proven{but}: calls are denied as in guard; `boxery hook prove claude-code` says why"
            ));
        }
        Err(failure) => {
            say(&format!(
                "not proven, calls are denied as in guard: {}",
                first_line(&failure)
            ));
        }
    }
}

fn first_line(failure: &Failure) -> String {
    let text = failure.render();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Whether the program itself is proven in every mode that is proven by default. One
/// that starts another program is proven again.
fn is_proven(proofs: &Proofs, candidate: &Candidate) -> bool {
    let Ok(executable) = ExecutableId::read(&candidate.program) else {
        return false;
    };
    PERMISSION_MODES.iter().all(|mode| {
        matches!(
            proofs.state(&candidate.agent, &executable, mode, SANDBOX_MODE),
            Ok(ProofState::Proven)
        )
    })
}
