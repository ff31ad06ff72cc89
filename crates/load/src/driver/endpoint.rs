//! From an endpoint's parameters to its driver: the only list of drivers.

use std::sync::Arc;
use std::time::Duration;

use fairtrial_protocol::load::{Endpoint, Tls};
use rustls::ClientConfig;

use super::Driver;
use super::mysql::Mysql;
use super::postgres::Postgres;
use super::remote::RemoteServer;
use super::sqlite::Sqlite;
use crate::error::LoadError;
use crate::reactor::{Address, tls_config};

/// Work that any driver can do.
pub trait Job {
    /// What it gives.
    type Output;
    /// Does it.
    fn run<D: Driver>(self, driver: D) -> Self::Output;
}

/// Does a job with the driver of an endpoint.
pub fn with<T, J: Job<Output = Result<T, LoadError>>>(
    endpoint: &Endpoint,
    job: J,
) -> Result<T, LoadError> {
    match endpoint {
        Endpoint::Sqlite {
            path,
            pragmas,
            busy_timeout_ms,
        } => job.run(Sqlite {
            path: path.into(),
            pragmas: pragmas.clone(),
            busy_timeout: Duration::from_millis((*busy_timeout_ms).into()),
        }),
        Endpoint::Mysql {
            socket,
            host,
            port,
            user,
            password,
            tls,
            database,
        } => {
            let socket = socket.as_ref().map(|path| Address::Socket(path.into()));
            let address = address(socket, host.as_deref(), port.unwrap_or(Mysql::DEFAULT_PORT))?;
            job.run(Mysql(RemoteServer {
                address,
                user: user.clone(),
                password: password.clone(),
                database: database.clone(),
                tls: encryption(tls.as_ref())?,
            }))
        }
        Endpoint::Postgres {
            socket_directory,
            host,
            port,
            user,
            password,
            tls,
            database,
        } => {
            let port = port.unwrap_or(Postgres::DEFAULT_PORT);
            if socket_directory.is_some() && tls.is_some() {
                return Err(LoadError::parameter(
                    "endpoint.tls",
                    "PostgreSQL encrypts TCP only, so `tls` needs a host and no \
                        socket_directory",
                ));
            }
            let socket = socket_directory
                .as_ref()
                .map(|directory| Postgres::socket(directory, port));
            let address = address(socket, host.as_deref(), port)?;
            job.run(Postgres(RemoteServer {
                address,
                user: user.clone(),
                password: password.clone(),
                database: database.clone(),
                tls: encryption(tls.as_ref())?,
            }))
        }
    }
}

/// Where a server listens: a socket wins over a host.
fn address(socket: Option<Address>, host: Option<&str>, port: u16) -> Result<Address, LoadError> {
    let tcp = host.map(|host| Address::tcp(host, port));
    socket
        .or(tcp)
        .ok_or_else(|| LoadError::parameter("endpoint", "needs a socket or a host"))
}

fn encryption(tls: Option<&Tls>) -> Result<Option<Arc<ClientConfig>>, LoadError> {
    tls.map(|tls| tls_config(tls.authorities.as_deref()))
        .transpose()
        .map_err(|source| LoadError::parameter("endpoint.tls.authorities", source.to_string()))
}
