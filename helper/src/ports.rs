//! The TCP ports that runs listen on, from the kernel's table.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;

use boxery_wire::Port;

use crate::folder::{self, Folders};
use crate::process;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Every port on which a process of a run of this user listens.
pub(crate) fn list(folders: &Folders) -> Vec<Port> {
    let mut ports = BTreeSet::new();
    for (run, folder) in folders.runs() {
        let Ok(stream) = folder::connect(&folder) else {
            continue;
        };
        let Ok(supervisor) = rustix::net::sockopt::socket_peercred(&stream) else {
            continue;
        };
        let supervisor = supervisor.pid;
        let tables = ["tcp", "tcp6"].map(|table| {
            let path = format!("/proc/{}/net/{table}", supervisor.as_raw_pid());
            fs::read_to_string(path).unwrap_or_default()
        });
        let listening: HashMap<u64, u16> = tables.iter().flat_map(|table| parse(table)).collect();
        if listening.is_empty() {
            continue;
        }
        let session = fs::read_to_string(folder.join(SESSION)).unwrap_or_default();
        for entry in process::descendants(supervisor) {
            for socket in sockets(entry.pid) {
                if let Some(port) = listening.get(&socket) {
                    ports.insert(Port {
                        port: *port,
                        run,
                        session: session.clone(),
                    });
                }
            }
        }
    }
    ports.into_iter().collect()
}

/// The file that names a run's session.
const SESSION: &str = "session";

/// Note whose run it is.
pub(crate) fn save_session(folder: &Path, session: &str) -> std::io::Result<()> {
    if session.is_empty() {
        return Ok(());
    }
    folder::replace(folder, SESSION, session.as_bytes())
}

/// The listening sockets of a table, and their ports.
fn parse(table: &str) -> Vec<(u64, u16)> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, port) = fields.get(1)?.rsplit_once(':')?;
            let listens = *fields.get(3)? == LISTEN;
            let inode = fields.get(9)?.parse().ok()?;
            let port = u16::from_str_radix(port, 16).ok()?;
            listens.then_some((inode, port))
        })
        .collect()
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
    use super::*;

    #[test]
    fn only_listening_sockets_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 1234 1 0 100 0 0 10 0\n\
            1: 0100007F:0BB9 0100007F:0016 01 00000000:00000000 00:00000000 00000000  0 0 1235 1 0 100 0 0 10 0\n\
            junk\n";
        assert_eq!(parse(table), [(1234, 3000)]);
    }
}
