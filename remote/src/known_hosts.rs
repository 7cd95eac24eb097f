//! Which host keys are trusted: known-hosts files with OpenSSH's own meaning.
//!
//! Names are plain, hashed, with wildcards or negated; a port other than 22 is
//! `[host]:port`; `@revoked` refuses a key whatever else is written, and
//! `@cert-authority` is left to the system pipe. (The reader in russh knows
//! neither markers nor patterns.)

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use hmac::{Hmac, KeyInit as _, Mac as _};
use russh::keys::ssh_key::known_hosts::HostPatterns;
use russh::keys::{Algorithm, HashAlg, PublicKey};
use sha1::Sha1;

use crate::RemoteError;

/// A server's key, as a person compares it and as a file keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey {
    /// Such as `ssh-ed25519`.
    pub algorithm: String,
    /// `SHA256:…`.
    pub fingerprint: String,
    /// The line for a known-hosts file.
    pub line: String,
}

impl HostKey {
    /// The key of `name`, which is a host as known-hosts files write it.
    pub(crate) fn new(name: &str, key: &PublicKey) -> Self {
        Self {
            algorithm: key.algorithm().as_str().to_owned(),
            fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
            line: format!("{name} {}", bare(key)),
        }
    }

    /// Reads a line as [`HostKey::new`] writes it.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (name, key) = line.trim().split_once(' ')?;
        Some(Self::new(name, &PublicKey::from_openssh(key).ok()?))
    }
}

/// `ssh-ed25519 AAAA…` without the comment.
fn bare(key: &PublicKey) -> String {
    let text = key.to_openssh().unwrap_or_default();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// The host as known-hosts files write it.
pub(crate) fn host_name(host: &str, port: u16) -> String {
    let host = host.to_lowercase();
    if port == 22 {
        host
    } else {
        format!("[{host}]:{port}")
    }
}

/// What the files say of a key that a host has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A line names this key for this host.
    Known,
    /// No line of this kind of key names this host.
    Unknown,
    /// Lines name other keys of this kind: the first one's file and line.
    Changed(String),
    /// A line revokes the key.
    Revoked,
    /// A certificate authority is trusted for this host, and no key.
    Authority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    Authority,
    Revoked,
}

#[derive(Debug)]
struct Line {
    marker: Marker,
    key: PublicKey,
    at: String,
}

/// The lines of all files that name one host.
#[derive(Debug, Default)]
pub struct KnownHosts {
    lines: Vec<Line>,
    /// Those that name it without its port. OpenSSH takes a key from them too
    /// when no line names the port (`check_host_key` in sshconnect.c, 9.2).
    portless: Vec<Line>,
}

impl KnownHosts {
    /// Read what all files of a host say of it.
    pub(crate) fn of(options: &crate::HostOptions) -> Result<Self, RemoteError> {
        let files = [&options.known_hosts[..], &options.global_known_hosts[..]].concat();
        Self::read(&files, &options.host, options.port)
    }

    /// Read what `files` say of `host` at `port`. A file that isn't there says
    /// nothing; one that can't be read is an error, since it may revoke a key.
    pub fn read(files: &[Utf8PathBuf], host: &str, port: u16) -> Result<Self, RemoteError> {
        let name = host_name(host, port);
        let mut known = Self::default();
        for path in files {
            let text = match fs::read(path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => {
                    return Err(RemoteError::File {
                        path: path.clone(),
                        source,
                    });
                }
            };
            known.add(&text, path, &name, &host.to_lowercase());
        }
        Ok(known)
    }

    fn add(&mut self, text: &str, path: &Utf8Path, name: &str, portless: &str) {
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            let (marker, hosts) = match first {
                _ if first.starts_with('#') => continue,
                "@revoked" => (Marker::Revoked, words.next()),
                "@cert-authority" => (Marker::Authority, words.next()),
                // OpenSSH skips lines with a marker it doesn't know.
                _ if first.starts_with('@') => continue,
                hosts => (Marker::None, Some(hosts)),
            };
            let (Some(hosts), Some(kind), Some(blob)) = (hosts, words.next(), words.next()) else {
                continue;
            };
            let Ok(key) = PublicKey::from_openssh(&format!("{kind} {blob}")) else {
                continue;
            };
            let into = if matches(hosts, name) {
                &mut self.lines
            } else if matches(hosts, portless) {
                &mut self.portless
            } else {
                continue;
            };
            into.push(Line {
                marker,
                key,
                at: format!("{path}:{}", number + 1),
            });
        }
    }

    /// What the files say of `key`.
    pub fn judge(&self, key: &PublicKey) -> Verdict {
        let same = |line: &&Line| line.key.key_data() == key.key_data();
        let lines = |marker| self.lines.iter().filter(move |line| line.marker == marker);
        if lines(Marker::Revoked).any(|line| same(&line)) {
            return Verdict::Revoked;
        }
        if lines(Marker::None).any(|line| same(&line)) {
            return Verdict::Known;
        }
        let kind = key.algorithm();
        if let Some(other) = lines(Marker::None).find(|line| line.key.algorithm() == kind) {
            return Verdict::Changed(other.at.clone());
        }
        if lines(Marker::Authority).next().is_some() {
            return Verdict::Authority;
        }
        let mut portless = self.portless.iter().filter(same);
        let revoked = portless.clone().any(|line| line.marker == Marker::Revoked);
        if !revoked && portless.any(|line| line.marker == Marker::None) {
            return Verdict::Known;
        }
        Verdict::Unknown
    }

    /// Whether a certificate authority is trusted for this host.
    pub fn has_authority(&self) -> bool {
        self.lines
            .iter()
            .any(|line| line.marker == Marker::Authority)
    }

    /// The kinds of the keys that are known, so that the server is asked for
    /// one of them first, as OpenSSH does.
    pub fn kinds(&self) -> Vec<Algorithm> {
        let mut kinds = Vec::new();
        for line in self.lines.iter().chain(&self.portless) {
            if line.marker == Marker::None && !kinds.contains(&line.key.algorithm()) {
                kinds.push(line.key.algorithm());
            }
        }
        kinds
    }
}

