//! `hello`: versions compared, the lock taken, what a dead session left cleaned up.

use std::fs::File;
use std::io::{self, Read as _};

use fairtrial_protocol::VERSION;
use fairtrial_protocol::clock::Reading;
use fairtrial_protocol::event::{Event, Leftovers, Welcome};
use fairtrial_protocol::request::Hello;
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use crate::serve::failure::Failure;
use crate::serve::lock::{Holder, Lock, PLACE_LOCK};
use crate::serve::machine::Machine;
use crate::serve::processes::{descendants, user};
use crate::serve::session::{Held, Session};
use crate::serve::undo::Applied;

/// Hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Answers `hello`.
pub fn apply(session: &mut Session, hello: &Hello) -> Result<(), Failure> {
    if session.greeted {
        return Err(Failure::Refused("a stream has one `hello`".to_owned()));
    }
    if hello.version != VERSION {
        return Err(Failure::Version {
            theirs: hello.version.clone(),
        });
    }
    let leftovers = if hello.lock {
        take_place(session, hello)?
    } else {
        Leftovers::default()
    };
    session.greeted = true;
    session.wires.say(&Event::Hello(Welcome {
        id: hello.id,
        version: VERSION.to_owned(),
        agent_sha256: own_hash()
            .map_err(|cause| Failure::system("read", "/proc/self/exe", cause))?,
        clock: Reading::now(),
        state_directory: session.state_directory.display().to_string(),
        user: user::name_of(geteuid().as_raw()),
        leftovers,
    }));
    Ok(())
}

fn take_place(session: &mut Session, hello: &Hello) -> Result<Leftovers, Failure> {
    let holder = Holder {
        name: hello.holder.clone(),
        session: session.processes.session().to_owned(),
        ending: false,
        state_directory: session.state_directory.clone(),
    };
    let limits = session.wires.limits;
    let machine = Machine::new(&session.machine_directory, holder.clone(), limits);
    let path = session.state_directory.join(PLACE_LOCK);
    let (lock, dead) = Lock::take(&path, holder, limits, |_| Ok(()))?;
    let killed = dead.map_or(0, |dead| {
        descendants::kill_marked(&dead.session, limits.hang)
    });
    let (applied, undone) = Applied::open(&session.state_directory, machine, &session.processes)?;
    session.held = Some(Held { lock, applied });
    Ok(Leftovers {
        undone: undone.steps,
        killed,
        failed: undone.failed,
    })
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
