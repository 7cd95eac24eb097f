//! Which hosts the facts name.

use toml_edit::{DocumentMut, Item, TableLike};

use super::facts::{Fact, Facts, From};

/// A host, and who names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHost {
    /// The host, in lower case.
    pub host: String,
    /// The file or tool.
    pub source: String,
}

/// What can't be found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The package manager.
    pub tool: &'static str,
    /// Why, as a sentence.
    pub reason: String,
    /// What to write where, to settle it.
    pub remedy: String,
}

/// What `registries` stands for on one VM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registries {
    /// Each host once, in the order in which they were found.
    pub hosts: Vec<FoundHost>,
    /// What can't be found out.
    pub unknown: Vec<Unknown>,
}

/// The line of a policy that lets a host be reached.
const LINE: &str = "\"network\": { \"allowedDomains\": [\"registries\", \"HOST\"] }";

impl Facts {
    /// The hosts that these facts name. `writable` says whether commands can write a file
    /// under the policy: what they can write doesn't count.
    pub fn registries(&self, writable: &dyn Fn(&str) -> bool) -> Registries {
        let mut found = Registries::default();
        let (mut pip, mut cargo) = (false, false);
        for fact in &self.0 {
            if let From::File(path) = &fact.from
                && writable(path)
            {
                found.unknown.push(Unknown {
                    tool: tool_of(path),
                    reason: format!("`{path}` doesn't count, because commands can write it."),
                    remedy: format!(
                        "add its hosts as {LINE}, or `{path}` to `filesystem.denyWrite`"
                    ),
                });
                continue;
            }
            match tool_of_fact(fact) {
                "npm" => npm(fact, &mut found),
                "pip" => {
                    pip |= pip_index(fact, &mut found);
                }
                "cargo" => cargo |= cargo_config(fact, &mut found),
                "apt" => apt(fact, &mut found),
                "go" => go(fact, &mut found),
                _ => {}
            }
        }
        let has = |tool: &str| self.answer(tool, "version").is_some();
        if !pip && (has("pip") || has("pip3")) {
            found.unknown.push(Unknown {
                tool: "pip",
                reason: "pip doesn't tell where it looks when no index is set.".to_owned(),
                remedy: format!("set `index-url` in `/etc/pip.conf`, or add {LINE}"),
            });
        }
        if !cargo && has("cargo") {
            found.unknown.push(Unknown {
                tool: "cargo",
                reason: "cargo doesn't tell where it looks when its source isn't replaced."
                    .to_owned(),
                remedy: format!(
                    "replace the source in cargo's `config.toml`, or add {LINE} for the index and for the downloads"
                ),
            });
        } else if cargo {
            found.unknown.push(Unknown {
                tool: "cargo",
                reason: "where an index lets cargo download from is only told by the index."
                    .to_owned(),
                remedy: format!("if that is another host than the index, add {LINE}"),
            });
        }
        found
    }
}

impl Registries {
    /// Their names alone.
    pub fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|found| found.host.clone()).collect()
    }

    fn url(&mut self, url: &str, from: &From) -> bool {
        let Some(host) = host_in(url) else {
            return false;
        };
        if !self.hosts.iter().any(|found| found.host == host) {
            self.hosts.push(FoundHost {
                host,
                source: from.name(),
            });
        }
        true
    }
}

/// The package manager that a file belongs to.
fn tool_of(path: &str) -> &'static str {
    match path {
        _ if path.ends_with("npmrc") => "npm",
        _ if path.ends_with("pip.conf") => "pip",
        _ if path.ends_with("/go/env") => "go",
        _ if path.starts_with("/etc/apt/") => "apt",
        _ if path.ends_with("/config.toml") || path.ends_with("/config") => "cargo",
        _ => "",
    }
}

fn tool_of_fact(fact: &Fact) -> &'static str {
    match &fact.from {
        From::File(path) => tool_of(path),
        From::Variable(_) => "pip",
        From::Tool { name, .. } => match name.as_str() {
            "npm" => "npm",
            "apt-config" => "apt",
            "go" => "go",
            _ => "",
        },
    }
}

/// `registry=URL`, `@scope:registry=URL`; and the bare answer of `npm config get`.
fn npm(fact: &Fact, found: &mut Registries) {
    if fact.text.trim().starts_with("http") {
        found.url(fact.text.trim(), &fact.from);
        return;
    }
    for (key, value) in settings(&fact.text) {
        let registry = key == "registry" || key.ends_with(":registry");
        if registry || matches!(key, "proxy" | "https-proxy") {
            found.url(value, &fact.from);
        }
    }
}

/// `index-url`, `extra-index-url` and `find-links`, which go on over indented lines.
fn pip_index(fact: &Fact, found: &mut Registries) -> bool {
    let mut main = false;
    if let From::Variable(name) = &fact.from {
        for url in fact.text.split_whitespace() {
            let known = found.url(url, &fact.from);
            main |= known
                && matches!(
                    name.as_str(),
                    "PIP_INDEX_URL" | "UV_INDEX_URL" | "UV_DEFAULT_INDEX"
                );
        }
        return main;
    }
    let mut key = String::new();
    for line in fact.text.lines() {
        let goes_on = line.starts_with([' ', '\t']);
        let value = match line.split_once(['=', ':']) {
            Some((name, value)) if !goes_on => {
                key = name.trim().to_ascii_lowercase().replace('_', "-");
                value
            }
            _ => line,
        };
        let value = value.trim();
        if value.starts_with(['#', ';', '[']) {
            continue;
        }
        if matches!(
            key.as_str(),
            "index-url" | "extra-index-url" | "find-links" | "proxy"
        ) {
            for url in value.split_whitespace() {
                main |= found.url(url, &fact.from) && key == "index-url";
            }
        }
    }
    main
}

