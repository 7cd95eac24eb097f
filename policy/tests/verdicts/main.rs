//! What the policy answers, and how its files are read.

#![expect(clippy::expect_used, reason = "what a test can't set up fails it")]

mod brush;
mod conformance;
mod corpus;
mod differential;
mod files;
mod fuzz;
mod kept;
mod registries;
mod rules;
mod schema;
mod support;
mod texts;
mod tricks;
