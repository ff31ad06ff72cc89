//! One file's content: shared with the original where the file system can, else copied without its holes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, SeekFrom, copy_file_range, ioctl_ficlone, openat, seek};
use rustix::io::Errno;

use crate::error::StateError;

/// One call of `copy_file_range` copies at most this much, so that an error of the disk is met early.
const RANGE_BYTES: u64 = 64 * 1024 * 1024;

/// Buffer for kernels and file systems without `copy_file_range`.
const BUFFER_BYTES: u64 = 1024 * 1024;

/// Until its owner and permissions are set.
const UNFINISHED: u32 = 0o600;

/// The directory that is copied. Its owner, the server's user, may put a link in the place of anything in it at any
/// time, and root may read what that names.
pub struct SourceTree {
    path: PathBuf,
    directory: File,
}

impl SourceTree {
    /// Opens the directory.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let directory = File::open(path).map_err(StateError::read(path))?;
        let path = path.to_owned();
        Ok(Self { path, directory })
    }

    /// Opens a file in it; one that became a link or a pipe, or lies behind a link, is refused.
    fn file(&self, name: &Path) -> Result<File, StateError> {
        let path = self.path.join(name);
        let file = self.opened(name).map_err(StateError::read(&path))?;
        let metadata = file.metadata().map_err(StateError::read(&path))?;
        if metadata.is_file() {
            return Ok(file);
        }
        Err(StateError::read(&path)(io::ErrorKind::InvalidInput.into()))
    }

    fn opened(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut steps = name.iter().peekable();
        let mut reached: Option<OwnedFd> = None;
        while let Some(step) = steps.next() {
            let flags = match steps.peek() {
                Some(_) => flags | OFlags::PATH | OFlags::DIRECTORY,
                None => flags | OFlags::RDONLY | OFlags::NONBLOCK,
            };
            reached = Some(match &reached {
                Some(directory) => openat(directory, step, flags, Mode::empty())?,
                None => openat(&self.directory, step, flags, Mode::empty())?,
            });
        }
        let file = reached.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(file.into())
    }
}

/// Copies files and remembers what this file system can do.
#[derive(Default)]
pub struct Copier {
    shared: AtomicBool,
    cannot_share: AtomicBool,
}

/// What was copied.
pub struct CopySize {
    /// Bytes that are not holes.
    pub data_bytes: u64,
}

/// A part of a file that is not a hole.
struct Segment {
    start: u64,
    end: u64,
}

impl Copier {
    /// Copies one file of a tree; the target must not exist.
    pub fn copy(&self, tree: &SourceTree, name: &Path, to: &Path) -> Result<CopySize, StateError> {
        let from = &tree.path.join(name);
        let source = tree.file(name)?;
        let bytes = source.metadata().map_err(StateError::read(from))?.len();
        let target = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(UNFINISHED)
            .open(to);
        let target = target.map_err(StateError::write(to))?;
        let segments = segments(&source, bytes).map_err(StateError::read(from))?;
        if !self
            .share(&source, &target)
            .map_err(StateError::write(to))?
        {
            target.set_len(bytes).map_err(StateError::write(to))?;
            for segment in &segments {
                copy_segment(&source, &target, segment).map_err(StateError::write(to))?;
            }
        }
        Ok(CopySize {
            data_bytes: segments
                .iter()
                .map(|segment| segment.end - segment.start)
                .sum(),
        })
    }

