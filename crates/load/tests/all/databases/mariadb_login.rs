//! Ways to log in to a real server; skipped, and said so, where no MariaDB is installed.

use crate::support::certificates::{Certificates, free_port};
use crate::support::mariadb::Server;
use crate::support::number;
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql, Tls};

const ACCOUNTS: [&str; 4] = [
    "CREATE USER 'native'@'%' IDENTIFIED BY 'open sesame'",
    "CREATE USER 'empty'@'%'",
    "INSTALL SONAME 'auth_ed25519'",
    "CREATE USER 'curve'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('öffne dich')",
];

/// Enough that a challenge that is read wrongly in one of 256 logins is met in 998 of 1,000 runs.
const MANY_LOGINS: usize = 1600;

const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

struct TlsMariadb {
    server: Server,
    port: u16,
    files: Certificates,
}

fn server() -> Option<TlsMariadb> {
    let port = free_port();
    let mut files = Certificates::default();
    let server = Server::start_with(|directory| {
        files = Certificates::write(directory);
        vec![
            "--bind-address=127.0.0.1".into(),
            format!("--port={port}"),
            format!("--ssl-cert={}", files.certificate.display()),
            format!("--ssl-key={}", files.key.display()),
        ]
    })?;
    let sql = Sql {
        endpoint: server.endpoint("mysql"),
        statements: ACCOUNTS.map(Into::into).to_vec(),
        connect_timeout_ms: 0,
    };
    fairtrial_load::sql(&sql).expect("accounts");
    Some(TlsMariadb {
        server,
        port,
        files,
    })
}

impl TlsMariadb {
    /// Logs in to a database over TCP and asks which cipher is in use.
    fn login(&self, user: &str, password: &str, tls: Option<Tls>) -> Result<String, LoadError> {
        let sql = Sql {
            endpoint: Endpoint::Mysql {
                socket: None,
                host: Some("localhost".into()),
                port: Some(self.port),
                user: user.into(),
                password: password.into(),
                tls,
                database: "information_schema".into(),
            },
            statements: vec![CIPHER.into(), "SELECT DATABASE()".into()],
            connect_timeout_ms: 0,
        };
        let answers = fairtrial_load::sql(&sql)?;
        let database = answers[1].rows[0][0].as_deref();
        assert_eq!(database, Some("information_schema"));
        Ok(answers[0].rows[0][1].clone().expect("a value"))
    }
}

#[test]
fn passwords_are_proved_by_every_plugin_in_clear_and_encrypted() {
    let Some(server) = server() else { return };
    let users = [
        ("native", "open sesame"),
        ("empty", ""),
        ("curve", "öffne dich"),
    ];
    let login = |user: &str, password: &str, tls| server.login(user, password, tls);
    server.files.assert_proved(&users, login);
    for login in 0..MANY_LOGINS {
        let cipher = server.login("curve", "öffne dich", None);
        assert_eq!(cipher.expect("random challenges"), "", "login {login}");
    }
    for user in ["native", "curve"] {
        let error = server.login(user, "wrong", None).expect_err("refused");
        let said = format!("{error:?}");
        assert!(said.contains("1045") && !said.contains("wrong"), "{said}");
    }
    // Each that got in said good-bye: else the server would call it aborted, and log it.
    let aborted = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'ABORTED_CLIENTS'";
    assert_eq!(number(&server.server.endpoint("mysql"), aborted), 0);
    drop(server.server);
}

#[test]
fn a_server_that_does_not_encrypt_is_refused_before_the_password_is_sent() {
    let Some(server) =
        Server::start_with(|_| vec!["--skip-networking".into(), "--skip-ssl".into()])
    else {
        return;
    };
    let Endpoint::Mysql {
        socket,
        host,
        port,
        user,
        password,
        database,
        ..
    } = server.endpoint("mysql")
    else {
        unreachable!("it is a MariaDB");
    };
    let tls = Some(Tls { authorities: None });
    let endpoint = Endpoint::Mysql {
        socket,
        host,
        port,
        user,
        password,
        tls,
        database,
    };
    let sql = Sql {
        endpoint,
        statements: vec![CIPHER.into()],
        connect_timeout_ms: 0,
    };
    let said = format!("{:?}", fairtrial_load::sql(&sql).expect_err("refused"));
    assert!(said.contains("does not encrypt"), "{said}");
}
