//! What a place is like right before a trial: how fast a fixed amount of work is, and what else foretells noise.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use fairtrial_protocol::clock::{boottime_ns, monotonic_ns};
use fairtrial_protocol::state::Covariates;
use rustix::param::page_size;

/// 32 MiB: more than a processor's own caches hold.
const WORDS: usize = 4 << 20;
/// About as long as [`VISITS`] on a machine of 2024.
const MIXES: usize = 3_000_000;
const VISITS: usize = 150_000;
/// What x86 and most kernels of ARM back a huge page with.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
const HERTZ_PER_KILOHERTZ: f64 = 1e3;
const HERTZ_PER_MEGAHERTZ: f64 = 1e6;

/// Covariates of this machine, in some tens of milliseconds.
#[must_use]
pub fn covariates() -> Covariates {
    covariates_below(Path::new("/"))
}

/// [`covariates`] by a root directory that may be a tree of one's own; the loop and the clock are this machine's.
#[must_use]
pub fn covariates_below(root: &Path) -> Covariates {
    let calibration_loop_ns = calibration_loop_ns(); // before all reads: a processor just woken runs at its own pace
    Covariates {
        calibration_loop_ns,
        time_since_boot_s: since_boot_s(),
        memory_fragmentation: fragmentation(
            &content(root, "proc/buddyinfo"),
            u64::try_from(page_size()).unwrap_or(u64::MAX),
        ),
        processor_frequency_hz: frequency_hz(root),
    }
}

/// How long arithmetic that waits for itself, dependent loads all over a buffer, and one pass through it take together.
fn calibration_loop_ns() -> i64 {
    let mut words: Vec<u64> = (0..).take(WORDS).collect(); // every page is there before the clock starts
    let started_ns = monotonic_ns();
    let mut state = black_box(1);
    for _ in 0..MIXES {
        state = mixed(state);
    }
    for _ in 0..VISITS {
        let at = usize::try_from(state % WORDS as u64).unwrap_or(0);
        state = mixed(state ^ words[at]);
        words[at] = state;
    }
    let sum = words
        .iter()
        .fold(state, |sum, word| sum.wrapping_add(*word));
    black_box(sum);
    monotonic_ns() - started_ns
}

/// One step of splitmix64 (Steele, Lea and Flood 2014).
fn mixed(state: u64) -> u64 {
    let first = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let second = (first ^ (first >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let third = (second ^ (second >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    third ^ (third >> 31)
}

/// Seconds since the kernel started, sleep included.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a century fit")]
fn since_boot_s() -> f64 {
    boottime_ns() as f64 / 1e9
}

/// Share of free memory in pieces smaller than a huge page (proc(5), `/proc/buddyinfo`); none where it does not say.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn fragmentation(buddyinfo: &str, page_bytes: u64) -> Option<f64> {
    let (mut small, mut all) = (0_u64, 0_u64);
    for line in buddyinfo.lines() {
        let counts = line.split_whitespace().skip(4); // Node 0, zone Normal
        for (order, count) in counts.enumerate() {
            let piece_bytes = page_bytes.checked_shl(u32::try_from(order).ok()?)?;
            let bytes = piece_bytes.saturating_mul(count.parse().ok()?);
            all = all.saturating_add(bytes);
            if piece_bytes < HUGE_PAGE_BYTES {
                small = small.saturating_add(bytes);
            }
        }
    }
    (all > 0).then(|| small as f64 / all as f64)
}

/// Mean over processors: as their driver says, else as `/proc/cpuinfo` does; none where neither does.
fn frequency_hz(root: &Path) -> Option<f64> {
    let directory = root.join("sys/devices/system/cpu/cpufreq");
    let policies = fs::read_dir(directory).into_iter().flatten().flatten();
    let by_driver = policies
        .filter_map(|policy| fs::read_to_string(policy.path().join("scaling_cur_freq")).ok())
        .filter_map(|text| Some(text.trim().parse::<f64>().ok()? * HERTZ_PER_KILOHERTZ));
    let cpuinfo = content(root, "proc/cpuinfo");
    let by_kernel = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == "cpu MHz")
        .filter_map(|(_, value)| Some(value.trim().parse::<f64>().ok()? * HERTZ_PER_MEGAHERTZ));
    mean(by_driver).or_else(|| mean(by_kernel))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

/// A file's content; empty if it cannot be read.
fn content(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_default()
}
