//! Proving to the server who we are: the agent's keys, then key files.

use std::sync::Arc;

use camino::Utf8Path;
use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{
    Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, load_public_key,
};

use super::native::{Trust, ssh_error};
use crate::{Ask, HostOptions, RemoteError};

/// What became of one key.
enum Offer {
    Accepted,
    Refused,
    /// The server says that a key alone isn't enough.
    Partial,
}

struct Session<'a> {
    handle: &'a mut Handle<Trust>,
    options: &'a HostOptions,
    offered: Vec<String>,
    partial: bool,
    rsa: Option<HashAlg>,
    keep_keys: bool,
}

/// Offer every key that the user has for this host.
pub(super) async fn authenticate(
    handle: &mut Handle<Trust>,
    options: &HostOptions,
    ask: Ask<'_>,
    keep_keys: bool,
) -> Result<(), RemoteError> {
    // Servers that say nothing of RSA hashes are old, and still know SHA-2.
    let rsa = handle.best_supported_rsa_hash().await.ok().flatten();
    let mut session = Session {
        handle,
        options,
        offered: Vec::new(),
        partial: false,
        rsa: rsa.unwrap_or(Some(HashAlg::Sha256)),
        keep_keys,
    };
    // `none`: some servers let a user in without any proof.
    let none = session.handle.authenticate_none(&options.user).await;
    match none.map_err(|error| ssh_error(options, &error))? {
        AuthResult::Success => return Ok(()),
        AuthResult::Failure { .. } => {}
    }
    let publics = public_keys(options);
    let mut tried = Vec::new();
    if session.by_agent(&publics, &mut tried).await? {
        return Ok(());
    }
    let mut encrypted = None;
    for path in options.identity_files.iter().filter(|path| path.exists()) {
        if session.by_file(path, ask, &tried, &mut encrypted).await? {
            return Ok(());
        }
    }
    if let Some(path) = encrypted {
        return Err(RemoteError::EncryptedKey { path });
    }
    let mut offered = session.offered.join(", ");
    if session.partial {
        offered.push_str("; it wants more than a key");
    }
    if offered.is_empty() {
        "there is none".clone_into(&mut offered);
    }
    Err(RemoteError::Auth {
        user: options.user.clone(),
        host: options.host.clone(),
        offered,
    })
}

fn public_keys(options: &HostOptions) -> Vec<PublicKey> {
    let paths = options.identity_files.iter();
    paths
        .filter_map(|path| load_public_key(format!("{path}.pub")).ok())
        .collect()
}

