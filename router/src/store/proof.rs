//! Which agents were seen to honour a rewrite.

use std::os::unix::fs::MetadataExt;

use boxery_pin::AgentId;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::private::{self, Durability, StoreError, sha256_hex};
use crate::ProofState;

/// A program file, told apart from a later one at the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutableId {
    /// Where it lies, links resolved.
    pub path: Utf8PathBuf,
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of its content, nanoseconds since 1970.
    pub modified_ns: i128,
}

impl ExecutableId {
    /// The file at `path`, whose links the caller has resolved.
    ///
    /// # Errors
    ///
    /// When it can't be looked at.
    pub fn read(path: &Utf8Path) -> Result<Self, StoreError> {
        let metadata = std::fs::metadata(path).map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::new(path.to_owned(), &metadata))
    }

    /// The file at `path`, given what the system says of it.
    pub fn new(path: Utf8PathBuf, metadata: &std::fs::Metadata) -> Self {
        Self {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
        }
    }
}

/// That one executable, in one permission mode and one sandbox mode, ran a
/// rewritten call in a VM and not on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Version of this shape.
    pub version: u32,
    /// The agent.
    pub agent: AgentId,
    /// Its program file.
    pub executable: ExecutableId,
    /// The permission mode, in the agent's own word.
    pub permission_mode: String,
    /// The sandbox mode, in the agent's own word.
    pub sandbox_mode: String,
    /// The version that the agent gave.
    pub agent_version: String,
    /// When, seconds since 1970.
    pub proven_at: u64,
}

impl Proof {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;
}

/// The folder of proofs.
#[derive(Debug, Clone)]
pub struct Proofs {
    folder: Utf8PathBuf,
}

impl Proofs {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Keep `proof`, in place of an older one for the same.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&self, proof: &Proof) -> Result<(), StoreError> {
        let name = name(
            &proof.agent,
            &proof.executable.path,
            &proof.permission_mode,
            &proof.sandbox_mode,
        );
        private::write_record(&self.folder, &name, proof, Durability::OnDisk)
    }

    /// Whether `executable` is proven in these modes.
    ///
    /// # Errors
    ///
    /// When the file is there and can't be read: the caller takes that for unproven.
    pub fn state(
        &self,
        agent: &AgentId,
        executable: &ExecutableId,
        permission_mode: &str,
        sandbox_mode: &str,
    ) -> Result<ProofState, StoreError> {
        let name = name(agent, &executable.path, permission_mode, sandbox_mode);
        let unproven = |why: String| Ok(ProofState::Unproven { why });
        match private::read_record::<Proof>(&self.folder.join(name))? {
            None => unproven(format!(
                "no proof for permission mode {permission_mode} and sandbox {sandbox_mode}; the user can run `boxery hook prove {agent}`"
            )),
            Some(proof) if proof.version != Proof::VERSION => {
                unproven("its proof is of another version of boxery".to_owned())
            }
            Some(proof)
                if proof.agent == *agent
                    && proof.permission_mode == permission_mode
                    && proof.sandbox_mode == sandbox_mode
                    && proof.executable == *executable =>
            {
                Ok(ProofState::Proven)
            }
            Some(_) => unproven(format!(
                "the agent's program has changed since its proof; the user can run `boxery hook prove {agent}`"
            )),
        }
    }

    /// Every proof; unreadable ones as errors.
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn list(&self) -> Result<Vec<Result<Proof, StoreError>>, StoreError> {
        let mut proofs = Vec::new();
        for name in private::names(&self.folder)? {
            proofs.extend(private::read_record(&self.folder.join(name)).transpose());
        }
        Ok(proofs)
    }

    /// Forget every proof of `agent`.
    ///
    /// # Errors
    ///
    /// When the folder can't be read or a file can't be removed.
    pub fn forget(&self, agent: &AgentId) -> Result<(), StoreError> {
        for name in private::names(&self.folder)? {
            let path = self.folder.join(name);
            match private::read_record::<Proof>(&path) {
                Ok(Some(proof)) if proof.agent != *agent => {}
                Ok(_) | Err(_) => {
                    private::remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

fn name(agent: &AgentId, path: &Utf8Path, permission_mode: &str, sandbox_mode: &str) -> String {
    let parts = [
        agent.0.as_bytes(),
        path.as_str().as_bytes(),
        permission_mode.as_bytes(),
        sandbox_mode.as_bytes(),
    ];
    format!("{}.json", sha256_hex(&parts))
}
