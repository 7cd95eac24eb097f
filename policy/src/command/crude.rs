//! A rough reading of a text that doesn't parse: what may begin a command, for rules
//! that deny.

use super::arg::Arg;
use super::parse::LONGEST;

/// Everything between what may end a command, as its words. Quotes are followed as
/// Fence follows them, so that what Fence denies is found; separators are all of the
/// shell's.
pub(crate) fn split(text: &str) -> Vec<Vec<Arg>> {
    if text.len() > LONGEST {
        return Vec::new();
    }
    let mut pieces = Vec::new();
    let (mut quote, mut start) = (None, 0);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '`') => {
                pieces.push(words(text, start, at));
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(words(text, start, text.len()));
    pieces.retain(|words| !words.is_empty());
    pieces
}

/// The words between two places, without their quotes.
fn words(text: &str, start: usize, end: usize) -> Vec<Arg> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for character in text[start..end].chars().chain([' ']) {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ' ' | '\t' | '\r') => {
                if !word.is_empty() {
                    words.push(Arg::exact(&word, start..end));
                    word.clear();
                }
            }
            (None, '\\') => {}
            _ => word.push(character),
        }
    }
    if !word.is_empty() {
        words.push(Arg::exact(word.trim_end(), start..end));
    }
    words
}
