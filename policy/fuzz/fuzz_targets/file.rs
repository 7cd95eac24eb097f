//! No text makes the reader of policy files panic or hang.

#![no_main]

use boxery_policy::parse_policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    drop(parse_policy(text, "a file"));
});
