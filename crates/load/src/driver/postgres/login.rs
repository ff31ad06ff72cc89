//! The greeting: encryption, user, password.

use std::sync::Arc;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::answer::{self, Reader, malformed};
use super::channel::Channel;
use super::{Account, lost, refused};
use crate::driver::{DriverError, ErrorKind};

/// Version 3.0 of the protocol.
const VERSION: i32 = 0x0003_0000;

/// What the server is told about how values are to be written, whatever its own settings.
const SESSION: [(&str, &str); 3] = [
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("application_name", "fairtrial"),
];

/// Kinds of authentication requests (protocol 53.7).
mod method {
    pub const DONE: u32 = 0;
    pub const CLEAR: u32 = 3;
    pub const MD5: u32 = 5;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

/// Greets the server and logs in; returns the channel, encrypted if asked, ready for commands.
pub async fn greet(mut channel: Channel, account: &Account<'_>) -> Result<Channel, DriverError> {
    if let Some(config) = &account.tls {
        let encrypted = channel.encrypt(Arc::clone(config), account.host).await;
        channel = encrypted
            .map_err(|error| refused(format!("the connection cannot be encrypted: {error}")))?;
    }
    let body = channel.outgoing().untagged();
    body.extend_from_slice(&VERSION.to_be_bytes());
    let whom = [
        ("user", account.user),
        ("database", account.database.unwrap_or_default()),
    ];
    for (name, value) in whom.into_iter().chain(SESSION) {
        for word in [name, value] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
    }
    body.push(0);
    channel.send().await.map_err(lost)?;
    let mut scram = None;
    loop {
        let (tag, body) = channel.next().await.map_err(lost)?;
        match tag {
            b'R' => {
                let reply = reply(body, account, &mut scram)?;
                if let Some(reply) = reply {
                    channel.outgoing().message(b'p').extend_from_slice(&reply);
                    channel.send().await.map_err(lost)?;
                }
            }
            b'E' => {
                return Err(DriverError {
                    kind: ErrorKind::Connection,
                    ..answer::error(body)
                });
            }
            b'Z' => return Ok(channel),
            // parameters, the key for cancelling, notices, an older protocol offered
            b'S' | b'K' | b'N' | b'v' => {}
            _ => return Err(malformed()),
        }
    }
}

/// What to send to a request of the server's, if anything.
pub fn reply(
    body: &[u8],
    account: &Account<'_>,
    scram: &mut Option<ScramSha256>,
) -> Result<Option<Vec<u8>>, DriverError> {
    let mut reader = Reader::new(body);
    match (reader.u32()?, scram) {
        (method::DONE, None) => Ok(None),
        (method::DONE, Some(_)) => Err(refused(
            "the server ended the login before it had proved that it knows the password",
        )),
        (method::CLEAR, _) if !account.is_private() => Err(refused(
            "the server asks for the password in clear text over a connection that others can read",
        )),
        (method::CLEAR, _) => Ok(Some(terminated(account.password))),
        (method::MD5, _) => {
            let salt = reader.bytes(4)?.try_into().map_err(|_| malformed())?;
            let (user, password) = (account.user.as_bytes(), account.password.as_bytes());
            Ok(Some(terminated(&md5_hash(user, password, salt))))
        }
        (method::SASL, scram) => {
            let mut mechanisms = Vec::new();
            while !reader.rest().is_empty() {
                mechanisms.push(reader.text()?);
            }
            if !mechanisms.iter().any(|name| name == SCRAM_SHA_256) {
                return Err(refused(format!(
                    "the server authenticates by {mechanisms:?}, which is not supported"
                )));
            }
            let password = account.password.as_bytes();
            let begun = ScramSha256::new(password, ChannelBinding::unsupported());
            let first = scram.insert(begun).message();
            let length = i32::try_from(first.len()).map_err(|_| malformed())?;
            let mut body = terminated(SCRAM_SHA_256);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(first);
            Ok(Some(body))
        }
        (method::SASL_CONTINUE, Some(scram)) => {
            let problem = |error| refused(format!("the server's proof is broken: {error}"));
            scram.update(reader.rest()).map_err(problem)?;
            Ok(Some(scram.message().to_vec()))
        }
        (method::SASL_FINAL, proof @ Some(_)) => {
            let problem =
                |error| refused(format!("the server does not know the password: {error}"));
            let ended = proof.take().map(|mut scram| scram.finish(reader.rest()));
            ended.transpose().map_err(problem)?;
            Ok(None)
        }
        (other, _) => Err(refused(format!(
            "the server asks for authentication {other}, which is not supported"
        ))),
    }
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
