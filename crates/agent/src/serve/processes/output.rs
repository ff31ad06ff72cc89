//! Where a process's output goes, and following it line by line where it goes to the control plane.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use fairtrial_protocol::event::{Event, Exited, OutputLine, Stream};
use fairtrial_protocol::request::Output;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::serve::failure::Failure;
use crate::serve::processes::reaper::{OnEnd, ProcessEnd};
use crate::serve::wires::Wires;

/// Longer lines are cut: one runaway line must not fill the stream.
const LINE_BYTES: usize = 64 * 1024;

/// A child's end of an output, and the end to follow, if it is followed.
pub struct OutputEnds {
    /// For the child.
    pub child: Stdio,
    /// For the follower.
    pub follow: Option<OwnedFd>,
}

/// Opens an output.
pub fn open(output: &Output) -> Result<OutputEnds, Failure> {
    match output {
        Output::Null => Ok(OutputEnds {
            child: Stdio::null(),
            follow: None,
        }),
        Output::File { path } => {
            let file = File::options().append(true).create(true).open(path);
            let file = file.map_err(|cause| Failure::system("open", path, cause))?;
            Ok(OutputEnds {
                child: file.into(),
                follow: None,
            })
        }
        Output::Stream => {
            let ends = pipe_with(PipeFlags::CLOEXEC);
            let (read, write) = ends.map_err(|cause| Failure::system("open", "a pipe", cause))?;
            Ok(OutputEnds {
                child: write.into(),
                follow: Some(read),
            })
        }
    }
}

/// Says what a process writes and, after all of it, that it ended.
pub struct Follower {
    process: u64,
    wires: Arc<Wires>,
    followed: Vec<FollowedPipe>,
}

struct FollowedPipe {
    stream: Stream,
    pipe: File,
    lines: Lines,
}

impl Follower {
    /// Of a process that is about to start.
    pub fn new(
        process: u64,
        wires: Arc<Wires>,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
    ) -> Self {
        let ends = [(Stream::Stdout, stdout), (Stream::Stderr, stderr)];
        let followed = ends
            .into_iter()
            .filter_map(|(stream, end)| {
                Some(FollowedPipe {
                    stream,
                    pipe: end?.into(),
                    lines: Lines::default(),
                })
            })
            .collect();
        Self {
            process,
            wires,
            followed,
        }
    }

    /// Follows from now on. The returned call tells the end of the process.
    pub fn start(mut self) -> OnEnd {
        if self.followed.is_empty() {
            return Box::new(move |end| self.say_exited(&end));
        }
        let Ok((ended, tell)) = pipe_with(PipeFlags::CLOEXEC) else {
            return Box::new(move |end| self.say_exited(&end)); // out of descriptors: the end matters more than lines
        };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || self.follow(&ended, &receiver));
        Box::new(move |end| {
            let _ = sender.send(end);
            drop(tell);
        })
    }

    fn follow(&mut self, ended: &OwnedFd, receiver: &mpsc::Receiver<ProcessEnd>) {
        let mut running = true;
        while running || !self.followed.is_empty() {
            let mut watched: Vec<_> = self
                .followed
                .iter()
                .map(|followed| PollFd::new(&followed.pipe, PollFlags::IN))
                .collect();
            if running {
                watched.push(PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN));
            }
            if poll(&mut watched, None).is_err() {
                continue; // interrupted
            }
            let ready: Vec<bool> = watched
                .iter()
                .map(|descriptor| !descriptor.revents().is_empty())
                .collect();
            if running && ready[self.followed.len()] {
                running = false;
                self.read_rest();
                if let Ok(end) = receiver.recv() {
                    self.say_exited(&end);
                }
            } else {
                self.read(&ready);
            }
        }
    }

    /// Reads what the process has written before it ended, and no more than the pipes hold now: others that have them
    /// may write for ever.
    fn read_rest(&mut self) {
        for FollowedPipe { pipe, lines, .. } in &mut self.followed {
            let held = ioctl_fionread(&*pipe).unwrap_or_default();
            let mut rest = Vec::new();
            let _ = pipe.take(held).read_to_end(&mut rest); // an error is met again, in its turn
            lines.take(&rest);
            lines.end();
        }
        self.say_lines();
    }

    fn read(&mut self, ready: &[bool]) {
        let mut buffer = vec![0; LINE_BYTES];
        self.followed
            .iter_mut()
            .zip(ready)
            .filter(|(_, ready)| **ready)
            .for_each(|(followed, _)| match followed.pipe.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => followed.lines.close(),
                Ok(count) => followed.lines.take(&buffer[..count]),
            });
        self.say_lines();
        self.followed.retain(|followed| !followed.lines.closed);
    }

    fn say_lines(&mut self) {
        for followed in &mut self.followed {
            for line in followed.lines.complete.drain(..) {
                let line = OutputLine {
                    process: self.process,
                    stream: followed.stream,
                    line,
                };
                self.wires.say(&Event::Output(line));
            }
        }
    }

    fn say_exited(&self, end: &ProcessEnd) {
        let status = ExitStatus::from_raw(end.status);
        self.wires.say(&Event::Exited(Exited {
            process: self.process,
            code: status.code(),
            signal: status.signal(),
            time_ns: end.time_ns,
            usage: end.usage,
        }));
    }
}

/// Bytes to lines.
#[derive(Default)]
struct Lines {
    partial: Vec<u8>,
    complete: Vec<String>,
    closed: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LINE_BYTES - self.partial.len();
            self.partial
                .extend_from_slice(&piece[..piece.len().min(room)]);
            if pieces.peek().is_some() {
                self.push();
            }
        }
    }

    /// The last line may lack its newline.
    fn end(&mut self) {
        if !self.partial.is_empty() {
            self.push();
        }
    }

    fn close(&mut self) {
        self.end();
        self.closed = true;
    }

    fn push(&mut self) {
        self.complete
            .push(String::from_utf8_lossy(&self.partial).into_owned());
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_are_cut() {
        for width in 1..12 {
            let mut lines = Lines::default();
            b"one\n\nthree\nlast"
                .chunks(width)
                .for_each(|bytes| lines.take(bytes));
            lines.close();
            assert_eq!(
                lines.complete,
                ["one", "", "three", "last"],
                "in pieces of {width}"
            );
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let mut lines = Lines::default();
        lines.take(&vec![b'x'; LINE_BYTES]);
        lines.take(b"lost\nnext\n");
        assert_eq!(
            lines.complete.iter().map(String::len).collect::<Vec<_>>(),
            [LINE_BYTES, 4]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut lines = Lines::default();
        lines.take(b"caf\xe9\n");
        assert_eq!(lines.complete, ["caf\u{fffd}"]);
    }
}
