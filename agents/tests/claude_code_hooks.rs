//! What Claude Code's settings and plugins say of hooks.

#![expect(
    clippy::expect_used,
    reason = "a test support function may fail the test"
)]

use std::fs;

use boxery_agents::{ADAPTERS, HookEnvironment, Surroundings, hook_command};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

struct World {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

const USER: &str = "home/.claude/settings.json";
const PROJECT: &str = "project/.claude/settings.json";
const LOCAL: &str = "project/.claude/settings.local.json";
const MANAGED: &str = "machine/etc/claude-code/managed-settings.json";
const PLUGINS: &str = "home/.claude/plugins/installed_plugins.json";

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let world = Self {
            folder: tempfile::tempdir().expect("a folder"),
            arguments: Vec::new(),
        };
        for (path, content) in files {
            put(
                &world.path(path),
                &content.replace("ROOT", world.path("").as_str()),
            );
        }
        world
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path())
            .expect("UTF-8")
            .join(name)
    }

    fn read(&self) -> HookEnvironment {
        self.ask(|adapter, surroundings| adapter.hook_environment(surroundings))
    }

    /// The commands of the hooks that may rewrite a call.
    fn rewriters(&self) -> Vec<String> {
        self.read()
            .rewriters
            .into_iter()
            .map(|hook| hook.command)
            .collect()
    }

    fn ask<T>(&self, question: impl Fn(&dyn boxery_agents::Adapter, &Surroundings<'_>) -> T) -> T {
        let adapter = ADAPTERS
            .iter()
            .find(|adapter| adapter.name() == "claude-code")
            .expect("the adapter");
        question(
            *adapter,
            &Surroundings {
                home: &self.path("home"),
                settings: None,
                project: Some(&self.path("project")),
                folder: Some(&self.path("project/sub")),
                machine: &self.path("machine"),
                arguments: &self.arguments,
            },
        )
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
fn put(path: &Utf8Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, content).expect("a file");
}

fn hooks(event: &str, group: &str) -> String {
    format!(r#"{{"hooks":{{"{event}":[{group}]}}}}"#)
}

#[rstest]
#[case::no_matcher("", true)]
#[case::empty(r#""matcher":"","#, true)]
#[case::star(r#""matcher":"*","#, true)]
#[case::bash(r#""matcher":"Bash","#, true)]
#[case::monitor(r#""matcher":"Monitor","#, true)]
#[case::in_a_list(r#""matcher":"Write|Bash","#, true)]
#[case::in_a_comma_list(r#""matcher":"Write, Bash","#, true)]
#[case::lower_case(r#""matcher":"bash","#, false)]
#[case::others(r#""matcher":"Write|Edit","#, false)]
#[case::part_of_the_name(r#""matcher":"Bas","#, false)]
#[case::any(r#""matcher":".*","#, true)]
#[case::prefix(r#""matcher":"B.*","#, true)]
#[case::unanchored(r#""matcher":"as.","#, true)]
#[case::anchored(r#""matcher":"^Bash$","#, true)]
#[case::anchored_group(r#""matcher":"^(Bash|Write)$","#, true)]
#[case::anchored_group_of_others(r#""matcher":"^(Write|Edit)$","#, false)]
#[case::mcp(r#""matcher":"mcp__.*","#, false)]
#[case::mcp_anchored(r#""matcher":"^mcp__github__.*$","#, false)]
#[case::mcp_or_bash(r#""matcher":"mcp__.*|Bash","#, true)]
#[case::optional_first(r#""matcher":"x?Bash","#, true)]
#[case::a_class(r#""matcher":"[B]ash","#, true)]
#[case::an_escape(r#""matcher":"\\w+","#, true)]
#[case::no_string(r#""matcher":7,"#, true)]
fn a_hook_counts_when_its_matcher_may_match_the_shell(#[case] matcher: &str, #[case] want: bool) {
    let group = format!(r#"{{{matcher}"hooks":[{{"type":"command","command":"rtk"}}]}}"#);
    for file in [USER, PROJECT, LOCAL, MANAGED] {
        let world = World::new(&[(file, &hooks("PreToolUse", &group))]);
        assert_eq!(world.rewriters(), if want { vec!["rtk"] } else { vec![] });
    }
}

#[rstest]
#[case::command(r#"{"type":"command","command":"rtk hook"}"#, Some("rtk hook"))]
#[case::with_arguments(
    r#"{"type":"command","command":"rtk","args":["a","b"]}"#,
    Some("rtk a b")
)]
#[case::http(r#"{"type":"http","url":"https://x"}"#, Some("https://x"))]
#[case::mcp(r#"{"type":"mcp_tool","server":"s","tool":"t"}"#, Some("t"))]
#[case::of_a_new_kind(r#"{"type":"wasm"}"#, Some("wasm"))]
#[case::no_kind("{}", Some("a hook without a command"))]
#[case::not_waited_for(r#"{"type":"command","command":"x","async":true}"#, None)]
#[case::prompt(r#"{"type":"prompt","prompt":"ok?"}"#, None)]
#[case::agent(r#"{"type":"agent","prompt":"ok?"}"#, None)]
fn a_hook_counts_when_its_answer_may_rewrite(#[case] hook: &str, #[case] want: Option<&str>) {
    let group = format!(r#"{{"hooks":[{hook}]}}"#);
    let world = World::new(&[(USER, &hooks("PreToolUse", &group))]);
    assert_eq!(world.rewriters(), want.into_iter().collect::<Vec<_>>());
}

#[rstest]
#[case("PreToolUse", true)]
#[case("PermissionRequest", true)]
#[case("PostToolUse", false)]
#[case("SessionStart", false)]
fn only_hooks_before_a_call_count(#[case] event: &str, #[case] want: bool) {
    let world = World::new(&[(
        USER,
        &hooks(event, r#"{"hooks":[{"type":"command","command":"x"}]}"#),
    )]);
    assert_eq!(!world.rewriters().is_empty(), want);
}

#[test]
fn our_own_entry_is_no_rewriter() {
    let command = hook_command(Utf8Path::new("/usr/bin/boxery"), "claude-code").expect("quotable");
    let group = serde_json::json!({"hooks": [{"type": "command", "command": command}]});
    let world = World::new(&[(USER, &hooks("PreToolUse", &group.to_string()))]);
    let found = world.read();
    assert_eq!(found.rewriters, []);
    assert_eq!(found.own.len(), 1);
    assert_eq!(found.own[0].place, world.path(USER));
}

const ENABLED: &str = r#"{"enabledPlugins":{"rtk@market":true,"off@market":false}}"#;
const INSTALLED: &str = r#"{"version":2,"plugins":{
    "rtk@market":[{"scope":"user","installPath":"ROOT/plugins/rtk"}],
    "off@market":[{"scope":"user","installPath":"ROOT/plugins/off"}]}}"#;
const HOOK: &str = r#"{"PreToolUse":[{"hooks":[{"type":"command","command":"from-plugin"}]}]}"#;

#[rstest]
#[case::wrapped(
    "plugins/rtk/hooks/hooks.json",
    r#"{"description":"x","hooks":HOOK}"#,
    ""
)]
#[case::bare("plugins/rtk/hooks/hooks.json", "HOOK", "")]
#[case::in_the_manifest("plugins/rtk/x", "", r#"{"name":"rtk","hooks":HOOK}"#)]
#[case::named_by_the_manifest(
    "plugins/rtk/my.json",
    r#"{"hooks":HOOK}"#,
    r#"{"hooks":"./my.json"}"#
)]
#[case::several_named(
    "plugins/rtk/my.json",
    r#"{"hooks":HOOK}"#,
    r#"{"hooks":["./no.json","./my.json"]}"#
)]
fn the_hooks_of_an_enabled_plugin_count(
    #[case] path: &str,
    #[case] content: &str,
    #[case] manifest: &str,
) {
    let content = content.replace("HOOK", HOOK);
    let manifest = manifest.replace("HOOK", HOOK);
    let mut files = vec![(USER, ENABLED), (PLUGINS, INSTALLED), (path, &content)];
    if !manifest.is_empty() {
        files.push(("plugins/rtk/.claude-plugin/plugin.json", &manifest));
    }
    assert_eq!(World::new(&files).rewriters(), ["from-plugin"]);
}

