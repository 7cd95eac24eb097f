//! The user's configuration file, `$XDG_CONFIG_HOME/boxery/config.toml`.
//!
//! Read through serde; edited in place, so that comments and order stay.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs2::FileExt as _;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml_edit::{DocumentMut, Item, Table, value};

use boxery_pin::{DriftRule, Mode, PathForm, RemotePath, VmName};
use boxery_remote::{PipeChoice, PortChoice};

use crate::environment::Rules;
use crate::error::Failure;
use crate::policy::Accept;

/// The file's content. An unknown key is an error: a typo must not weaken anything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The mode of a pin that doesn't say its own.
    pub(crate) mode: Option<Mode>,
    /// The drift rule of a pin that doesn't say its own.
    pub(crate) drift: Option<DriftRule>,
    /// Commands that stay on the laptop while pinned, such as `git status`.
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    /// Tools of other MCP servers that may carry a command while pinned.
    #[serde(default)]
    pub(crate) allow_tools: Vec<String>,
    /// Whether a rewritten call also answers the agent's permission question.
    #[serde(default)]
    pub(crate) auto_approve: bool,
    /// Sections of a policy that a VM need not enforce, such as `network:unavailable`.
    #[serde(default)]
    pub(crate) accept: Vec<Accept>,
    /// For how long a run on a VM waits for a client whose connection broke, by the
    /// VM's clock, such as `8h`, which it is unless said.
    #[serde(default, deserialize_with = "duration")]
    pub(crate) grace: Option<Duration>,
    /// What is said of each agent's hook.
    #[serde(default)]
    pub(crate) hook: BTreeMap<String, HookConfig>,
    /// What of an agent's shell is kept from call to call besides its folder.
    #[serde(default)]
    pub(crate) state: StateRule,
    /// What else than files a sync moves.
    #[serde(default)]
    pub(crate) sync: SyncConfig,
    /// Which variables commands get besides those that always travel.
    #[serde(default)]
    pub(crate) env: Rules,
    /// The VMs by name.
    #[serde(default)]
    pub(crate) vm: BTreeMap<VmName, Vm>,
}

/// A time as options take it: `90s`, `8h`.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = crate::cmd::run::parse_duration(&text);
    time.map(Some).map_err(D::Error::custom)
}

/// `[sync]`: what else than files a sync moves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncConfig {
    /// The repository.
    #[serde(default)]
    pub(crate) git: GitRule,
}

/// Whether commits, branches and the index of a project move with its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GitRule {
    /// Where both sides have git.
    #[default]
    Auto,
    /// They don't.
    Off,
}

/// What is said of one agent's hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookConfig {
    /// The policy that it is held to, whatever lies in the project: the absolute path
    /// of a file, or a template's name.
    pub(crate) policy: Option<String>,
    /// What its own file and fetch tools declare, as far as the policy judges it.
    #[serde(default)]
    pub(crate) preflight: Vec<Declared>,
}

/// What a tool declares that it is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Declared {
    /// Paths that it writes.
    Files,
    /// URLs that it reaches.
    Urls,
}

/// What of an agent's shell is kept from call to call besides its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateRule {
    /// Nothing.
    #[default]
    Folder,
    /// What its commands exported.
    Exports,
}

/// One VM.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vm {
    /// `user@host[:port]`, a `Host` of ssh_config, or `embedded`.
    pub(crate) target: String,
    /// The folder on the VM below which copies of projects lie.
    pub(crate) dir: RemotePath,
    /// Which way to reach it.
    #[serde(default)]
    pub(crate) pipe: PipeChoice,
    /// Which TCP ports on which a run listens there are offered here by themselves.
    #[serde(default)]
    pub(crate) ports: PortChoice,
    /// Where commands on it see the copy of a project.
    #[serde(default)]
    pub(crate) paths: PathsRule,
    /// Run there by bash before the first command, once per machine and text.
    #[serde(default)]
    pub(crate) setup: Option<String>,
    /// The VM's `/etc/machine-id` when it was added.
    #[serde(default)]
    pub(crate) machine_id: Option<String>,
    /// The fingerprint of its host key when it was added, `SHA256:…`.
    #[serde(default)]
    pub(crate) host_key: Option<String>,
}

