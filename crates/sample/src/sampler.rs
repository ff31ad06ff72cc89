//! All sources of one run, each with its file.

use std::mem;
use std::path::Path;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::sample::Sample;

use crate::error::SampleError;
use crate::server::ServerSampler;
use crate::source::counters::Counters;
use crate::source::{self, OpenSource};
use crate::table::{TelemetryTable, batch_rows};

/// All sources of one run.
pub struct Sampler {
    followed: Vec<SampledSource>,
    server: Option<ServerSampler>,
    warnings: Vec<String>,
}

struct SampledSource {
    name: String,
    counters: Box<dyn Counters>,
    row: Vec<Option<u64>>,
    table: TelemetryTable,
}

impl Sampler {
    /// Opens every source below `root`, the place's `/proc`, and creates its file. What is missing is a warning.
    pub fn open(root: &Path, parameters: &Sample) -> Result<Self, SampleError> {
        let mut sampler = Self {
            followed: Vec::new(),
            server: None,
            warnings: Vec::new(),
        };
        let directory = Path::new(&parameters.output_directory);
        let rows = batch_rows(parameters.interval_ms);
        let sources = parameters
            .sources
            .iter()
            .map(|kind| (source::name(*kind).to_owned(), source::open(root, *kind)));
        let processes = parameters.processes.iter().map(|(name, process)| {
            (
                format!("process-{name}"),
                source::open_process(root, *process),
            )
        });
        let trees = parameters
            .process_trees
            .iter()
            .map(|(name, process)| (format!("process-{name}"), source::open_tree(root, *process)));
        let mut names = parameters
            .processes
            .keys()
            .chain(parameters.process_trees.keys());
        if let Some(name) = names.find(|name| !is_plain(name)) {
            return Err(SampleError::ProcessName { name: name.clone() });
        }
        for (name, opened) in sources.chain(processes).chain(trees) {
            match opened {
                Ok(opened) => sampler.follow(directory, name, opened, rows)?,
                Err(error) => sampler
                    .warnings
                    .push(format!("{name} is not sampled: {error}")),
            }
        }
        if let Some(server) = &parameters.server {
            sampler.server = Some(ServerSampler::start(server, directory)?);
        }
        Ok(sampler)
    }

    fn follow(
        &mut self,
        directory: &Path,
        name: String,
        opened: OpenSource,
        rows: usize,
    ) -> Result<(), SampleError> {
        let (counters, missing) = opened;
        self.warnings.extend(missing);
        let table = TelemetryTable::create(
            &directory.join(format!("telemetry-{name}.arrows")),
            counters.columns(),
            rows,
        )?;
        let row = vec![None; counters.columns().len()];
        self.followed.push(SampledSource {
            name,
            counters,
            row,
            table,
        });
        Ok(())
    }

    /// Reads every source of the place once; the server has ticks of its own. One that can no longer be read is a warning, and its file ends.
    pub fn tick(&mut self) -> Result<(), SampleError> {
        let mut index = 0;
        while let Some(followed) = self.followed.get_mut(index) {
            followed.row.fill(None);
            let time_ns = monotonic_ns();
            match followed.counters.read(&mut followed.row) {
                Ok(()) => {
                    followed.table.append(time_ns, &followed.row)?;
                    index += 1;
                }
                Err(error) => {
                    followed.table.finish()?;
                    self.warnings
                        .push(format!("{} ended: {error}", followed.name));
                    self.followed.remove(index);
                }
            }
        }
        Ok(())
    }

    /// Writes what was gathered and the end of every stream; returns how many samples of the server are missing, and
    /// what was said since the last time.
    pub fn finish(mut self) -> Result<(u64, Vec<String>), SampleError> {
        self.followed
            .iter_mut()
            .try_for_each(|followed| followed.table.finish())?;
        let (missed, said) = self.server.map_or(Ok((0, vec![])), ServerSampler::finish)?;
        self.warnings.extend(said);
        Ok((missed, self.warnings))
    }

    /// What is being sampled: sources, processes as `process-<name>`, and `server` once it has answered.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let answering = self.server.as_ref().is_some_and(ServerSampler::answers);
        self.followed
            .iter()
            .map(|followed| followed.name.as_str())
            .chain(answering.then_some("server"))
            .collect()
    }

    /// What was said since the last time.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = mem::take(&mut self.warnings);
        warnings.extend(
            self.server
                .iter_mut()
                .flat_map(ServerSampler::take_warnings),
        );
        warnings
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
