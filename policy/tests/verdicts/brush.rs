//! The engine's own parser against brush-parser: whatever command brush sees in a harmless
//! text, a rule that denies it is found by the engine.

use boxery_policy::{Action, Verdict};
use brush_parser::ast::{AndOr, Command, CompoundCommand, CompoundList, Pipeline};
use brush_parser::{Parser, ParserOptions};

use crate::support;

/// The first words of the commands that brush finds outside of words.
fn programs(list: &CompoundList, found: &mut Vec<String>) {
    let mut pipeline = |pipeline: &Pipeline| {
        for command in &pipeline.seq {
            program(command, found);
        }
    };
    for item in &list.0 {
        pipeline(&item.0.first);
        for more in &item.0.additional {
            let (AndOr::And(next) | AndOr::Or(next)) = more;
            pipeline(next);
        }
    }
}

fn program(command: &Command, found: &mut Vec<String>) {
    match command {
        Command::Simple(simple) => {
            let name = simple.word_or_name.as_ref().map(|word| word.value.clone());
            let plain = |name: &String| {
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
            };
            found.extend(name.filter(plain));
        }
        Command::Function(function) => compound(&function.body.0, found),
        Command::Compound(inner, _) => compound(inner, found),
        Command::ExtendedTest(..) => {}
    }
}

fn compound(command: &CompoundCommand, found: &mut Vec<String>) {
    match command {
        CompoundCommand::Arithmetic(_) => {}
        CompoundCommand::ArithmeticForClause(clause) => programs(&clause.body.list, found),
        CompoundCommand::BraceGroup(group) => programs(&group.list, found),
        CompoundCommand::Subshell(subshell) => programs(&subshell.list, found),
        CompoundCommand::ForClause(clause) => programs(&clause.body.list, found),
        CompoundCommand::CaseClause(clause) => {
            for case in &clause.cases {
                case.cmd.iter().for_each(|list| programs(list, found));
            }
        }
        CompoundCommand::IfClause(clause) => {
            programs(&clause.condition, found);
            programs(&clause.then, found);
            for part in clause.elses.iter().flatten() {
                part.condition.iter().for_each(|list| programs(list, found));
                programs(&part.body, found);
            }
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            programs(&clause.0, found);
            programs(&clause.1.list, found);
        }
        CompoundCommand::Coprocess(coprocess) => program(&coprocess.body, found),
    }
}

#[test]
fn every_command_that_brush_finds_is_found() {
    let mut checked = 0;
    for line in include_str!("../corpus/harmless.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (_, command) = line.split_once('\t').expect("source, tab, text");
        let text: String = serde_json::from_str(command).expect("a JSON string");
        let Ok(program) = Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program()
        else {
            continue;
        };
        let mut found = Vec::new();
        for list in &program.complete_commands {
            programs(list, &mut found);
        }
        for name in found {
            let policy = support::policy(&format!(
                r#"{{"command": {{"deny": ["{name}"], "useDefaults": false}}}}"#
            ));
            let verdict = policy.evaluate(Action::Command(&text));
            assert!(
                matches!(verdict, Verdict::Deny { .. }),
                "{name} in {text:?}: {verdict:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked}");
}
