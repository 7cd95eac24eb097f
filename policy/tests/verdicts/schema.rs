//! The schema for editors is the one that the table of keys gives.

use boxery_policy::{Key, TEMPLATES, json_schema};

#[test]
fn the_schema_file_is_the_one_that_the_keys_give() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fence.schema.json");
    let want = format!(
        "{}\n",
        serde_json::to_string_pretty(&json_schema()).expect("a schema is JSON")
    );
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == want,
        "fence.schema.json isn't up to date; it should be:\n{want}"
    );
}

#[test]
fn every_template_is_valid_and_says_what_it_is_for() {
    let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
    assert_eq!(
        names,
        [
            "code",
            "code-strict",
            "code-relaxed",
            "git-readonly",
            "local-dev-server",
            "hermes",
            "disable-telemetry"
        ]
    );
    for template in TEMPLATES {
        let policy = crate::support::template(template.name);
        assert!(
            !template.about.is_empty() && !policy.sections().is_empty(),
            "{}",
            template.name
        );
        let parsed = boxery_policy::parse_policy(template.text, template.name).expect("valid");
        assert_eq!(
            parsed.expect("not empty").warnings,
            Vec::<String>::new(),
            "{}",
            template.name
        );
    }
}

#[test]
fn package_registries_are_not_listed_by_host() {
    let hosts = [
        "npmjs", "pypi.", "crates", "golang", "debian", "ubuntu", "rubygems", "yarnpkg",
    ];
    for template in TEMPLATES {
        for host in hosts {
            assert!(
                !template.text.contains(host),
                "{} lists {host}",
                template.name
            );
        }
    }
}

#[test]
fn every_key_is_explained() {
    for key in Key::ALL {
        assert!(
            !key.about().is_empty() && !key.about().ends_with('.'),
            "{key:?}"
        );
    }
}
