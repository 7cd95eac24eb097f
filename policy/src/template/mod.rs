//! Policies that come with boxery, to be used as they are or extended.

/// A policy that comes with boxery.
#[derive(Debug)]
pub struct Template {
    /// Its name, as `extends` spells it.
    pub name: &'static str,
    /// What it is for, in half a sentence.
    pub about: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// Every template.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "code",
        about: "a coding agent at work: it builds, tests, installs and commits, but publishes nothing",
        text: include_str!("code.jsonc"),
    },
    Template {
        name: "code-strict",
        about: "`code`, and nothing is readable but what work needs",
        text: include_str!("code-strict.jsonc"),
    },
    Template {
        name: "code-relaxed",
        about: "`code`, and every host may be reached",
        text: include_str!("code-relaxed.jsonc"),
    },
    Template {
        name: "git-readonly",
        about: "the project may be written, its history may not, and nothing is reached",
        text: include_str!("git-readonly.jsonc"),
    },
    Template {
        name: "local-dev-server",
        about: "a server under development may listen and be reached from its own machine",
        text: include_str!("local-dev-server.jsonc"),
    },
    Template {
        name: "hermes",
        about: "`code`, and what the Hermes agent reaches and keeps besides",
        text: include_str!("hermes.jsonc"),
    },
    Template {
        name: "disable-telemetry",
        about: "everything may be reached but what counts users",
        text: include_str!("disable-telemetry.jsonc"),
    },
];

/// The template named `name`.
pub(crate) fn find(name: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| template.name == name)
}
