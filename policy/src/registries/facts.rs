//! What was found on a VM.

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// A file of this path.
    File(String),
    /// A tool's answer to a question.
    Tool {
        /// The tool.
        name: String,
        /// What it was asked.
        question: String,
    },
    /// A variable of the login environment.
    Variable(String),
}

impl From {
    /// As it is told to the user.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.clone(),
            Self::Tool { name, question } => format!("{name} ({question})"),
            Self::Variable(name) => format!("${name}"),
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Where.
    pub from: From,
    /// What it says.
    pub text: String,
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(pub Vec<Fact>);

impl Facts {
    /// What [`GATHER`](super::GATHER) printed. What stands before the first head, such as
    /// a login's greeting, is nothing.
    pub fn parse(output: &str) -> Self {
        let mut facts: Vec<Fact> = Vec::new();
        for line in output.lines() {
            if let Some(head) = line.strip_prefix('=') {
                let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
                let from = match kind {
                    "file" => Some(From::File(rest.to_owned())),
                    "env" => Some(From::Variable(rest.to_owned())),
                    "tool" => rest.split_once(' ').map(|(name, question)| From::Tool {
                        name: name.to_owned(),
                        question: question.to_owned(),
                    }),
                    _ => None,
                };
                facts.extend(from.map(|from| Fact {
                    from,
                    text: String::new(),
                }));
            } else if let Some(content) = line.strip_prefix('>')
                && let Some(fact) = facts.last_mut()
            {
                fact.text.push_str(content);
                fact.text.push('\n');
            }
        }
        Self(facts)
    }

    /// The value of a variable, if it is set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|fact| match &fact.from {
            From::Variable(known) if known == name => Some(fact.text.trim_end()),
            From::Variable(_) | From::File(_) | From::Tool { .. } => None,
        })
    }

    /// What a tool answered, if it is there.
    pub(super) fn answer(&self, tool: &str, question: &str) -> Option<&str> {
        self.0.iter().find_map(|fact| match &fact.from {
            From::Tool {
                name,
                question: asked,
            } if name == tool && asked == question => Some(fact.text.trim()),
            From::Tool { .. } | From::File(_) | From::Variable(_) => None,
        })
    }
}
