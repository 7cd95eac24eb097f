//! What a decision depends on, read from disk.

use std::cell::OnceCell;
use std::fs;
use std::io;

use boxery_pin::{Mode, PathMap, Resolved, VmName};
use boxery_policy::Policy;
use boxery_router::{
    Alarms, Approval, GitPlaces, LocalShell, Place, Preflight, ProofState, Proofs, ProtectedPaths,
    Questions, Refusal, Ruling, Scope, Situation, UserVerdict, git_hazard,
};
use camino::{Utf8Path, Utf8PathBuf};

use super::agent_process::{agent_process, executable_of};
use super::answer::{Hook, line};
use super::protected::protected_paths;
use crate::config::{Config, Declared, Vm};
use crate::error::Failure;
use crate::policy::{Caller, InForce, policy_files};
use crate::{env, place};

/// A pin that can be used.
pub(crate) struct Pinned {
    pub(crate) resolved: Resolved,
    pub(crate) config: Config,
    pub(crate) vm: Vm,
    /// The pin's mode, else the user's, else guard.
    pub(crate) mode: Mode,
    /// The project and its copy, or why there is none.
    pub(crate) map: Result<PathMap, String>,
}

/// Read the configuration that `resolved` needs; with a failure comes the VM's name.
pub(crate) fn read_pinned(
    hook: &Hook<'_>,
    resolved: Resolved,
) -> Result<Pinned, (Failure, VmName)> {
    let name = resolved.vm.clone();
    let read = || -> Result<(Config, Vm), Failure> {
        let config = hook.app.config()?;
        let vm = config.vm(&name)?.clone();
        Ok((config, vm))
    };
    let (config, vm) = read().map_err(|failure| (failure, name.clone()))?;
    let map = path_map(hook, &resolved, &vm);
    let mode = resolved.mode.or(config.mode).unwrap_or(Mode::Guard);
    Ok(Pinned {
        resolved,
        config,
        vm,
        mode,
        map,
    })
}

fn path_map(hook: &Hook<'_>, resolved: &Resolved, vm: &Vm) -> Result<PathMap, String> {
    let folder = hook.folder.as_deref().ok_or("the call names no folder")?;
    let root = place::project_root(resolved, folder, hook.project.as_deref());
    root.and_then(|root| place::path_map(hook.app, vm, &root))
        .map_err(|error| error.to_string())
}

/// What [`boxery_router::decide`] looks up only when it matters.
pub(crate) struct Answers<'a> {
    hook: &'a Hook<'a>,
    pinned: Option<&'a Pinned>,
    protected: OnceCell<ProtectedPaths>,
    in_force: OnceCell<Result<InForce, String>>,
    project: Option<&'a Utf8Path>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(
        hook: &'a Hook<'a>,
        pinned: Option<&'a Pinned>,
        project: Option<&'a Utf8Path>,
    ) -> Self {
        Self {
            hook,
            pinned,
            protected: OnceCell::new(),
            in_force: OnceCell::new(),
            project,
        }
    }

    fn in_force(&self) -> Result<&InForce, String> {
        let found = self.in_force.get_or_init(|| match self.pinned {
            Some(pinned) => in_force(self.hook, pinned).map_err(|failure| line(&failure)),
            None => Err("the pin can't be used".to_owned()),
        });
        found.as_ref().map_err(Clone::clone)
    }
}

/// The files that make up policies, whether or not pin and configuration can be used.
fn files_of_policies(hook: &Hook<'_>, pinned: Option<&Pinned>) -> Vec<Utf8PathBuf> {
    let project = pinned.and_then(|pinned| place::pinned_project(&pinned.resolved));
    let read = match pinned {
        Some(_) => None,
        None => hook.app.config().ok(),
    };
    let config = pinned.map(|pinned| &pinned.config).or(read.as_ref());
    policy_files(
        hook.app,
        config.unwrap_or(&Config::default()),
        Caller {
            agent: Some(&hook.event.agent),
            folder: &hook.real_folder(),
            project: project.as_deref(),
        },
    )
}

/// The policy that holds for the call.
pub(crate) fn in_force(hook: &Hook<'_>, pinned: &Pinned) -> Result<InForce, Failure> {
    let project = place::pinned_project(&pinned.resolved);
    InForce::find(
        hook.app,
        &pinned.config,
        Caller {
            agent: Some(&hook.event.agent),
            folder: &hook.real_folder(),
            project: project.as_deref(),
        },
    )
}

