//! Telemetry of a place, of a server that runs there, and of endpoints and commands that say their own counters: raw counters with the time they were read, in Arrow IPC
//! streams. Rates are computed later, and elsewhere.
//!
//! Files stay open and are read again from their start into buffers that are used again; parsing allocates nothing.
//! Columns are those of a source's first read: a device or counter that appears later is left out, one that disappears
//! gives nulls. Every reader takes the root of its `/proc`, so that tests show it a tree of their own.

mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod parse;
mod proc_file;
mod sampler;
mod series;
pub mod server;
mod source;
mod table;
mod ticker;

use std::io::{self, Write as _};
use std::path::Path;

use fairtrial_protocol::sample::Sample;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{geteuid, setpriority_process};
use serde_json::{Value, json};

pub use error::{SHORTEST_INTERVAL_MS, SHORTEST_SERVER_INTERVAL_MS, SampleError};
pub use sampler::{Sampler, SamplerEnd};
pub use series::http_get;
pub use server::ServerSampler;
pub use table::{ReadingTime, TelemetryTable, batch_rows};
pub use ticker::{Ticker, Wake};

/// Before ordinary processes (0), behind what an administrator made urgent (-20).
const NICENESS: i32 = -10;

/// Samples until SIGTERM or SIGINT, then once more, so that the last sample lies behind whatever was measured.
///
/// Says on standard output what it cannot sample as `{"warning": …}` lines, then, once every source was read for the
/// first time, what it does sample: `{"sampling": […]}`; and at the end how many ticks were kept and missed:
/// `{"ticks": …, "missed_ticks": …, "missed_server_samples": …, "missed_series_samples": …}`.
pub fn sample(parameters: &Sample) -> Result<(), SampleError> {
    if parameters.interval_ms < SHORTEST_INTERVAL_MS {
        return Err(SampleError::Interval {
            given_ms: parameters.interval_ms,
        });
    }
    go_first();
    let mut ticker = Ticker::start(parameters.interval_ms)?;
    let mut sampler = Sampler::open(Path::new("/proc"), parameters)?;
    sampler.tick()?;
    say_warnings(sampler.take_warnings())?;
    say(&json!({"sampling": sampler.names()}))?;
    let (mut ticks, mut missed) = (1_u64, 0);
    while let Wake::Tick { missed: late } = ticker.wait()? {
        sampler.tick()?;
        say_warnings(sampler.take_warnings())?;
        ticks += 1;
        missed += late;
    }
    sampler.tick()?;
    say_warnings(sampler.take_warnings())?;
    let ended = sampler.finish()?;
    say_warnings(ended.warnings)?;
    say(&json!({
        "ticks": ticks,
        "missed_ticks": missed,
        "missed_server_samples": ended.missed_server,
        "missed_series_samples": ended.missed_series,
    }))
}

/// A sampler that waits for its own pages to be swapped in, or for its turn, misses the very moments it is there for.
/// Only root may lock memory without a limit (with one, a later allocation would fail) and go before others.
fn go_first() {
    if geteuid().is_root() {
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
        let _ = setpriority_process(None, NICENESS);
    }
}

fn say_warnings(warnings: Vec<String>) -> Result<(), SampleError> {
    warnings
        .into_iter()
        .try_for_each(|warning| say(&json!({"warning": warning})))
}

fn say(line: &Value) -> Result<(), SampleError> {
    writeln!(io::stdout(), "{line}").map_err(SampleError::StandardOutput)
}