/// `[registries.*] index`, `[source.*] registry`, `[http] proxy`. Whether the default
/// source is replaced.
fn cargo_config(fact: &Fact, found: &mut Registries) -> bool {
    let Ok(document) = fact.text.parse::<DocumentMut>() else {
        found.unknown.push(Unknown {
            tool: "cargo",
            reason: format!("`{}` can't be parsed.", fact.from.name()),
            remedy: format!("mend it, or add {LINE}"),
        });
        return false;
    };
    let tables = |name: &str| {
        document
            .get(name)
            .and_then(Item::as_table_like)
            .map(|table| {
                table
                    .iter()
                    .filter_map(|(_, item)| item.as_table_like())
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
    };
    let text =
        |table: &dyn TableLike, key: &str| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let mut replaced = false;
    for table in tables("registries") {
        if let Some(index) = text(table, "index") {
            found.url(&index, &fact.from);
        }
    }
    for table in tables("source") {
        replaced |= table.contains_key("replace-with");
        for key in ["registry", "git"] {
            if let Some(url) = text(table, key) {
                found.url(&url, &fact.from);
            }
        }
    }
    if let Some(http) = document.get("http").and_then(Item::as_table_like)
        && let Some(proxy) = text(http, "proxy")
    {
        found.url(&proxy, &fact.from);
    }
    replaced
}

/// Lines of `deb`, paragraphs of `URIs:`, proxies of `apt-config`.
fn apt(fact: &Fact, found: &mut Registries) {
    match &fact.from {
        From::File(path) if path.rsplit('.').next() == Some("sources") => {
            for paragraph in fact.text.split("\n\n") {
                deb822(paragraph, &fact.from, found);
            }
        }
        From::File(_) => {
            for line in fact.text.lines().map(str::trim) {
                let mut words = line.split_whitespace();
                if !matches!(words.next(), Some("deb" | "deb-src")) {
                    continue;
                }
                let mut options = false;
                for word in words {
                    options |= word.starts_with('[');
                    if !options {
                        found.url(word, &fact.from);
                        break;
                    }
                    options = !word.ends_with(']');
                }
            }
        }
        From::Tool { .. } | From::Variable(_) => {
            for line in fact.text.lines() {
                if let Some((key, value)) = line.split_once(' ')
                    && key.to_ascii_lowercase().contains("proxy")
                {
                    found.url(value.trim_matches(['"', ';']), &fact.from);
                }
            }
        }
    }
}

fn deb822(paragraph: &str, from: &From, found: &mut Registries) {
    let lines = || paragraph.lines().filter(|line| !line.starts_with('#'));
    let off = lines().any(|line| {
        line.split_once(':').is_some_and(|(key, value)| {
            key.eq_ignore_ascii_case("enabled") && matches!(value.trim(), "no" | "false" | "0")
        })
    });
    if off {
        return;
    }
    let mut here = false;
    for line in lines() {
        let value = match line.split_once(':') {
            Some((key, value)) if !line.starts_with([' ', '\t']) => {
                here = key.eq_ignore_ascii_case("uris");
                value
            }
            _ => line,
        };
        if here {
            for url in value.split_whitespace() {
                found.url(url, from);
            }
        }
    }
}

/// `GOPROXY` and `GOSUMDB`, as `go env` prints them or as its file has them.
fn go(fact: &Fact, found: &mut Registries) {
    let mut values: Vec<(bool, String)> = Vec::new();
    match &fact.from {
        From::Tool { question, .. } => {
            values.push((question == "sums", fact.text.trim().to_owned()));
        }
        From::File(_) | From::Variable(_) => {
            for (key, value) in settings(&fact.text) {
                match key {
                    "GOPROXY" => values.push((false, value.to_owned())),
                    "GOSUMDB" => values.push((true, value.to_owned())),
                    _ => {}
                }
            }
        }
    }
    for (sums, value) in values {
        if sums {
            // `NAME`, `NAME+KEY`, `NAME+KEY URL`.
            let name = value.split(['+', ' ']).next().unwrap_or_default();
            let url = value.split_once(' ').map(|(_, url)| url.to_owned());
            let url = url.unwrap_or_else(|| format!("https://{name}"));
            if name != "off" {
                found.url(&url, &fact.from);
            }
            continue;
        }
        for part in value.split([',', '|']).map(str::trim) {
            match part {
                "" | "off" => {}
                "direct" => {
                    let said = found.unknown.iter().any(|unknown| unknown.tool == "go");
                    if !said {
                        found.unknown.push(Unknown {
                            tool: "go",
                            reason:
                                "go fetches what its proxy doesn't have from the module's own host."
                                    .to_owned(),
                            remedy: format!("add the hosts of such modules as {LINE}"),
                        });
                    }
                }
                url => drop(found.url(url, &fact.from)),
            }
        }
    }
}

/// `key = value` lines, without quotes.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', ';']))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| {
            (
                key.trim().trim_matches('"'),
                value.trim().trim_matches(['"', '\'']),
            )
        })
}

/// The host in a URL of any scheme; none for a path on this machine.
fn host_in(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if scheme.ends_with("file") || scheme == "cdrom" || scheme.starts_with("copy") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = host
        .split(':')
        .next()?
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let plain = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    plain.then_some(host)
}
