//! Endpoints and commands beside the place's own counters: what they tell, and how an endpoint may go wrong.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use fairtrial_protocol::sample::{Sample, SampledCommand, SampledExporter};
use fairtrial_sample::{SampleError, Sampler, SamplerEnd};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
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
        interval_ms: INTERVAL_MS,
        sources: vec![],
        processes: BTreeMap::new(),
        process_trees: BTreeMap::new(),
        server: None,
        exporters: vec![SampledExporter {
            name: "prometheus-1".into(),
            url: url.into(),
            authorities: None,
            interval_ms: INTERVAL_MS,
            matching: matching.iter().map(|each| (*each).to_owned()).collect(),
        }],
        commands: vec![],
        shown: vec![],
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
        (http("200 OK", b"a_total 1"), "the answer was cut"),
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

fn named(range: std::ops::Range<u32>) -> Vec<u8> {
    let lines: Vec<String> = range.map(|name| format!("a{name} 1\n")).collect();
    http("200 OK", lines.concat().as_bytes())
}

#[test]
fn more_series_than_a_source_may_have_are_refused_at_once_or_when_they_come() {
    let output = tempfile::tempdir().expect("a directory");
    let url = endpoint(vec![named(0..10_001)]);
    let refused = Sampler::open(Path::new("/proc"), &parameters(output.path(), &url, &[]));
    let said = refused.err().expect("there are too many").to_string();
    assert!(
        said.contains(&url) && said.contains("10000 different series") && said.contains("`match`"),
        "{said}"
    );
    let url = endpoint(vec![named(0..10_000), named(9_999..10_001)]);
    let (_output, end) = sampled(&url, &[], Duration::from_millis(500));
    let said = end.warnings.join("\n");
    assert!(
        said.contains(&url) && said.contains("10000 different series"),
        "{said}"
    );
    let (_output, end) = sampled(&url, &["a9*"], Duration::ZERO);
    assert_eq!(end.missed_series, 0, "those that match are few");
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
            interval_ms: 60_000,
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
        asked.exporters[0].interval_ms = 60_000; // an answer has nine tenths of it
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
