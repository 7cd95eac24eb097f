//! The text that `/bin/sh` on the VM gets, and the line that starts it.

use std::fmt::Write as _;

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

const START: &str = include_str!("start.sh");
const TAKE: &str = include_str!("take.sh");

/// What a start needs to know.
#[derive(Debug, Default)]
pub(super) struct Start<'a> {
    /// The helpers that we have: machine and file name.
    pub(super) names: &'a [(&'static str, String)],
    /// Folders whose helper is no good.
    pub(super) skip: &'a [String],
    /// What was just sent: folder, its name there, and the name it gets.
    pub(super) sent: Option<(&'a str, &'a str, &'a str)>,
}

impl Start<'_> {
    /// The script.
    pub(super) fn text(&self, mark: &str) -> Vec<u8> {
        let names: Vec<String> = self
            .names
            .iter()
            .map(|(machine, file)| format!("{machine}:{file}"))
            .collect();
        let mut skip = String::from(":");
        for folder in self.skip {
            let _ = write!(skip, "{folder}:");
        }
        let (folder, part, file) = self.sent.unwrap_or_default();
        script(
            START,
            &[
                ("_bx_no", mark),
                ("_bx_names", &names.join(" ")),
                ("_bx_words", WORDS),
                ("_bx_skip", &skip),
                ("_bx_dir", folder),
                ("_bx_part", part),
                ("_bx_file", file),
            ],
        )
    }
}

/// The helper's arguments.
const WORDS: &str = "serve";

/// The script that takes a helper and writes it to `path`.
pub(super) fn take(mark: &str, path: &str) -> Vec<u8> {
    script(TAKE, &[("_bx_no", mark), ("_bx_to", path)])
}

fn script(text: &str, variables: &[(&str, &str)]) -> Vec<u8> {
    let mut script = String::new();
    for (name, value) in variables {
        let _ = writeln!(script, "{name}={}", quote(value));
    }
    for line in text.lines().map(str::trim_start) {
        if !line.is_empty() && !line.starts_with('#') {
            let _ = writeln!(script, "{line}");
        }
    }
    script.push_str(".\n");
    script.into_bytes()
}

/// One word in single quotes; a newline, which would end the line that stage one
/// reads, is stage one's own variable.
fn quote(word: &str) -> String {
    let text = word.replace('\'', r"'\''").replace('\n', r#"'"$_bx_n"'"#);
    format!("'{text}'")
}
