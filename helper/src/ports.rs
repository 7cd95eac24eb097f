//! The TCP ports that runs listen on, from the kernel's table.
//!
//! Invariant: a port counts as a run's only while a process below the run's own
//! supervisor holds the listening socket. Whoever else listens on the VM, under
//! whatever number, is neither told of nor connected to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use boxery_wire::{FromPorts, Port, Reply, RunId, Stream, Whose, WireError};
use rustix::process::Pid;
use tokio::time::sleep;

use crate::folder::{self, Folders};
use crate::process;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";
/// How often the table is read while somebody wants to know.
const LOOK: Duration = Duration::from_millis(200);
/// Looking takes at most one part in so many of the time: a VM with many
/// connections has a long table.
const SHARE: u32 = 50;
/// The file that names a run's session.
const SESSION: &str = "session";

/// Note whose run it is.
pub(crate) fn save_session(folder: &Path, session: &str) -> io::Result<()> {
    if session.is_empty() {
        return Ok(());
    }
    folder::replace(folder, SESSION, session.as_bytes())
}

/// Every port on which a process of a run of this user listens.
pub(crate) fn list(folders: &Folders) -> Vec<Port> {
    let mut live = Live::default();
    live.refresh(folders, None);
    live.ports(&listening())
}

/// Tell on which ports `whose` runs listen, until none of them lives or nobody wants
/// to know.
pub(crate) async fn watch(
    stream: &Stream,
    folders: &Folders,
    whose: &Whose,
) -> Result<(), WireError> {
    stream.send_message(&Reply::Started).await?;
    let mut live = Live::default();
    let (mut table, mut told) = (None, None);
    loop {
        let began = Instant::now();
        let changed = live.refresh(folders, Some(whose));
        if live.is_over() {
            stream.send_message(&FromPorts::Over).await?;
            stream.finish();
            return Ok(());
        }
        let now = listening();
        // The same sockets have the same owners.
        if changed || table.as_ref() != Some(&now) {
            let ports = live.ports(&now);
            if told.as_ref() != Some(&ports) {
                stream.send_message(&FromPorts::Now(ports.clone())).await?;
                told = Some(ports);
            }
            table = Some(now);
        }
        let pause = LOOK.max(began.elapsed() * SHARE);
        tokio::select! {
            () = sleep(pause) => {}
            gone = stream.recv() => match gone? {
                Some(_) => return Err(WireError::Protocol("who watches has nothing to say")),
                None => return Ok(()),
            },
        }
    }
}

/// Where to connect to `port` so that a socket of `whose` runs answers, the best
/// first; nothing when none of them listens there now.
pub(crate) fn addresses(folders: &Folders, whose: &Whose, port: u16) -> Vec<SocketAddr> {
    let mut live = Live::default();
    live.refresh(folders, Some(whose));
    let table = listening();
    let own = live.sockets(&table);
    reachable(&table, port, |inode| own.contains_key(&inode))
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Listening {
    inode: u64,
    address: IpAddr,
    port: u16,
}

/// The runs that live, each by a connection to its supervisor, which ends with it.
#[derive(Default)]
struct Live {
    runs: HashMap<RunId, LiveRun>,
    /// Those that are over, or aren't asked about.
    others: HashSet<RunId>,
    /// One is only just beginning.
    waits: bool,
}

struct LiveRun {
    control: UnixStream,
    supervisor: Pid,
    session: String,
}

impl LiveRun {
    /// Reach the supervisor of the run in `folder`.
    fn find(folder: &Path) -> io::Result<Self> {
        let control = folder::connect(folder)?;
        control.set_nonblocking(true)?;
        let supervisor = rustix::net::sockopt::socket_peercred(&control)?.pid;
        Ok(Self {
            control,
            supervisor,
            session: fs::read_to_string(folder.join(SESSION)).unwrap_or_default(),
        })
    }

    /// A supervisor that isn't asked anything says nothing while it lives.
    fn is_alive(&mut self) -> bool {
        let read = self.control.read(&mut [0; 16]);
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Live {
    /// Find runs that began, those of `whose` or all, and lose those that ended;
    /// whether there was one of either.
    fn refresh(&mut self, folders: &Folders, whose: Option<&Whose>) -> bool {
        let before = self.runs.len();
        self.runs.retain(|_, run| run.is_alive());
        let mut changed = self.runs.len() != before;
        self.waits = false;
        for (run, folder) in folders.runs() {
            if self.runs.contains_key(&run) || self.others.contains(&run) {
                continue;
            }
            if matches!(whose, Some(Whose::Run(wanted)) if *wanted != run) {
                self.others.insert(run);
                continue;
            }
            match LiveRun::find(&folder) {
                Ok(found) if is_of(&found.session, whose) => {
                    self.runs.insert(run, found);
                    changed = true;
                }
                Err(_) if folder::is_beginning(&folder) => self.waits = true,
                Ok(_) | Err(_) => drop(self.others.insert(run)),
            }
        }
        changed
    }

    fn is_over(&self) -> bool {
        self.runs.is_empty() && !self.waits
    }

    /// The sockets of `table` that a process of these runs holds, and which run's.
    fn sockets(&self, table: &HashSet<Listening>) -> HashMap<u64, RunId> {
        let wanted: HashSet<u64> = table.iter().map(|socket| socket.inode).collect();
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return found;
        }
        for (run, live) in &self.runs {
            for entry in process::descendants(live.supervisor) {
                for inode in sockets(entry.pid) {
                    if wanted.contains(&inode) {
                        found.insert(inode, *run);
                    }
                }
            }
        }
        found
    }

    fn ports(&self, table: &HashSet<Listening>) -> Vec<Port> {
        let own = self.sockets(table);
        let ports: BTreeSet<Port> = table
            .iter()
            .filter_map(|socket| {
                let run = *own.get(&socket.inode)?;
                let session = self.runs.get(&run)?.session.clone();
                let port = socket.port;
                Some(Port { port, run, session })
            })
            .collect();
        ports.into_iter().collect()
    }
}

fn is_of(session: &str, whose: Option<&Whose>) -> bool {
    match whose {
        Some(Whose::Session(wanted)) => session == wanted,
        // Which run it is was seen by its folder's name.
        Some(Whose::Run(_)) | None => true,
    }
}

/// How the port is reached through the sockets that are `own`, and through no other.
fn reachable(table: &HashSet<Listening>, port: u16, own: impl Fn(u64) -> bool) -> Vec<SocketAddr> {
    let there = || table.iter().filter(|socket| socket.port == port);
    // What answers on 127.0.0.1: of two such sockets the kernel may take either.
    let v4 = |address: IpAddr| {
        address == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || address == IpAddr::V4(Ipv4Addr::LOCALHOST)
    };
    let foreign_v4 = there().any(|socket| v4(socket.address) && !own(socket.inode));
    let mut found = BTreeSet::new();
    for socket in there().filter(|socket| own(socket.inode)) {
        match socket.address {
            IpAddr::V4(address) if v4(address.into()) => {
                if !foreign_v4 {
                    found.insert(IpAddr::V4(Ipv4Addr::LOCALHOST));
                }
            }
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                found.insert(IpAddr::V6(Ipv6Addr::LOCALHOST));
                // It takes IPv4 too unless it was told not to; without IPv6 on the
                // loopback there is no other way.
                if !foreign_v4 {
                    found.insert(IpAddr::V4(Ipv4Addr::LOCALHOST));
                }
            }
            address => drop(found.insert(address)),
        }
    }
    let found = found.into_iter();
    found
        .map(|address| SocketAddr::new(address, port))
        .collect()
}

/// Every socket that listens here.
fn listening() -> HashSet<Listening> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/self/net/{table}")).ok())
        .flat_map(|table| parse(&table))
        .collect()
}

