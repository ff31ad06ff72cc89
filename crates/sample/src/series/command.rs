//! A command whose output gives one value.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::sample::SampledCommand;
use regex_lite::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, geteuid, kill_process_group, setpriority_process};
use serde_json::Value;

use super::reader::{SeriesReader, SeriesValue};

/// Largest output; a value stands in far less.
const OUTPUT_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 16 << 10;
/// Between two looks whether a command that has closed its output has ended.
const POLL: Duration = Duration::from_millis(1);
const ORDINARY: i32 = 0;

/// Runs one command at a time, in a process group of its own.
pub struct SampledProgram {
    parameters: SampledCommand,
    line: String,
    regex: Option<Regex>,
}

impl SampledProgram {
    /// Nothing is run yet.
    pub fn new(parameters: &SampledCommand) -> Result<Self, String> {
        let regex = parameters.regex.as_deref().map(Regex::new).transpose();
        Ok(Self {
            parameters: parameters.clone(),
            line: parameters.argv.join(" "),
            regex: regex.map_err(|error| format!("its regex is not usable: {error}"))?,
        })
    }

    fn value(&self, text: &str) -> Result<f64, String> {
        let number = if let Some(path) = &self.parameters.json_path {
            let document: Value = serde_json::from_str(text)
                .map_err(|error| format!("its output is not JSON: {error}"))?;
            let found =
                at(&document, path).ok_or_else(|| format!("its JSON has nothing at {path}"))?;
            found
                .as_str()
                .map_or_else(|| found.to_string(), str::to_owned)
        } else if let Some(regex) = &self.regex {
            let found = regex
                .captures(text)
                .ok_or("its output does not match the regex")?;
            let group = found.get(1).or_else(|| found.get(0));
            group.map_or("", |group| group.as_str()).to_owned()
        } else {
            text.to_owned()
        };
        let number = number.trim();
        number
            .parse()
            .map_err(|_| format!("{:?} is not a number", shortened(number)))
    }
}

impl SeriesReader for SampledProgram {
    type Answer = Vec<u8>;

    fn what(&self) -> &str {
        &self.line
    }

    fn begin(&self) {
        // The sampler goes before others; what it runs shall not.
        if geteuid().is_root() {
            let _ = setpriority_process(None, ORDINARY);
        }
    }

    fn ask(&mut self, limit: Duration) -> Result<Vec<u8>, String> {
        let deadline_ns = monotonic_ns() + i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
        let [program, arguments @ ..] = self.parameters.argv.as_slice() else {
            return Err("no command is named".to_owned());
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot be run: {error}"))?;
        let output = finished(&mut child, deadline_ns);
        if let Some(group) = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()) {
            let _ = kill_process_group(group, Signal::KILL); // what it left behind as well
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        match output? {
            Some(output) if status.success() => Ok(output),
            Some(_) => Err(format!("it ended with {status}")),
            None => Err(format!("it did not end within {} ms", limit.as_millis())),
        }
    }

    fn values(&self, answer: Vec<u8>) -> Result<Vec<SeriesValue>, String> {
        let text = String::from_utf8(answer).map_err(|_| "its output is not text")?;
        Ok(vec![SeriesValue {
            series: self.parameters.series.clone(),
            counter: self.parameters.counter,
            value: self.value(&text)?,
        }])
    }
}

/// The output of a command that ended in time; nothing of one that did not.
fn finished(child: &mut Child, deadline_ns: i64) -> Result<Option<Vec<u8>>, String> {
    let mut output = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        while let Some(chunk) = chunk(&mut pipe, deadline_ns)? {
            if chunk.is_empty() {
                break;
            }
            output.extend(chunk);
            if output.len() > OUTPUT_BYTES {
                return Err(format!(
                    "its output is larger than {} MiB",
                    OUTPUT_BYTES >> 20
                ));
            }
        }
    }
    while monotonic_ns() < deadline_ns {
        if child
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_some()
        {
            return Ok(Some(output));
        }
        thread::sleep(POLL);
    }
    Ok(None)
}

