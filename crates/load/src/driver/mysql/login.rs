//! The greeting: capabilities, encryption, user, password.

mod key;

use std::sync::Arc;

use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize as _;

use super::answer;
use super::channel::Channel;
use super::{Account, lost, refused};
use crate::driver::DriverError;

/// Largest statement that is announced to the server: its own default limit, or the most the protocol knows.
const PACKET_BYTES: u32 = 1 << 30;

/// What is asked of a server beyond the protocol's own needs: found rows instead of changed ones, files from here,
/// several results of one statement.
const WANTED: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_LONG_PASSWORD)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// The character set of statements and text (`utf8mb4_general_ci`).
const UTF8MB4: u8 = 45;

/// `caching_sha2_password`: the server remembers the password.
const REMEMBERED: u8 = 3;
/// It does not, and wants it in full.
const IN_FULL: u8 = 4;
/// Asks for the key to encrypt it with.
const PUBLIC_KEY: u8 = 2;

/// Greets the server; returns the channel, encrypted if asked, and whether its rows end with the old packet.
pub async fn greet(
    mut channel: Channel,
    account: &Account<'_>,
) -> Result<(Channel, bool), DriverError> {
    let content = channel.next().await.map_err(lost)?;
    if content.first() == Some(&0xFF) {
        return Err(answer::error(content));
    }
    let greeting = read_greeting(content)?.into_owned();
    let mut capabilities = WANTED & greeting.capabilities();
    // MariaDB believes what the request to encrypt says, and not what the login repeats.
    capabilities.set(
        CapabilityFlags::CLIENT_CONNECT_WITH_DB,
        account.database.is_some(),
    );
    if let Some(config) = &account.tls {
        if !greeting
            .capabilities()
            .contains(CapabilityFlags::CLIENT_SSL)
        {
            return Err(refused("the server does not encrypt connections"));
        }
        capabilities |= CapabilityFlags::CLIENT_SSL;
        SslRequest::new(capabilities, PACKET_BYTES, UTF8MB4).serialize(channel.reply());
        channel.send().await.map_err(lost)?;
        let encrypted = channel.encrypt(Arc::clone(config), account.host).await;
        channel = encrypted
            .map_err(|error| refused(format!("the connection cannot be encrypted: {error}")))?;
    }
    let plugin = match greeting.auth_plugin() {
        Some(AuthPlugin::Other(_) | AuthPlugin::MariadbParsec { .. }) | None => {
            AuthPlugin::MysqlNativePassword
        }
        Some(known) => known.into_owned(),
    };
    let mut login = Login {
        account,
        nonce: greeting.nonce(),
        plugin,
    };
    let response = HandshakeResponse::new(
        Some(login.secret()?),
        greeting.server_version_parsed().unwrap_or_default(),
        Some(account.user.as_bytes()),
        account.database.map(str::as_bytes),
        Some(login.plugin.clone()),
        capabilities,
        None,
        PACKET_BYTES,
    );
    response.serialize(channel.reply());
    channel.send().await.map_err(lost)?;
    login.finish(&mut channel).await?;
    let has_old_end = !capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    Ok((channel, has_old_end))
}

/// Reads the server's first packet. The challenge's length, the twenty-first byte behind the version, is a signed one to
/// `mysql_common` 0.37, which overflows at 128; there are 21 bytes of it.
fn read_greeting(content: &[u8]) -> Result<HandshakePacket<'_>, DriverError> {
    let version_end = content.iter().skip(1).position(|byte| *byte == 0);
    let length = version_end.and_then(|end| content.get(1 + end + 21));
    if length.is_some_and(|length| *length > i8::MAX.unsigned_abs()) {
        return Err(refused("the server's greeting is not of this protocol"));
    }
    ParseBuf(content).parse(()).map_err(lost)
}

struct Login<'a> {
    account: &'a Account<'a>,
    nonce: Vec<u8>,
    plugin: AuthPlugin<'static>,
}

