//! Ways to log in to a real server over TCP; skipped, and said so, where no PostgreSQL is installed.

use crate::support::certificates::{Certificates, free_port, signed_by};
use crate::support::oltp::{self, SPECIAL};
use crate::support::postgres::{Server, USER, give};
use crate::support::sql;
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql, Tls};
use fairtrial_protocol::oltp::Profile;

/// Superusers come by the socket, the rest by TCP; `sealed` only where it is encrypted.
const HBA: &str = "local all all trust\n\
    host all trusted all trust\n\
    host all clear all password\n\
    host all hashed all md5\n\
    hostssl all sealed all scram-sha-256\n\
    host all proved all scram-sha-256\n";

const ACCOUNTS: [&str; 7] = [
    "CREATE ROLE trusted LOGIN",
    "CREATE ROLE clear LOGIN PASSWORD 'open sesame'",
    "SET password_encryption = 'md5'",
    "CREATE ROLE hashed LOGIN PASSWORD 'open sesame'",
    "SET password_encryption = 'scram-sha-256'",
    "CREATE ROLE proved LOGIN PASSWORD 'öffne dich'",
    "CREATE ROLE sealed LOGIN PASSWORD 'open sesame'",
];

const CIPHER: &str = "SELECT COALESCE(cipher, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

struct TlsPostgres {
    server: Server,
    port: u16,
    files: Certificates,
}

fn place() -> Option<TlsPostgres> {
    let port = free_port();
    let mut files = Certificates::default();
    let server = Server::start_with(HBA, |directory| {
        files = Certificates::write(directory);
        // A key that others can read is refused.
        let secret = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&files.key, secret).expect("it is ours");
        give(&files.key);
        [
            "listen_addresses=localhost".into(),
            format!("port={port}"),
            "ssl=on".into(),
            format!("ssl_cert_file={}", files.certificate.display()),
            format!("ssl_key_file={}", files.key.display()),
        ]
        .into_iter()
        .flat_map(|option: String| ["-c".into(), option])
        .collect()
    });
    let place = TlsPostgres {
        server: server?,
        port,
        files,
    };
    sql(&place.server.endpoint("postgres"), &ACCOUNTS);
    Some(place)
}

impl TlsPostgres {
    fn endpoint(&self, user: &str, password: &str, tls: Option<Tls>) -> Endpoint {
        Endpoint::Postgres {
            socket_directory: None,
            host: Some("localhost".into()),
            port: Some(self.port),
            user: user.into(),
            password: password.into(),
            tls,
            database: "postgres".into(),
        }
    }

    /// Logs in over TCP and asks which cipher is in use.
    fn login(&self, user: &str, password: &str, tls: Option<Tls>) -> Result<String, LoadError> {
        let answers = ask(self.endpoint(user, password, tls))?;
        Ok(answers.rows[0][0].clone().expect("a value"))
    }
}

fn ask(endpoint: Endpoint) -> Result<fairtrial_protocol::load::Rows, LoadError> {
    let sql = Sql {
        endpoint,
        statements: vec![CIPHER.into()],
        connect_timeout_ms: 0,
    };
    Ok(fairtrial_load::sql(&sql)?.remove(0))
}

/// The code of a refusal; none of the test's passwords may be told.
fn refusal<T: std::fmt::Debug>(answer: Result<T, LoadError>) -> String {
    let error = answer.expect_err("refused");
    let said = format!("{error:?}");
    assert!(!said.contains("sesame"), "{said}");
    let LoadError::Connect { source, .. } = error else {
        panic!("{said}")
    };
    format!("{}: {}", source.code, source.message)
}

#[test]
fn passwords_are_proved_in_every_way_over_tcp_in_clear_and_encrypted() {
    let Some(place) = place() else { return };
    let users = [
        ("trusted", ""),
        ("hashed", "open sesame"),
        ("proved", "öffne dich"),
    ];
    let login = |user: &str, password: &str, tls| place.login(user, password, tls);
    place.files.assert_proved(&users, login);
    let encrypted = || Some(signed_by(Some(&place.files.authority)));
    for user in ["hashed", "proved", "sealed", "nobody"] {
        let said = refusal(place.login(user, "close sesame", encrypted()));
        assert!(said.starts_with("28"), "{user}: {said}");
    }
    assert!(refusal(place.login("hashed", "close sesame", None)).starts_with("28P01"));
    place
        .login("sealed", "open sesame", encrypted())
        .expect("encrypted");
    let said = refusal(place.login("sealed", "open sesame", None));
    assert!(said.starts_with("28000"), "no pg_hba.conf entry: {said}");
    // A password in clear goes only where nobody else can read it.
    place
        .login("clear", "open sesame", encrypted())
        .expect("encrypted");
    let said = refusal(place.login("clear", "open sesame", None));
    assert!(
        said.starts_with("login_refused") && said.contains("in clear"),
        "{said}"
    );
}

#[test]
fn a_server_that_does_not_encrypt_is_refused_and_so_is_encryption_of_a_socket() {
    let port = free_port().to_string();
    let port_option = format!("port={port}");
    let options = [
        "-c",
        "listen_addresses=localhost",
        "-c",
        &port_option,
        "-c",
        "ssl=off",
    ];
    let Some(server) = Server::start("local all all trust\nhost all all all trust\n", &options)
    else {
        return;
    };
    let Endpoint::Postgres {
        socket_directory,
        user,
        ..
    } = server.endpoint("postgres")
    else {
        panic!("a PostgreSQL endpoint")
    };
    let endpoint = |socket_directory, host| Endpoint::Postgres {
        socket_directory,
        host,
        port: port.parse().ok(),
        user: user.clone(),
        password: String::new(),
        tls: Some(Tls { authorities: None }),
        database: "postgres".into(),
    };
    let said = refusal(ask(endpoint(None, Some("localhost".into()))));
    assert!(said.contains("does not encrypt"), "{said}");
    for host in [None, Some("localhost".into())] {
        let error = ask(endpoint(socket_directory.clone(), host)).expect_err("refused");
        let is_named = matches!(
            error,
            LoadError::Parameter {
                field: "endpoint.tls",
                ..
            }
        );
        assert!(
            is_named && error.to_string().contains("TCP only"),
            "{error:?}"
        );
    }
}

#[test]
fn databases_that_are_not_there_and_connections_too_many_are_told_by_their_codes() {
    let options = [
        "-c",
        "max_connections=12",
        "-c",
        "superuser_reserved_connections=1",
        "-c",
        "listen_addresses=",
    ];
    let Some(server) = Server::start("local all all trust\n", &options) else {
        return;
    };
    let missing = ask(server.endpoint("nowhere"));
    assert!(refusal(missing).starts_with("3D000"));
    let endpoint = server.endpoint("crowded");
    let profile = Profile::PointSelect;
    oltp::load(&oltp::loading(endpoint.clone(), profile, SPECIAL));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = oltp::parameters(endpoint.clone(), directory.path(), profile, 1);
    request.drive.virtual_users = 16;
    let said = refusal(oltp::try_drive(&request));
    assert!(said.starts_with("53300"), "{said}");
    assert!(matches!(endpoint, Endpoint::Postgres { user, .. } if user == USER));
    // The refused drive leaves none of its connections behind.
    let left = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'crowded'";
    crate::support::wait_until("no connection is left", || {
        crate::support::number(&server.endpoint("postgres"), left) == 0
    });
}
