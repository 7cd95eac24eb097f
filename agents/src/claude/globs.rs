//! Whether two patterns of paths, a rule's and a word's, may mean the same file.

/// The part of a path that stands for any number of parts.
pub(crate) const ANY: &str = "**";

/// A path with more parts than these is taken to meet every rule.
const MOST_PARTS: usize = 200;

/// Whether `word` may be a path of `rule`, or one below it. Both are in lower case.
pub(crate) fn meets(rule: &[String], word: &[String]) -> bool {
    if rule.len() > MOST_PARTS || word.len() > MOST_PARTS {
        return true;
    }
    // `reached[j]`: the rule's parts so far may be the word's first `j`.
    let mut reached = vec![false; word.len() + 1];
    reached[0] = true;
    stand_for_none(word, &mut reached);
    for (at, part) in rule.iter().enumerate() {
        let is_last = at + 1 == rule.len();
        let mut next = vec![false; word.len() + 1];
        if part == ANY {
            let first = reached.iter().position(|reached| *reached);
            next[first.unwrap_or(word.len() + 1)..].fill(true);
        } else {
            for (end, word_part) in (1..).zip(word) {
                next[end] = if word_part == ANY {
                    // A word that may be anything doesn't name the rule's file.
                    !is_last && (reached[end] || reached[end - 1])
                } else {
                    reached[end - 1] && part_meets(part, word_part)
                };
            }
            stand_for_none(word, &mut next);
        }
        reached = next;
    }
    reached.contains(&true)
}

/// A word's own `**` may stand for no part.
fn stand_for_none(word: &[String], reached: &mut [bool]) {
    for (end, part) in (1..).zip(word) {
        reached[end] |= part == ANY && reached[end - 1];
    }
}

fn part_meets(rule: &str, word: &str) -> bool {
    let is_wild = |part: &str| part.contains(['*', '?', '[']);
    match (is_wild(rule), is_wild(word)) {
        (false, false) => rule == word,
        (true, false) => matches(rule, word),
        // A shell's star leaves hidden files out.
        (false, true) => rule.starts_with('.') == word.starts_with('.') && matches(word, rule),
        (true, true) => {
            let tail = |part: &str| {
                part.rsplit(['*', '?', ']'])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let (rule_tail, word_tail) = (tail(rule), tail(word));
            rule == "*"
                || (!word_tail.is_empty()
                    && (rule_tail.ends_with(&word_tail) || word_tail.ends_with(&rule_tail)))
        }
    }
}

/// `*` for any text, `?` and a class for any character.
fn matches(pattern: &str, text: &str) -> bool {
    let mut signs = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let class_end = (c == '[').then(|| rest.as_str().find(']')).flatten();
        if let Some(end) = class_end {
            rest = rest.as_str()[end + 1..].chars();
            signs.push('?');
        } else if c != '*' || signs.last() != Some(&'*') {
            signs.push(c);
        }
    }
    let text: Vec<char> = text.chars().collect();
    let (mut sign, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match signs.get(sign) {
            Some('*') => {
                star = Some((sign, at));
                sign += 1;
            }
            Some(c) if *c == '?' || *c == text[at] => {
                sign += 1;
                at += 1;
            }
            _ => match star {
                Some((starred, from)) => {
                    star = Some((starred, from + 1));
                    sign = starred + 1;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    signs[sign..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::itself("p/secret", "p/secret", true)]
    #[case::below("p/sec", "p/sec/x", true)]
    #[case::above("p/sec", "p", false)]
    #[case::beside("p/sec", "p/section", false)]
    #[case::any_depth("p/**/secret", "p/a/b/secret", true)]
    #[case::any_depth_is_none_too("p/**/secret", "p/secret", true)]
    #[case::any_depth_elsewhere("p/**/secret", "q/secret", false)]
    #[case::ending("p/**/*.pem", "p/a/key.pem", true)]
    #[case::another_ending("p/**/*.pem", "p/a/key.txt", false)]
    #[case::class("p/key[0-9]", "p/key1", true)]
    #[case::a_folder_that_ends_so("p/**/*.d", "p/a.d/x", true)]
    #[case::words_star("p/secret", "p/s*", true)]
    #[case::words_star_elsewhere("p/secret", "p/o*", false)]
    #[case::words_star_and_a_hidden_file("p/.env", "p/*", false)]
    #[case::words_star_and_a_hidden_start("p/.env", "p/.e*", true)]
    #[case::both_wild("p/**/*.pem", "p/*.pem", true)]
    #[case::both_wild_elsewhere("p/**/*.pem", "p/*.txt", false)]
    #[case::a_bare_star_tells_nothing("p/**/*.pem", "p/*", false)]
    #[case::all_of_a_folder("p/sec/*", "p/sec/*", true)]
    #[case::an_unknown_folder("p/secret", "**/secret", true)]
    #[case::an_unknown_folder_and_another_name("p/secret", "**/other", false)]
    #[case::an_unknown_folder_below("p/a/secret", "p/**/secret", true)]
    #[case::an_unknown_folder_is_none("p/secret", "p/**/secret", true)]
    #[case::an_unknown_folder_before_a_name("secret", "**/secret", true)]
    #[case::everything("p", "p/x", true)]
    fn a_word_meets_a_rule_when_it_may_be_its_file(
        #[case] rule: &str,
        #[case] word: &str,
        #[case] want: bool,
    ) {
        let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(meets(&parts(rule), &parts(word)), want);
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let rule: Vec<String> = "**/a/"
            .repeat(60)
            .split_terminator('/')
            .map(str::to_owned)
            .collect();
        let word = vec!["a".to_owned(); 150];
        assert!(meets(&rule, &word));
        assert!(!matches(&"*a".repeat(1000), &"a".repeat(999)));
    }
}
