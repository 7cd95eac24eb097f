//! As much of HTTP/1.1 as an agent speaks to its model on the loopback device.

use std::io::{self, BufRead, Read, Write};

/// No agent's request is larger.
const LONGEST_BODY: u64 = 64 << 20;
const LONGEST_LINE: u64 = 64 << 10;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET`, `POST`, …
    pub(crate) method: String,
    /// The path without its query.
    pub(crate) path: String,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// What the client calls itself.
    pub(crate) client: String,
    /// Whether the client wants to send another one.
    pub(crate) keep_alive: bool,
}

/// Read one request; `None` when the client has hung up.
pub(crate) fn read_request(
    stream: &mut impl BufRead,
    answers: &mut impl Write,
) -> io::Result<Option<Request>> {
    let Some(first) = read_line(stream)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(malformed("the request line"));
    };
    let mut keep_alive = words.next() != Some("HTTP/1.0");
    let (mut length, mut chunked, mut expects) = (0, false, false);
    let mut client = String::new();
    loop {
        let line = read_line(stream)?.ok_or_else(|| malformed("the headers"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(|_| malformed("Content-Length"))?,
            "transfer-encoding" => chunked = value.to_ascii_lowercase().contains("chunked"),
            "connection" if value.eq_ignore_ascii_case("close") => keep_alive = false,
            "expect" => expects = true,
            "user-agent" => value.clone_into(&mut client),
            _ => {}
        }
    }
    if expects {
        answers.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if chunked {
        read_chunks(stream)?
    } else {
        read_exactly(stream, length)?
    };
    let path = target.split('?').next().unwrap_or(target).to_owned();
    Ok(Some(Request {
        method: method.to_owned(),
        path,
        body,
        client,
        keep_alive,
    }))
}

fn read_line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    stream.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let line = line
        .strip_suffix(b"\n")
        .ok_or_else(|| malformed("a line"))?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

fn read_exactly(stream: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > LONGEST_BODY {
        return Err(malformed("a body of that size"));
    }
    let mut body = Vec::new();
    if stream.take(length).read_to_end(&mut body)? as u64 == length {
        Ok(body)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn read_chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?.ok_or_else(|| malformed("a chunk"))?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| malformed("a chunk's size"))?;
        if size == 0 {
            // Trailers, up to an empty line.
            while read_line(stream)?.is_some_and(|line| !line.is_empty()) {}
            return Ok(body);
        }
        if body.len() as u64 + size > LONGEST_BODY {
            return Err(malformed("a body of that size"));
        }
        body.extend(read_exactly(stream, size)?);
        read_line(stream)?;
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {what}"))
}

/// Answer with a whole JSON document.
pub(crate) fn write_json(stream: &mut impl Write, body: &str) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nrequest-id: req_boxery\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

/// Answer with server-sent events, each in a chunk of its own.
pub(crate) fn write_events(stream: &mut impl Write, events: &[String]) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: req_boxery\r\n";
    write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n")?;
    for event in events {
        write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
    }
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

/// The status and body of an answer with a length; for a client of our own.
pub(crate) fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, Vec<u8>)> {
    let first = read_line(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut length = 0;
    loop {
        let line = read_line(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value
                .trim()
                .parse()
                .map_err(|_| malformed("Content-Length"))?;
        }
    }
    Ok((
        status.ok_or_else(|| malformed("the status line"))?,
        read_exactly(stream, length)?,
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::with_a_length(
        "POST /v1/messages?beta=true HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "hello",
        true
    )]
    #[case::in_chunks(
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nA: b\r\n\r\n",
        "hello",
        true
    )]
    #[case::closing("POST /v1/messages HTTP/1.1\r\nConnection: close\r\n\r\n", "", false)]
    #[case::old("POST /v1/messages HTTP/1.0\r\n\r\n", "", false)]
    fn a_request_is_read_whole(#[case] text: &str, #[case] body: &str, #[case] keep_alive: bool) {
        let mut stream = text.as_bytes();
        let request = read_request(&mut stream, &mut Vec::new()).unwrap().unwrap();
        let want = Request {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            body: body.into(),
            client: String::new(),
            keep_alive,
        };
        assert_eq!(request, want);
        assert_eq!(read_request(&mut stream, &mut Vec::new()).unwrap(), None);
    }

    #[rstest]
    #[case::cut_in_the_headers("POST / HTTP/1.1\r\nContent-Le")]
    #[case::cut_in_the_body("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel")]
    #[case::cut_in_a_chunk("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")]
    #[case::huge("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")]
    #[case::no_request("\r\n")]
    fn a_request_that_breaks_off_is_an_error(#[case] text: &str) {
        assert!(read_request(&mut text.as_bytes(), &mut Vec::new()).is_err());
    }

    #[test]
    fn a_client_that_waits_for_leave_gets_it() {
        let mut answers = Vec::new();
        let mut text =
            &b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"[..];
        read_request(&mut text, &mut answers).unwrap();
        assert_eq!(answers, b"HTTP/1.1 100 Continue\r\n\r\n");
    }
}
