//! The text that `/bin/sh` on the VM gets.

use std::fmt::Write as _;

use crate::{RemoteError, RunRequest};

/// The line for the login shell, whichever it is: single quotes, and in them no
/// quote, backslash, `!` or newline. It reads the script up to a line `.`, so
/// that a stream that ends early runs nothing.
pub(super) const STAGE_ONE: &str = concat!(
    "exec /bin/sh -c '",
    r#"_bx_n=$(echo; echo .); _bx_n=${_bx_n%.}; _bx_s=; "#,
    r#"while IFS= read -r _bx_l; do "#,
    r#"if [ "$_bx_l" = . ]; then eval "$_bx_s"; exit; fi; "#,
    r#"_bx_s="$_bx_s$_bx_l$_bx_n"; done"#,
    "'"
);

const SCRIPT: &str = include_str!("script.sh");

/// Longest argument that Linux passes to a program, with its NUL.
const ARGUMENT_LIMIT: usize = 128 * 1024;

/// Longest command that is sent: a text of 1 MiB and the words around it.
const COMMAND_LIMIT: usize = 1024 * 1024 + 4096;

/// A run as it is sent.
#[derive(Debug)]
pub(super) struct Script {
    /// Everything up to the first frame.
    pub(super) text: Vec<u8>,
    /// Bytes for the command's stdin before the caller's own: the text of a
    /// `bash -c` that is too long to be an argument.
    pub(super) first: Vec<u8>,
}

impl Script {
    /// Write the script for `request`. `mark` starts our own lines, `id` stands
    /// in the command's environment.
    pub(super) fn new(
        request: &RunRequest,
        relayed: bool,
        mark: &[u8],
        id: &str,
    ) -> Result<Self, RemoteError> {
        check(request)?;
        let (argv, first) = match long_text(&request.argv) {
            Some((before, text, after)) => {
                let end = format!("{id}.end");
                let argv = with_reader(before, after, text.len() + end.len(), &end, relayed);
                (argv, [text, end.as_bytes()].concat())
            }
            None => (request.argv.clone(), Vec::new()),
        };
        let mut text = Vec::new();
        assign(&mut text, "_bx_no", mark);
        assign(&mut text, "_bx_id", id.as_bytes());
        let folder = request.cwd.as_deref().unwrap_or_default();
        assign(&mut text, "_bx_dir", folder.as_bytes());
        let piped = relayed || !first.is_empty();
        assign(&mut text, "_bx_in", if piped { b"1" } else { b"0" });
        text.extend(b"_bx_env() { :");
        for (name, value) in &request.env {
            text.extend(b"; ");
            text.extend(name.as_bytes());
            text.push(b'=');
            quote(&mut text, value);
            text.extend(b"; export ");
            text.extend(name.as_bytes());
        }
        text.extend(b"; }\n");
        text.extend(without_comments(SCRIPT).as_bytes());
        text.extend(b"set --");
        for argument in &argv {
            text.push(b' ');
            quote(&mut text, argument);
        }
        text.extend(b"\n_bx_main \"$@\"\n.\n");
        Ok(Self { text, first })
    }
}

fn check(request: &RunRequest) -> Result<(), RemoteError> {
    let bad = |what: String| Err(RemoteError::BadRequest { what });
    if request.argv.is_empty() {
        return bad("there is no command to run".to_owned());
    }
    let length: usize = request.argv.iter().map(Vec::len).sum();
    if length > COMMAND_LIMIT {
        return bad(format!(
            "the command has {length} bytes, and 1 MiB is the most"
        ));
    }
    let nul = |bytes: &[u8]| bytes.contains(&0);
    if request.argv.iter().any(|argument| nul(argument))
        || request.cwd.as_ref().is_some_and(|cwd| nul(cwd.as_bytes()))
        || request.env.iter().any(|(_, value)| nul(value))
    {
        return bad("a command can't hold NUL bytes".to_owned());
    }
    if let Some(cwd) = &request.cwd
        && !cwd.starts_with('/')
    {
        return bad(format!("`{cwd}` is not an absolute folder of the VM"));
    }
    for (name, _) in &request.env {
        let mut bytes = name.bytes();
        let first = bytes
            .next()
            .is_some_and(|b| b == b'_' || b.is_ascii_alphabetic());
        if !first || !bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return bad(format!("`{name}` is not the name of a variable"));
        }
        // Shells keep these read-only, and end when they are set.
        if [
            "UID",
            "EUID",
            "PPID",
            "SHELLOPTS",
            "BASHOPTS",
            "BASH_VERSINFO",
        ]
        .contains(&&**name)
            || name.starts_with("_bx_")
        {
            return bad(format!("`{name}` belongs to the shell and can't be set"));
        }
    }
    Ok(())
}

/// What stands before the text of a `bash -c`, the text, and what follows.
type Split<'a> = (&'a [Vec<u8>], &'a [u8], &'a [Vec<u8>]);

/// Splits `bash -c TEXT …` around a text that is too long to be an argument.
fn long_text(argv: &[Vec<u8>]) -> Option<Split<'_>> {
    let (program, rest) = argv.split_first()?;
    if program != b"bash" && !program.ends_with(b"/bash") {
        return None;
    }
    // Options up to the one with `c`, all of the short kind that takes no value.
    let short = |word: &[u8]| {
        word.len() > 1
            && word[0] == b'-'
            && word[1..]
                .iter()
                .all(|b| b.is_ascii_alphabetic() && *b != b'o' && *b != b'O')
    };
    let at = rest
        .iter()
        .position(|word| !short(word) || word.contains(&b'c'))?;
    let options = rest.get(at)?;
    if !short(options) || !options.contains(&b'c') {
        return None;
    }
    let marked = usize::from(rest.get(at + 1).is_some_and(|word| word == b"--"));
    let at = at + 1 + marked;
    let text = rest.get(at)?;
    (text.len() >= ARGUMENT_LIMIT).then(|| (&argv[..=at], &text[..], &rest[at + 1..]))
}

/// `bash -c` that reads its text from stdin and evaluates it: the same bytes,
/// kept in no variable of its own, and only if they came whole.
fn with_reader(
    before: &[Vec<u8>],
    after: &[Vec<u8>],
    length: usize,
    end: &str,
    relayed: bool,
) -> Vec<Vec<u8>> {
    let stdin = if relayed { "" } else { " </dev/null" };
    let reader = format!(
        ": \"$(command -p dd bs={length} count=1 iflag=fullblock 2>/dev/null)\"; \
         case $_ in *{end}) eval \"${{_%{end}}}\"{stdin} ;; *) \
         echo 'boxery: the command did not arrive whole' >&2; exit 125 ;; esac"
    );
    let mut argv = before.to_vec();
    argv.push(reader.into_bytes());
    argv.extend(after.iter().cloned());
    argv
}

fn assign(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    text.extend(name.as_bytes());
    text.push(b'=');
    quote(text, value);
    text.push(b'\n');
}

/// One word in single quotes; a newline, which would end the line that stage one
/// reads, is stage one's own variable.
fn quote(text: &mut Vec<u8>, word: &[u8]) {
    text.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => text.extend(br"'\''"),
            b'\n' => text.extend(br#"'"$_bx_n"'"#),
            other => text.push(*other),
        }
    }
    text.push(b'\'');
}

/// The script without comment lines and indentation, which the VM needn't read.
fn without_comments(script: &str) -> String {
    let mut text = String::new();
    for line in script.lines().map(str::trim_start) {
        if !line.is_empty() && !line.starts_with('#') {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
