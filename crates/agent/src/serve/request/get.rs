//! `get`: a file sent in chunks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use fairtrial_protocol::CHUNK_BYTES;
use fairtrial_protocol::event::{Event, File as FileEvent};
use fairtrial_protocol::request::Get;

use crate::serve::failure::Failure;
use crate::serve::frame;
use crate::serve::request::absolute;
use crate::serve::wires::Wires;

/// Files whose reported size is at most this are read before their size is told: kernel interfaces report 0 or a page.
const READ_FIRST_BYTES: u64 = 64 * 1024;

/// The most that a file of no reported size may hold (`/proc/kallsyms` is the largest in sight).
const UNSIZED_BYTES: u64 = 64 << 20;

/// Answers `get`.
pub fn answer(get: &Get, wires: &Wires) -> Result<(), Failure> {
    let path = absolute(&get.path)?;
    let metadata = fs::metadata(&path).map_err(|cause| Failure::system("read", &path, cause))?;
    if !metadata.is_file() {
        // Opening a pipe would wait for its writer, a terminal for its user.
        let path = path.display();
        return Err(Failure::Refused(format!("{path} is not a regular file")));
    }
    send(wires, get.id, &path).map_err(|cause| Failure::system("read", path, cause))
}

fn send(wires: &Wires, id: u64, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() <= READ_FIRST_BYTES {
        let mut content = Vec::new();
        file.take(UNSIZED_BYTES).read_to_end(&mut content)?;
        wires.say(&Event::File(FileEvent {
            id,
            bytes: content.len() as u64,
        }));
        content
            .chunks(CHUNK_BYTES)
            .for_each(|bytes| wires.send(frame::chunk(id, bytes)));
        return Ok(());
    }
    let mut missing = metadata.len();
    wires.say(&Event::File(FileEvent { id, bytes: missing }));
    let mut buffer = vec![0; CHUNK_BYTES];
    while missing > 0 {
        let length = buffer
            .len()
            .min(usize::try_from(missing).unwrap_or(usize::MAX));
        let count = file.read(&mut buffer[..length])?;
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was sent",
            ));
        }
        wires.send(frame::chunk(id, &buffer[..count]));
        missing -= count as u64;
    }
    Ok(())
}
