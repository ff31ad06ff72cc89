//! A database of its own for one fault of a server, and an account whose connections can be told from a test's.

use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{OltpDrive, Profile};
use tempfile::TempDir;

use super::mariadb::Server;
use super::oltp::{SPECIAL, load, loading, parameters};
use super::under_way::{UnderWay, begin};
use super::{number, sql};

/// An account that may do nothing but work: the server keeps a last connection for those that administrate.
pub const DRIVER: &str = "driver";

/// A database of its own for one fault, with the driver's account.
pub struct Scene {
    pub admin: Endpoint,
    pub directory: TempDir,
    pub asked: OltpDrive,
}

impl Scene {
    /// Loads one profile's tables for this many users and seconds.
    pub fn new(
        server: &Server,
        name: &str,
        profile: Profile,
        (users, seconds): (u32, f64),
    ) -> Self {
        let admin = server.endpoint(name);
        load(&loading(admin.clone(), profile, SPECIAL));
        sql(
            &admin,
            &[
                &format!("CREATE OR REPLACE USER {DRIVER}@localhost IDENTIFIED BY 'right'"),
                &format!("GRANT ALL ON {name}.* TO {DRIVER}@localhost"),
            ],
        );
        let directory = tempfile::tempdir().expect("a temporary directory");
        let endpoint = as_driver(&admin, "right");
        let mut asked = parameters(endpoint, directory.path(), profile, 1);
        asked.drive.virtual_users = users;
        (asked.drive.transactions, asked.drive.duration_s) = (None, Some(seconds));
        Self {
            admin,
            directory,
            asked,
        }
    }

    pub fn begin(&self) -> UnderWay {
        let asked = self.asked.clone();
        begin(move |progress| fairtrial_load::drive_oltp(&asked, progress))
    }

    pub fn run(&self, statements: &[&str]) {
        sql(&self.admin, statements);
    }

    /// Kills every connection of the driver's account.
    pub fn kill_connections(&self) {
        self.run(&[&format!("KILL HARD CONNECTION USER {DRIVER}@localhost")]);
    }

    /// Statements of this kind that the server has run.
    pub fn server_count(&self, status: &str) -> i64 {
        let query = format!(
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{status}'"
        );
        number(&self.admin, &query)
    }
}

/// The same endpoint for the driver's account.
pub fn as_driver(endpoint: &Endpoint, secret: &str) -> Endpoint {
    let mut changed = endpoint.clone();
    if let Endpoint::Mysql { user, password, .. } = &mut changed {
        (*user, *password) = (DRIVER.into(), secret.into());
    }
    changed
}
