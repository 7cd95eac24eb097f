//! What every verb is handed: where things are, what the user configured, how to
//! speak.

use camino::Utf8PathBuf;

use boxery_pin::{PinStore, VmName};
use boxery_record::{Event, Log};

use crate::config::Config;
use crate::env::{self, Env};
use crate::error::Failure;
use crate::exit::Exit;
use crate::inside::Inside;
use crate::ui::Ui;

/// The surroundings of one verb.
#[derive(Debug, Clone)]
pub(crate) struct App {
    /// Where boxery keeps what.
    pub(crate) env: Env,
    /// The terminal.
    pub(crate) ui: Ui,
}

impl App {
    /// Look at the environment; nothing is read from disk.
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            env: Env::read()?,
            ui: Ui::new(env::no_color()),
        })
    }

    /// The user's configuration file.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.config_path())
    }

    /// Where the user's configuration file lies.
    pub(crate) fn config_path(&self) -> Utf8PathBuf {
        self.env.config.join("config.toml")
    }

    /// boxery's own list of host keys, in OpenSSH's format.
    pub(crate) fn known_hosts_path(&self) -> Utf8PathBuf {
        self.env.config.join("known_hosts")
    }

    /// The pin files.
    pub(crate) fn pins(&self) -> PinStore {
        PinStore::new(self.env.state_path("pins"))
    }

    /// The record.
    pub(crate) fn log(&self) -> Log {
        Log::new(self.env.state_path("log"))
    }

    /// Put an event on record. A failure is told and changes nothing else.
    pub(crate) fn record(&self, event: &Event) {
        if let Err(error) = self.log().append(event) {
            self.ui.note(format_args!("not on record: {error}"));
        }
    }

    /// The folder of the embedded VM `name`.
    pub(crate) fn embedded_folder(&self, name: &VmName) -> Utf8PathBuf {
        self.env.state_path("embedded").join(name.as_str())
    }

    /// Refuse what only a person may do, when an agent's shell tool started us. The
    /// hook denies it already; this holds where the hook doesn't run.
    pub(crate) fn refuse_agents(&self, verb: &str) -> Result<(), Failure> {
        if Inside::look().is_some() {
            return Err(
                Failure::from(format!("`boxery {verb}` is not for an agent"))
                    .hint("run it in a terminal of your own")
                    .exit(Exit::No),
            );
        }
        Ok(())
    }
}
