//! The parser, kept from overflowing the stack and missing the hook's deadline.

use brush_parser::ast::Program;
use brush_parser::{Parser, ParserOptions};

/// Text beyond this is not parsed: the hook has a deadline.
pub(crate) const LONGEST: usize = 256 * 1024;
/// The parser recurses on what opens; this many fit its stack many times over.
const DEEPEST: usize = 120;
/// Where the parser runs, so that something which opens and isn't counted fits too.
/// Only what is used of it takes memory.
const STACK: usize = 256 << 20;

/// Why a text gives no commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclear;

pub(crate) fn parse(text: &str) -> Result<Program, Unclear> {
    if text.len() > LONGEST || text.contains('\0') || nesting(text) > DEEPEST {
        return Err(Unclear);
    }
    let parse = || {
        Parser::new(text.as_bytes(), &ParserOptions::default())
            .parse_program()
            .map_err(|_| Unclear)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let running = thread.spawn_scoped(scope, parse).map_err(|_| Unclear)?;
        running.join().unwrap_or(Err(Unclear))
    })
}

/// No less than the depth to which the text nests.
fn nesting(text: &str) -> usize {
    let opening = text
        .bytes()
        .filter(|b| matches!(b, b'(' | b'{' | b'`' | b'[' | b'!'))
        .count();
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            matches!(
                *word,
                "if" | "while" | "until" | "for" | "case" | "function" | "coproc" | "time"
            )
        })
        .count();
    opening + words
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn what_opens_over_and_over_never_overflows_the_stack(
        #[values(
            "(",
            "((",
            "$(",
            "$((",
            "$[",
            "${a:-",
            "`",
            "<(",
            ">(",
            "{ ",
            "! ",
            "[[ ! ",
            "[[ ( ",
            "time ",
            "coproc ",
            "function f ",
            "f() ",
            "if ",
            "while ",
            "case x in ",
            "for x in ",
            "\"$(",
            "<<A\n",
            "&& ",
            "| ",
            "a; ",
            "a && ",
            "a | ",
            "-",
            "$((-",
            "$((1?",
            "a=",
            "a[",
            "\\",
            "'",
            "\""
        )]
        opener: &str,
        #[values("", ": $(( 0 )) || [[ ", "$((", "[[ ")] before: &str,
    ) {
        let text = format!("{before}{}", opener.repeat(20_000 / opener.len()));
        // Parsed or not: what counts is that it comes back.
        drop(parse(&text));
    }
}
