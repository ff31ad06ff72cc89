//! `hello`: versions compared, and what the agent says of itself.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use fairtrial_protocol::VERSION;
use fairtrial_protocol::clock::Reading;
use fairtrial_protocol::event::{Event, Leftovers, Welcome};
use fairtrial_protocol::request::Hello;
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use crate::serve::failure::Failure;
use crate::serve::processes::user;

/// Hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Refuses another version.
pub fn check(hello: &Hello) -> Result<(), Failure> {
    if hello.version == VERSION {
        return Ok(());
    }
    Err(Failure::Version {
        theirs: hello.version.clone(),
    })
}

/// The answer to `hello`.
pub fn welcome(id: u64, state_directory: &Path, leftovers: Leftovers) -> Result<Event, Failure> {
    Ok(Event::Hello(Welcome {
        id,
        version: VERSION.to_owned(),
        agent_sha256: own_hash()
            .map_err(|cause| Failure::system("read", "/proc/self/exe", cause))?,
        clock: Reading::now(),
        state_directory: state_directory.display().to_string(),
        user: user::name_of(geteuid().as_raw()),
        leftovers,
    }))
}

fn own_hash() -> io::Result<String> {
    let mut file = File::open("/proc/self/exe")?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; HASHED_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('?');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
