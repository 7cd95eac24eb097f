//! The verbs of `boxery policy`, and which policy the hook finds.

use boxery_pin::Mode;
use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hook::{is_silent, reason};
use crate::scene::{Scene, answer, feed, utf8, write};
use crate::support::{BOXERY, Sandbox};

const NO_PUSH: &str = "{\"command\": {\"deny\": [\"git push\"]}}\n";

fn project(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    write(&utf8(&sandbox.project()).join("fence.json"), text);
    sandbox
}

#[test]
fn check_marks_the_words_that_decide() {
    let sandbox = project(NO_PUSH);
    assert_snapshot!(sandbox.run(&["policy", "check", "make && sudo env git push origin"]), @r"
    exit: 1
    ----- stdout
    deny: `git push origin` is denied by the rule `git push` of `command.deny` in [SCRATCH]/project/fence.json
      make && sudo env git push origin
                       ^^^^^^^^
    ----- stderr
    ");
    assert_snapshot!(sandbox.run(&["policy", "check", "$TOOL push"]), @r"
    exit: 2
    ----- stdout
    unclear: which program runs is only known when it runs
      $TOOL push
      ^^^^^
    ----- stderr
    hint: under [SCRATCH]/project/fence.json (not trusted yet) that is denied, since VMs don't judge what really starts yet
    ");
    assert_snapshot!(sandbox.run(&["policy", "check", "echo 'git push'"]), @r"
    exit: 0
    ----- stdout
    allow, by [SCRATCH]/project/fence.json (not trusted yet)
    ----- stderr
    ");
    assert_snapshot!(sandbox.run(&["policy", "check", "--json", "git push"]), @r#"
    exit: 1
    ----- stdout
    {"by":"command.deny","reason":"`git push` is denied by the rule `git push` of `command.deny`","rule":"git push","source":"[SCRATCH]/project/fence.json","span":[0,8],"verdict":"deny"}
    ----- stderr
    "#);
}

#[test]
fn show_prints_the_policy_and_tells_where_each_value_comes_from() {
    let sandbox = project(
        "{\"extends\": \"./base.jsonc\", \"command\": {\"denny\": [\"x\"], \"useDefaults\": false}, \"allowPty\": true}",
    );
    let base = r#"{"command": {"deny": ["git push"]}, "filesystem": {"denyRead": ["~/.ssh"]} }"#;
    write(&utf8(&sandbox.project()).join("base.jsonc"), base);
    sandbox.configure("accept = [\"filesystem:partial\"]\n");
    sandbox.run(&["policy", "trust"]);
    assert_snapshot!(sandbox.run(&["policy", "show"]), @r#"
    exit: 0
    ----- stdout
    {
      "allowPty": true,
      "command": {
        "deny": [
          "git push"
        ],
        "useDefaults": false
      },
      "filesystem": {
        "denyRead": [
          "~/.ssh"
        ]
      }
    }
    ----- stderr
    [SCRATCH]/project/fence.json, which you trust
      allowPty = true: [SCRATCH]/project/fence.json
      filesystem.denyRead: "~/.ssh": [SCRATCH]/project/base.jsonc
      command.deny: "git push": [SCRATCH]/project/base.jsonc
      command.useDefaults = false: [SCRATCH]/project/fence.json
      allowPty has no meaning on a Linux VM
    filesystem: not enforced on VMs yet, so that runs are refused
    hint: accept that with `accept = ["filesystem:unavailable"]` in [SCRATCH]/home/.config/boxery/config.toml
    careful: [SCRATCH]/project/fence.json:1: `command.denny` is no key of a policy and says nothing; did you mean `command.deny`?
    "#);
    let text = sandbox
        .boxery(["policy", "show", "--json"])
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&text.stdout).unwrap();
    assert_eq!(shown["policies"][0]["standing"], "trusted");
    assert_eq!(
        shown["sections"],
        json!([{"section": "filesystem", "state": "unavailable", "accepted": false}])
    );
    assert_eq!(shown["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_file_show_says_so() {
    assert_snapshot!(Sandbox::new().run(&["policy", "show"]), @r"
    exit: 0
    ----- stdout
    {}
    ----- stderr
    no policy file: only the default rules hold
    ");
}

#[rstest]
#[case::no_json("{", "can't be parsed")]
#[case::no_object("[]", "it isn't an object")]
#[case::wrong_type("{\"command\": {\"deny\": \"x\"}}", "has a wrong `command.deny`")]
#[case::unknown_template("{\"extends\": \"coed\"}", "did you mean `code`?")]
#[case::missing_base("{\"extends\": \"./x.json\"}", "which isn't there")]
fn a_policy_that_cannot_be_used_is_told_by_every_verb_and_denies(
    #[case] text: &str,
    #[case] want: &str,
) {
    let sandbox = project(text);
    for words in [
        &["policy", "show"] as &[&str],
        &["policy", "check", "ls"],
        &["policy", "explain", "command"],
    ] {
        let said = sandbox.run(words);
        assert!(
            said.starts_with("exit: 2\n") && said.contains(want),
            "{said}"
        );
    }
    let scene = Scene::redirected();
    write(&scene.project().join("fence.json"), text);
    assert!(reason(&scene.bash("ls")).contains("can't be used"));
    assert_eq!(scene.last_entry()["rule"], "policy-broken");
}

#[test]
fn init_writes_a_trusted_policy_once() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.run(&["policy", "init"]), @r#"
    exit: 0
    ----- stdout
    ----- stderr
    wrote [SCRATCH]/project/fence.jsonc
    its rules on filesystem, network aren't enforced on VMs yet, so that runs are refused until you accept that: `accept = ["filesystem:unavailable", "network:unavailable"]` in [SCRATCH]/home/.config/boxery/config.toml
    "#);
    let shown = sandbox.run(&["policy", "show"]);
    assert!(shown.contains("fence.jsonc, which you trust"), "{shown}");
    assert!(
        shown.contains("\"git push\": the template `code`"),
        "{shown}"
    );
    let again = sandbox.run(&["policy", "init", "--template", "code-strict"]);
    assert!(
        again.starts_with("exit: 1\n") && again.contains("is there already"),
        "{again}"
    );
    let own = sandbox.run(&["policy", "init", "--user", "--template", "git-readonly"]);
    assert!(
        own.contains("wrote [SCRATCH]/home/.config/fence/fence.jsonc"),
        "{own}"
    );
}

#[test]
fn explain_tells_which_policy_holds_and_why() {
    let sandbox = project(NO_PUSH);
    let said = sandbox.run(&["policy", "explain"]);
    for want in [
        "looked for fence.jsonc, then fence.json, from [SCRATCH]/project upwards",
        "holds: [SCRATCH]/project/fence.json, not trusted yet",
        "holds: no policy file: only the default rules hold",
        "what can't be told before it runs: denied",
    ] {
        assert!(said.contains(want), "{want}: {said}");
    }
    assert_snapshot!(sandbox.run(&["policy", "explain", "command.Deny"]), @r#"
    exit: 0
    ----- stdout
    command.deny: Commands that are denied (a list; the entries of all files)
      judged on the text of each command
      command.deny: "git push": [SCRATCH]/project/fence.json
    ----- stderr
    "#);
}

#[test]
fn import_makes_a_policy_of_claudes_own_rules() {
    let sandbox = Sandbox::new();
    let path = utf8(&sandbox.home()).join(".claude/settings.json");
    let settings = json!({ "permissions": {
        "allow": ["Bash(npm run:*)"], "ask": ["Bash(npm publish:*)"],
        "deny": ["Bash(git push:*)", "Read(~/.ssh/**)", "Bash"],
    }});
    write(&path, &settings.to_string());
    assert_snapshot!(sandbox.run(&["policy", "import", "claude"]), @r#"
    exit: 0
    ----- stdout
    {
      "command": {
        "allow": [
          "npm run"
        ],
        "deny": [
          "git push",
          "npm publish"
        ]
      },
      "extends": "code",
      "filesystem": {
        "denyRead": [
          "~/.ssh/**"
        ]
      }
    }
    ----- stderr
    careful: `Bash` names a whole tool, which a policy has no rule for
    careful: `Bash(npm publish:*)` asks; a policy can't, so that it denies
    "#);
    let said = sandbox.run(&["policy", "import", "claude", "-o", "fence.json"]);
    assert!(said.contains("wrote fence.json"), "{said}");
    let said = sandbox.run(&["policy", "check", "npm publish"]);
    assert!(said.starts_with("exit: 1\n"), "{said}");
    let said = sandbox.run(&["policy", "import", "claude", "-o", "fence.json"]);
    assert!(
        said.starts_with("exit: 1\n") && said.contains("error: `fence.json` is there already"),
        "{said}"
    );
}

#[rstest]
#[case::plain("git push", true)]
#[case::behind_wrappers("sudo env git push", true)]
#[case::in_a_shell("bash -c 'git push'", true)]
#[case::substituted("echo $(git push)", true)]
#[case::not_told("$(echo git) push", true)]
#[case::harmless("git status", false)]
fn the_hook_judges_in_guard_and_redirect(
    #[case] text: &str,
    #[case] denied: bool,
    #[values(Mode::Guard, Mode::Redirect)] mode: Mode,
    #[values("fence.json", "fence.jsonc")] file: &str,
) {
    let scene = match mode {
        Mode::Guard => Scene::guarded(),
        Mode::Redirect => Scene::redirected(),
    };
    write(&scene.project().join(file), NO_PUSH);
    let answer = scene.bash(text);
    match (denied, mode) {
        (true, _) => {
            assert!(reason(&answer).contains(file), "{answer}");
            let entry = scene.last_entry();
            assert!(
                entry["rule"].as_str().unwrap().starts_with("policy"),
                "{entry}"
            );
            assert!(entry["detail"].as_str().unwrap().contains(file), "{entry}");
        }
        (false, Mode::Guard) => assert!(reason(&answer).contains("vm_bash")),
        (false, Mode::Redirect) => assert!(answer["updatedInput"].is_object(), "{answer}"),
    }
}

/// What the hook answers to `text` in redirect.
fn is_denied(scene: &Scene, text: &str) -> bool {
    scene.bash(text)["permissionDecision"] == "deny"
}

#[test]
fn an_untrusted_policy_restricts_at_once_and_loosens_when_it_is_trusted() {
    let scene = Scene::redirected();
    let user = scene.home().join(".config/fence/fence.json");
    write(&user, r#"{"command": {"deny": ["npm publish"]}}"#);
    write(
        &scene.project().join("fence.json"),
        r#"{"command": {"deny": ["git push"], "allow": ["npm publish", "shutdown"], "useDefaults": false}}"#,
    );
    for text in ["git push", "npm publish", "shutdown now"] {
        assert!(is_denied(&scene, text), "{text}");
    }
    let said = scene.sandbox.run(&["policy", "trust"]);
    assert_snapshot!(said, @r"
    exit: 0
    ----- stdout
    ----- stderr
    it loosens: `npm publish` is allowed whatever denies it
    it loosens: `shutdown` is allowed whatever denies it
    it loosens: the default rules don't hold
    it now stands in place of [SCRATCH]/home/.config/fence/fence.json
    trusted [SCRATCH]/project/fence.json
    ");
    assert!(is_denied(&scene, "git push"));
    assert!(!is_denied(&scene, "npm publish"));
    assert!(!is_denied(&scene, "shutdown now"));
    // One more blank is another text.
    write(
        &scene.project().join("fence.json"),
        r#"{"command": {"deny": ["git push"], "allow":  ["npm publish", "shutdown"], "useDefaults": false}}"#,
    );
    assert!(is_denied(&scene, "npm publish"));
    let said = scene.sandbox.run(&["policy", "trust", "--revoke"]);
    assert!(said.contains("was not trusted"), "{said}");
}

#[test]
fn an_untrusted_policy_further_down_takes_nothing_away_from_the_one_above() {
    let scene = Scene::redirected();
    write(&scene.project().join("fence.json"), NO_PUSH);
    scene.sandbox.run(&["policy", "trust"]);
    let below = scene.project().join("vendor/x");
    write(
        &below.join("fence.json"),
        r#"{"command": {"useDefaults": false}}"#,
    );
    let ask = |text: &str| {
        let payload = scene.call("PreToolUse", "Bash", &json!({ "command": text }));
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        payload["cwd"] = json!(below);
        answer(&feed(
            scene.sandbox.boxery(["hook", "run", "claude-code"]),
            &payload.to_string(),
        ))
    };
    let denied = ask("git push");
    assert!(reason(&denied).contains("/project/fence.json"), "{denied}");
    assert!(reason(&ask("shutdown")).contains("default rule"));
    assert!(ask("make")["updatedInput"].is_object());
}

#[test]
fn a_folder_outside_of_the_project_leaves_its_policy_in_force() {
    let scene = Scene::guarded();
    write(&scene.project().join("fence.json"), NO_PUSH);
    let config = scene.home().join(".config/boxery/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    write(&config, &format!("allow = [\"git\"]\n{text}"));
    let elsewhere = scene.home();
    for folder in [scene.project(), elsewhere] {
        let payload = scene.call("PreToolUse", "Bash", &json!({ "command": "git push" }));
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        payload["cwd"] = json!(folder);
        let answer = answer(&scene.hook(&payload.to_string()));
        assert!(reason(&answer).contains("command.deny"), "{answer}");
    }
}

#[test]
fn a_policy_that_a_hook_is_held_to_stands_in_place_of_the_projects() {
    let scene = Scene::redirected();
    write(&scene.project().join("fence.json"), NO_PUSH);
    let strict = scene.home().join("strict.jsonc");
    write(&strict, r#"{"command": {"deny": ["make"]}} // of the user"#);
    let said = scene.sandbox.run(&[
        "hook",
        "install",
        "claude-code",
        "--settings",
        strict.as_str(),
    ]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert!(reason(&scene.bash("make")).contains("strict.jsonc"));
    assert!(!is_denied(&scene, "git push"));
    let write_to = |path: &str| {
        let input = json!({ "file_path": path, "content": "" });
        scene.hook(&scene.call("PreToolUse", "Write", &input))
    };
    let denied = write_to(strict.as_str());
    assert!(reason(&answer(&denied)).contains("a policy file"));
    let shown = scene
        .sandbox
        .run(&["policy", "show", "--agent", "claude-code"]);
    assert!(
        shown.contains("strict.jsonc, which the hook is held to"),
        "{shown}"
    );
    let status = scene.sandbox.run(&["hook", "status"]);
    let want = format!(
        "  policy   {}",
        "[SCRATCH]/home/strict.jsonc, whatever a project says"
    );
    assert!(status.contains(&want), "{status}");
}

#[rstest]
#[case::relative("./fence.json", "neither an absolute path")]
#[case::home("~/fence.json", "neither an absolute path")]
#[case::gone("/nowhere/fence.json", "isn't there")]
#[case::no_template("coed", "no template is named `coed`")]
fn a_hook_that_is_held_to_what_is_no_policy_denies(#[case] policy: &str, #[case] want: &str) {
    let scene = Scene::redirected();
    let config = scene.home().join(".config/boxery/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = format!("{text}[hook.claude-code]\npolicy = \"{policy}\"\n");
    write(&config, &text);
    let answer = scene.bash("ls");
    assert!(reason(&answer).contains(want), "{answer}");
}

#[rstest]
#[case::by_the_project("project/fence.json", NO_PUSH)]
#[case::that_cannot_be_read("project/fence.json", "{")]
#[case::by_one_that_holds_no_more("home/.config/fence/fence.json", NO_PUSH)]
#[case::by_the_hook("home/hook.json", NO_PUSH)]
#[case::by_the_hook_that_cannot_be_read("home/hook.json", "{")]
fn a_file_that_a_policy_extends_is_protected_like_the_policy(
    #[case] policy: &str,
    #[case] base: &str,
    #[values(true, false)] is_there: bool,
    #[values(true, false)] resolved: bool,
) {
    let scene = Scene::guarded();
    let top = scene.home();
    let top = top.parent().unwrap();
    let rules = scene.project().join("rules/base.jsonc");
    write(&top.join(policy), &json!({ "extends": rules }).to_string());
    if is_there {
        write(&rules, base);
    }
    if policy.contains("config") {
        write(&scene.project().join("fence.json"), "{}");
        scene.sandbox.run(&["policy", "trust"]);
    }
    let vm = if resolved { "dev" } else { "gone" };
    let hook = if policy.contains("hook") {
        format!("[hook.claude-code]\npolicy = \"{top}/{policy}\"\n")
    } else {
        String::new()
    };
    scene.sandbox.configure(&format!(
        "{hook}[vm.{vm}]\ntarget = \"me@dev\"\ndir = \"/vm\"\n"
    ));
    let change = |tool: &str, path: &str| {
        let input = json!({ "file_path": path, "content": "{}" });
        scene.hook(&scene.call("PreToolUse", tool, &input))
    };
    for path in ["rules/base.jsonc", &format!("{top}/{policy}")] {
        let denied = change("Write", path);
        assert!(reason(&answer(&denied)).contains("policy"), "{path}");
    }
    if resolved {
        // Tools name the project by its top folder.
        let read = change("mcp__git__status", scene.project().as_str());
        assert!(read.stdout.is_empty(), "{read:?}");
    }
}

#[test]
fn hole_git_that_an_entry_names_takes_whole_folders() {
    let scene = Scene::guarded();
    write(&scene.project().join("fence.json"), NO_PUSH);
    scene
        .sandbox
        .configure("allow = [\"git rm\"]\n[vm.dev]\ntarget = \"me@dev\"\ndir = \"/vm\"\n");
    let asked = |text: &str| {
        let input = json!({ "command": text });
        scene.hook(&scene.call("PreToolUse", "Bash", &input))
    };
    assert!(reason(&answer(&asked("git rm -f fence.json"))).contains("vm_bash"));
    assert!(asked("git rm -rf .").stdout.is_empty());
}

#[test]
fn trust_in_a_new_text_ends_that_in_the_older_one() {
    let scene = Scene::redirected();
    let path = scene.project().join("fence.json");
    for text in [r#"{"command": {"useDefaults": false}}"#, NO_PUSH] {
        write(&path, text);
        let said = scene.sandbox.run(&["policy", "trust"]);
        assert!(said.contains("trusted [SCRATCH]/project"), "{said}");
    }
    write(&path, r#"{"command": {"useDefaults": false}}"#);
    assert!(is_denied(&scene, "shutdown now"));
    write(&path, NO_PUSH);
    let shown = scene.sandbox.run(&["policy", "show"]);
    assert!(shown.contains("fence.json, which you trust"), "{shown}");
}

#[test]
fn a_session_is_told_at_its_start_which_policy_holds() {
    let scene = Scene::redirected();
    let start = |scene: &Scene| {
        let payload = json!({
            "session_id": crate::scene::SESSION, "cwd": scene.project(),
            "hook_event_name": "SessionStart", "source": "startup",
        });
        answer(&scene.hook(&payload.to_string()))["additionalContext"].to_string()
    };
    assert!(start(&scene).contains("no policy file holds here"));
    write(&scene.project().join("fence.json"), NO_PUSH);
    assert!(start(&scene).contains("fence.json (not trusted yet)"));
    write(&scene.project().join("fence.json"), "{");
    assert!(start(&scene).contains("the policy can't be used"));
}

#[rstest]
#[case::trust(&["policy", "trust"])]
#[case::init(&["policy", "init"])]
#[case::import(&["policy", "import", "claude", "-o", "fence.json"])]
#[case::shell(&["shell", "dev"])]
fn what_is_for_people_is_refused_to_an_agent(
    #[case] words: &[&str],
    #[values(true, false)] by_variable: bool,
) {
    let sandbox = project(NO_PUSH);
    let mut command = sandbox.command("/bin/bash");
    // An agent that hides its variables is known by its program.
    let (variable, name) = if by_variable {
        ("1", "bash")
    } else {
        ("", "codex")
    };
    let script = format!(r#"exec -a {name} bash -c '"$0" "$@"; exit "$?"' "$@""#);
    command
        .env("CLAUDECODE", variable)
        .args(["-c", &script, "bash", BOXERY])
        .args(words);
    let said = sandbox.render(&command.output().unwrap());
    assert!(
        said.starts_with("exit: 1\n") && said.contains("is not for an agent"),
        "{said}"
    );
}

#[test]
fn install_has_the_policy_judge_what_other_tools_declare_and_takes_it_back() {
    let scene = Scene::guarded();
    write(
        &scene.project().join("fence.json"),
        r#"{"filesystem": {"allowWrite": ["."]}, "network": {"allowedDomains": ["docs.example"]}}"#,
    );
    let ask = |tool: &str, input: &Value| scene.hook(&scene.call("PreToolUse", tool, input));
    let etc = json!({ "file_path": "/srv/other/a.rs", "content": "" });
    let own = json!({ "file_path": "src/a.rs", "content": "" });
    let evil = json!({ "url": "https://evil.example/", "prompt": "x" });
    let docs = json!({ "url": "https://docs.example/", "prompt": "x" });
    for (tool, input) in [("Write", &etc), ("WebFetch", &evil)] {
        assert!(is_silent(&ask(tool, input)), "off unless the user wants it");
    }

    let words = [
        "hook",
        "install",
        "claude-code",
        "--preflight",
        "files,urls",
    ];
    let said = scene.sandbox.run(&words);
    assert!(
        said.contains("set `hook.claude-code.preflight = [\"files\", \"urls\"]`"),
        "{said}"
    );
    let denied = answer(&ask("Write", &etc));
    assert!(
        reason(&denied).contains("filesystem.allowWrite"),
        "{denied}"
    );
    let denied = answer(&ask("WebFetch", &evil));
    assert!(
        reason(&denied).contains("network.allowedDomains"),
        "{denied}"
    );
    assert!(is_silent(&ask("Write", &own)));
    assert!(is_silent(&ask("WebFetch", &docs)));

    let words = ["hook", "install", "claude-code", "--preflight", "none"];
    scene.sandbox.run(&words);
    assert!(is_silent(&ask("Write", &etc)));
}
