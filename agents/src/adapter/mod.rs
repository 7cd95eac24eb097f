//! The agents, one file each.

mod claude_code;

pub use claude_code::ClaudeCode;

use crate::Adapter;

/// Every adapter.
pub const ADAPTERS: &[&dyn Adapter] = &[&ClaudeCode];
