//! Real trees, read, packed, compared.

mod drift;
mod support;
mod what_counts;