/// Where commands on a VM see the copy of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathsRule {
    /// Nobody chose: in the VM's folder for copies.
    #[default]
    Auto,
    /// At the project's own absolute path, where it really lies.
    Real,
    /// At that path in a namespace that each command gets.
    Namespace,
    /// In the VM's folder for copies.
    Mapped,
}

impl PathsRule {
    /// The form that it comes down to. A folder outside of the user's own is never
    /// made without consent, so that nobody's choice is the mapped one.
    pub(crate) fn form(self) -> PathForm {
        match self {
            Self::Real => PathForm::Real,
            Self::Namespace => PathForm::Namespace,
            Self::Auto | Self::Mapped => PathForm::Mapped,
        }
    }

    /// The word in the configuration.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Real => "real",
            Self::Namespace => "namespace",
            Self::Mapped => "mapped",
        }
    }
}

impl Vm {
    /// Whether it is the VM on this machine for trying things.
    pub(crate) fn is_embedded(&self) -> bool {
        self.target == "embedded"
    }
}

/// A configuration file that can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It exists and can't be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It can't be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It isn't what boxery understands.
    #[error("`{path}` is not a valid configuration: {problem}")]
    Malformed {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong, with its place.
        problem: String,
    },
    /// No VM has this name.
    #[error("no VM is named `{name}`")]
    UnknownVm {
        /// The name.
        name: VmName,
    },
}

impl Config {
    /// Read the file; a missing one is an empty configuration.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, Failure> {
        let text = read_text(path)?;
        toml_edit::de::from_str(&text).map_err(|error| {
            Failure::from(ConfigError::Malformed {
                path: path.to_owned(),
                problem: error.to_string(),
            })
            .hint("mend the file; boxery changes nothing in it by itself")
        })
    }

    /// The policy that the hook of `agent` is held to, when it is to one of its own.
    pub(crate) fn hook_policy(&self, agent: &str) -> Option<&str> {
        self.hook.get(agent)?.policy.as_deref()
    }

    /// What of the inputs of `agent`'s own file and fetch tools the policy judges.
    pub(crate) fn hook_preflight(&self, agent: &str) -> &[Declared] {
        self.hook
            .get(agent)
            .map_or(&[], |hook| hook.preflight.as_slice())
    }

    /// The VM of that name.
    pub(crate) fn vm(&self, name: &VmName) -> Result<&Vm, Failure> {
        self.vm.get(name).ok_or_else(|| {
            let hint = self.unknown_vm_hint(name);
            Failure::from(ConfigError::UnknownVm { name: name.clone() }).hint(hint)
        })
    }

    /// What to say when a VM isn't known: a near name, or all names.
    pub(crate) fn unknown_vm_hint(&self, name: &VmName) -> String {
        let near = self
            .vm
            .keys()
            .map(|known| {
                (
                    strsim::damerau_levenshtein(known.as_str(), name.as_str()),
                    known,
                )
            })
            .min()
            .filter(|(distance, _)| *distance <= 2);
        if let Some((_, near)) = near {
            return format!("did you mean `{near}`?");
        }
        let names: Vec<&str> = self.vm.keys().map(VmName::as_str).collect();
        if names.is_empty() {
            "add one with `boxery vm add NAME user@host`, or `boxery vm add NAME --embedded` to try things".to_owned()
        } else {
            format!("known VMs: {}", names.join(", "))
        }
    }
}

