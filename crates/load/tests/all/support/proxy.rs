//! A socket between a client and a server that closes both ends instead of passing some commits on.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tempfile::TempDir;

/// How the driver says that a transaction ends: a query's packet of seven bytes.
const COMMIT: &[u8] = b"\x07\0\0\0\x03COMMIT";

/// The proxy; its threads end with the connections or with the process.
pub struct Proxy {
    directory: TempDir,
    cuts: Arc<AtomicU64>,
}

impl Proxy {
    /// Passes on what goes to `server` and comes from it, but cuts at every `nth` commit, all connections together.
    pub fn start(server: &str, nth: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let listener = UnixListener::bind(directory.path().join("proxy")).expect("a free name");
        let (cuts, commits) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (server, cut) = (server.to_owned(), Arc::clone(&cuts));
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                let server = UnixStream::connect(&server).expect("the server listens");
                let (cut, commits) = (Arc::clone(&cut), Arc::clone(&commits));
                let (to_client, from_server) = (client.try_clone(), server.try_clone());
                thread::spawn(move || {
                    forward(&client, &server, |bytes| {
                        let is_cut = bytes == COMMIT
                            && commits.fetch_add(1, Ordering::Relaxed) % nth == nth - 1;
                        cut.fetch_add(u64::from(is_cut), Ordering::Relaxed);
                        is_cut
                    });
                });
                thread::spawn(move || {
                    forward(
                        &from_server.expect("a handle"),
                        &to_client.expect("a handle"),
                        |_| false,
                    );
                });
            }
        });
        Self { directory, cuts }
    }

    /// Where it listens.
    pub fn socket(&self) -> String {
        self.directory
            .path()
            .join("proxy")
            .to_string_lossy()
            .into_owned()
    }

    /// Commits that were not passed on.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }
}

/// Copies until either end closes or `is_cut` says to, then closes both.
fn forward(mut from: &UnixStream, mut to: &UnixStream, is_cut: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if is_cut(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both); // it may be closed already
    }
}
