//! `boxery policy import`.

use std::fs;
use std::io::{ErrorKind, Write as _};

use camino::Utf8PathBuf;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::policy::read;

/// Make a policy of an agent's own permission rules
///
/// Prints it, or writes it with `-o`. A policy has rules of other kinds than an agent,
/// so that not every rule can be said; each that can't is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = ["claude"])]
    agent: String,
    /// The settings file; your own by default
    #[arg(long, short, value_name = "PATH")]
    file: Option<Utf8PathBuf>,
    /// The template that the policy extends; `none` for none
    #[arg(long, value_name = "NAME", default_value = "code")]
    extends: String,
    /// Write it to this file, which must not be there yet
    #[arg(long, short, value_name = "PATH")]
    output: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    if args.output.is_some() {
        app.refuse_agents("policy import -o")?;
    }
    let path = match &args.file {
        Some(path) => path.clone(),
        None => env::claude_config_dir()
            .unwrap_or_else(|| app.env.home.join(".claude"))
            .join("settings.json"),
    };
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::from(format!("cannot read `{path}`: {error}")))?;
    let settings: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::from(format!("`{path}` is not JSON: {error}")))?;
    let mut rules = Imported::default();
    for (list, effect) in [
        ("deny", Effect::Deny),
        ("ask", Effect::Ask),
        ("allow", Effect::Allow),
    ] {
        let entries = settings["permissions"][list].as_array();
        for entry in entries.into_iter().flatten() {
            match entry.as_str() {
                Some(rule) => rules.take(rule, effect),
                None => rules.doubts.push(format!("`{entry}` is no rule")),
            }
        }
    }
    let extends = (args.extends != "none").then_some(args.extends.as_str());
    if let Some(extends) = extends {
        read(app, extends).map_err(|failure| failure.exit(Exit::Usage))?;
    }
    for doubt in &rules.doubts {
        app.ui.say(format_args!("careful: {doubt}"));
    }
    let mut policy = serde_json::to_string_pretty(&rules.policy(extends))?;
    policy.push('\n');
    match &args.output {
        None => app.ui.raw(&policy),
        Some(output) => {
            let cannot = |error| Failure::from(format!("cannot write `{output}`: {error}"));
            let mut file = fs::File::create_new(output).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Failure::from(format!("`{output}` is there already"))
                    .hint("name another file, or take over by hand what is printed without `-o`")
                    .exit(Exit::No),
                _ => cannot(error),
            })?;
            file.write_all(policy.as_bytes()).map_err(cannot)?;
            app.ui.say(format_args!("wrote {output}"));
        }
    }
    Ok(Exit::Done)
}

/// What a rule of the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Deny,
    Ask,
    Allow,
}

/// The rules of an agent in the words of a policy.
#[derive(Debug, Default)]
struct Imported {
    lists: Map<String, Value>,
    /// What can't be said, or only nearly.
    doubts: Vec<String>,
}

impl Imported {
    /// Take a rule such as `Bash(git push:*)`.
    fn take(&mut self, rule: &str, effect: Effect) {
        let call = rule
            .strip_suffix(')')
            .and_then(|rule| rule.split_once('('))
            .filter(|(_, inside)| !inside.is_empty() && *inside != "*");
        let Some((tool, inside)) = call else {
            self.doubts.push(format!(
                "`{rule}` names a whole tool, which a policy has no rule for"
            ));
            return;
        };
        match (tool, effect) {
            ("Bash", _) => self.command(rule, inside, effect),
            ("Read", Effect::Deny | Effect::Ask) => self.path(rule, "denyRead", inside, effect),
            ("Read", Effect::Allow) => self.doubts.push(format!(
                "`{rule}` is left out: a policy reads what it doesn't deny"
            )),
            ("Edit" | "Write" | "NotebookEdit" | "MultiEdit", Effect::Allow) => {
                self.path(rule, "allowWrite", inside, effect);
            }
            ("Edit" | "Write" | "NotebookEdit" | "MultiEdit", Effect::Deny | Effect::Ask) => {
                self.path(rule, "denyWrite", inside, effect);
            }
            ("WebFetch", _) => self.domain(rule, inside, effect),
            _ => self.doubts.push(format!(
                "`{rule}` is of a tool that a policy has no rule for"
            )),
        }
    }

