//! The endpoint's own arguments, read by hand: a parser that ends the process with
//! status 2 would deny calls of sessions that aren't pinned.

use std::ffi::OsString;

use boxery_agents::{ADAPTERS, Adapter};

/// A call of the endpoint.
pub(crate) struct HookCall {
    /// The agent, or what the arguments hold instead.
    pub(crate) adapter: Result<&'static dyn Adapter, String>,
    /// Whether this is the process that another one keeps a deadline for.
    pub(crate) depth: Depth,
}

/// Which of the two processes of an isolated call this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The one that the agent started.
    Outer,
    /// The one that does the work; its parent answers when it can't.
    Inner,
}

/// The word that makes a process the inner one.
pub(crate) const INNER: &str = "--inner";

impl HookCall {
    /// `None` when this isn't `hook run`, or asks for help.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.skip(1);
        if arguments.next()? != "hook" || arguments.next()? != "run" {
            return None;
        }
        let mut adapter = Err("no agent is named".to_owned());
        let mut depth = Depth::Outer;
        for argument in arguments {
            let text = argument.to_string_lossy();
            match text.as_ref() {
                "-h" | "--help" => return None,
                INNER => depth = Depth::Inner,
                word => {
                    adapter = ADAPTERS
                        .iter()
                        .find(|adapter| adapter.name() == word)
                        .copied()
                        .ok_or_else(|| format!("`{word}` is not an agent that boxery knows"));
                    if adapter.is_err() {
                        break;
                    }
                }
            }
        }
        Some(Self { adapter, depth })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(words: &[&str]) -> Option<HookCall> {
        HookCall::parse(words.iter().map(OsString::from))
    }

    #[rstest]
    #[case::nothing(&["boxery"])]
    #[case::another_verb(&["boxery", "hook", "install", "claude-code"])]
    #[case::help(&["boxery", "hook", "run", "--help"])]
    fn other_calls_are_left_to_the_command_line(#[case] words: &[&str]) {
        assert!(parse(words).is_none());
    }

    #[rstest]
    #[case::plain(&["boxery", "hook", "run", "claude-code"], Some("claude-code"))]
    #[case::an_option(&["boxery", "hook", "run", "claude-code", "--settings=/f"], None)]
    #[case::unknown(&["boxery", "hook", "run", "x"], None)]
    #[case::no_agent(&["boxery", "hook", "run"], None)]
    fn the_agent_is_read(#[case] words: &[&str], #[case] agent: Option<&str>) {
        let call = parse(words).unwrap();
        assert_eq!(call.adapter.ok().map(Adapter::name), agent);
    }
}
