//! Brace expansion: `{a,b}` and `{1..3}` make several words of one.

use super::script::Piece;

/// More words than this aren't looked at one by one.
const MOST: usize = 64;

/// One character, or one piece that braces can't split.
#[derive(Clone)]
enum Symbol {
    Plain(char),
    Whole(Piece),
}

/// The words that the pieces come to; `None` when there is nothing to expand, an error
/// when there are too many.
pub(crate) fn expand_braces(pieces: &[Piece]) -> Option<Result<Vec<Vec<Piece>>, ()>> {
    let opens = pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains('{')));
    if !opens {
        return None;
    }
    let mut symbols = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text {
                text,
                quoted: false,
            } => symbols.extend(text.chars().map(Symbol::Plain)),
            other => symbols.push(Symbol::Whole(other.clone())),
        }
    }
    let opens = symbols
        .iter()
        .filter(|symbol| matches!(symbol, Symbol::Plain('{')))
        .count();
    if opens > MOST {
        return Some(Err(()));
    }
    let mut words = Vec::new();
    Some(match expand(&symbols, &mut words, 0) {
        Ok(()) => Ok(words.into_iter().map(|word| pieces_of(&word)).collect()),
        Err(()) => Err(()),
    })
}

fn expand(symbols: &[Symbol], words: &mut Vec<Vec<Symbol>>, depth: usize) -> Result<(), ()> {
    if depth > 16 {
        return Err(());
    }
    let mut from = 0;
    while let Some(open) = symbols[from..]
        .iter()
        .position(|symbol| matches!(symbol, Symbol::Plain('{')))
        .map(|at| at + from)
    {
        let Some((close, commas)) = group(symbols, open) else {
            from = open + 1;
            continue;
        };
        let mut choices: Vec<Vec<Symbol>> = Vec::new();
        if commas.is_empty() {
            if let Some(values) = sequence(&symbols[open + 1..close]) {
                choices.extend(values?);
            } else {
                from = open + 1;
                continue;
            }
        } else {
            let mut start = open + 1;
            for end in commas.into_iter().chain([close]) {
                expand(&symbols[start..end], &mut choices, depth + 1)?;
                start = end + 1;
            }
        }
        let mut rests = Vec::new();
        expand(&symbols[close + 1..], &mut rests, depth + 1)?;
        if choices.len() * rests.len() > MOST {
            return Err(());
        }
        for choice in &choices {
            for rest in &rests {
                words.push([&symbols[..open], choice, rest].concat());
            }
        }
        return Ok(());
    }
    words.push(symbols.to_vec());
    Ok(())
}

/// Where the group that opens at `open` closes, and its own commas.
fn group(symbols: &[Symbol], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0, Vec::new());
    for (at, symbol) in symbols.iter().enumerate().skip(open) {
        match symbol {
            Symbol::Plain('{') => depth += 1,
            Symbol::Plain('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            Symbol::Plain(',') if depth == 1 => commas.push(at),
            Symbol::Plain(_) | Symbol::Whole(_) => {}
        }
    }
    None
}

/// `a..b`, with or without a step.
fn sequence(symbols: &[Symbol]) -> Option<Result<Vec<Vec<Symbol>>, ()>> {
    let text: Option<String> = symbols
        .iter()
        .map(|symbol| match symbol {
            Symbol::Plain(character) => Some(*character),
            Symbol::Whole(_) => None,
        })
        .collect();
    let text = text?;
    let mut parts = text.split("..");
    let (start, end, step) = (parts.next()?, parts.next()?, parts.next());
    let spelled = |text: &str| text.chars().map(Symbol::Plain).collect::<Vec<_>>();
    let step: i64 = step.map_or(Some(1), |step| step.parse().ok())?;
    let step = usize::try_from(step.unsigned_abs()).unwrap_or(1).max(1);
    let (low, high, letters) =
        if let (Ok(start), Ok(end)) = (start.parse::<i64>(), end.parse::<i64>()) {
            (start.min(end), start.max(end), false)
        } else {
            let single = |text: &str| {
                let mut letters = text.chars().filter(char::is_ascii_alphabetic);
                letters
                    .next()
                    .filter(|_| text.len() == 1)
                    .map(|letter| i64::from(u32::from(letter)))
            };
            let (start, end) = (single(start)?, single(end)?);
            (start.min(end), start.max(end), true)
        };
    if high.abs_diff(low) > MOST as u64 {
        return Some(Err(()));
    }
    let values = (low..=high).step_by(step);
    Some(Ok(if letters {
        values
            .filter_map(|value| u32::try_from(value).ok().and_then(char::from_u32))
            .map(|letter| vec![Symbol::Plain(letter)])
            .collect()
    } else {
        values.map(|value| spelled(&value.to_string())).collect()
    }))
}

fn pieces_of(symbols: &[Symbol]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for symbol in symbols {
        match (symbol, pieces.last_mut()) {
            (
                Symbol::Plain(character),
                Some(Piece::Text {
                    text,
                    quoted: false,
                }),
            ) => text.push(*character),
            (Symbol::Plain(character), _) => pieces.push(Piece::Text {
                text: character.to_string(),
                quoted: false,
            }),
            (Symbol::Whole(piece), _) => pieces.push(piece.clone()),
        }
    }
    pieces
}
