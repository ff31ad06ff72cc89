//! Ways to log in to a real server; skipped, and said so, where no MariaDB is installed.

mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::mariadb::Server;

const ACCOUNTS: [&str; 4] = [
    "CREATE USER 'native'@'%' IDENTIFIED BY 'open sesame'",
    "CREATE USER 'empty'@'%'",
    "INSTALL SONAME 'auth_ed25519'",
    "CREATE USER 'curve'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('öffne dich')",
];

const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

fn signed_by(authorities: Option<&PathBuf>) -> Tls {
    Tls {
        authorities: authorities.map(|path| path.to_string_lossy().into()),
    }
}

struct Place {
    server: Server,
    port: u16,
    authority: PathBuf,
    stranger: PathBuf,
}

/// An authority, and if asked a certificate for `localhost` that it has signed.
fn authority(directory: &Path, name: &str) -> (PathBuf, CertifiedIssuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(parameters, key).expect("signed by itself");
    let path = directory.join(name);
    std::fs::write(&path, issuer.pem()).expect("written");
    (path, issuer)
}

fn place() -> Option<Place> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let mut files = (PathBuf::new(), PathBuf::new());
    let server = Server::start_with(|directory| {
        let (authority, issuer) = self::authority(directory, "authority.pem");
        files = (authority, self::authority(directory, "stranger.pem").0);
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let certificate = parameters.signed_by(&key, &issuer).expect("signed");
        let (certificate_path, key_path) =
            (directory.join("server.pem"), directory.join("server.key"));
        std::fs::write(&certificate_path, certificate.pem()).expect("written");
        std::fs::write(&key_path, key.serialize_pem()).expect("written");
        vec![
            "--bind-address=127.0.0.1".into(),
            format!("--port={port}"),
            format!("--ssl-cert={}", certificate_path.display()),
            format!("--ssl-key={}", key_path.display()),
        ]
    })?;
    let sql = Sql {
        endpoint: server.endpoint("mysql"),
        statements: ACCOUNTS.map(Into::into).to_vec(),
        connect_timeout_ms: 0,
    };
    fairtrial_load::sql(&sql).expect("accounts");
    let (authority, stranger) = files;
    Some(Place {
        server,
        port,
        authority,
        stranger,
    })
}

impl Place {
    /// Logs in over TCP and asks which cipher is in use.
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
            statements: vec![CIPHER.into()],
            connect_timeout_ms: 0,
        };
        let answers = fairtrial_load::sql(&sql)?;
        Ok(answers[0].rows[0][1].clone().expect("a value"))
    }
}

#[test]
fn passwords_are_proved_by_every_plugin_in_clear_and_encrypted() {
    let Some(place) = place() else { return };
    for (user, password) in [
        ("native", "open sesame"),
        ("empty", ""),
        ("curve", "öffne dich"),
    ] {
        assert_eq!(place.login(user, password, None).expect(user), "");
        for authorities in [None, Some(&place.authority)] {
            let cipher = place
                .login(user, password, Some(signed_by(authorities)))
                .expect(user);
            assert!(cipher.starts_with("TLS_"), "{user}: {cipher}");
        }
    }
    for user in ["native", "curve"] {
        let error = place.login(user, "wrong", None).expect_err("refused");
        let said = format!("{error:?}");
        assert!(said.contains("1045") && !said.contains("wrong"), "{said}");
    }
    let error = place.login(
        "native",
        "open sesame",
        Some(signed_by(Some(&place.stranger))),
    );
    let said = format!("{:?}", error.expect_err("signed by somebody else"));
    assert!(said.contains("invalid peer certificate"), "{said}");
    assert!(said.contains("login_refused"), "{said}");
    drop(place.server);
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
