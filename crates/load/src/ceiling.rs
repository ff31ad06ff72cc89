//! The engine's own ceiling on this host: what it can do against a server that does nothing.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::{
    Arrivals, Ceiling, ClientCeiling, Drive, Driven, Endpoint, Interface, Noop, Spacing,
};
use fairtrial_protocol::oltp::{Distribution, Mix, OltpDrive, Profile, Protocol};
use rustix::time::{ClockId, clock_gettime};

use crate::drive::{self, usage};
use crate::error::LoadError;
use crate::noop::NoopServer;
use crate::oltp::workload::Oltp;

/// Users of the measurement: enough that each turn of the loop finds several answers.
const USERS: u32 = 64;

/// Long enough for some hundred thousand statements.
const WINDOW_S: f64 = 1.0;

/// Measures it, or reads what was measured earlier and kept.
pub fn ceiling(parameters: &Ceiling) -> Result<ClientCeiling, LoadError> {
    let kept = Path::new(&parameters.kept);
    let earlier = fs::read(kept).ok();
    if let Some(ceiling) = earlier.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(ceiling);
    }
    let ceiling = measure(Path::new(&parameters.directory))?;
    let content = serde_json::to_vec(&ceiling).unwrap_or_default();
    fs::write(kept, content).map_err(|source| LoadError::Output {
        path: kept.to_owned(),
        source,
    })?;
    Ok(ceiling)
}

fn measure(directory: &Path) -> Result<ClientCeiling, LoadError> {
    let socket = directory.join("noop");
    let serving = ServerThread::start(&socket)?;
    let before = usage::now();
    let parameters = selects(directory, &socket);
    let make = |_: &Drive| Oltp::new(&parameters);
    let driven = drive::drive(&parameters.drive, make, &mut io::sink());
    let spent = usage::between(&before, &usage::now());
    let served_s = serving.stop()?;
    let driven: Driven = driven?;
    let operations: u64 = driven.transactions.values().map(|of| of.committed).sum();
    #[allow(clippy::cast_precision_loss)] // a second's operations
    let operations = operations as f64;
    Ok(ClientCeiling {
        operations_per_core_s: operations / (spent.user_s + spent.system_s - served_s),
        virtual_users: USERS,
        interface: driven
            .loops
            .first()
            .map_or(Interface::Epoll, |one| one.interface),
    })
}

/// The server, on a thread of its own, whose processor time is not the client's.
struct ServerThread {
    end: UnixStream,
    thread: thread::JoinHandle<Result<f64, LoadError>>,
}

impl ServerThread {
    fn start(socket: &Path) -> Result<Self, LoadError> {
        let refused = LoadError::start("the no-operation server");
        let (end, ends) = UnixStream::pair().map_err(refused)?;
        let parameters = Noop {
            socket: socket.to_string_lossy().into(),
        };
        // Before the thread begins, so that no client is refused however late it does.
        let server = NoopServer::bind(&parameters)?;
        let thread = thread::spawn(move || {
            server.serve(ends)?;
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Ok(Duration::new(
                time.tv_sec.unsigned_abs(),
                u32::try_from(time.tv_nsec).unwrap_or(0),
            )
            .as_secs_f64())
        });
        Ok(Self { end, thread })
    }

    /// Ends it; returns its processor time, seconds.
    fn stop(self) -> Result<f64, LoadError> {
        drop(self.end);
        let joined = self.thread.join();
        joined.map_err(|_| LoadError::Panicked("no-operation server"))?
    }
}

/// Prepared selects of one row by key, as fast as they are answered.
fn selects(directory: &Path, socket: &Path) -> OltpDrive {
    let endpoint = Endpoint::mysql_at(socket, "root", "none");
    let drive = Drive {
        endpoint,
        virtual_users: USERS,
        seed: 1,
        ramp_up_s: 0.0,
        ramp_up_transactions: None,
        duration_s: Some(WINDOW_S),
        transactions: None,
        arrivals: Arrivals::Closed {
            think_s: 0.0,
            spacing: Spacing::Constant,
        },
        queue_timeout_s: None,
        retries: 0,
        interval_ms: 1000,
        output_directory: directory.to_string_lossy().into(),
        fleet: None,
    };
    OltpDrive {
        drive,
        profile: Profile::PointSelect,
        tables: 1,
        // What the server's canned answer says of any table.
        table_size: 1,
        distribution: Distribution::Uniform {},
        protocol: Protocol::Prepared,
        skip_transactions: true,
        pipelining: false,
        mix: Mix {
            point_selects: 1,
            simple_ranges: 0,
            sum_ranges: 0,
            order_ranges: 0,
            distinct_ranges: 0,
            range_size: 1,
            index_updates: 0,
            non_index_updates: 0,
            delete_inserts: 0,
            random_points: 1,
            random_ranges: 1,
            random_range_delta: 1,
        },
    }
}
