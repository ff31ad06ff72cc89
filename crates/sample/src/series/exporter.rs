//! An HTTP endpoint that says its counters as text.

use std::sync::Arc;
use std::time::Duration;

use fairtrial_load::authorities;
use fairtrial_protocol::sample::{HttpAnswer, HttpGet, SampledExporter};
use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::exposition::{matches, parse};
use super::reader::{SeriesReader, SeriesValue};

/// Largest answer: a server of thousands of tables says some megabytes.
const BODY_BYTES: u64 = 8 << 20;
const SUCCESS: u16 = 200;
/// The oldest format is said by all; an endpoint that has only the newer one may answer by it.
const ACCEPT: &str = "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5";

/// Asks one endpoint, over a connection of its own each time: one that is kept may have been closed meanwhile.
pub struct Exporter {
    agent: Agent,
    url: String,
    matching: Vec<String>,
}

impl Exporter {
    /// Nothing is asked yet; an error if the file of its authorities holds none.
    pub fn new(parameters: &SampledExporter) -> Result<Self, String> {
        let mut trusted = Vec::new();
        if let Some(path) = &parameters.authorities {
            let found = authorities(path).map_err(|error| format!("`authorities`: {error}"))?;
            trusted.extend(
                found
                    .iter()
                    .map(|each| Certificate::from_der(each).to_owned()),
            );
        }
        Ok(Self {
            agent: client(trusted),
            url: parameters.url.clone(),
            matching: parameters.matching.clone(),
        })
    }
}

impl SeriesReader for Exporter {
    type Answer = Vec<u8>;

    fn what(&self) -> &str {
        &self.url
    }

    fn ask(&mut self, limit: Duration) -> Result<Vec<u8>, String> {
        let request = self.agent.get(&self.url).header("Accept", ACCEPT);
        let request = request.config().timeout_global(Some(limit)).build();
        let mut response = request.call().map_err(|error| in_words(&error, limit))?;
        let status = response.status().as_u16();
        if status != SUCCESS {
            return Err(format!("it answers with HTTP status {status}"));
        }
        let body = response.body_mut().with_config().limit(BODY_BYTES);
        body.read_to_vec().map_err(|error| in_words(&error, limit))
    }

    fn values(&self, answer: Vec<u8>) -> Result<Vec<SeriesValue>, String> {
        let text = String::from_utf8(answer)
            .ok()
            .filter(|text| !text.contains('\0'));
        let text = text.ok_or("its answer is not text")?;
        parse(&text, |name| matches(&self.matching, name))
    }
}

/// Asks a URL once; an answer of any status is one, and none is no error.
#[must_use]
pub fn http_get(parameters: &HttpGet) -> HttpAnswer {
    let limit = Duration::from_millis(parameters.timeout_ms);
    let request = client(Vec::new()).get(&parameters.url);
    let request = request.config().timeout_global(Some(limit)).build();
    let status = request.call().ok().map(|answer| answer.status().as_u16());
    HttpAnswer { status }
}

/// Follows nothing, keeps nothing open, and takes every status for an answer. By TLS it believes only those named.
fn client(authorities: Vec<Certificate<'static>>) -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .root_certs(RootCerts::from(authorities))
        .build();
    Agent::config_builder()
        .proxy(None)
        .tls_config(tls)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .http_status_as_error(false)
        .user_agent("fairtrial")
        .build()
        .into()
}

fn in_words(error: &ureq::Error, limit: Duration) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no whole answer within {} ms", limit.as_millis()),
        ureq::Error::BodyExceedsLimit(_) => {
            format!("its answer is larger than {} MiB", BODY_BYTES >> 20)
        }
        other => of_certificates(other.to_string()),
    }
}

/// What can be done about a certificate that is refused, where what is said does not say so.
fn of_certificates(said: String) -> String {
    let is = |problem: &str| said.contains(&format!("invalid peer certificate: {problem}"));
    if is("UnknownIssuer") || is("BadSignature") {
        "`authorities` does not name who signed its certificate".into()
    } else if said.contains("CaUsedAsEndEntity") {
        "its certificate is an authority's own; make one for the host, with `CA:FALSE`".into()
    } else {
        said
    }
}
