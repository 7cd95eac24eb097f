//! Finds our own lines in a stream, wherever its chunks are cut.

use memchr::memmem;

/// A line of `script.sh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// The command begins.
    Begin,
    /// It ended with this status.
    End(u32),
    /// It could not be started.
    Failed(String),
    /// Its tree was ended; so many are left.
    Swept(u32),
    /// A heartbeat.
    Beat,
}

/// What a stream holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Bytes of the command, or of rc files before it.
    Bytes(&'a [u8]),
    /// One of our own lines.
    Mark(Mark),
}

/// Longest line after the mark.
const LINE: usize = 64;

/// Takes a stream apart. Only bytes that may be the start of a mark are held
/// back, and since a mark starts with a control character that is rare.
#[derive(Debug)]
pub(super) struct Marks {
    mark: Vec<u8>,
    finder: memmem::Finder<'static>,
    held: Vec<u8>,
}

impl Marks {
    pub(super) fn new(mark: &[u8]) -> Self {
        Self {
            mark: mark.to_vec(),
            finder: memmem::Finder::new(mark).into_owned(),
            held: Vec::new(),
        }
    }

    /// Take the next chunk and hand on what is in it.
    pub(super) fn feed(&mut self, chunk: &[u8], mut piece: impl FnMut(Piece<'_>)) {
        if self.held.is_empty() {
            let used = self.split(chunk, &mut piece);
            self.held.extend(&chunk[used..]);
        } else {
            let mut all = std::mem::take(&mut self.held);
            all.extend(chunk);
            let used = self.split(&all, &mut piece);
            all.drain(..used);
            self.held = all;
        }
    }

    /// The stream has ended: what was held back was no mark.
    pub(super) fn finish(&mut self, mut piece: impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            piece(Piece::Bytes(&held));
        }
    }

    /// How much of `all` was handed on; the rest waits for more.
    fn split(&self, all: &[u8], piece: &mut impl FnMut(Piece<'_>)) -> usize {
        let mut from = 0;
        while let Some(found) = self.finder.find(&all[from..]) {
            let at = from + found;
            if at > from {
                piece(Piece::Bytes(&all[from..at]));
            }
            let line = &all[at + self.mark.len()..];
            match line.iter().take(LINE).position(|b| *b == b'\n') {
                Some(end) => {
                    if let Some(mark) = parse(&line[..end]) {
                        piece(Piece::Mark(mark));
                    }
                    from = at + self.mark.len() + end + 1;
                }
                None if line.len() < LINE => return at,
                // Not a line of ours, though it can't be anything else.
                None => from = at + self.mark.len(),
            }
        }
        let rest = &all[from..];
        let keep = (1..self.mark.len().min(rest.len() + 1))
            .rev()
            .find(|length| rest.ends_with(&self.mark[..*length]))
            .unwrap_or(0);
        if rest.len() > keep {
            piece(Piece::Bytes(&rest[..rest.len() - keep]));
        }
        all.len() - keep
    }
}

fn parse(line: &[u8]) -> Option<Mark> {
    let text = std::str::from_utf8(line).ok()?;
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "B" => Some(Mark::Begin),
        "E" => Some(Mark::End(rest.parse().ok()?)),
        "F" => Some(Mark::Failed(rest.to_owned())),
        "S" => Some(Mark::Swept(rest.parse().ok()?)),
        "H" => Some(Mark::Beat),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"\x1e0123456789abcdef";

    /// All pieces of a stream that is cut after every `size` bytes.
    fn pieces(stream: &[u8], size: usize) -> (Vec<u8>, Vec<(usize, Mark)>) {
        let mut marks = Marks::new(MARK);
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Bytes(more) => bytes.extend(more),
            Piece::Mark(mark) => found.push((bytes.len(), mark)),
        };
        for chunk in stream.chunks(size) {
            marks.feed(chunk, &mut take);
        }
        marks.finish(&mut take);
        (bytes, found)
    }

    #[test]
    fn marks_are_found_and_taken_out_wherever_the_stream_is_cut() {
        let mut stream = b"noise \x1e0123 \x1e".to_vec();
        for line in ["B\n", "H\n"] {
            stream.extend(MARK);
            stream.extend(line.as_bytes());
        }
        stream.extend(b"out\x1e0123456789abcdeX\n\x1e\x1e");
        stream.extend(MARK);
        stream.extend(b"E 137\n");
        stream.extend(b"late");
        stream.extend(MARK);
        stream.extend(b"S 0\ntail\x1e01234");
        let want = (
            b"noise \x1e0123 \x1eout\x1e0123456789abcdeX\n\x1e\x1elatetail\x1e01234".to_vec(),
            vec![
                (13, Mark::Begin),
                (13, Mark::Beat),
                (36, Mark::End(137)),
                (40, Mark::Swept(0)),
            ],
        );
        for size in 1..=stream.len() {
            assert_eq!(pieces(&stream, size), want, "cut after {size}");
        }
    }

    #[test]
    fn output_that_can_not_be_a_mark_is_not_held_back() {
        let mut marks = Marks::new(MARK);
        let mut bytes = Vec::new();
        for chunk in [&b"prompt: "[..], b"0", b"\x1f", b"\x1e0", b"x"] {
            marks.feed(chunk, |piece| {
                if let Piece::Bytes(more) = piece {
                    bytes.push(more.to_vec());
                }
            });
        }
        let want: [&[u8]; 4] = [b"prompt: ", b"0", b"\x1f", b"\x1e0x"];
        assert_eq!(bytes, want);
    }
}
