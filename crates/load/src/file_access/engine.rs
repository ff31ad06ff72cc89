//! How a block reaches the process: by a call, by a mapping, or by a ring.

pub mod access;
mod mapped;
mod plain;
mod ring;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use fairtrial_protocol::file::{FileDrive, FileEngine};
use rustix::fs::Advice;

use self::access::Engine;
use self::mapped::Mapping;
use self::plain::Plain;
use self::ring::RingEngine;

/// Opens a job's file with an engine.
pub fn open(path: &Path, parameters: &FileDrive) -> io::Result<Box<dyn Engine>> {
    let mut options = OpenOptions::new();
    options.read(true).write(parameters.write_share > 0.0);
    if parameters.direct {
        options.custom_flags(libc::O_DIRECT);
    }
    let file = options.open(path)?;
    if file.metadata()?.len() < parameters.bytes {
        return Err(io::Error::other(
            "the file is shorter than what is to be accessed",
        ));
    }
    let block = parameters.block_bytes as usize;
    Ok(match parameters.engine {
        FileEngine::Pread => Box::new(Plain::new(without_readahead(file)?, block)),
        FileEngine::IoUring => Box::new(RingEngine::new(
            without_readahead(file)?,
            block,
            parameters.depth,
        )?),
        FileEngine::Mmap => Box::new(Mapping::new(&file, parameters.bytes, block)?),
    })
}

/// Blocks are chosen one by one: what the kernel would read around one is no access.
fn without_readahead(file: File) -> io::Result<File> {
    rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::file::FileDistribution;

    use super::super::content;
    use super::access::Access;
    use super::*;

    const BYTES: u64 = 64 * 4096;

    fn parameters(engine: FileEngine, depth: u32, direct: bool) -> FileDrive {
        FileDrive {
            directory: String::new(),
            jobs: 1,
            bytes: BYTES,
            block_bytes: 4096,
            engine,
            direct,
            depth,
            distribution: FileDistribution::Random {},
            write_share: 0.5,
            accesses: Some(1),
            duration_s: None,
            warm_up_accesses: 0,
            seed: 1,
            interval_ms: 100,
            output_directory: String::new(),
        }
    }

    fn file() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let mut held = vec![0; usize::try_from(BYTES).expect("small")];
        content::fill(&mut held, 0, 0, 7);
        std::fs::write(file.path(), held).expect("written");
        file
    }

    #[test]
    fn every_engine_reads_what_is_there_and_writes_what_it_is_given() {
        for (engine, depth, direct) in [
            (FileEngine::Pread, 1, false),
            (FileEngine::Pread, 1, true),
            (FileEngine::Mmap, 1, false),
            (FileEngine::IoUring, 4, false),
            (FileEngine::IoUring, 4, true),
        ] {
            let file = file();
            let mut engine = match open(file.path(), &parameters(engine, depth, direct)) {
                Err(error) if matches!(engine, FileEngine::IoUring) => {
                    eprintln!("no io_uring here: {error}");
                    continue;
                }
                opened => opened.expect("opened"),
            };
            for offset in [0, 4096 * 63, 4096 * 5] {
                engine
                    .begin(
                        0,
                        Access {
                            offset,
                            writes: false,
                        },
                    )
                    .expect("begun");
                let slot = engine.end().expect("read");
                assert_eq!(content::mistaken(engine.buffer(slot), 0, offset), None);
            }
            content::fill(engine.buffer(0), 9, 8192, 7);
            engine
                .begin(
                    0,
                    Access {
                        offset: 8192,
                        writes: true,
                    },
                )
                .expect("begun");
            engine.end().expect("written");
            drop(engine);
            let held = std::fs::read(file.path()).expect("there");
            assert_eq!(content::mistaken(&held[8192..], 9, 8192), None);
            assert_eq!(
                content::mistaken(&held[8192 + 4096..], 0, 8192 + 4096),
                None
            );
        }
    }

    #[test]
    fn several_accesses_are_under_way_in_a_ring() {
        let file = file();
        let Ok(mut engine) = open(file.path(), &parameters(FileEngine::IoUring, 4, false)) else {
            eprintln!("no io_uring here");
            return;
        };
        for slot in 0..4 {
            let offset = 4096 * slot as u64;
            engine
                .begin(
                    slot,
                    Access {
                        offset,
                        writes: false,
                    },
                )
                .expect("begun");
        }
        let mut ended: Vec<_> = (0..4).map(|_| engine.end().expect("read")).collect();
        for slot in &ended {
            assert_eq!(
                content::mistaken(engine.buffer(*slot), 0, 4096 * *slot as u64),
                None
            );
        }
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3]);
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = open(file.path(), &parameters(FileEngine::Pread, 1, false))
            .err()
            .expect("refused");
        assert!(error.to_string().contains("shorter"), "{error}");
    }
}
