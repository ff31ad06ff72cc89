//! From an endpoint's parameters to its driver: the only list of drivers.

use std::time::Duration;

use fairtrial_protocol::load::Endpoint;

use super::Driver;
use super::mysql::Mysql;
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
            let address = match (socket, host) {
                (Some(socket), _) => Address::Socket(socket.into()),
                (None, Some(host)) => Address::Tcp {
                    host: host.clone(),
                    port: port.unwrap_or(Mysql::DEFAULT_PORT),
                },
                (None, None) => {
                    let problem = "needs a socket or a host".into();
                    return Err(LoadError::Parameter {
                        field: "endpoint",
                        problem,
                    });
                }
            };
            let (user, password, database) = (user.clone(), password.clone(), database.clone());
            let driver = Mysql::new(address, user, password, database);
            match tls {
                None => job.run(driver),
                Some(tls) => {
                    let config = tls_config(tls.authorities.as_deref());
                    let config = config.map_err(|source| LoadError::Parameter {
                        field: "endpoint.tls.authorities",
                        problem: source.to_string(),
                    })?;
                    job.run(driver.encrypted(config))
                }
            }
        }
    }
}