#[test]
fn a_plugin_that_is_off_or_unknown_does_not_count() {
    let off = HOOK.replace("from-plugin", "off");
    let world = World::new(&[
        (USER, ENABLED),
        (PLUGINS, INSTALLED),
        ("plugins/off/hooks/hooks.json", &off),
    ]);
    assert_eq!(world.rewriters(), Vec::<String>::new());
    assert_eq!(
        World::new(&[(USER, ENABLED)]).rewriters(),
        Vec::<String>::new()
    );
}

#[test]
fn a_plugin_of_the_command_line_counts() {
    let mut world = World::new(&[("project/plug/hooks/hooks.json", HOOK)]);
    world.arguments = ["claude", "--plugin-dir", "plug"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(world.rewriters(), ["from-plugin"]);
}

const FRONT_MATTER: &str =
    "---\nname: rw\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: []\n---\nText";

#[rstest]
#[case::an_agent("home/.claude/agents/rw.md", true)]
#[case::deep("home/.claude/agents/a/b/rw.md", true)]
#[case::a_command("home/.claude/commands/x/rw.md", true)]
#[case::a_skill("home/.claude/skills/rw/SKILL.md", true)]
#[case::of_the_project("project/.claude/agents/rw.md", true)]
#[case::of_a_folder_above(".claude/agents/rw.md", true)]
#[case::of_the_folder("project/sub/.claude/skills/rw/SKILL.md", true)]
#[case::of_the_organisation("machine/etc/claude-code/.claude/agents/rw.md", true)]
#[case::of_a_plugin("plugins/rtk/agents/rw.md", true)]
#[case::of_a_plugins_own_folder("plugins/rtk/mine/rw.md", true)]
#[case::of_a_plugin_that_is_off("plugins/off/agents/rw.md", false)]
#[case::a_text_beside_a_skill("home/.claude/skills/rw/README.md", false)]
#[case::no_markdown("home/.claude/agents/rw.txt", false)]
fn hooks_in_the_front_matter_of_a_definition_count(#[case] path: &str, #[case] want: bool) {
    let world = World::new(&[
        (USER, ENABLED),
        (PLUGINS, INSTALLED),
        (
            "plugins/rtk/.claude-plugin/plugin.json",
            r#"{"agents":"./mine"}"#,
        ),
        (path, FRONT_MATTER),
    ]);
    let found = world.read();
    let places: Vec<_> = found
        .rewriters
        .iter()
        .map(|hook| hook.place.replace("/./", "/").replace("//", "/"))
        .collect();
    let want: Vec<_> = want
        .then(|| world.path(path).into_string())
        .into_iter()
        .collect();
    assert_eq!(places, want);
    let named = world.ask(|adapter, surroundings| adapter.rewriters(surroundings));
    assert!(
        named
            .iter()
            .all(|name| name.contains("rw.md") || name.contains("SKILL.md"))
    );
}

#[test]
fn a_definition_that_leads_back_or_nowhere_is_no_hook() {
    let world = World::new(&[("home/.claude/agents/plain.md", "---\nname: x\n---\n")]);
    let agents = world.path("home/.claude/agents");
    std::os::unix::fs::symlink(".", agents.join("again")).expect("a link");
    std::os::unix::fs::symlink("nothing", agents.join("lost.md")).expect("a link");
    assert_eq!(world.read(), HookEnvironment::default());
}

#[test]
fn front_matter_that_does_not_end_may_hold_hooks() {
    let long = format!("---\nname: {}\n", "x".repeat(100_000));
    let world = World::new(&[("home/.claude/agents/long.md", &long)]);
    assert_eq!(world.read().rewriters.len(), 1);
}

#[rstest]
#[case::agents(&["claude", "--agents", r#"{"a":{"hooks":{}}}"#], true)]
#[case::agents_without(&["claude", "--agents", r#"{"a":{"prompt":"x"}}"#], false)]
#[case::another_folder(&["claude", "--add-dir", "../more", "-p"], true)]
fn definitions_of_the_command_line_count(#[case] arguments: &[&str], #[case] want: bool) {
    let mut world = World::new(&[
        ("more/.claude/skills/rw/SKILL.md", FRONT_MATTER),
        ("project/x", ""),
    ]);
    world.arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    let named = world.ask(|adapter, surroundings| adapter.rewriters(surroundings));
    assert_eq!(!named.is_empty(), want, "{named:?}");
}

#[rstest]
#[case::settings(USER, "{")]
#[case::hooks_that_are_none(PROJECT, r#"{"hooks":[]}"#)]
#[case::the_list_of_plugins(PLUGINS, "{")]
#[case::a_plugins_hooks("plugins/rtk/hooks/hooks.json", "// x")]
#[case::a_plugins_manifest("plugins/rtk/.claude-plugin/plugin.json", "{")]
fn what_cannot_be_read_may_hold_a_rewriter(#[case] path: &str, #[case] content: &str) {
    let mut files = vec![(LOCAL, ENABLED), (PLUGINS, INSTALLED)];
    files.retain(|(file, _)| *file != path);
    files.push((path, content));
    let world = World::new(&files);
    assert_eq!(world.read().unreadable.len(), 1);
    let named = world.ask(|adapter, surroundings| adapter.rewriters(surroundings));
    assert_eq!(named.len(), 1, "{named:?}");
}

#[rstest]
#[case::project(&[(PROJECT, r#"{"disableAllHooks":true}"#)], true, false)]
#[case::off_again(&[(PROJECT, r#"{"disableAllHooks":true}"#), (LOCAL, r#"{"disableAllHooks":false}"#)], false, false)]
#[case::the_user_is_outranked(&[(USER, r#"{"disableAllHooks":false}"#), (PROJECT, r#"{"disableAllHooks":true}"#)], true, false)]
#[case::managed_only(&[(MANAGED, r#"{"allowManagedHooksOnly":true}"#)], false, true)]
#[case::strict(&[(MANAGED, r#"{"strictPluginOnlyCustomization":["hooks"]}"#)], false, true)]
#[case::only_managed_settings_may_say_so(&[(USER, r#"{"allowManagedHooksOnly":true}"#)], false, false)]
#[case::nothing(&[], false, false)]
fn settings_that_switch_hooks_off_are_named(
    #[case] files: &[(&str, &str)],
    #[case] disabled: bool,
    #[case] managed_only: bool,
) {
    let found = World::new(files).read();
    assert_eq!(found.disabled.is_some(), disabled, "{found:?}");
    assert_eq!(found.managed_only.is_some(), managed_only, "{found:?}");
}

#[rstest]
#[case::on(&[(USER, r#"{"sandbox":{"enabled":true}}"#)], "on")]
#[case::outranked(&[(USER, r#"{"sandbox":{"enabled":true}}"#), (PROJECT, r#"{"sandbox":{"enabled":false}}"#)], "off")]
#[case::by_the_organisation(&[(LOCAL, r#"{"sandbox":{"enabled":false}}"#), (MANAGED, r#"{"sandbox":{"enabled":true}}"#)], "on")]
#[case::nothing(&[], "off")]
fn the_sandbox_is_on_when_the_first_scope_that_speaks_says_so(
    #[case] files: &[(&str, &str)],
    #[case] want: &str,
) {
    let world = World::new(files);
    assert_eq!(
        world.ask(|adapter, surroundings| adapter.sandbox_mode(surroundings)),
        want
    );
}

#[test]
fn a_file_of_the_organisations_folder_overrides_its_main_file() {
    let world = World::new(&[
        (MANAGED, r#"{"disableAllHooks":true}"#),
        (
            "machine/etc/claude-code/managed-settings.d/10-a.json",
            r#"{"disableAllHooks":true}"#,
        ),
        (
            "machine/etc/claude-code/managed-settings.d/20-b.json",
            r#"{"disableAllHooks":false}"#,
        ),
    ]);
    assert_eq!(world.read().disabled, None);
}
