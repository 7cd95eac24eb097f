//! What the user accepts that a VM can't enforce.

use std::fmt;
use std::str::FromStr;

use boxery_policy::Section;
use serde::{Deserialize, Deserializer};

/// A section of a policy and how far a VM may fall short of it, as the user's own
/// configuration spells it: `accept = ["network:unavailable"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    /// The section.
    pub(crate) section: Section,
    /// What is accepted.
    pub(crate) shortfall: Shortfall,
}

/// How far a VM falls short of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// It is enforced but for a hole that is named.
    Partial,
    /// It isn't enforced.
    Unavailable,
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shortfall = match self.shortfall {
            Shortfall::Partial => "partial",
            Shortfall::Unavailable => "unavailable",
        };
        write!(f, "{}:{shortfall}", self.section.name())
    }
}

impl FromStr for Accept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sections = || Section::ALL.map(Section::name).join(", ");
        let (name, shortfall) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` isn't SECTION:partial or SECTION:unavailable"))?;
        let section = Section::ALL
            .into_iter()
            .find(|section| section.name() == name)
            .ok_or_else(|| format!("`{name}` is no section of a policy: {}", sections()))?;
        let shortfall = match shortfall {
            "partial" => Shortfall::Partial,
            "unavailable" => Shortfall::Unavailable,
            other => return Err(format!("`{other}` is neither `partial` nor `unavailable`")),
        };
        Ok(Self { section, shortfall })
    }
}

impl<'de> Deserialize<'de> for Accept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::files("filesystem:unavailable", true)]
    #[case::network("network:partial", true)]
    #[case::exec("exec:unavailable", true)]
    #[case::devices("devices:unavailable", true)]
    #[case::no_shortfall("network", false)]
    #[case::everything("*:unavailable", false)]
    #[case::unknown_section("net:unavailable", false)]
    #[case::unknown_shortfall("network:off", false)]
    #[case::spaces("network: partial", false)]
    fn what_is_accepted_is_spelled_in_one_way(#[case] text: &str, #[case] good: bool) {
        let parsed = text.parse::<Accept>();
        assert_eq!(parsed.is_ok(), good, "{parsed:?}");
        if let Ok(accept) = parsed {
            assert_eq!(accept.to_string(), text);
        }
    }
}
