//! One file of `/proc`, kept open and read again and again into one buffer.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::pread;

/// First size of a buffer: most files of `/proc` fit; it doubles for those that do not.
const BUFFER_BYTES: usize = 8 * 1024;

/// A buffer never grows beyond this: `/proc/stat` of the largest machines has some hundred KiB.
const BUFFER_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// One open file and its buffer.
pub struct ProcFile {
    file: File,
    answers_at_once: bool,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens a file that the kernel gives line by line, a page or so at a time.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            answers_at_once: false,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Opens a file that the kernel gives in one answer if the buffer holds it (`single_open` in its sources), which
    /// saves asking again.
    pub fn open_single(path: &Path) -> io::Result<Self> {
        Ok(Self {
            answers_at_once: true,
            ..Self::open(path)?
        })
    }

    /// The whole content as of now.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let mut length = 0;
        loop {
            match pread(&self.file, &mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(&self.buffer[..length]),
                Ok(more) if self.answers_at_once && length + more < self.buffer.len() => {
                    return Ok(&self.buffer[..length + more]);
                }
                Ok(more) => length += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if length == self.buffer.len() {
                if length >= BUFFER_LIMIT_BYTES {
                    return Err(io::Error::new(
                        io::ErrorKind::FileTooLarge,
                        "larger than any file of /proc should be",
                    ));
                }
                self.buffer.resize(2 * length, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::{BUFFER_BYTES, ProcFile};

    #[test]
    fn reads_again_what_the_file_says_by_then() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stat");
        fs::write(&path, "first and long").expect("written");
        let mut file = ProcFile::open(&path).expect("opened");
        assert_eq!(file.read().expect("read"), b"first and long");
        fs::write(&path, "second").expect("written");
        assert_eq!(file.read().expect("read"), b"second");
    }

    #[test]
    fn grows_for_a_file_larger_than_its_buffer() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stat");
        let content: Vec<u8> = (0..=u8::MAX).cycle().take(3 * BUFFER_BYTES + 7).collect();
        fs::write(&path, &content).expect("written");
        for open in [ProcFile::open, ProcFile::open_single] {
            let mut file = open(&path).expect("opened");
            assert_eq!(file.read().expect("read"), content);
            assert_eq!(file.read().expect("read again"), content);
        }
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = ProcFile::open(&directory.path().join("none"))
            .err()
            .expect("refused");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
