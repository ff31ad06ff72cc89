//! A `/proc` of the test's own, and a directory for what is sampled from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use fairtrial_protocol::sample::{Sample, Source};
use fairtrial_sample::Sampler;
use tempfile::TempDir;

pub struct FakeProc {
    pub root: TempDir,
    pub output: TempDir,
}

impl FakeProc {
    pub fn empty() -> Self {
        Self {
            root: tempfile::tempdir().expect("a directory"),
            output: tempfile::tempdir().expect("a directory"),
        }
    }

    pub fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub fn sample(
        &self,
        sources: &[Source],
        processes: &[(&str, i32)],
        interval_ms: u32,
    ) -> Sample {
        Sample {
            interval_ms,
            sources: sources.to_vec(),
            processes: processes
                .iter()
                .map(|(name, process)| ((*name).to_owned(), *process))
                .collect(),
            process_trees: BTreeMap::new(),
            server: None,
            exporters: vec![],
            commands: vec![],
            shown: vec![],
            output_directory: self.output.path().to_str().expect("plain").to_owned(),
        }
    }

    pub fn open(&self, sources: &[Source], processes: &[(&str, i32)]) -> Sampler {
        Sampler::open(self.root.path(), &self.sample(sources, processes, 10)).expect("opened")
    }

    pub fn file(&self, source: &str) -> PathBuf {
        self.output
            .path()
            .join(format!("telemetry-{source}.arrows"))
    }
}
