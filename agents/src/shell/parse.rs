//! The parser, kept from overflowing the stack and missing the hook's deadline.

use brush_parser::ast::Program;
use brush_parser::{Parser, ParserOptions};

/// Text beyond this is not parsed: the hook has a deadline.
pub(crate) const LONGEST: usize = 256 * 1024;
/// The parser recurses on what opens; this many fit the smallest stack it runs on.
const DEEPEST: usize = 120;
/// Why a text gives no commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclear;

pub(crate) fn parse(text: &str) -> Result<Program, Unclear> {
    if text.len() > LONGEST || text.contains('\0') || nesting(text) > DEEPEST {
        return Err(Unclear);
    }
    Parser::new(text.as_bytes(), &ParserOptions::default())
        .parse_program()
        .map_err(|_| Unclear)
}

/// No less than the depth to which the text nests.
fn nesting(text: &str) -> usize {
    let opening = text
        .bytes()
        .filter(|b| matches!(b, b'(' | b'{' | b'`'))
        .count();
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            matches!(
                *word,
                "if" | "while" | "until" | "for" | "case" | "function"
            )
        })
        .count();
    opening + words
}