impl Login<'_> {
    /// What proves the password to the plugin; empty without one.
    fn secret(&self) -> Result<Vec<u8>, DriverError> {
        match &self.plugin {
            AuthPlugin::Other(name) => return Err(unsupported(name)),
            AuthPlugin::MariadbParsec { .. } => return Err(unsupported(b"parsec")),
            AuthPlugin::MysqlOldPassword if self.nonce.is_empty() => {
                return Err(refused(
                    "the server gives no challenge to prove the password by",
                ));
            }
            _ => {}
        }
        if self.plugin == AuthPlugin::MysqlClearPassword && !self.account.is_private() {
            return Err(refused(
                "the server asks for the password in clear text over a connection that others can read",
            ));
        }
        let data = self
            .plugin
            .gen_data(Some(self.account.password), &self.nonce);
        let mut secret = Vec::new();
        if let Some(data) = data {
            data.serialize(&mut secret);
        }
        Ok(secret)
    }

    async fn finish(&mut self, channel: &mut Channel) -> Result<(), DriverError> {
        loop {
            let content = channel.next().await.map_err(lost)?;
            match content {
                [0x00, ..] => return Ok(()),
                [0xFF, ..] => return Err(answer::error(content)),
                [0xFE, ..] => {
                    let request: AuthSwitchRequest<'_> =
                        ParseBuf(content).parse(()).map_err(lost)?;
                    self.plugin = request.auth_plugin().into_owned();
                    self.nonce = challenge(content, &self.plugin).to_vec();
                    let secret = self.secret()?;
                    channel.reply().extend_from_slice(&secret);
                    channel.send().await.map_err(lost)?;
                }
                [0x01, REMEMBERED] => {}
                [0x01, IN_FULL] => self.in_full(channel).await?,
                _ => {
                    return Err(refused(
                        "the server continues the login in a way that is not supported",
                    ));
                }
            }
        }
    }

    /// Sends the password itself, encrypted unless nobody else can read the connection.
    async fn in_full(&self, channel: &mut Channel) -> Result<(), DriverError> {
        let mut password = self.account.password.as_bytes().to_vec();
        password.push(0);
        if self.account.is_private() {
            channel.reply().extend_from_slice(&password);
            return channel.send().await.map_err(lost);
        }
        channel.reply().push(PUBLIC_KEY);
        channel.send().await.map_err(lost)?;
        let content = channel.next().await.map_err(lost)?;
        let Some((0x01, key)) = content.split_first() else {
            return Err(refused(
                "the server gives no key to encrypt the password with",
            ));
        };
        for (byte, mask) in password.iter_mut().zip(self.nonce.iter().cycle()) {
            *byte ^= mask;
        }
        let encrypted = key::encrypt(&password, key).ok_or_else(|| {
            refused("the server gives no RSA key of 1024 to 8192 bits that the password fits")
        })?;
        channel.reply().extend_from_slice(&encrypted);
        channel.send().await.map_err(lost)
    }
}

/// What a request to change to `plugin` asks to be proved with. That of ed25519 is 32 random bytes, the last of which may
/// well be a zero; those of others are text that a zero ends. (`plugin_data` of `mysql_common` 0.37 cuts off either.)
fn challenge<'a>(request: &'a [u8], plugin: &AuthPlugin<'_>) -> &'a [u8] {
    let name_end = request.iter().position(|byte| *byte == 0);
    let data = name_end.map_or(&[][..], |end| &request[end + 1..]);
    match data {
        [text @ .., 0] if *plugin != AuthPlugin::Ed25519 => text,
        all => all,
    }
}

/// What to do about a plugin that this client does not speak; `sha256_password` is MySQL's own, deprecated since 8.0.16.
fn unsupported(plugin: &[u8]) -> DriverError {
    let name = String::from_utf8_lossy(plugin);
    let instead = if plugin == b"sha256_password" {
        "its successor: ALTER USER … IDENTIFIED WITH caching_sha2_password BY '…'"
    } else {
        "a user of caching_sha2_password (MySQL), ed25519 (MariaDB) or mysql_native_password (both)"
    };
    refused(format!(
        "the server requires the authentication plugin {name} for this user, which is not supported; use {instead}"
    ))
}

#[cfg(test)]
mod tests;
