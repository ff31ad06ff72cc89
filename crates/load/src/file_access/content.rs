//! What the files hold: every 512 bytes begin with their place, so that a block read says whether it is the right one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::file::FileLoad;
use fairtrial_protocol::load::Loaded;
use sha2::{Digest as _, Sha256};

use super::permutation::mixed;
use crate::error::LoadError;
use crate::population::content::hexadecimal;
use crate::population::pace::Pace;
use crate::progress;

/// The smallest block that storage reads or writes: a stamp is never cut.
pub const UNIT_BYTES: usize = 512;

/// Files are whole pages, so that any engine can access all of them.
const PAGE_BYTES: u64 = 4096;

/// Written at once.
const CHUNK_BYTES: usize = 1 << 20;

const WORD_BYTES: usize = 8;

/// Marks a stamp, together with the file's number.
const MARK: u64 = 0x6661_6972_7472_6900;

const TELL_EVERY: Duration = Duration::from_secs(1);

/// The file of a job.
pub fn path(directory: &Path, job: u32) -> PathBuf {
    directory.join(format!("job.{job}"))
}

/// Fills a buffer with what the file of a job holds from `offset`, both in whole units.
pub fn fill(buffer: &mut [u8], job: u32, offset: u64, seed: u64) {
    let first = offset / UNIT_BYTES as u64;
    for (unit, bytes) in (first..).zip(buffer.chunks_exact_mut(UNIT_BYTES)) {
        let key = mixed(seed ^ mixed((u64::from(job) << 48) ^ unit));
        for (number, word) in (0_u64..).zip(bytes.chunks_exact_mut(WORD_BYTES)) {
            let value = match number {
                0 => unit,
                1 => MARK ^ u64::from(job),
                _ => mixed(key.wrapping_add(number)), // nothing that storage could compress
            };
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// Says whose block this is if it is not the one of this job at this offset.
pub fn mistaken(block: &[u8], job: u32, offset: u64) -> Option<String> {
    let word = |at: usize| {
        let bytes = block[at * WORD_BYTES..(at + 1) * WORD_BYTES].try_into();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let (unit, mark) = (word(0), word(1));
    if unit == offset / UNIT_BYTES as u64 && mark == MARK ^ u64::from(job) {
        return None;
    }
    let owner = mark ^ MARK;
    Some(if u32::try_from(owner).is_ok() {
        format!(
            "at byte {} of job.{owner}",
            unit.saturating_mul(UNIT_BYTES as u64)
        )
    } else {
        "nowhere: it has no stamp".into()
    })
}

/// Writes the files.
pub fn load(parameters: &FileLoad, out: &mut dyn Write) -> Result<Loaded, LoadError> {
    if parameters.files == 0
        || parameters.bytes == 0
        || !parameters.bytes.is_multiple_of(PAGE_BYTES)
    {
        return Err(LoadError::parameter(
            "bytes",
            format!("files must be whole pages of {PAGE_BYTES} bytes, and at least one"),
        ));
    }
    let total = u64::from(parameters.files) * parameters.bytes;
    #[allow(clippy::cast_precision_loss)] // for people to read
    let mut progress = LoadProgress {
        pace: Pace::begin(total as f64, 0.0, 0),
        said_ns: monotonic_ns(),
    };
    let mut whole = Sha256::new();
    for job in 0..parameters.files {
        whole.update(write(parameters, job, &mut progress, out)?);
    }
    let content = whole.finalize();
    Ok(Loaded {
        rows: [
            ("files".to_owned(), parameters.files.into()),
            ("bytes".to_owned(), total),
        ]
        .into(),
        content_sha256: hexadecimal(&content),
    })
}

/// Writes one file; returns the hash of its content.
fn write(
    parameters: &FileLoad,
    job: u32,
    progress: &mut LoadProgress,
    out: &mut dyn Write,
) -> Result<[u8; 32], LoadError> {
    let path = path(Path::new(&parameters.directory), job);
    let failed = |source| LoadError::File {
        doing: "write",
        path: path.clone(),
        source,
    };
    let mut file = File::create(&path).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < parameters.bytes {
        let left = usize::try_from(parameters.bytes - offset).unwrap_or(CHUNK_BYTES);
        let chunk = &mut buffer[..left.min(CHUNK_BYTES)];
        fill(chunk, job, offset, parameters.seed);
        file.write_all(chunk).map_err(failed)?;
        hash.update(&*chunk);
        offset += chunk.len() as u64;
        progress.add(chunk.len() as u64, out)?;
    }
    Ok(hash.finalize().into())
}

/// How far the load is, and when that was last said.
struct LoadProgress {
    pace: Pace,
    said_ns: i64,
}

impl LoadProgress {
    #[allow(clippy::cast_precision_loss)] // for people to read
    fn add(&mut self, bytes: u64, out: &mut dyn Write) -> Result<(), LoadError> {
        self.pace.add(bytes as f64, bytes);
        let now_ns = monotonic_ns();
        if u128::from((now_ns - self.said_ns).unsigned_abs()) < TELL_EVERY.as_nanos() {
            return Ok(());
        }
        self.said_ns = now_ns;
        progress::say(out, &self.pace.progress())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loading(directory: &Path) -> FileLoad {
        FileLoad {
            directory: directory.to_str().expect("text").into(),
            files: 2,
            bytes: 3 * (CHUNK_BYTES as u64) + 4096,
            seed: 9,
        }
    }

    #[test]
    fn a_block_says_where_it_belongs_and_every_other_is_found_out() {
        let mut block = vec![0; 4096];
        fill(&mut block, 3, 8192, 1);
        assert_eq!(mistaken(&block, 3, 8192), None);
        assert_eq!(
            mistaken(&block[512..], 3, 8192 + 512),
            None,
            "any unit can be asked for"
        );
        let other = mistaken(&block, 3, 4096).expect("another offset");
        assert!(other.contains("byte 8192 of job.3"), "{other}");
        let other = mistaken(&block, 2, 8192).expect("another file");
        assert!(other.contains("job.3"), "{other}");
        assert!(
            mistaken(&vec![0; 512], 0, 0)
                .expect("a hole")
                .contains("no stamp")
        );
    }

    #[test]
    fn files_hold_what_fill_says_and_the_hash_follows_the_seed() {
        let directory = tempfile::tempdir().expect("a directory");
        let parameters = loading(directory.path());
        let loaded = load(&parameters, &mut std::io::sink()).expect("written");
        assert_eq!(loaded.rows["bytes"], 2 * parameters.bytes);
        let held = std::fs::read(path(directory.path(), 1)).expect("there");
        let mut expected = vec![0; held.len()];
        fill(&mut expected, 1, 0, 9);
        assert!(held == expected, "chunk by chunk as in one go");
        let again = load(&parameters, &mut std::io::sink()).expect("written again");
        assert_eq!(again, loaded);
        let other = load(
            &FileLoad {
                seed: 10,
                ..parameters
            },
            &mut std::io::sink(),
        )
        .expect("written");
        assert_ne!(other.content_sha256, loaded.content_sha256);
    }

    #[test]
    fn a_length_that_is_no_whole_page_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let parameters = FileLoad {
            bytes: 4097,
            ..loading(directory.path())
        };
        let error = load(&parameters, &mut std::io::sink()).expect_err("refused");
        assert!(error.to_string().starts_with("bytes: "), "{error}");
    }
}
