//! Recorded payloads: what an adapter reads in them, and what it answers.

use std::fmt::Write as _;
use std::path::Path;

use boxery_agents::ADAPTERS;
use boxery_router::{Decision, Grant};

/// The folder's name is the agent's.
fn payload_decodes_and_is_answered(path: &Path) -> datatest_stable::Result<()> {
    let folder = path.parent().ok_or("a folder")?;
    let agent = folder
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("a name")?;
    let adapter = ADAPTERS
        .iter()
        .find(|adapter| adapter.name() == agent)
        .ok_or("an adapter of that name")?;
    let payload = std::fs::read(path)?;

    let mut report = format!("{:#?}\n", adapter.decode(&payload));
    for (name, decision) in decisions() {
        let reply = adapter.encode(&payload, &decision);
        writeln!(report, "\n{name}: exit {}", reply.exit)?;
        report.push_str(&reply.stdout);
        report.push_str(&reply.stderr);
        if !reply.stdout.is_empty() {
            let one_line = reply.stdout.trim_end_matches('\n');
            assert!(!one_line.contains('\n'), "{name} takes more than one line");
            drop(serde_json::from_str::<serde_json::Value>(one_line)?);
        }
    }

    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("a name")?;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(std::fs::canonicalize(folder)?);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name.trim_end_matches(".in.json"), report));
    Ok(())
}

fn decisions() -> [(&'static str, Decision); 6] {
    let reason = "This session is pinned to VM dev: \"use vm_bash\",\nor vm_jobs.".to_owned();
    let command = "/opt/boxery run dev --cwd /w -- bash -c 'echo '\\''a'\\'' \"é\"\nid'".to_owned();
    [
        ("pass", Decision::Pass),
        (
            "tell",
            Decision::Tell {
                context: "Pinned to VM dev.".to_owned(),
            },
        ),
        (
            "deny",
            Decision::Deny {
                rule: "guard",
                reason: reason.clone(),
            },
        ),
        (
            "ask",
            Decision::Ask {
                rule: "user-rule",
                reason,
                command: command.clone(),
            },
        ),
        (
            "rewrite",
            Decision::Rewrite {
                command: command.clone(),
                grant: Grant::None,
            },
        ),
        (
            "rewrite and allow",
            Decision::Rewrite {
                command,
                grant: Grant::Allow,
            },
        ),
    ]
}

datatest_stable::harness! {
    { test = payload_decodes_and_is_answered, root = "tests/golden", pattern = r"\.in\.json$" },
}
