//! Endpoints and commands beside the place's own counters: what they tell, and how an endpoint may go wrong.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use fairtrial_protocol::sample::{Sample, SampledCommand, SampledExporter};
use fairtrial_sample::{SampleError, Sampler, SamplerEnd};
use tempfile::TempDir;

const INTERVAL_MS: u32 = 200;
const TEXT: &str = "# TYPE a_total counter\na_total{x=\"1\"} 5\nb 7\n";

/// Serves one answer after the other, the last for ever; returns the URL.
fn endpoint(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        let mut left = answers.into_iter().peekable();
        let mut last = Vec::new();
        for connection in listener.incoming() {
            last = left.next().unwrap_or(last);
            answer(connection.expect("a client"), &last);
        }
    });
    format!("http://{address}/metrics")
}

fn answer(mut client: TcpStream, answer: &[u8]) {
    let mut request = [0; 2048];
    let length = client.read(&mut request).unwrap_or_default();
    assert!(request[..length].starts_with(b"GET /metrics HTTP/1.1\r\n"));
    let _ = client.write_all(answer); // the client may have seen enough
}

fn http(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn parameters(output: &Path, url: &str, matching: &[&str]) -> Sample {
    Sample {
        interval_ms: INTERVAL_MS,
        sources: vec![],
        processes: BTreeMap::new(),
        process_trees: BTreeMap::new(),
        server: None,
        exporters: vec![SampledExporter {
            name: "prometheus-1".into(),
            url: url.into(),
            interval_ms: INTERVAL_MS,
            matching: matching.iter().map(|each| (*each).to_owned()).collect(),
        }],
        commands: vec![],
        output_directory: output.to_string_lossy().into(),
    }
}

/// Samples for a while; the directory of the files, and how it ended.
fn sampled(url: &str, matching: &[&str], lasts: Duration) -> (TempDir, SamplerEnd) {
    let output = tempfile::tempdir().expect("a directory");
    let sampler = Sampler::open(
        Path::new("/proc"),
        &parameters(output.path(), url, matching),
    );
    let sampler = sampler.expect("it answers");
    assert_eq!(sampler.names(), ["prometheus-1"]);
    thread::sleep(lasts);
    (output, sampler.finish().expect("it ends"))
}

/// Values of every series by name, and the type of each.
fn rows(path: &Path) -> BTreeMap<(String, String), Vec<f64>> {
    let mut rows = BTreeMap::<_, Vec<f64>>::new();
    for batch in StreamReader::try_new(File::open(path).expect("there"), None).expect("a stream") {
        let batch = batch.expect("whole");
        let [begin, end] = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().value(0));
        assert!(end > begin, "a reading takes time");
        let [series, kinds] = [2, 3].map(|at| batch.column(at).as_string::<i32>());
        let values = batch.column(4).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let key = (series.value(row).to_owned(), kinds.value(row).to_owned());
            rows.entry(key).or_default().push(values.value(row));
        }
    }
    rows
}

#[test]
fn an_endpoint_is_read_again_and_again_and_once_more_at_the_end() {
    let url = endpoint(vec![http("200 OK", TEXT.as_bytes())]);
    let (output, end) = sampled(&url, &["a_*"], Duration::from_millis(700));
    assert_eq!(end.warnings, Vec::<String>::new());
    let rows = rows(&output.path().join("telemetry-prometheus-1.arrows"));
    let names: Vec<&str> = rows.keys().map(|(name, _)| name.as_str()).collect();
    let own = ["fairtrial_missed_samples_total", "fairtrial_up"];
    assert_eq!(names, ["a_total{x=\"1\"}", own[0], own[1]]);
    let values = &rows[&("a_total{x=\"1\"}".to_owned(), "counter".to_owned())];
    assert!(
        (3..=5).contains(&values.len())
            && values
                .iter()
                .all(|value| value.to_bits() == 5_f64.to_bits())
    );
    assert_eq!(
        rows[&("fairtrial_up".to_owned(), "gauge".to_owned())].len(),
        values.len()
    );
}

#[test]
fn what_is_not_an_answer_is_missed_and_said() {
    let large = vec![b'1'; 10 << 20];
    for (fault, reason) in [
        (http("200 OK", &large), "its answer is larger than 8 MiB"),
        (
            http("200 OK", &[0, 159, 146, 150]),
            "its answer is not text",
        ),
        (http("200 OK", b"a 1\n\0\n"), "its answer is not text"),
        (http("200 OK", b"hello\n"), "line 1 is not a sample"),
        (http("302 Found", b""), "it answers with HTTP status 302"),
        (http("500 Oh", b"a 1\n"), "it answers with HTTP status 500"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n".to_vec(),
            "",
        ),
        (b"220 mail.example ESMTP\r\n".to_vec(), ""),
        (vec![], ""),
    ] {
        let url = endpoint(vec![http("200 OK", TEXT.as_bytes()), fault]);
        let (output, end) = sampled(&url, &[], Duration::from_millis(500));
        assert!(end.missed_series >= 2, "{reason}");
        let said = end.warnings.join("\n");
        assert!(
            said.starts_with(&format!("{url} gave no sample for ")),
            "{said}"
        );
        assert!(said.contains(reason), "{said}");
        let rows = rows(&output.path().join("telemetry-prometheus-1.arrows"));
        let up = &rows[&("fairtrial_up".to_owned(), "gauge".to_owned())];
        assert_eq!((up[0], up.last()), (1.0, Some(&0.0)));
        let missed = &rows[&(
            "fairtrial_missed_samples_total".to_owned(),
            "counter".to_owned(),
        )];
        assert!(missed.last() >= Some(&2.0));
    }
}

#[test]
fn an_endpoint_that_begins_late_is_waited_for_and_one_that_never_does_is_an_error() {
    let url = endpoint(vec![
        http("503 Busy", b""),
        http("503 Busy", b""),
        http("200 OK", TEXT.as_bytes()),
    ]);
    let (_output, end) = sampled(&url, &[], Duration::ZERO);
    assert_eq!(end.missed_series, 0, "nothing was sampled yet");
    let url = "http://127.0.0.1:1/metrics";
    let output = tempfile::tempdir().expect("a directory");
    let refused = Sampler::open(Path::new("/proc"), &parameters(output.path(), url, &[]));
    let error = refused.err().expect("nobody listens there");
    let SampleError::Series { what, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(what, url);
    assert!(error.hint().contains("telemetry"), "{}", error.hint());
}

#[test]
fn a_command_that_gives_nothing_and_an_interval_that_is_too_short_are_errors() {
    let output = tempfile::tempdir().expect("a directory");
    let url = endpoint(vec![http("200 OK", TEXT.as_bytes())]);
    let mut short = parameters(output.path(), &url, &[]);
    short.exporters[0].interval_ms = 99;
    let error = Sampler::open(Path::new("/proc"), &short).err();
    assert!(matches!(
        error,
        Some(SampleError::ServerInterval { given_ms: 99 })
    ));
    let mut command = parameters(output.path(), &url, &[]);
    command.exporters.clear();
    command.commands.push(SampledCommand {
        name: "command-1".into(),
        argv: vec!["true".into()],
        interval_ms: INTERVAL_MS,
        series: "x".into(),
        counter: false,
        json_path: None,
        regex: Some("(".into()),
    });
    let error = Sampler::open(Path::new("/proc"), &command).err();
    assert!(
        matches!(error, Some(SampleError::Series { .. })),
        "{error:?}"
    );
}
