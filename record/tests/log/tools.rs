//! The log can be checked without boxery: this is what the crate's page promises.

use std::process::Command;

use boxery_record::{Event, sha256_hex};

use crate::support::{NOW, Scene, TODAY, decision};

fn shell(scene: &Scene, script: &str) -> String {
    // Needs sed, sha256sum and jq: apt-get install sed coreutils jq
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(&scene.log.folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn sed_and_sha256sum_give_each_lines_hash_and_the_next_lines_prev() {
    let scene = Scene::with(&[NOW, NOW]);
    let detail = Some("ü \u{7f} \u{1} \"\\/ 🦀\t".to_owned());
    scene
        .log
        .append(&Event {
            detail,
            ..decision(NOW)
        })
        .unwrap();
    let entries = scene.entries();
    for (number, entry) in (1..).zip(&entries) {
        let script = format!(
            r#"sed -n {number}p {TODAY} | sed 's/,"hash":"[0-9a-f]*"}}$/}}/' | tr -d '\n' | sha256sum"#
        );
        assert_eq!(shell(&scene, &script), format!("{}  -", entry.hash));
    }
    assert_eq!(entries[2].prev, entries[1].hash);
}

#[test]
fn jq_gives_the_same_hash() {
    let scene = Scene::with(&[NOW]);
    let detail = Some("ü \u{7f} \u{1} \"\\/ 🦀\t".to_owned());
    let event = Event {
        detail,
        bytes: Some(123_456_789_012),
        ..decision(NOW)
    };
    scene.log.append(&event).unwrap();
    for (number, entry) in (1..).zip(scene.entries()) {
        let script = format!("sed -n {number}p {TODAY} | jq -cj 'del(.hash)' | sha256sum");
        assert_eq!(shell(&scene, &script), format!("{}  -", entry.hash));
    }
}

#[test]
fn a_digest_is_what_sha256sum_prints() {
    let scene = Scene::with(&[NOW]);
    let want = shell(&scene, "printf 'npm test' | sha256sum | cut -c 1-64");
    assert_eq!(sha256_hex(b"npm test"), want);
}
