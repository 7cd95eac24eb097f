//! The agents, one file each.

use crate::Adapter;

/// Every adapter.
pub const ADAPTERS: &[&dyn Adapter] = &[];