fn read_text(path: &Utf8Path) -> Result<String, ConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(ConfigError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Change the file in place under a lock: comments, order and spacing stay.
pub(crate) fn edit(path: &Utf8Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(), Failure> {
    let write_error = |source| ConfigError::Write {
        path: path.to_owned(),
        source,
    };
    // A file kept elsewhere and linked here stays a link.
    let path = &path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Utf8Path::new("/"));
    fs::create_dir_all(folder).map_err(write_error)?;
    let lock = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(".config.lock"))
        .map_err(write_error)?;
    lock.lock_exclusive().map_err(write_error)?;
    let text = read_text(path)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::from(ConfigError::Malformed {
            path: path.clone(),
            problem: error.to_string(),
        })
        .hint("mend the file; nothing was changed")
    })?;
    change(&mut document);
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(write_error)?;
    file.write_all(document.to_string().as_bytes())
        .map_err(write_error)?;
    file.as_file().sync_all().map_err(write_error)?;
    if let Ok(old) = fs::metadata(path) {
        fs::set_permissions(file.path(), old.permissions()).map_err(write_error)?;
    }
    file.persist(path)
        .map_err(|error| write_error(error.error))?;
    Ok(())
}

/// Set or replace the VM `name`.
pub(crate) fn set_vm(document: &mut DocumentMut, name: &VmName, vm: &Vm) {
    let vms = document.entry("vm").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(vms) = vms.as_table_like_mut() else {
        return;
    };
    let mut table = Table::new();
    table.insert("target", value(&vm.target));
    table.insert("dir", value(vm.dir.as_str()));
    match vm.pipe {
        PipeChoice::Auto => {}
        PipeChoice::Native => drop(table.insert("pipe", value("native"))),
        PipeChoice::System => drop(table.insert("pipe", value("system"))),
    }
    if vm.paths != PathsRule::Auto {
        table.insert("paths", value(vm.paths.as_str()));
    }
    if let Some(script) = &vm.setup {
        table.insert("setup", value(script));
    }
    if let Some(id) = &vm.machine_id {
        table.insert("machine_id", value(id));
    }
    if let Some(key) = &vm.host_key {
        table.insert("host_key", value(key));
    }
    vms.insert(name.as_str(), Item::Table(table));
}

/// Hold the hook of `agent` to `policy`, or to none of its own.
pub(crate) fn set_hook_policy(document: &mut DocumentMut, agent: &str, policy: Option<&str>) {
    set_hook(document, agent, "policy", policy.map(value));
}

/// Have the policy judge these inputs of the own tools of `agent`, or none.
pub(crate) fn set_hook_preflight(document: &mut DocumentMut, agent: &str, declared: &[&str]) {
    let list = declared.iter().copied().collect::<toml_edit::Array>();
    set_hook(
        document,
        agent,
        "preflight",
        (!declared.is_empty()).then(|| value(list)),
    );
}

fn set_hook(document: &mut DocumentMut, agent: &str, key: &str, item: Option<Item>) {
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let hooks = document.entry("hook").or_insert_with(implicit);
    let Some(hooks) = hooks.as_table_like_mut() else {
        return;
    };
    if let Some(item) = item {
        let hook = hooks
            .entry(agent)
            .or_insert_with(|| Item::Table(Table::new()));
        if let Some(hook) = hook.as_table_like_mut() {
            hook.insert(key, item);
        }
        return;
    }
    let hook = hooks.get_mut(agent).and_then(Item::as_table_like_mut);
    let is_empty = hook.is_some_and(|hook| {
        hook.remove(key);
        hook.is_empty()
    });
    if is_empty {
        hooks.remove(agent);
    }
}

/// Set what tells that the VM `name` is the one that was added.
pub(crate) fn set_identity(
    document: &mut DocumentMut,
    name: &VmName,
    machine_id: Option<&str>,
    host_key: Option<&str>,
) {
    let vms = document.get_mut("vm").and_then(Item::as_table_like_mut);
    let vm = vms.and_then(|vms| vms.get_mut(name.as_str())?.as_table_like_mut());
    let Some(vm) = vm else { return };
    for (key, identity) in [("machine_id", machine_id), ("host_key", host_key)] {
        match identity {
            Some(identity) => vm.insert(key, value(identity)),
            None => vm.remove(key),
        };
    }
}

/// Remove the VM `name`; whether there was one.
pub(crate) fn remove_vm(document: &mut DocumentMut, name: &VmName) -> bool {
    document
        .get_mut("vm")
        .and_then(Item::as_table_like_mut)
        .is_some_and(|vms| vms.remove(name.as_str()).is_some())
}
