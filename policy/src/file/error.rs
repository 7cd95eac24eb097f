//! Why a policy can't be used.

/// A policy that cannot be loaded. Callers treat every variant as "nothing runs".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file can't be read.
    #[error("cannot read the policy `{file}`: {problem}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        problem: String,
    },
    /// The file isn't JSON with comments.
    #[error("the policy `{file}` can't be parsed: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A key has a value that it can't have.
    #[error("the policy `{file}` has a wrong `{key}`: {problem}")]
    Value {
        /// The file.
        file: String,
        /// The key's path.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// `extends` names a file that isn't there.
    #[error("the policy `{file}` extends `{extends}`, which isn't there")]
    ExtendsMissing {
        /// The file.
        file: String,
        /// What it says.
        extends: String,
    },
    /// `extends` names an empty file.
    #[error("the policy `{file}` extends `{extends}`, which is empty")]
    ExtendsEmpty {
        /// The file.
        file: String,
        /// What it says.
        extends: String,
    },
    /// `extends` or an option names an unknown template.
    #[error("no template is named `{name}`")]
    NoTemplate {
        /// What was named.
        name: String,
    },
    /// A policy extends itself, over others or not.
    #[error("the policy `{extends}` extends itself")]
    Circle {
        /// Where the circle closes.
        extends: String,
    },
    /// More than ten policies extend each other.
    #[error("more than {limit} policies extend each other")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A file or template that was named isn't there.
    #[error("the policy `{file}` isn't there")]
    NotFound {
        /// The file.
        file: String,
    },
    /// A folder was named.
    #[error("the policy `{file}` is a folder")]
    Folder {
        /// The folder.
        file: String,
    },
}

impl PolicyError {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { file, .. } | Self::Folder { file } => {
                format!("make `{file}` a file that you can read")
            }
            Self::Syntax { file, .. } | Self::Value { file, .. } => {
                format!("mend `{file}`; `boxery policy show` tells whether it can be used")
            }
            Self::ExtendsMissing { extends, .. } | Self::ExtendsEmpty { extends, .. } => {
                format!(
                    "write `{extends}`, or take `extends` out; a template is named without a slash"
                )
            }
            Self::NoTemplate { name } => {
                let near = crate::TEMPLATES
                    .iter()
                    .map(|template| {
                        (
                            strsim::damerau_levenshtein(name, template.name),
                            template.name,
                        )
                    })
                    .min()
                    .filter(|(distance, _)| *distance <= 3);
                match near {
                    Some((_, near)) => format!("did you mean `{near}`?"),
                    None => format!(
                        "there are: {}",
                        crate::TEMPLATES
                            .iter()
                            .map(|template| template.name)
                            .collect::<Vec<_>>()
                            .join(", ")
                    ),
                }
            }
            Self::Circle { .. } | Self::TooDeep { .. } => "take one `extends` out".to_owned(),
            Self::NotFound { file } => format!("write `{file}`, or name another policy"),
        }
    }
}
