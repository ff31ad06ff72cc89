//! What a driver sends and receives on: a socket, or TLS over one.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::socket::ended;
use super::{Address, Socket};

/// Plain or encrypted.
pub enum ByteStream {
    /// As it is.
    Plain(Socket),
    /// Encrypted.
    Tls(Box<TlsStream>),
    /// What a server said, all of it there already; whatever is sent goes nowhere.
    #[cfg(any(test, fuzzing))]
    Recorded(io::Cursor<Vec<u8>>),
}

/// A recorded server's words come in pieces of this length, so that messages are cut.
#[cfg(any(test, fuzzing))]
const PIECE_BYTES: u64 = 61;

/// A TLS session over a socket.
pub struct TlsStream {
    socket: Socket,
    session: ClientConnection,
    sealed: Vec<u8>,
    received: Vec<u8>,
}

impl ByteStream {
    /// Connects; each wait ends after `limit`.
    pub async fn connect(address: &Address, limit: Duration) -> io::Result<Self> {
        Socket::connect(address, limit).await.map(Self::Plain)
    }

    /// Encrypts what follows. Returns once both sides have agreed.
    pub async fn encrypted(self, config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(_) => return Ok(self),
            #[cfg(any(test, fuzzing))]
            Self::Recorded(_) => return Ok(self),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut tls = Box::new(TlsStream {
            socket,
            session,
            sealed: Vec::new(),
            received: Vec::new(),
        });
        while tls.session.is_handshaking() {
            tls.flush().await?;
            if tls.session.is_handshaking() {
                tls.fill().await?;
            }
        }
        tls.flush().await?;
        Ok(Self::Tls(tls))
    }

    /// Another limit for each wait; none for work of unknown length.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        match self {
            Self::Plain(socket) => socket.set_limit(limit),
            Self::Tls(tls) => tls.socket.set_limit(limit),
            #[cfg(any(test, fuzzing))]
            Self::Recorded(_) => {}
        }
    }

    /// Sends all of it.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.send(bytes).await,
            Self::Tls(tls) => tls.send(bytes).await,
            #[cfg(any(test, fuzzing))]
            Self::Recorded(_) => Ok(()),
        }
    }

    /// Sends last words if there is room, and does not mind if there is not.
    pub fn farewell(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(socket) => socket.farewell(bytes),
            Self::Tls(tls) => tls.farewell(bytes),
            #[cfg(any(test, fuzzing))]
            Self::Recorded(_) => {}
        }
    }

    /// Appends what has come, waiting for it if need be; a connection that has ended is an error.
    pub async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.receive(buffer).await,
            Self::Tls(tls) => tls.receive(buffer).await,
            #[cfg(any(test, fuzzing))]
            Self::Recorded(said) => match said.take(PIECE_BYTES).read_to_end(buffer)? {
                0 => Err(ended()),
                _ => Ok(()),
            },
        }
    }

    /// Drops what was taken of a buffer and appends what comes.
    pub async fn receive_after(
        &mut self,
        buffer: &mut Vec<u8>,
        taken: &mut usize,
    ) -> io::Result<()> {
        if *taken == buffer.len() {
            buffer.clear();
        } else {
            buffer.drain(..*taken);
        }
        *taken = 0;
        self.receive(buffer).await
    }
}

impl TlsStream {
    async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // The session takes a bounded amount before it must be sent.
            let count = self.session.writer().write(bytes)?;
            bytes = &bytes[count..];
            self.flush().await?;
        }
        Ok(())
    }

    fn farewell(&mut self, bytes: &[u8]) {
        let said = self.session.writer().write_all(bytes);
        self.session.send_close_notify();
        if said.and_then(|()| self.seal()).is_ok() {
            self.socket.farewell(&self.sealed);
        }
    }

    fn seal(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.sealed)?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.seal()?;
        let sent = self.socket.send(&self.sealed).await;
        self.sealed.clear();
        sent
    }

    async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let before = buffer.len();
            match self.session.reader().read_to_end(buffer) {
                Ok(0) => return Err(ended()),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if buffer.len() > before {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    /// Takes in what has come.
    async fn fill(&mut self) -> io::Result<()> {
        self.socket.receive(&mut self.received).await?;
        let mut rest = self.received.as_slice();
        // After its last word a session takes nothing more.
        while !rest.is_empty() && self.session.read_tls(&mut rest)? > 0 {
            self.session
                .process_new_packets()
                .map_err(io::Error::other)?;
        }
        self.received.clear();
        self.flush().await
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Tls(_) => "Tls",
            #[cfg(any(test, fuzzing))]
            Self::Recorded(_) => "Recorded",
        })
    }
}

/// How a server proves itself: by a certificate that the authorities in a PEM file have signed for the host's name, or
/// not at all.
pub fn tls_config(authorities: Option<&str>) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let Some(path) = authorities else {
        let anyone = Arc::new(AnyCertificate(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(anyone);
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let mut roots = RootCertStore::empty();
    for certificate in self::authorities(path)? {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(Arc::new(
        builder.with_root_certificates(roots).with_no_client_auth(),
    ))
}

/// The certificates in a PEM file; one without any is an error.
pub fn authorities(path: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(io::Error::other)?;
    if found.is_empty() {
        let problem = format!("{path} holds no certificate");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(found)
}

/// Takes any certificate: encryption is to be measured, and nobody is to be believed.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
