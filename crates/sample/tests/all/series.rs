//! Endpoints and commands beside the place's own counters: what they tell, and how an endpoint may go wrong.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::sample::{Sample, SampledCommand, SampledExporter};
use fairtrial_sample::{SampleError, Sampler, SamplerEnd};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::eventually::eventually;

/// So long that a reading has the longest limit there is, and only the first and the last are made.
const LONG_MS: u32 = 60_000;
const TEXT: &str = "# TYPE a_total counter\na_total{x=\"1\"} 5\nb 7\n";

/// An endpoint of the test's own.
struct ServedText {
    url: String,
    /// What it will say, and how often it was asked for that.
    answers: Arc<Mutex<(VecDeque<Vec<u8>>, usize)>>,
}

impl ServedText {
    /// Serves one answer after the other, the last for ever.
    fn new(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let answers = Arc::new(Mutex::new((answers.into(), 0)));
        let served = Self {
            url: format!("http://{address}/metrics"),
            answers: Arc::clone(&answers),
        };
        thread::spawn(move || {
            for connection in listener.incoming() {
                answer(connection.expect("a client"), &next(&answers));
            }
        });
        served
    }

    /// Serves another answer from now on, however often it was asked so far.
    fn say(&self, answer: Vec<u8>) {
        *self.answers.lock().expect("no panic") = ([answer].into(), 0);
    }

    fn wait_until_asked(&self, times: usize) {
        eventually("it is asked", || {
            let asked = self.answers.lock().expect("no panic").1;
            (asked >= times).then_some(())
        });
    }
}

fn next(answers: &Mutex<(VecDeque<Vec<u8>>, usize)>) -> Vec<u8> {
    let (left, asked) = &mut *answers.lock().expect("no panic");
    *asked += 1;
    let first = left.pop_front().expect("the last one stays");
    if left.is_empty() {
        left.push_front(first.clone());
    }
    first
}

fn answer(mut client: impl Read + Write, answer: &[u8]) {
    let mut request = Vec::new();
    let mut read = [0; 2048];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut read) {
            Ok(0) | Err(_) => return, // the client has given up, as a slow machine makes it
            Ok(length) => request.extend_from_slice(&read[..length]),
        }
    }
    assert!(request.starts_with(b"GET /metrics HTTP/1.1\r\n"));
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
        interval_ms: LONG_MS,
        sources: vec![],
        processes: BTreeMap::new(),
        process_trees: BTreeMap::new(),
        server: None,
        exporters: vec![SampledExporter {
            name: "prometheus-1".into(),
            url: url.into(),
            authorities: None,
            interval_ms: LONG_MS,
            matching: matching.iter().map(|each| (*each).to_owned()).collect(),
        }],
        commands: vec![],
        shown: vec![],
        output_directory: output.to_string_lossy().into(),
    }
}

/// Samples every so often while something happens; the directory of the files, and how it ended.
fn sampled(
    (url, matching): (&str, &[&str]),
    interval_ms: u32,
    meanwhile: impl FnOnce(),
) -> (TempDir, SamplerEnd) {
    let output = tempfile::tempdir().expect("a directory");
    let mut asked = parameters(output.path(), url, matching);
    asked.exporters[0].interval_ms = interval_ms;
    let sampler = Sampler::open(Path::new("/proc"), &asked).expect("it answers");
    assert_eq!(sampler.names(), ["prometheus-1"]);
    meanwhile();
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
    const INTERVAL_MS: u32 = 1_000;
    let served = ServedText::new(vec![http("200 OK", TEXT.as_bytes())]);
    let began_ns = monotonic_ns();
    let (output, end) = sampled((&served.url, &["a_*"]), INTERVAL_MS, || {
        served.say(http("200 OK", TEXT.as_bytes())); // the same, counted anew
        served.wait_until_asked(2);
    });
    let length_ns = usize::try_from(monotonic_ns() - began_ns).expect("time goes on");
    let rows = rows(&output.path().join("telemetry-prometheus-1.arrows"));
    let names: Vec<&str> = rows.keys().map(|(name, _)| name.as_str()).collect();
    let own = ["fairtrial_missed_samples_total", "fairtrial_up"];
    assert_eq!(names, ["a_total{x=\"1\"}", own[0], own[1]]);
    let values = &rows[&("a_total{x=\"1\"}".to_owned(), "counter".to_owned())];
    assert!(
        values
            .iter()
            .all(|value| value.to_bits() == 5_f64.to_bits())
    );
    // A machine that stands still may make an answer late: then it is missed, and said.
    let up = &rows[&("fairtrial_up".to_owned(), "gauge".to_owned())];
    let answered = up.iter().filter(|up| **up > 0.0).count();
    assert_eq!(values.len(), answered, "{up:?}");
    assert_eq!(end.warnings.is_empty(), answered == up.len(), "{end:?}");
    let deadlines = length_ns / (INTERVAL_MS as usize * 1_000_000);
    assert!(up.len() <= deadlines + 2, "and the first and the last");
    assert!(up.len() >= 4, "the first, two more, and the last: {up:?}");
}

