//! What the scripted model says, turn by turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

/// What the model does in one turn. One without calls ends the agent's turn.
#[derive(Default)]
pub(crate) struct Turn {
    /// Done before the model answers; the agent waits for it.
    pub(crate) before: Option<Box<dyn Fn() + Send + Sync>>,
    /// What it says.
    pub(crate) text: &'static str,
    /// Which tools it calls, all in this turn.
    pub(crate) calls: Vec<Call>,
}

/// A call of one of the agent's tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Names the call in the results; also part of its id.
    pub(crate) label: &'static str,
    /// The tool's names in the agent's versions; the first that it offers is called.
    pub(crate) tools: &'static [&'static str],
    /// The input.
    pub(crate) input: Value,
}

/// The turns of one conversation: the main agent's or a subagent's.
pub(crate) struct Lane {
    /// A word of the prompt by which the conversation is known.
    pub(crate) word: &'static str,
    /// What the model does in it.
    pub(crate) turns: Vec<Turn>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// The call's label.
    pub(crate) label: String,
    /// What the model was told.
    pub(crate) text: String,
    /// Whether it was told as an error.
    pub(crate) is_error: bool,
}

/// A script that is being played.
pub(crate) struct Script {
    lanes: Vec<(Lane, AtomicUsize)>,
    results: Mutex<Vec<CallResult>>,
    client: OnceLock<String>,
}

/// What a request asks, as far as the script is concerned.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Asked {
    /// The first message of the user.
    pub(crate) prompt: String,
    /// What the agent calls itself, `NAME/VERSION …`.
    pub(crate) client: String,
    /// The tools that the agent offers.
    pub(crate) tools: Vec<String>,
    /// The results of the last turn's calls: id, text, error.
    pub(crate) results: Vec<(String, String, bool)>,
}

/// The start of every call's id, which agents hand back unchanged.
const ID: &str = "toolu_boxery_";

impl Script {
    /// A script to be played from its start.
    pub(crate) fn new(lanes: Vec<Lane>) -> Self {
        let lanes = lanes
            .into_iter()
            .map(|lane| (lane, AtomicUsize::new(0)))
            .collect();
        Self {
            lanes,
            results: Mutex::default(),
            client: OnceLock::new(),
        }
    }

    /// The model's next turn in the conversation that `asked` belongs to: its text
    /// and its calls as id, tool, input.
    pub(crate) fn play(&self, asked: &Asked) -> (String, Vec<(String, String, Value)>) {
        self.note(&asked.results);
        self.client.get_or_init(|| asked.client.clone());
        // Session titles and quota probes offer no tools and take no turn.
        let lane = self
            .lanes
            .iter()
            .find(|(lane, _)| asked.prompt.contains(lane.word));
        let Some((lane, next)) = lane.filter(|_| !asked.tools.is_empty()) else {
            return ("ok".to_owned(), Vec::new());
        };
        let Some(turn) = lane.turns.get(next.fetch_add(1, Ordering::Relaxed)) else {
            return ("the script is over".to_owned(), Vec::new());
        };
        if let Some(before) = &turn.before {
            before();
        }
        let calls = turn.calls.iter().map(|call| {
            let offered = call
                .tools
                .iter()
                .find(|name| asked.tools.iter().any(|tool| tool == *name));
            let tool = offered.or(call.tools.first()).copied().unwrap_or_default();
            (
                format!("{ID}{}", call.label),
                tool.to_owned(),
                call.input.clone(),
            )
        });
        (turn.text.to_owned(), calls.collect())
    }

    fn note(&self, results: &[(String, String, bool)]) {
        let mut noted = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, text, is_error) in results {
            let Some(label) = id.strip_prefix(ID) else {
                continue;
            };
            if !noted.iter().any(|old| old.label == label) {
                noted.push(CallResult {
                    label: label.to_owned(),
                    text: text.clone(),
                    is_error: *is_error,
                });
            }
        }
    }

    /// The agent's own version, once it has asked anything.
    pub(crate) fn agent_version(&self) -> Option<String> {
        let (_, rest) = self.client.get()?.split_once('/')?;
        rest.split([' ', '('])
            .next()
            .filter(|version| !version.is_empty())
            .map(str::to_owned)
    }

    /// Every result so far, in the order they came.
    pub(crate) fn results(&self) -> Vec<CallResult> {
        self.results
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
