//! A server whose words do not end where they should.

use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::*;
use crate::reactor::block_on;

/// Says "hello" and that this was all, and goes on.
fn say_too_much(mut socket: UnixStream) {
    let own = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .expect("its key");
    let mut session = ServerConnection::new(Arc::new(config)).expect("a session");
    while session.is_handshaking() {
        session.complete_io(&mut socket).expect("both agree");
    }
    session.writer().write_all(b"hello").expect("taken");
    session.send_close_notify();
    let mut words = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut words).expect("there is room");
    }
    words.extend_from_slice(b"more");
    socket.write_all(&words).expect("it is heard");
    let _ = socket.read_to_end(&mut words); // until the client has gone
}

#[test]
fn what_comes_behind_the_end_of_a_session_is_read_over() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = thread::spawn(move || say_too_much(listener.accept().expect("a client").0));
    let (said, end) = block_on(async {
        let limit = Duration::from_mins(1);
        let stream = ByteStream::connect(&Address::Socket(path), limit).await?;
        let mut stream = stream.encrypted(tls_config(None)?, "localhost").await?;
        let mut said = Vec::new();
        stream.receive(&mut said).await?;
        let end = stream.receive(&mut said).await;
        Ok::<_, io::Error>((said, end))
    })
    .expect("a loop")
    .expect("a session");
    assert_eq!(said, b"hello");
    let end = end.expect_err("it has ended");
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    server.join().expect("it ended");
}
