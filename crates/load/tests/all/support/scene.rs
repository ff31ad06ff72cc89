//! A database of its own for one fault of a server, and an account whose connections can be told from a test's.

use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{OltpDrive, Profile};
use tempfile::TempDir;

use super::apart::{self, AnyDrive, DriveProcess};
use super::mariadb::Server;
use super::oltp::{SPECIAL, load, loading, parameters};
use super::under_way::{DriveThread, begin};
use super::{number, sql, wait_until};

/// An account that may do nothing but work: the server keeps a last connection for those that administrate.
pub const DRIVER: &str = "driver";

/// A database of its own for one fault, with the driver's account.
pub struct Scene {
    pub admin: Endpoint,
    pub directory: TempDir,
    pub request: OltpDrive,
}

impl Scene {
    /// Loads one profile's tables for this many users.
    pub fn new(server: &Server, name: &str, profile: Profile, users: u32) -> Self {
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
        let mut request = parameters(endpoint, directory.path(), profile, 1);
        request.drive.virtual_users = users;
        apart::endless(&mut request.drive);
        Self {
            admin,
            directory,
            request,
        }
    }

    /// Begins it here, for as long as it is asked.
    pub fn begin(&self) -> DriveThread {
        let request = self.request.clone();
        begin(move |progress| fairtrial_load::drive_oltp(&request, progress))
    }

    /// Begins it in a process of its own, to be asked for its end, and waits until transactions end.
    pub fn begin_apart(&self) -> DriveProcess {
        self.begin_apart_with(&[])
    }

    /// The same with variables of its own.
    pub fn begin_apart_with(&self, variables: &[(&str, &str)]) -> DriveProcess {
        let mut driving = apart::begin_with(&AnyDrive::Oltp(self.request.clone()), variables);
        driving.wait_for_rate();
        driving
    }

    /// Waits until all users are connected and the server has counted some more of these.
    pub fn wait_until_they_go_on(&self, status: &str) {
        let connected =
            format!("SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{DRIVER}'");
        wait_until("all users are back", || {
            number(&self.admin, &connected) == i64::from(self.request.drive.virtual_users)
        });
        self.wait_for_more(status);
    }

    /// Waits until the server has counted more of these than could have been under way.
    pub fn wait_for_more(&self, status: &str) {
        let before = self.server_count(status);
        wait_until("users go on", || self.server_count(status) > before + 20);
    }

    pub fn run(&self, statements: &[&str]) {
        sql(&self.admin, statements);
    }

    /// Kills every connection of the driver's account, and waits until they are gone: who is connected then is back.
    pub fn kill_connections(&self) {
        let of_driver = format!("FROM information_schema.processlist WHERE user = '{DRIVER}'");
        let last = number(&self.admin, &format!("SELECT MAX(id) {of_driver}"));
        self.run(&[&format!("KILL HARD CONNECTION USER {DRIVER}@localhost")]);
        let left = format!("SELECT COUNT(*) {of_driver} AND id <= {last}");
        wait_until("all are gone", || number(&self.admin, &left) == 0);
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