    /// How files were copied: `reflink` only if every one was.
    pub fn name(&self) -> &'static str {
        if self.shared.load(Ordering::Relaxed) && !self.cannot_share.load(Ordering::Relaxed) {
            "reflink"
        } else {
            "sparse_copy"
        }
    }

    /// Lets the target share the source's blocks; false where that is not possible.
    fn share(&self, source: &File, target: &File) -> io::Result<bool> {
        if self.cannot_share.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match ioctl_ficlone(target, source) {
            Ok(()) => {
                self.shared.store(true, Ordering::Relaxed);
                Ok(true)
            }
            // ioctl_ficlonerange(2): a file system that cannot, another file system, or files it will not share.
            Err(
                Errno::OPNOTSUPP
                | Errno::XDEV
                | Errno::INVAL
                | Errno::NOTTY
                | Errno::NOSYS
                | Errno::PERM,
            ) => {
                self.cannot_share.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The parts of a file that are not holes, ascending. A file system that knows no holes says all is data.
fn segments(file: &File, bytes: u64) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut position = 0;
    while position < bytes {
        let start = match seek(file, SeekFrom::Data(position)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break, // only a hole is left
            Err(Errno::INVAL) => position,
            Err(error) => return Err(error.into()),
        };
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end.min(bytes),
            Err(Errno::INVAL) => bytes,
            Err(error) => return Err(error.into()),
        };
        segments.push(Segment { start, end });
        position = end;
    }
    Ok(segments)
}

fn copy_segment(source: &File, target: &File, segment: &Segment) -> io::Result<()> {
    let (mut from, mut to) = (segment.start, segment.start);
    while from < segment.end {
        let length = usize::try_from((segment.end - from).min(RANGE_BYTES)).unwrap_or(usize::MAX);
        match copy_file_range(source, Some(&mut from), target, Some(&mut to), length) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the source became shorter",
                ));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // copy_file_range(2): across file systems before Linux 5.3, or where a file system refuses.
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {
                return copy_by_hand(
                    source,
                    target,
                    &Segment {
                        start: from,
                        end: segment.end,
                    },
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn copy_by_hand(source: &File, target: &File, segment: &Segment) -> io::Result<()> {
    let length =
        usize::try_from((segment.end - segment.start).min(BUFFER_BYTES)).unwrap_or(usize::MAX);
    let mut buffer = vec![0; length];
    let mut position = segment.start;
    while position < segment.end {
        let length = usize::try_from(segment.end - position)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        source.read_exact_at(&mut buffer[..length], position)?;
        target.write_all_at(&buffer[..length], position)?;
        position += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{FileExt as _, symlink};

    use super::{BUFFER_BYTES, Copier, Segment, SourceTree, copy_by_hand, segments};

    #[test]
    fn a_file_that_became_a_link_or_lies_behind_one_is_not_read_through_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["data/tables", "secrets"] {
            fs::create_dir_all(path(name)).expect("made");
        }
        fs::write(path("secrets/table"), "of root's").expect("written");
        fs::write(path("data/tables/own"), "of the server's").expect("written");
        for (target, name) in [("secrets/table", "link"), ("secrets", "became")] {
            symlink(path(target), path("data").join(name)).expect("a link");
        }
        let tree = SourceTree::open(&path("data")).expect("opened");
        let copied = |name: &str| Copier::default().copy(&tree, name.as_ref(), &path("copy"));
        for name in ["link", "became/table", "tables"] {
            assert!(copied(name).is_err(), "{name}");
            assert!(!path("copy").exists(), "{name}");
        }
        assert!(copied("tables/own").is_ok());
    }

    #[test]
    fn without_help_from_the_kernel_only_the_segment_is_copied() {
        let directory = tempfile::tempdir().expect("a directory");
        let content: Vec<u8> = (0..=250_u8)
            .cycle()
            .take(3 * usize::try_from(BUFFER_BYTES).expect("small"))
            .collect();
        fs::write(directory.path().join("from"), &content).expect("written");
        let source = File::open(directory.path().join("from")).expect("opened");
        let target = File::create(directory.path().join("to")).expect("created");
        let (start, end) = (1000, content.len() - 7);
        copy_by_hand(
            &source,
            &target,
            &Segment {
                start: start as u64,
                end: end as u64,
            },
        )
        .expect("copied");
        let copied = fs::read(directory.path().join("to")).expect("read");
        assert_eq!(copied.len(), end);
        assert!(copied[..start].iter().all(|byte| *byte == 0));
        assert_eq!(copied[start..], content[start..end]);
    }

    #[test]
    fn segments_cover_all_data_and_end_with_the_file() {
        const HOLE_BYTES: u64 = 8 << 20;
        let directory = tempfile::tempdir().expect("a directory");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(directory.path().join("file"));
        let file = file.expect("created");
        file.write_all_at(b"start", 0).expect("written");
        file.write_all_at(b"middle", HOLE_BYTES).expect("written");
        file.set_len(3 * HOLE_BYTES).expect("longer");
        let data = segments(&file, 3 * HOLE_BYTES).expect("found");
        assert!(data.iter().any(|segment| segment.start == 0));
        assert!(
            data.iter()
                .any(|segment| segment.start <= HOLE_BYTES && segment.end >= HOLE_BYTES + 6)
        );
        assert!(data.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(segments(&file, 0).expect("found").is_empty());
    }
}