impl Session<'_> {
    /// The keys that the agent holds; those that key files name come first.
    async fn by_agent(
        &mut self,
        publics: &[PublicKey],
        tried: &mut Vec<PublicKey>,
    ) -> Result<bool, RemoteError> {
        let Some(socket) = &self.options.agent else {
            return Ok(false);
        };
        // An agent that doesn't answer is no agent, as for ssh.
        let Ok(mut agent) = AgentClient::connect_uds(socket).await else {
            return Ok(false);
        };
        let Ok(identities) = agent.request_identities().await else {
            return Ok(false);
        };
        let named = |key: &PublicKey| publics.iter().any(|p| p.key_data() == key.key_data());
        let mut keys: Vec<(PublicKey, String)> = identities
            .into_iter()
            .filter_map(|identity| match identity {
                AgentIdentity::PublicKey { key, comment } => Some((key, comment)),
                AgentIdentity::Certificate { .. } => None,
            })
            .filter(|(key, _)| !self.options.identities_only || named(key))
            .collect();
        keys.sort_by_key(|(key, _)| !named(key));
        for (key, comment) in keys {
            let hash = self.hash(&key.algorithm());
            self.offered.push(format!("agent: {comment}"));
            let result = self
                .handle
                .authenticate_publickey_with(&self.options.user, key.clone(), hash, &mut agent)
                .await;
            tried.push(key);
            let result = match result {
                Ok(result) => result,
                // The agent won't sign with this key; the next may do.
                Err(_) if !self.handle.is_closed() => continue,
                Err(error) => {
                    return Err(RemoteError::Ssh {
                        address: self.options.address(),
                        detail: error.to_string(),
                    });
                }
            };
            match self.offer(&result)? {
                Offer::Accepted => return Ok(true),
                Offer::Refused | Offer::Partial => {}
            }
        }
        Ok(false)
    }

    async fn by_file(
        &mut self,
        path: &Utf8Path,
        ask: Ask<'_>,
        tried: &[PublicKey],
        encrypted: &mut Option<camino::Utf8PathBuf>,
    ) -> Result<bool, RemoteError> {
        let known = |key: &PublicKey| tried.iter().any(|t| t.key_data() == key.key_data());
        if load_public_key(format!("{path}.pub")).is_ok_and(|key| known(&key)) {
            return Ok(false);
        }
        let (key, typed) = match read_key(path, ask) {
            Ok(Some(found)) => found,
            Ok(None) => {
                encrypted.get_or_insert_with(|| path.to_owned());
                return Ok(false);
            }
            Err(detail) => {
                self.offered.push(format!("{path}: {detail}"));
                return Ok(false);
            }
        };
        if known(key.public_key()) {
            return Ok(false);
        }
        self.offered.push(path.to_string());
        let hash = self.hash(&key.algorithm());
        let key = Arc::new(key);
        let result = self
            .handle
            .authenticate_publickey(
                &self.options.user,
                PrivateKeyWithHashAlg::new(Arc::clone(&key), hash),
            )
            .await
            .map_err(|error| ssh_error(self.options, &error))?;
        match self.offer(&result)? {
            Offer::Accepted => {
                if typed && self.keep_keys {
                    self.keep(&key).await;
                }
                Ok(true)
            }
            Offer::Refused | Offer::Partial => Ok(false),
        }
    }

    /// Leave a key with the agent. Without one the next run asks again.
    async fn keep(&self, key: &PrivateKey) {
        if let Some(socket) = &self.options.agent
            && let Ok(mut agent) = AgentClient::connect_uds(socket).await
        {
            drop(agent.add_identity(key, &[]).await);
        }
    }

    fn offer(&mut self, result: &AuthResult) -> Result<Offer, RemoteError> {
        match result {
            AuthResult::Success => Ok(Offer::Accepted),
            AuthResult::Failure {
                partial_success: true,
                ..
            } => {
                self.partial = true;
                Ok(Offer::Partial)
            }
            // russh answers so when the server has hung up (too many keys).
            AuthResult::Failure { .. } if self.handle.is_closed() => Err(RemoteError::Auth {
                user: self.options.user.clone(),
                host: self.options.host.clone(),
                offered: format!("{}; then it hung up", self.offered.join(", ")),
            }),
            AuthResult::Failure { .. } => Ok(Offer::Refused),
        }
    }

    fn hash(&self, algorithm: &Algorithm) -> Option<HashAlg> {
        if algorithm.clone().is_rsa() {
            self.rsa
        } else {
            None
        }
    }
}

/// The key in a file, and whether somebody typed its passphrase; `None` when
/// it is encrypted and nobody did.
fn read_key(path: &Utf8Path, ask: Ask<'_>) -> Result<Option<(PrivateKey, bool)>, String> {
    let error = match russh::keys::load_secret_key(path, None) {
        Ok(key) => return Ok(Some((key, false))),
        Err(error) => error,
    };
    if !is_encrypted(path, &error) {
        return Err(error.to_string());
    }
    let Some(ask) = ask else { return Ok(None) };
    let mut prompt = format!("Passphrase of {path}: ");
    for _ in 0..3 {
        let Some(passphrase) = ask(&prompt) else {
            return Ok(None);
        };
        if passphrase.is_empty() {
            return Ok(None);
        }
        if let Ok(key) = russh::keys::load_secret_key(path, Some(&passphrase)) {
            return Ok(Some((key, true)));
        }
        prompt = format!("That wasn't it. Passphrase of {path}: ");
    }
    Err("no passphrase fitted".to_owned())
}

fn is_encrypted(path: &Utf8Path, error: &russh::keys::Error) -> bool {
    matches!(error, russh::keys::Error::KeyIsEncrypted)
        || std::fs::read_to_string(path).is_ok_and(|text| {
            text.contains("Proc-Type: 4,ENCRYPTED") || text.contains("BEGIN ENCRYPTED PRIVATE KEY")
        })
}
