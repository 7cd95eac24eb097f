//! How new text is laid out, so that it looks like the file around it.

/// Line ends and indentation of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// `None`: the file stands on one line, and so does what is added.
    eol: Option<&'static str>,
    unit: String,
}

/// The white space at the beginning of the line that text is added to.
pub(super) type Base = String;

impl Layout {
    /// For a file that doesn't exist yet.
    pub(super) fn fresh() -> Self {
        Self {
            eol: Some("\n"),
            unit: "  ".to_owned(),
        }
    }

    /// As in `text`: with the members `inner`, if any, behind the white space `gap`.
    pub(super) fn of(text: &str, inner: Option<&str>, gap: Option<&str>) -> Self {
        let eol = match text.find('\n') {
            _ if inner.is_some_and(|inner| !inner.contains('\n')) => None,
            Some(at) if text[..at].ends_with('\r') => Some("\r\n"),
            None | Some(_) => Some("\n"),
        };
        let unit = gap
            .and_then(|gap| Some(&gap[gap.rfind('\n')? + 1..]))
            .filter(|indent| !indent.is_empty());
        Self {
            eol,
            unit: unit.unwrap_or("  ").to_owned(),
        }
    }

    /// The base of what follows the white space `gap`; without a line break in
    /// it, of the line on which `before` ends.
    pub(super) fn base(&self, gap: &str, before: &str) -> Base {
        let line = |text: &str| text.rfind('\n').map_or(0, |at| at + 1);
        if gap.contains('\n') {
            return gap[line(gap)..].to_owned();
        }
        let last = &before[line(before)..];
        let indent = last.len() - last.trim_start_matches([' ', '\t']).len();
        format!("{}{}", &last[..indent], self.unit)
    }

    /// A line break and the indentation `depth` steps below `base`.
    fn gap(&self, base: &str, depth: usize) -> String {
        match self.eol {
            Some(eol) => format!("{eol}{base}{}", self.unit.repeat(depth)),
            None => " ".to_owned(),
        }
    }

    /// `"key": VALUE`, where the value is made at the same base.
    pub(super) fn member(key: &str, value: &str) -> String {
        format!("{}: {value}", quote(key))
    }

    /// A list or object with one thing in it. White space always follows the
    /// bracket: by that uninstall tells a container that install made from one
    /// that was there, empty.
    pub(super) fn container(&self, base: &str, brackets: [char; 2], inner: &str) -> String {
        let [open, close] = brackets;
        format!(
            "{open}{}{inner}{}{close}",
            self.gap(base, 1),
            self.gap(base, 0)
        )
    }

    /// One step below `base`.
    pub(super) fn below(&self, base: &str) -> Base {
        format!("{base}{}", self.unit)
    }

    /// The handler object.
    pub(super) fn handler(&self, base: &str, command: &str, timeout: u32) -> String {
        let gap = self.gap(base, 1);
        let between = match self.eol {
            Some(_) => format!(",{gap}"),
            None => ", ".to_owned(),
        };
        let members = [
            Self::member("type", &quote("command")),
            Self::member("command", &quote(command)),
            Self::member("timeout", &timeout.to_string()),
        ];
        self.container(base, ['{', '}'], &members.join(&between))
    }

    /// A group with the handler in it, for every tool.
    pub(super) fn group(&self, base: &str, command: &str, timeout: u32) -> String {
        let (inner, innermost) = (self.below(base), self.below(&self.below(base)));
        let handler = self.handler(&innermost, command, timeout);
        let handlers = self.container(&inner, ['[', ']'], &handler);
        self.container(base, ['{', '}'], &Self::member("hooks", &handlers))
    }
}

/// The JSON of a string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
