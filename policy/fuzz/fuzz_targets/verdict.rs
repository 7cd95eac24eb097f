//! No text makes the command engine panic or hang, and each verdict points into the text.

#![no_main]

use std::sync::LazyLock;

use boxery_policy::{Action, Found, Origin, Places, Policy, Reader, Roots, Verdict, resolve_policy};
use libfuzzer_sys::fuzz_target;

struct NoDisk;

impl Reader for NoDisk {
    fn read(&self, _: &str) -> Found {
        Found::Missing
    }
    fn canonical(&self, path: &str) -> String {
        path.to_owned()
    }
}

static POLICY: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let origin = Origin::Hook("code".to_owned());
    let resolved = resolve_policy(origin, &Places::default(), &NoDisk).ok()?;
    let links = |_: &str| None;
    let roots = Roots {
        home: "/home/u",
        folder: "/w",
        links: &links,
    };
    Some(Policy::new(&resolved, &roots))
});

fuzz_target!(|text: &str| {
    let policy = POLICY.as_ref().expect("the template is valid");
    match policy.evaluate(Action::Command(text)) {
        Verdict::Allow => {}
        Verdict::Deny { span, .. } | Verdict::Unclear { span, .. } => {
            assert!(text.get(span.start..span.end).is_some());
        }
    }
});