#[test]
fn what_is_not_an_answer_is_missed_and_said() {
    let large = vec![b'1'; 10 << 20];
    let faults = [
        (http("200 OK", &large), "its answer is larger than 8 MiB"),
        (
            http("200 OK", &[0, 159, 146, 150]),
            "its answer is not text",
        ),
        (http("200 OK", b"a 1\n\0\n"), "its answer is not text"),
        (http("200 OK", b"hello\n"), "line 1 is not a sample"),
        (http("200 OK", b"a_total 1"), "the answer was cut"),
        (http("302 Found", b""), "it answers with HTTP status 302"),
        (http("500 Oh", b"a 1\n"), "it answers with HTTP status 500"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n".to_vec(),
            "",
        ),
        (b"220 mail.example ESMTP\r\n".to_vec(), ""),
        (vec![], ""),
    ];
    thread::scope(|scope| {
        for (fault, reason) in faults {
            scope.spawn(move || assert_missed(fault, reason));
        }
    });
}

fn assert_missed(fault: Vec<u8>, reason: &str) {
    let served = ServedText::new(vec![http("200 OK", TEXT.as_bytes())]);
    let (output, end) = sampled((&served.url, &[]), 2_000, || {
        served.say(fault);
        served.wait_until_asked(1);
    });
    assert!(end.missed_series >= 2, "{reason}");
    let said = end.warnings.join("\n");
    let url = &served.url;
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

fn named(range: std::ops::Range<u32>) -> Vec<u8> {
    let lines: Vec<String> = range.map(|name| format!("a{name} 1\n")).collect();
    http("200 OK", lines.concat().as_bytes())
}

#[test]
fn more_series_than_a_source_may_have_are_refused_at_once_or_when_they_come() {
    let output = tempfile::tempdir().expect("a directory");
    let served = ServedText::new(vec![named(0..10_001)]);
    let url = &served.url;
    let refused = Sampler::open(Path::new("/proc"), &parameters(output.path(), url, &[]));
    let said = refused.err().expect("there are too many").to_string();
    assert!(
        said.contains(url) && said.contains("10000 different series") && said.contains("`match`"),
        "{said}"
    );
    let served = ServedText::new(vec![named(0..10_000)]);
    let url = &served.url;
    let (_output, end) = sampled((url, &[]), LONG_MS, || served.say(named(9_999..10_001)));
    let said = end.warnings.join("\n");
    assert!(
        said.contains(url) && said.contains("10000 different series"),
        "{said}"
    );
    let (_output, end) = sampled((url, &["a9*"]), LONG_MS, || ());
    assert_eq!(end.missed_series, 0, "those that match are few");
}

#[test]
fn an_endpoint_that_begins_late_is_waited_for_and_one_that_never_does_is_an_error() {
    let served = ServedText::new(vec![
        http("503 Busy", b""),
        http("503 Busy", b""),
        http("200 OK", TEXT.as_bytes()),
    ]);
    let (_output, end) = sampled((&served.url, &[]), LONG_MS, || ());
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
    let url = "http://127.0.0.1:1/metrics"; // which nobody is asked
    let mut short = parameters(output.path(), url, &[]);
    short.exporters[0].interval_ms = 99;
    let error = Sampler::open(Path::new("/proc"), &short).err();
    assert!(matches!(
        error,
        Some(SampleError::ServerInterval { given_ms: 99 })
    ));
    let mut command = parameters(output.path(), url, &[]);
    command.exporters.clear();
    command.commands.push(SampledCommand {
        name: "command-1".into(),
        argv: vec!["true".into()],
        interval_ms: LONG_MS,
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

#[test]
fn last_readings_are_made_at_the_same_time() {
    let output = tempfile::tempdir().expect("a directory");
    let mut both = parameters(output.path(), "", &[]);
    both.exporters.clear();
    for (own, other) in [("one", "two"), ("two", "one")] {
        let script = format!(
            "cd {}; test -e last || exec echo 1; touch {own}; until test -e {other}; do sleep 0.01; done; echo 2",
            output.path().display()
        );
        both.commands.push(SampledCommand {
            name: format!("command-{own}"),
            argv: vec!["sh".into(), "-c".into(), script],
            interval_ms: LONG_MS,
            series: "x".into(),
            counter: false,
            json_path: None,
            regex: None,
        });
    }
    let sampler = Sampler::open(Path::new("/proc"), &both).expect("both answer");
    File::create(output.path().join("last")).expect("made");
    let SamplerEnd { missed_series, .. } = sampler.finish().expect("it ends");
    assert_eq!(missed_series, 0, "each waits for the other's");
}

/// An authority that signs itself, in a file of the directory, and its secret key.
fn authority(directory: &Path, name: &str) -> (CertifiedIssuer<'static, KeyPair>, Vec<u8>) {
    let mut parameters = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let secret = key.serialize_der();
    let issuer = CertifiedIssuer::self_signed(parameters, key).expect("signed by itself");
    std::fs::write(directory.join(name), issuer.pem()).expect("written");
    (issuer, secret)
}

/// Serves the text by TLS to any number of clients; returns the port.
fn encrypted_endpoint(certificate: &Certificate, secret: Vec<u8>) -> u16 {
    let chain = vec![certificate.der().clone()];
    let secret = PrivateKeyDer::try_from(secret).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .expect("they belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            if session.complete_io(&mut client).is_ok() {
                let answered = http("200 OK", TEXT.as_bytes());
                answer(StreamOwned::new(session, client), &answered);
            }
        }
    });
    port
}

#[test]
fn an_encrypted_endpoint_proves_itself_to_the_authorities_that_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let (issuer, secret) = authority(directory.path(), "authority.pem");
    authority(directory.path(), "stranger.pem");
    let own = encrypted_endpoint(issuer.as_ref(), secret);
    let key = KeyPair::generate().expect("a key");
    let named = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    let certificate = named.signed_by(&key, &issuer).expect("signed");
    let port = encrypted_endpoint(&certificate, key.serialize_der());
    let asked = |host: &str, port: u16, file: Option<&str>| {
        let output = tempfile::tempdir().expect("a directory");
        let url = format!("https://{host}:{port}/metrics");
        let mut asked = parameters(output.path(), &url, &["a_*"]);
        let path = file.map(|file| directory.path().join(file));
        asked.exporters[0].authorities = path.map(|path| path.to_string_lossy().into());
        let sampler = Sampler::open(Path::new("/proc"), &asked).map_err(|error| error.to_string());
        let finished = sampler.map(|sampler| sampler.finish().expect("it ends"));
        finished.map(|_| rows(&output.path().join("telemetry-prometheus-1.arrows")))
    };
    let told = asked("localhost", port, Some("authority.pem")).expect("it is proved");
    assert!(told.contains_key(&("a_total{x=\"1\"}".into(), "counter".into())));
    let unknown = "`authorities` does not name who signed its certificate";
    let authority = Some("authority.pem");
    let refusals = [
        ("localhost", port, Some("stranger.pem"), unknown),
        ("localhost", port, None, unknown),
        ("127.0.0.1", port, authority, "not valid for name"),
        (
            "localhost",
            own,
            authority,
            "is an authority's own; make one",
        ),
        ("localhost", port, Some("missing.pem"), "`authorities`: "),
    ];
    thread::scope(|scope| {
        for (host, port, file, reason) in refusals {
            scope.spawn(move || {
                let said = asked(host, port, file).expect_err(reason);
                let url = format!("telemetry: https://{host}:{port}/metrics gives no sample: ");
                assert!(said.starts_with(&url) && said.contains(reason), "{said}");
            });
        }
    });
}