    fn command(&mut self, rule: &str, inside: &str, effect: Effect) {
        let (words, open) = match inside
            .strip_suffix(":*")
            .or_else(|| inside.strip_suffix(" *"))
        {
            Some(words) => (words, true),
            None => (inside, false),
        };
        if words.contains(['*', '|', ';', '&', '\n']) {
            self.doubts.push(format!(
                "`{rule}` is left out: a policy's rule is the beginning of one command, without `*` and operators"
            ));
            return;
        }
        let list = match effect {
            Effect::Deny | Effect::Ask => "deny",
            Effect::Allow => "allow",
        };
        if !open && effect == Effect::Allow {
            self.doubts.push(format!(
                "`{rule}` allows this command only; as a policy's rule it allows longer ones too"
            ));
        }
        self.asks(rule, effect);
        self.add("command", list, words);
    }

    fn path(&mut self, rule: &str, list: &str, inside: &str, effect: Effect) {
        // Claude's `//x` is the absolute path `/x`; its `/x` stands in the folder of the settings.
        let path = match inside.strip_prefix("//") {
            Some(rest) => format!("/{rest}"),
            None => match inside.strip_prefix('/') {
                Some(rest) => format!("./{rest}"),
                None => inside.to_owned(),
            },
        };
        self.asks(rule, effect);
        self.add("filesystem", list, &path);
    }

    fn domain(&mut self, rule: &str, inside: &str, effect: Effect) {
        let Some(domain) = inside.strip_prefix("domain:") else {
            self.doubts
                .push(format!("`{rule}` is left out: only `domain:` can be said"));
            return;
        };
        self.asks(rule, effect);
        let list = match effect {
            Effect::Deny | Effect::Ask => "deniedDomains",
            Effect::Allow => "allowedDomains",
        };
        self.add("network", list, domain);
    }

    fn asks(&mut self, rule: &str, effect: Effect) {
        match effect {
            Effect::Ask => self
                .doubts
                .push(format!("`{rule}` asks; a policy can't, so that it denies")),
            Effect::Deny | Effect::Allow => {}
        }
    }

    fn add(&mut self, section: &str, list: &str, entry: &str) {
        let section = self.lists.entry(section).or_insert_with(|| json!({}));
        if let Value::Object(section) = section
            && let Value::Array(entries) = section.entry(list).or_insert_with(|| json!([]))
            && !entries.iter().any(|known| known == entry)
        {
            entries.push(json!(entry));
        }
    }

    fn policy(self, extends: Option<&str>) -> Value {
        let mut policy = Map::new();
        if let Some(extends) = extends {
            policy.insert("extends".to_owned(), json!(extends));
        }
        policy.extend(self.lists);
        Value::Object(policy)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::prefix("Bash(git push:*)", Effect::Deny, json!({"command": {"deny": ["git push"]}}), 0)]
    #[case::prefix_by_a_space("Bash(npm run *)", Effect::Allow, json!({"command": {"allow": ["npm run"]}}), 0)]
    #[case::exact_allow("Bash(make)", Effect::Allow, json!({"command": {"allow": ["make"]}}), 1)]
    #[case::exact_deny("Bash(make)", Effect::Deny, json!({"command": {"deny": ["make"]}}), 0)]
    #[case::ask("Bash(make:*)", Effect::Ask, json!({"command": {"deny": ["make"]}}), 1)]
    #[case::star_inside("Bash(git * main)", Effect::Deny, json!({}), 1)]
    #[case::operators("Bash(a && b)", Effect::Deny, json!({}), 1)]
    #[case::whole_tool("Bash", Effect::Deny, json!({}), 1)]
    #[case::whole_tool_by_a_star("Bash(*)", Effect::Allow, json!({}), 1)]
    #[case::read("Read(~/.ssh/**)", Effect::Deny, json!({"filesystem": {"denyRead": ["~/.ssh/**"]}}), 0)]
    #[case::read_allow("Read(//etc/hosts)", Effect::Allow, json!({}), 1)]
    #[case::absolute("Edit(//etc/hosts)", Effect::Deny, json!({"filesystem": {"denyWrite": ["/etc/hosts"]}}), 0)]
    #[case::beside_the_settings("Write(/src/**)", Effect::Allow, json!({"filesystem": {"allowWrite": ["./src/**"]}}), 0)]
    #[case::domain("WebFetch(domain:example.com)", Effect::Deny, json!({"network": {"deniedDomains": ["example.com"]}}), 0)]
    #[case::no_domain("WebFetch(https://x)", Effect::Deny, json!({}), 1)]
    #[case::other_tool("mcp__x__y(z)", Effect::Deny, json!({}), 1)]
    fn a_rule_of_the_agent_becomes_a_rule_of_the_policy_or_is_told(
        #[case] rule: &str,
        #[case] effect: Effect,
        #[case] want: Value,
        #[case] doubts: usize,
    ) {
        let mut imported = Imported::default();
        imported.take(rule, effect);
        assert_eq!(imported.doubts.len(), doubts, "{:?}", imported.doubts);
        assert_eq!(imported.policy(None), want);
    }
}