/// The next bytes of a pipe, none at its end; nothing if none came in time.
fn chunk(pipe: &mut ChildStdout, deadline_ns: i64) -> Result<Option<Vec<u8>>, String> {
    let left_ns = deadline_ns - monotonic_ns();
    let Ok(left) = Timespec::try_from(Duration::from_nanos(
        u64::try_from(left_ns).unwrap_or_default(),
    )) else {
        return Ok(None);
    };
    let ready = match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
        Ok(ready) => ready,
        Err(rustix::io::Errno::INTR) => return chunk(pipe, deadline_ns),
        Err(error) => return Err(error.to_string()),
    };
    if ready == 0 {
        return Ok(None);
    }
    let mut bytes = vec![0; CHUNK_BYTES];
    let length = pipe.read(&mut bytes).map_err(|error| error.to_string())?;
    bytes.truncate(length);
    Ok(Some(bytes))
}

/// What stands at `a.b[0].c`; a leading `$` may be there.
fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('$').unwrap_or(path).replace('[', ".");
    path.split('.')
        .map(|part| part.trim_end_matches(']'))
        .filter(|part| !part.is_empty())
        .try_fold(document, |here, part| match here {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        })
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairtrial_protocol::sample::SampledCommand;

    use super::{SampledProgram, SeriesReader};

    fn command(script: &str) -> SampledCommand {
        SampledCommand {
            name: "command-1".into(),
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            interval_ms: 1000,
            series: "x".into(),
            counter: false,
            json_path: None,
            regex: None,
        }
    }

    fn read(parameters: &SampledCommand) -> Result<f64, String> {
        read_within(Duration::from_mins(2), parameters)
    }

    fn read_within(limit: Duration, parameters: &SampledCommand) -> Result<f64, String> {
        let mut program = SampledProgram::new(parameters)?;
        let answer = program.ask(limit)?;
        Ok(program.values(answer)?[0].value)
    }

    #[test]
    fn a_value_is_the_output_or_stands_in_json_or_in_text() {
        assert_eq!(read(&command("echo 12.5")), Ok(12.5));
        let json = r#"echo '{"a": {"b": [1, {"c": "7"}], "d": true}}'"#;
        for path in ["a.b[1].c", "$.a.b[1].c"] {
            let mut parameters = command(json);
            parameters.json_path = Some(path.into());
            assert_eq!(read(&parameters), Ok(7.0));
        }
        for (regex, expected) in [(r"used: (\d+)", 42.0), (r"\d+", 42.0)] {
            let mut parameters = command("echo 'used: 42 kB'");
            parameters.regex = Some(regex.into());
            assert_eq!(read(&parameters), Ok(expected));
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_is_said() {
        for (script, expected) in [
            ("echo many", "\"many\" is not a number"),
            ("exit 3", "it ended with exit status: 3"),
            (
                "head -c 2000000 /dev/zero",
                "its output is larger than 1 MiB",
            ),
            (r"printf '\377'", "its output is not text"),
        ] {
            assert_eq!(read(&command(script)), Err(expected.to_owned()), "{script}");
        }
        for script in ["sleep 600 & sleep 600", "exec >&-; sleep 600"] {
            let late = read_within(Duration::from_millis(500), &command(script));
            assert_eq!(
                late,
                Err("it did not end within 500 ms".to_owned()),
                "{script}"
            );
        }
        let mut parameters = command("echo '{}'");
        parameters.json_path = Some("a".into());
        assert_eq!(
            read(&parameters),
            Err("its JSON has nothing at a".to_owned())
        );
        parameters.argv = vec!["/no/such/program".into()];
        let error = read(&parameters).expect_err("no program");
        assert!(error.starts_with("cannot be run: "), "{error}");
        parameters.json_path = None;
        parameters.regex = Some("(".into());
        let error = read(&parameters).expect_err("no regex");
        assert!(error.starts_with("its regex is not usable"), "{error}");
    }
}