impl Questions for Answers<'_> {
    fn preflight(&self) -> Preflight {
        let chosen = self
            .pinned
            .map(|pinned| pinned.config.hook_preflight(&self.hook.event.agent.0))
            .unwrap_or_default();
        Preflight {
            files: chosen.contains(&Declared::Files),
            urls: chosen.contains(&Declared::Urls),
            folder: self.hook.folder.as_ref().map(ToString::to_string),
        }
    }

    fn policy(&self) -> Result<&Policy, String> {
        self.in_force().map(|in_force| &in_force.policy)
    }

    fn user_rules(&self, tool: &str, command: &str) -> UserVerdict {
        self.hook
            .adapter
            .user_rules(&self.hook.surroundings(), tool, command)
    }

    fn edits(&self, text: &str) -> bool {
        self.hook.adapter.edits(text)
    }

    fn git_hazard(&self) -> Option<String> {
        let home = &self.hook.app.env.home;
        let user = self
            .hook
            .app
            .env
            .config
            .parent()
            .map(|config| config.join("git/config"));
        let mut configurations = vec![home.join(".gitconfig"), Utf8PathBuf::from("/etc/gitconfig")];
        configurations.extend(user);
        let places = GitPlaces {
            variables: if env::any_git_variable() {
                vec!["GIT_…".to_owned()]
            } else {
                Vec::new()
            },
            configurations,
        };
        match self.hook.folder.as_deref() {
            Some(folder) => git_hazard(folder, &places),
            None => Some("the call names no folder".to_owned()),
        }
    }

    fn protected(&self, path: &str) -> Option<String> {
        self.protected
            .get_or_init(|| {
                let mut paths = protected_paths(self.hook, self.project);
                let files = files_of_policies(self.hook, self.pinned).into_iter();
                paths
                    .paths
                    .extend(files.map(|path| (path, "a policy file")));
                paths
            })
            .check(path, self.hook.folder.as_deref())
            .map(str::to_owned)
    }

    fn own_server(&self) -> bool {
        env::own_binary().is_ok_and(|binary| {
            self.hook
                .adapter
                .own_server(&self.hook.surroundings(), &binary)
        })
    }

    fn in_project(&self, path: &str) -> bool {
        self.project.is_some_and(|project| {
            ProtectedPaths::resolved(path, self.hook.folder.as_deref())
                .is_some_and(|path| path.starts_with(project))
        })
    }
}

/// Gather the situation of a pinned call and hand it to `decide`.
pub(crate) fn with_situation(
    hook: &Hook<'_>,
    pinned: &Pinned,
    token: &str,
    decide: impl FnOnce(&Situation<'_>) -> Ruling,
) -> Ruling {
    let vm = &pinned.resolved.vm;
    let binary = match env::own_binary() {
        Ok(binary) => binary,
        Err(failure) => return failed(&failure),
    };
    let others: Vec<VmName> = pinned
        .config
        .vm
        .keys()
        .filter(|name| *name != vm)
        .cloned()
        .collect();
    let map = pinned.map.as_ref();
    let folder = match (map, hook.folder.as_deref()) {
        (Ok(map), Some(folder)) => map.to_remote(folder).map_err(|error| error.to_string()),
        (Ok(_), None) => Err("the call names no folder".to_owned()),
        (Err(why), _) => Err(why.clone()),
    };
    let (proof, alarm, rewriters) = match pinned.mode {
        Mode::Guard => (
            ProofState::Unproven {
                why: "the mode is guard".to_owned(),
            },
            None,
            Vec::new(),
        ),
        Mode::Redirect => (
            proof(hook),
            alarm(hook),
            hook.adapter.rewriters(&hook.surroundings()),
        ),
    };
    let project = map.ok().map(|map| map.project.as_path());
    let answers = Answers::new(hook, Some(pinned), project);
    decide(&Situation {
        binary: &binary,
        vm,
        other_vms: &others,
        place: place_of(&pinned.vm),
        mode: pinned.mode,
        copy: map.ok().map(|map| &map.copy),
        folder,
        shell: LocalShell::Posix,
        proof,
        alarm,
        rewriters: &rewriters,
        refusal: refusal(hook),
        allow: &pinned.config.allow,
        allow_tools: &pinned.config.allow_tools,
        approval: if pinned.config.auto_approve {
            Approval::Auto
        } else {
            Approval::AsEver
        },
        token,
        questions: &answers,
    })
}

fn failed(failure: &Failure) -> Ruling {
    let rule = "failure";
    let reason = format!("boxery can't find its own program ({})", line(failure));
    Ruling {
        decision: boxery_router::Decision::Deny { rule, reason },
        rule,
        detail: None,
        due: None,
    }
}

/// Whether this machine is the pinned VM, by the machine id noted at `vm add`.
fn place_of(vm: &Vm) -> Place {
    let own = || fs::read_to_string("/etc/machine-id").ok();
    match &vm.machine_id {
        Some(id) if !vm.is_embedded() && own().is_some_and(|own| own.trim() == id) => Place::Vm,
        Some(_) | None => Place::Laptop,
    }
}

/// Why nothing may run: the operator holds every call.
fn refusal(hook: &Hook<'_>) -> Option<Refusal> {
    let hold = hook.app.env.state_path("hold");
    let held = |reason: String| Refusal {
        rule: "hold",
        reason,
        scope: Scope::Everything,
    };
    match fs::read_to_string(&hold) {
        Ok(reason) => Some(held(format!(
            "the user has put every call on hold: {}",
            reason.trim()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(held(format!("`{hold}` can't be read: {error}"))),
    }
}

/// Whether the agent above this hook is proven in the modes that it is in.
fn proof(hook: &Hook<'_>) -> ProofState {
    let unproven = |why: String| ProofState::Unproven { why };
    let Some(process) = agent_process(&hook.ancestors) else {
        return unproven("the agent's own process can't be found".to_owned());
    };
    let executable = match executable_of(process) {
        Ok(executable) => executable,
        Err(error) => return unproven(error.to_string()),
    };
    let mode = hook.event.permission_mode.as_deref().unwrap_or("default");
    let sandbox = hook.adapter.sandbox_mode(&hook.surroundings());
    Proofs::new(hook.app.env.state_path("proofs"))
        .state(&hook.event.agent, &executable, mode, &sandbox)
        .unwrap_or_else(|error| unproven(error.to_string()))
}

/// Why the session was dropped to guard; an alarm that can't be read is one.
fn alarm(hook: &Hook<'_>) -> Option<String> {
    Alarms::new(hook.app.env.state_path("alarms"))
        .read(&hook.event.agent, hook.event.session.as_ref())
        .map_or_else(
            |error| Some(error.to_string()),
            |alarm| alarm.map(|alarm| alarm.reason),
        )
}
