//! A situation to start from, and the questions of a test.

use boxery_pin::{Mode, RemotePath, VmName};
use boxery_policy::{Found, Places, Policy, Reader, Roots, find_policy, resolve_policy};
use boxery_router::{
    AgentId, Approval, EventKind, HookEvent, LocalShell, Place, Preflight, ProofState, Questions,
    SessionId, ShellDialect, Situation, ToolAction, ToolCall, UserVerdict,
};
use camino::Utf8Path;

pub(crate) const BINARY: &str = "/opt/boxery/bin/boxery";
pub(crate) const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// What the agent of these tests would change in a text.
pub(crate) const EDITED: &str = ">nul";

/// Answers that a row of a table can set.
pub(crate) struct Answers {
    pub(crate) rules: Vec<(&'static str, UserVerdict)>,
    pub(crate) hazard: Option<&'static str>,
    pub(crate) own_server: bool,
    pub(crate) protected: &'static [&'static str],
    pub(crate) project: &'static [&'static str],
    pub(crate) policy: Result<Policy, String>,
    pub(crate) preflight: Preflight,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            hazard: None,
            own_server: false,
            protected: &["fence.json"],
            project: &["src/a.txt", "fence.json"],
            policy: Ok(policy(None)),
            preflight: Preflight::default(),
        }
    }
}

/// A disk with one policy file, `/p/fence.json`, or none.
struct Disk(Option<String>);

impl Reader for Disk {
    fn read(&self, path: &str) -> Found {
        match &self.0 {
            Some(text) if path == "/p/fence.json" => Found::Text(text.clone()),
            Some(_) | None => Found::Missing,
        }
    }

    fn canonical(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// The policy that holds when `/p/fence.json` has this text, or isn't there.
pub(crate) fn policy(text: Option<&str>) -> Policy {
    let disk = Disk(text.map(str::to_owned));
    let places = Places::default();
    let origin = find_policy("/p", &places, &disk);
    let resolved = resolve_policy(origin, &places, &disk)
        .unwrap_or_else(|error| panic!("the policy of a test is sound: {error}"));
    let roots = Roots {
        home: "/home/me",
        folder: "/p",
        links: &|_| None,
    };
    Policy::new(&resolved, &roots)
}

impl Questions for Answers {
    fn preflight(&self) -> Preflight {
        self.preflight.clone()
    }

    fn policy(&self) -> Result<&Policy, String> {
        self.policy.as_ref().map_err(Clone::clone)
    }

    fn user_rules(&self, _tool: &str, command: &str) -> UserVerdict {
        let found = self.rules.iter().find(|(text, _)| *text == command);
        found.map_or(UserVerdict::None, |(_, verdict)| verdict.clone())
    }

    fn edits(&self, text: &str) -> bool {
        text.contains(EDITED)
    }

    fn git_hazard(&self) -> Option<String> {
        self.hazard.map(str::to_owned)
    }

    fn protected(&self, path: &str) -> Option<String> {
        self.protected
            .contains(&path)
            .then(|| "a policy file".to_owned())
    }

    fn own_server(&self) -> bool {
        self.own_server
    }

    fn in_project(&self, path: &str) -> bool {
        self.project.contains(&path)
    }
}

/// What a [`Situation`] borrows.
pub(crate) struct World {
    pub(crate) vm: VmName,
    pub(crate) others: Vec<VmName>,
    pub(crate) copy: RemotePath,
    pub(crate) rewriters: Vec<String>,
    pub(crate) allow: Vec<String>,
    pub(crate) allow_tools: Vec<String>,
    pub(crate) answers: Answers,
}

impl Default for World {
    fn default() -> Self {
        Self {
            vm: name("dev"),
            others: vec![name("prod")],
            copy: remote("/home/me/work/app-01234567"),
            rewriters: Vec::new(),
            allow: vec!["git status".to_owned(), "ls".to_owned()],
            allow_tools: vec!["mcp__db__query".to_owned()],
            answers: Answers::default(),
        }
    }
}

impl World {
    /// A proven session in redirect, on the laptop, in the folder `src` of the project.
    pub(crate) fn redirect(&self) -> Situation<'_> {
        Situation {
            binary: Utf8Path::new(BINARY),
            vm: &self.vm,
            other_vms: &self.others,
            place: Place::Laptop,
            mode: Mode::Redirect,
            copy: Some(&self.copy),
            folder: Ok(remote("/home/me/work/app-01234567/src")),
            shell: LocalShell::Posix,
            proof: ProofState::Proven,
            alarm: None,
            rewriters: &self.rewriters,
            refusal: None,
            allow: &self.allow,
            allow_tools: &self.allow_tools,
            approval: Approval::AsEver,
            token: TOKEN,
            questions: &self.answers,
        }
    }

    /// The same session in guard.
    pub(crate) fn guard(&self) -> Situation<'_> {
        Situation {
            mode: Mode::Guard,
            ..self.redirect()
        }
    }
}

pub(crate) fn name(text: &str) -> VmName {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is a VM's name"))
}

pub(crate) fn remote(text: &str) -> RemotePath {
    text.parse().unwrap_or_else(|_| panic!("{text} is a path"))
}

/// A call of the tool `tool` before it runs.
pub(crate) fn before(tool: &str, action: ToolAction) -> HookEvent {
    HookEvent {
        agent: AgentId("claude-code".to_owned()),
        session: Some(SessionId("s1".to_owned())),
        subagent: None,
        folder: Some("/home/me/app/src".into()),
        permission_mode: Some("default".to_owned()),
        kind: EventKind::BeforeTool(call(tool, action)),
    }
}

pub(crate) fn call(tool: &str, action: ToolAction) -> ToolCall {
    ToolCall {
        tool: tool.to_owned(),
        call_id: Some("call-1".to_owned()),
        action,
    }
}

pub(crate) fn posix(command: &str) -> ToolAction {
    ToolAction::Shell {
        command: command.to_owned(),
        dialect: ShellDialect::Posix,
        rewritable: true,
    }
}

/// A call of the agent's own shell tool.
pub(crate) fn bash(command: &str) -> HookEvent {
    before("Bash", posix(command))
}
