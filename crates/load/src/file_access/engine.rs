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
use crate::error::{LoadError, RING};

/// Opens a job's file with an engine.
pub fn open(path: &Path, parameters: &FileDrive) -> Result<Box<dyn Engine>, LoadError> {
    let failed = |source| LoadError::File {
        doing: "open",
        path: path.to_owned(),
        source,
    };
    let file = file(path, parameters).map_err(failed)?;
    let (block, depth) = (parameters.block_bytes as usize, parameters.depth);
    Ok(match parameters.engine {
        FileEngine::Pread => Box::new(Plain::new(file, block)),
        FileEngine::IoUring => {
            Box::new(RingEngine::new(file, block, depth).map_err(LoadError::start(RING))?)
        }
        FileEngine::Mmap => Box::new(Mapping::new(&file, parameters.bytes, block).map_err(failed)?),
    })
}

fn file(path: &Path, parameters: &FileDrive) -> io::Result<File> {
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
    if parameters.engine != FileEngine::Mmap {
        // Blocks are chosen one by one: what the kernel would read around one is no access. A mapping has its own advice.
        rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::file::FileDistribution;

    use super::super::content;
    use super::access::Access;
    use super::*;
    use crate::error::in_full;

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
    fn a_ring_that_the_kernel_refuses_is_not_blamed_on_the_file() {
        let file = file();
        let refused = open(
            file.path(),
            &parameters(FileEngine::IoUring, 1 << 20, false),
        )
        .err()
        .expect("more entries than a ring has, if there is one");
        assert!(
            in_full(&refused).starts_with("cannot start io_uring: "),
            "{refused}"
        );
        assert!(refused.hint().contains("another engine"), "{refused}");
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = open(file.path(), &parameters(FileEngine::Pread, 1, false))
            .err()
            .expect("refused");
        assert!(in_full(&error).contains("shorter"), "{error}");
    }
}
