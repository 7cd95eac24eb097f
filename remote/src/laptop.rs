//! What is known of the laptop; the caller reads it from the environment.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// Asks a person for a secret; `None` when nobody can be asked.
pub type Ask<'a> = Option<&'a (dyn Fn(&str) -> Option<String> + Send + Sync)>;

/// The user's side of every connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Laptop {
    /// The user's home folder.
    pub home: Utf8PathBuf,
    /// The user's login name, used where a target names none.
    pub user: String,
    /// The socket of the user's SSH agent (`SSH_AUTH_SOCK`).
    pub agent_socket: Option<Utf8PathBuf>,
    /// An ssh configuration to use instead of the user's own.
    pub ssh_config: Option<Utf8PathBuf>,
    /// The `ssh` program: a path, or a name for the search path.
    pub ssh_program: Utf8PathBuf,
    /// boxery's own known hosts, read beside the user's.
    pub known_hosts: Utf8PathBuf,
    /// Whether a key whose passphrase a person has typed goes to the agent, so
    /// that it isn't asked for again.
    pub keep_keys: bool,
    /// Whether Kerberos is set up (`KRB5CCNAME` or `/etc/krb5.conf`): only then
    /// can GSSAPI, which the native pipe doesn't have, make a difference.
    pub kerberos: bool,
}
