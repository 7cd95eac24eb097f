//! Policy files: their keys, reading, merging and finding them.

mod check;
mod content;
mod error;
mod key;
mod read;
mod resolve;
mod schema;

pub use check::REGISTRIES;
pub use content::{Content, Said, Value};
pub use error::PolicyError;
pub use key::{Key, Meaning, Section, Shape};
pub use read::{Parsed, parse_policy};
pub use resolve::{
    FILE_NAMES, Found, Origin, Places, Reader, Resolved, find_policy, find_user_policy,
    resolve_policy,
};
pub use schema::json_schema;