fn matches(hosts: &str, name: &str) -> bool {
    if hosts.starts_with("|1|") {
        return matches_hash(hosts, name);
    }
    let mut found = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if glob(&pattern.to_lowercase(), name) => return false,
            Some(_) => {}
            None => found |= glob(&pattern.to_lowercase(), name),
        }
    }
    found
}

fn matches_hash(hosts: &str, name: &str) -> bool {
    let Ok(HostPatterns::HashedName { salt, hash }) = hosts.parse() else {
        return false;
    };
    Hmac::<Sha1>::new_from_slice(&salt)
        .is_ok_and(|mac| mac.chain_update(name).verify_slice(&hash).is_ok())
}

/// `*` and `?` as OpenSSH reads them. Linear in time: on a mismatch only the
/// last `*` is tried again.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    p = at + 1;
                    t = taken + 1;
                    star = Some((at, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Trust a key from now on: append its `line` to boxery's own known hosts.
pub fn accept(path: &Utf8Path, line: &str) -> Result<(), RemoteError> {
    let failed = |source| RemoteError::File {
        path: path.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
    }
    let old = match fs::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(failed(source)),
    };
    if old
        .split(|b| *b == b'\n')
        .any(|have| have == line.as_bytes())
    {
        return Ok(());
    }
    // One write to a file opened for appending, so two of them never mix.
    let mut text = String::new();
    if !old.is_empty() && !old.ends_with(b"\n") {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}

/// Trust a key in place of what boxery's own known hosts say of its host: the lines
/// that name the host of `line` go, and it comes. Marked lines stay.
pub fn replace(path: &Utf8Path, line: &str) -> Result<(), RemoteError> {
    let failed = |source| RemoteError::File {
        path: path.to_owned(),
        source,
    };
    let name = line.split(' ').next().unwrap_or_default();
    let old = match fs::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(failed(source)),
    };
    let names_it = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        !first.starts_with(['#', '@']) && matches(first, name)
    };
    // With its end each, so that what stays keeps every byte.
    let lines = old.split_inclusive(|byte| *byte == b'\n');
    let mut text = lines
        .filter(|line| !names_it(line))
        .collect::<Vec<_>>()
        .concat();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend([line.as_bytes(), b"\n"].concat());
    let folder = path.parent().unwrap_or(Utf8Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(&text).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let persisted = file.persist(path);
    persisted.map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const A: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const B: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILIG2T/B0l0gaqj3puu510tu9N1OkQ4znY3LYuEm5zCF";
    const EC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";
    // `ssh-keygen -H` of `example.com` and of `[localhost]:13265`.
    const HASHED: &str = "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=";

    fn judge(text: &str, host: &str, port: u16) -> Verdict {
        let mut known = KnownHosts::default();
        let name = host_name(host, port);
        known.add(text, Utf8Path::new("f"), &name, &host.to_lowercase());
        known.judge(&PublicKey::from_openssh(A).unwrap())
    }

    #[rstest]
    #[case::plain("dev {A}", "dev", 22, Verdict::Known)]
    #[case::upper_case("DEV {A}", "Dev", 22, Verdict::Known)]
    #[case::list("x,dev,y {A}", "dev", 22, Verdict::Known)]
    #[case::tabs_and_spaces("  dev \t {A}  comment # with hash", "dev", 22, Verdict::Known)]
    #[case::carriage_return("dev {A}\r", "dev", 22, Verdict::Known)]
    #[case::no_final_newline("# c\n\ndev {A}", "dev", 22, Verdict::Known)]
    #[case::port("[dev]:2222 {A}", "dev", 2222, Verdict::Known)]
    #[case::other_port("[dev]:2222 {A}", "dev", 22, Verdict::Unknown)]
    #[case::without_its_port("dev {A}", "dev", 2222, Verdict::Known)]
    #[case::other_without_its_port("dev {B}", "dev", 2222, Verdict::Unknown)]
    #[case::revoked_without_its_port("dev {A}\n@revoked dev {A}", "dev", 2222, Verdict::Unknown)]
    #[case::port_beats_portless("dev {A}\n[dev]:2222 {B}", "dev", 2222, Verdict::Changed("f:2".to_owned()))]
    #[case::star("*.corp {A}", "a.b.corp", 22, Verdict::Known)]
    #[case::question("d?v {A}", "dev", 22, Verdict::Known)]
    #[case::star_port("[*.corp]:2222 {A}", "a.corp", 2222, Verdict::Known)]
    #[case::negated("*.corp,!bad.corp {A}", "bad.corp", 22, Verdict::Unknown)]
    #[case::negated_first("!bad.corp,*.corp {A}", "bad.corp", 22, Verdict::Unknown)]
    #[case::not_negated("*.corp,!bad.corp {A}", "good.corp", 22, Verdict::Known)]
    #[case::only_negated("!bad.corp {A}", "dev", 22, Verdict::Unknown)]
    #[case::comment("#dev {A}", "dev", 22, Verdict::Unknown)]
    #[case::changed("dev {B}", "dev", 22, Verdict::Changed("f:1".to_owned()))]
    #[case::several("dev {B}\ndev {A}", "dev", 22, Verdict::Known)]
    #[case::other_kind("dev {EC}", "dev", 22, Verdict::Unknown)]
    #[case::revoked("@revoked dev {A}", "dev", 22, Verdict::Revoked)]
    #[case::revoked_beats_known("dev {A}\n@revoked * {A}", "dev", 22, Verdict::Revoked)]
    #[case::other_revoked("dev {A}\n@revoked * {B}", "dev", 22, Verdict::Known)]
    #[case::revoked_elsewhere("dev {A}\n@revoked other {A}", "dev", 22, Verdict::Known)]
    #[case::authority("@cert-authority *.corp {B}", "a.corp", 22, Verdict::Authority)]
    #[case::authority_is_no_host_key("@cert-authority dev {A}", "dev", 22, Verdict::Authority)]
    #[case::known_beside_authority("@cert-authority * {B}\ndev {A}", "dev", 22, Verdict::Known)]
    #[case::unknown_marker("@other dev {A}", "dev", 22, Verdict::Unknown)]
    #[case::broken_key("dev ssh-ed25519 AAAA\ndev {A}", "dev", 22, Verdict::Known)]
    #[case::hashed_other("{HASHED} {A}", "nowhere", 22, Verdict::Unknown)]
    #[case::broken_hash("|1|zz {A}", "dev", 22, Verdict::Unknown)]
    #[case::empty("", "dev", 22, Verdict::Unknown)]
    fn a_key_is_judged_as_openssh_does(
        #[case] text: &str,
        #[case] host: &str,
        #[case] port: u16,
        #[case] want: Verdict,
    ) {
        let text = text
            .replace("{A}", A)
            .replace("{B}", B)
            .replace("{EC}", EC)
            .replace("{HASHED}", HASHED);
        assert_eq!(judge(&text, host, port), want);
    }

    #[test]
    fn a_hashed_name_is_found() {
        let text = format!("{HASHED} {B}\n");
        let mut known = KnownHosts::default();
        for name in ["example.com", "pijul.org"] {
            known.add(&text, Utf8Path::new("f"), name, name);
        }
        assert_eq!(
            known.judge(&PublicKey::from_openssh(B).unwrap()),
            Verdict::Known
        );
    }

    #[test]
    fn an_accepted_key_is_known_and_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("deep/known_hosts")).unwrap();
        let key = PublicKey::from_openssh(A).unwrap();
        let shown = HostKey::new(&host_name("dev", 2222), &key);
        assert_eq!(HostKey::parse(&shown.line), Some(shown.clone()));
        accept(&path, &shown.line).unwrap();
        accept(&path, &shown.line).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("[dev]:2222 {A}\n")
        );
        let known = KnownHosts::read(&[path], "dev", 2222).unwrap();
        assert_eq!(known.judge(&key), Verdict::Known);
    }

    #[test]
    fn a_replaced_key_takes_the_place_of_its_host_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("known_hosts")).unwrap();
        let old = format!("# mine\ndev {B}\n[dev]:2222 {B}\nother {B}\n@revoked dev {B}\n");
        std::io::Write::write_all(&mut fs::File::create(&path).unwrap(), old.as_bytes()).unwrap();
        replace(&path, &format!("dev {A}")).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("# mine\n[dev]:2222 {B}\nother {B}\n@revoked dev {B}\ndev {A}\n")
        );
    }

    #[test]
    fn what_a_replaced_key_leaves_keeps_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("known_hosts")).unwrap();
        let kept = [b"# J\xf6rg\r\n\n  other ", B.as_bytes(), b" a\xff\r\nlast "].concat();
        let old = [&kept[..], b"x\ndev ", B.as_bytes(), b" \xfe"].concat();
        std::io::Write::write_all(&mut fs::File::create(&path).unwrap(), &old).unwrap();
        replace(&path, &format!("dev {A}")).unwrap();
        let want = [&kept[..], b"x\ndev ", A.as_bytes(), b"\n"].concat();
        assert_eq!(fs::read(&path).unwrap(), want);
    }
}
