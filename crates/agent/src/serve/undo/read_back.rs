//! Reading what the place says of itself.

use std::fs;

use fairtrial_protocol::step::Read;

use crate::serve::failure::Failure;
use crate::serve::processes::Processes;

/// Reads, raw.
pub fn read(source: &Read, processes: &Processes, finishing: bool) -> Result<String, Failure> {
    match source {
        Read::File { path } => {
            let bytes = fs::read(path).map_err(|cause| Failure::system("read", path, cause))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        Read::Output { argv } => {
            let ran = processes.run(argv, finishing)?;
            if ran.status.success() {
                return Ok(ran.stdout);
            }
            Err(Failure::Program {
                program: argv.join(" "),
                outcome: format!("ended with {}", ran.status),
                said: ran.stderr.trim().to_owned(),
            })
        }
    }
}
