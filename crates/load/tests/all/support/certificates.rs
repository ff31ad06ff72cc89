//! Authorities and certificates of a test's own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fairtrial_load::LoadError;
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

    /// Fails unless each user, with a password, can log in in clear, encrypted to anybody, and encrypted to whom the
    /// authority knows, but not to whom only a stranger does. A login tells the cipher.
    pub fn assert_proved(
        &self,
        users: &[(&str, &str)],
        login: impl Fn(&str, &str, Option<Tls>) -> Result<String, LoadError>,
    ) {
        for (user, password) in users {
            assert_eq!(login(user, password, None).expect(user), "");
            for authority in [None, Some(&self.authority)] {
                let cipher = login(user, password, Some(signed_by(authority))).expect(user);
                assert!(cipher.starts_with("TLS_"), "{user}: {cipher}");
            }
            let refused = login(user, password, Some(signed_by(Some(&self.stranger))));
            let said = format!("{:?}", refused.expect_err("signed by somebody else"));
            for part in ["invalid peer certificate", "login_refused"] {
                assert!(said.contains(part), "{user}: {said}");
            }
            assert!(password.is_empty() || !said.contains(password), "{said}");
        }
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

/// A port that nobody listens on, nor will before a server of the test does: below those that the kernel hands out
/// (ip(7), `ip_local_port_range`), and by the number of this process.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_mul(16).wrapping_add(call);
        let port = u16::try_from(10_000 + number % 20_000).expect("below 32,768");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
