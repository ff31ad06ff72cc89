//! Authorities and certificates of a test's own.

use std::path::{Path, PathBuf};

use fairtrial_protocol::load::Tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Files of a server that encrypts as `localhost`.
#[derive(Clone, Default)]
pub struct Certificates {
    /// Who has signed the server's certificate.
    pub authority: PathBuf,
    /// Who has not.
    pub stranger: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// Its secret key.
    pub key: PathBuf,
}

impl Certificates {
    /// Writes them into a directory.
    pub fn write(directory: &Path) -> Self {
        let (authority, issuer) = self::authority(directory, "authority.pem");
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let certificate = parameters.signed_by(&key, &issuer).expect("signed");
        let files = Self {
            authority,
            stranger: self::authority(directory, "stranger.pem").0,
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
        };
        std::fs::write(&files.certificate, certificate.pem()).expect("written");
        std::fs::write(&files.key, key.serialize_pem()).expect("written");
        files
    }
}

/// An authority that signs itself.
fn authority(directory: &Path, name: &str) -> (PathBuf, CertifiedIssuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(parameters, key).expect("signed by itself");
    let path = directory.join(name);
    std::fs::write(&path, issuer.pem()).expect("written");
    (path, issuer)
}

/// Encryption that takes any certificate, or one signed by an authority.
pub fn signed_by(authority: Option<&PathBuf>) -> Tls {
    Tls {
        authorities: authority.map(|path| path.to_string_lossy().into()),
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