/// The listening sockets of a table.
fn parse(table: &str) -> Vec<Listening> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if *fields.get(3)? != LISTEN {
                return None;
            }
            let (address, port) = fields.get(1)?.rsplit_once(':')?;
            Some(Listening {
                inode: fields.get(9)?.parse().ok()?,
                address: parse_address(address)?,
                port: u16::from_str_radix(port, 16).ok()?,
            })
        })
        .collect()
}

/// An address as the kernel prints it: words of 32 bits in this machine's byte order.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |part: usize| {
        let digits = text.get(part * 8..part * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for part in 0..4 {
                bytes[part * 4..part * 4 + 4].copy_from_slice(&word(part)?);
            }
            Some(IpAddr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// The sockets that a process has open.
fn sockets(pid: i32) -> HashSet<u64> {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let name = target.to_str()?.strip_prefix("socket:[")?;
            name.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn socket(inode: u64, address: &str) -> Listening {
        let address = address.parse().unwrap();
        let port = 3000;
        Listening {
            inode,
            address,
            port,
        }
    }

    #[test]
    fn only_listening_sockets_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 1234 1 0 100 0 0 10 0\n\
            1: 0100007F:0BB9 0100007F:0016 01 00000000:00000000 00:00000000 00000000  0 0 1235 1 0 100 0 0 10 0\n\
            2: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 1236 1 0 100 0 0 10 0\n\
            junk\n";
        assert_eq!(
            parse(table),
            [socket(1234, "127.0.0.1"), socket(1236, "::1")]
        );
    }

    // Inodes below 10 are ours.
    #[rstest]
    #[case::loopback(&[(1, "127.0.0.1")], &["127.0.0.1"])]
    #[case::wildcard(&[(1, "0.0.0.0")], &["127.0.0.1"])]
    #[case::both_families(&[(1, "0.0.0.0"), (2, "::")], &["127.0.0.1", "::1"])]
    #[case::dual(&[(1, "::")], &["127.0.0.1", "::1"])]
    #[case::one_address(&[(1, "10.0.0.5")], &["10.0.0.5"])]
    #[case::somebody_elses(&[(10, "0.0.0.0")], &[])]
    #[case::somebody_else_has_the_loopback(&[(1, "10.0.0.5"), (10, "127.0.0.1")], &["10.0.0.5"])]
    #[case::somebody_else_shares_it(&[(1, "0.0.0.0"), (10, "127.0.0.1")], &[])]
    #[case::somebody_else_has_the_other_family(&[(1, "::"), (10, "0.0.0.0")], &["::1"])]
    fn a_port_leads_to_ones_own_socket_or_nowhere(
        #[case] table: &[(u64, &str)],
        #[case] want: &[&str],
    ) {
        let table = table
            .iter()
            .map(|(inode, address)| socket(*inode, address))
            .collect();
        let want: Vec<SocketAddr> = want
            .iter()
            .map(|address| SocketAddr::new(address.parse().unwrap(), 3000))
            .collect();
        assert_eq!(reachable(&table, 3000, |inode| inode < 10), want);
    }
}
