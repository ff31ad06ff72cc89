//! All sources of one run, each with its file.

use std::mem;
use std::path::Path;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::sample::Sample;

use crate::error::SampleError;
use crate::series::SeriesSampler;
use crate::server::ServerSampler;
use crate::source::counters::Counters;
use crate::source::{self, OpenSource};
use crate::table::{ReadingTime, TelemetryTable, batch_rows};

/// All sources of one run.
pub struct Sampler {
    followed: Vec<SampledSource>,
    server: Option<ServerSampler>,
    series: Vec<SeriesSampler>,
    warnings: Vec<String>,
}

/// How sampling ended.
#[derive(Debug)]
pub struct SamplerEnd {
    /// Samples of the server that are missing.
    pub missed_server: u64,
    /// Readings of endpoints and commands that are missing.
    pub missed_series: u64,
    /// What was said since the last time.
    pub warnings: Vec<String>,
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
            series: Vec::new(),
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
            .chain(parameters.process_trees.keys())
            .chain(parameters.exporters.iter().map(|each| &each.name))
            .chain(parameters.commands.iter().map(|each| &each.name));
        if let Some(name) = names.find(|name| !is_plain(name)) {
            return Err(SampleError::ProcessName { name: name.clone() });
        }
        for (name, opened) in sources.chain(processes).chain(trees) {
            match opened {
                Ok(opened) => sampler.follow(parameters, name, opened, rows)?,
                Err(error) => sampler
                    .warnings
                    .push(format!("{name} is not sampled: {error}")),
            }
        }
        if let Some(server) = &parameters.server {
            sampler.server = Some(ServerSampler::start(server, directory, &parameters.shown)?);
        }
        for exporter in &parameters.exporters {
            sampler
                .series
                .push(SeriesSampler::exporter(exporter, directory)?);
        }
        for command in &parameters.commands {
            sampler
                .series
                .push(SeriesSampler::command(command, directory)?);
        }
        Ok(sampler)
    }

    fn follow(
        &mut self,
        parameters: &Sample,
        name: String,
        opened: OpenSource,
        rows: usize,
    ) -> Result<(), SampleError> {
        let (counters, missing) = opened;
        self.warnings.extend(missing);
        let file = format!("telemetry-{name}.arrows");
        let path = Path::new(&parameters.output_directory).join(file);
        let columns = counters.columns();
        let table = TelemetryTable::create(&path, columns, rows)?.showing(
            &name,
            columns,
            &parameters.shown,
        );
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
            let began_ns = monotonic_ns();
            match followed.counters.read(&mut followed.row) {
                Ok(()) => {
                    let ended_ns = monotonic_ns();
                    let at = ReadingTime { began_ns, ended_ns };
                    followed.table.append(at, &followed.row)?;
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

    /// Writes what was gathered and the end of every stream.
    pub fn finish(mut self) -> Result<SamplerEnd, SampleError> {
        self.series.iter_mut().for_each(SeriesSampler::stop); // those that hang do so at the same time
        self.followed
            .iter_mut()
            .try_for_each(|followed| followed.table.finish())?;
        let (missed_server, said) = self.server.map_or(Ok((0, vec![])), ServerSampler::finish)?;
        self.warnings.extend(said);
        let mut missed_series = 0;
        for series in self.series {
            let (missed, said) = series.finish()?;
            missed_series += missed;
            self.warnings.extend(said);
        }
        Ok(SamplerEnd {
            missed_server,
            missed_series,
            warnings: self.warnings,
        })
    }

    /// What is being sampled: sources, processes as `process-<name>`, and `server` once it has answered.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let answering = self.server.as_ref().is_some_and(ServerSampler::answers);
        self.followed
            .iter()
            .map(|followed| followed.name.as_str())
            .chain(answering.then_some("server"))
            .chain(self.series.iter().map(SeriesSampler::name))
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
        let said = self.series.iter().flat_map(SeriesSampler::take_warnings);
        warnings.extend(said);
        warnings
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
