//! The processes above a real one.

use std::process::{Command, Stdio};

use boxery_pin::{ProcessId, ancestors};

#[test]
fn a_program_with_parentheses_in_its_name_is_found_between_its_child_and_this_test() {
    // A name made to look like the end of field 2 and a state.
    let folder = tempfile::TempDir::new().unwrap();
    let shell = folder.path().join("a) S 1 1 (");
    std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    let mut child = Command::new(&shell)
        .args(["-c", "sleep 100 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let grandchild: u32 = line.trim().parse().unwrap();

    let above = ancestors(grandchild);
    let want = [
        ProcessId::of(child.id()).unwrap(),
        ProcessId::of(std::process::id()).unwrap(),
    ];
    let name = want[0].name();
    let stop = Command::new("kill").arg(grandchild.to_string()).status();
    assert!(stop.unwrap().success());
    child.wait().unwrap();

    assert_eq!(above[..2], want);
    assert_eq!(name.as_deref(), Some("a) S 1 1 ("));
}
