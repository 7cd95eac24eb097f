//! What a verb says when it fails: `error:`, `caused by:`, `hint:`.

use std::error::Error;
use std::fmt::Write as _;

use crate::exit::Exit;

/// Why a verb gave up. Every crate's error turns into one by `?`; a hint and an
/// exit status are added where they are known.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
    exit: Exit,
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            hint: None,
            exit: Exit::Own,
        }
    }
}

impl Failure {
    /// The same failure with words on what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same failure, with words on what to do next where there are some.
    pub(crate) fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The same failure with another exit status than 125.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// A mistake on the command line: status 64.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::from(message.into()).exit(Exit::Usage)
    }

    /// The exit status.
    pub(crate) fn status(&self) -> Exit {
        self.exit
    }

    /// The same in one line, for a place where a command's own words stand too.
    pub(crate) fn one_line(&self) -> String {
        let mut text = self.error.to_string();
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        if let Some(hint) = &self.hint {
            let _ = write!(text, " ({hint})");
        }
        text
    }

    /// The lines for standard error, each cause on its own, each ended.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = writeln!(text, "caused by: {error}");
            cause = error.source();
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }
}

/// Adds a hint to whatever error a result holds.
pub(crate) trait OrHint<T> {
    /// The value, or a [`Failure`] that says what to do next.
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> OrHint<T> for Result<T, E> {
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| error.into().hint(hint))
    }
}
