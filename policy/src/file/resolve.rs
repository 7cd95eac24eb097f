//! Finds the policy that applies, and follows `extends`. What lies on disk is asked of
//! a [`Reader`], so that nothing here touches it.

use sha2::{Digest as _, Sha256};

use super::content::Content;
use super::error::PolicyError;
use super::key::Key;
use super::read::{Parsed, parse_policy};
use crate::template;

/// How many policies may extend each other.
const LONGEST_CHAIN: usize = 10;
/// The names of a policy file, in the order in which they are looked for.
pub const FILE_NAMES: [&str; 2] = ["fence.jsonc", "fence.json"];

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// A folder.
    Folder,
    /// A file with this text.
    Text(String),
    /// Something that can't be read, and why.
    Unreadable(String),
}

/// Answers what lies on disk.
pub trait Reader {
    /// What lies at `path`, an absolute one.
    fn read(&self, path: &str) -> Found;
    /// The path with its links resolved, or as it is.
    fn canonical(&self, path: &str) -> String;
}

/// Where the user's own policy may lie.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Files in order of preference: `fence/fence.jsonc` and `.json` below the user's
    /// configuration folder, then older places.
    pub user: Vec<String>,
}

/// Who chose the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file in the project, or above it.
    Project(String),
    /// The user's own file.
    User(String),
    /// The file or template that the hook's entry names.
    Hook(String),
    /// There is no policy file.
    Nobody,
}

impl Origin {
    /// As it is told to the user.
    pub fn name(&self) -> &str {
        match self {
            Self::Project(path) | Self::User(path) | Self::Hook(path) => path,
            Self::Nobody => "no policy file",
        }
    }
}

/// A policy with everything that it extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Who chose it.
    pub origin: Origin,
    /// What it says.
    pub content: Content,
    /// The files and templates it is made of, the farthest first.
    pub chain: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// SHA-256 over everything that it is made of, as hex.
    pub digest: String,
}

/// The policy file that applies in `folder`: the nearest upwards, else the user's.
pub fn find_policy(folder: &str, places: &Places, reader: &dyn Reader) -> Origin {
    let mut folder = Some(folder.trim_end_matches('/'));
    while let Some(here) = folder {
        for name in FILE_NAMES {
            let path = format!("{here}/{name}");
            if is_file(&reader.read(&path)) {
                return Origin::Project(path);
            }
        }
        folder = here.rsplit_once('/').map(|(above, _)| above);
    }
    find_user_policy(places, reader)
}

/// The user's own policy file.
pub fn find_user_policy(places: &Places, reader: &dyn Reader) -> Origin {
    let user = places.user.iter().find(|path| is_file(&reader.read(path)));
    user.map_or(Origin::Nobody, |path| Origin::User(path.clone()))
}

/// What lies there and can't be read still is the policy that applies.
fn is_file(found: &Found) -> bool {
    match found {
        Found::Text(_) | Found::Unreadable(_) => true,
        Found::Missing | Found::Folder => false,
    }
}

/// Read the policy at `origin` and all that it extends.
pub fn resolve_policy(
    origin: Origin,
    places: &Places,
    reader: &dyn Reader,
) -> Result<Resolved, PolicyError> {
    let mut chain = Chain {
        places,
        reader,
        seen: Vec::new(),
        sources: Vec::new(),
        warnings: Vec::new(),
        hash: Sha256::new(),
    };
    let content = match &origin {
        Origin::Nobody => Content::default(),
        Origin::Project(path) | Origin::User(path) => chain.file(path, None)?,
        Origin::Hook(name) => {
            if name.contains('/') {
                chain.file(name, None)?
            } else {
                chain.template(name)?
            }
        }
    };
    chain.sources.reverse();
    Ok(Resolved {
        origin,
        content,
        chain: chain.sources,
        warnings: chain.warnings,
        digest: hex(&chain.hash.finalize()),
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
        text.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    text
}

struct Chain<'a> {
    places: &'a Places,
    reader: &'a dyn Reader,
    /// What was followed already, by its own name.
    seen: Vec<String>,
    sources: Vec<String>,
    warnings: Vec<String>,
    hash: Sha256,
}

impl Chain<'_> {
    /// The file at `path`; `named` is how another file's `extends` calls it.
    fn file(&mut self, path: &str, named: Option<(&str, &str)>) -> Result<Content, PolicyError> {
        self.enter(
            self.reader.canonical(path),
            named.map_or(path, |(_, extends)| extends),
        )?;
        let text = match (self.reader.read(path), named) {
            (Found::Text(text), _) => text,
            (Found::Missing, Some((file, extends))) => {
                return Err(PolicyError::ExtendsMissing {
                    file: file.to_owned(),
                    extends: extends.to_owned(),
                });
            }
            (Found::Missing, None) => {
                return Err(PolicyError::NotFound {
                    file: path.to_owned(),
                });
            }
            (Found::Folder, _) => {
                return Err(PolicyError::Folder {
                    file: path.to_owned(),
                });
            }
            (Found::Unreadable(problem), _) => {
                return Err(PolicyError::Read {
                    file: path.to_owned(),
                    problem,
                });
            }
        };
        self.note(path, &text);
        match (parse_policy(&text, path)?, named) {
            (Some(parsed), _) => self.extended(parsed, path),
            (None, Some((file, extends))) => Err(PolicyError::ExtendsEmpty {
                file: file.to_owned(),
                extends: extends.to_owned(),
            }),
            (None, None) => Ok(Content::default()),
        }
    }

    fn template(&mut self, name: &str) -> Result<Content, PolicyError> {
        let template = template::find(name).ok_or_else(|| PolicyError::NoTemplate {
            name: name.to_owned(),
        })?;
        let title = format!("the template `{}`", template.name);
        self.enter(title.clone(), name)?;
        self.note(&title, template.text);
        match parse_policy(template.text, &title)? {
            Some(parsed) => self.extended(parsed, &title),
            None => Ok(Content::default()),
        }
    }

    /// What a parsed file says, on top of what it extends.
    fn extended(&mut self, parsed: Parsed, file: &str) -> Result<Content, PolicyError> {
        self.warnings.extend(parsed.warnings);
        let Some(extends) = parsed.content.text(Key::Extends).map(str::to_owned) else {
            return Ok(parsed.content);
        };
        let parent = if extends == "@base" {
            match find_user_policy(self.places, self.reader) {
                Origin::User(path) => self.file(&path, Some((file, &extends)))?,
                Origin::Project(_) | Origin::Hook(_) | Origin::Nobody => {
                    self.enter("@base".to_owned(), &extends)?;
                    Content::default()
                }
            }
        } else if extends.contains(['/', '\\']) || extends.starts_with('.') {
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = if extends.starts_with('/') {
                extends.clone()
            } else {
                crate::path::join(folder, &extends)
            };
            self.file(&path, Some((file, &extends)))?
        } else {
            self.template(extends.strip_suffix(".json").unwrap_or(&extends))?
        };
        Ok(parent.merged_with(parsed.content))
    }

    fn enter(&mut self, id: String, extends: &str) -> Result<(), PolicyError> {
        if self.seen.contains(&id) {
            return Err(PolicyError::Circle {
                extends: extends.to_owned(),
            });
        }
        if self.seen.len() >= LONGEST_CHAIN {
            return Err(PolicyError::TooDeep {
                limit: LONGEST_CHAIN,
            });
        }
        self.seen.push(id);
        Ok(())
    }

    fn note(&mut self, source: &str, text: &str) {
        self.sources.push(source.to_owned());
        for part in [source, text] {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part.as_bytes());
        }
    }
}
