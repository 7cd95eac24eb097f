//! The router from outside: decisions as tables, texts through real shells, stores
//! on a real disk, real repositories.

mod decide;
mod git;
mod policy;
mod stores;
mod support;
mod text;
