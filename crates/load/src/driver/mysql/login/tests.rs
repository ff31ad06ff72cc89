use super::*;
use crate::driver::ErrorKind;

fn said(plugin: &[u8]) -> DriverError {
    by(AuthPlugin::Other(plugin.to_vec().into()), vec![7; 20])
}

fn by(plugin: AuthPlugin<'static>, nonce: Vec<u8>) -> DriverError {
    let account = Account {
        user: "driver",
        password: "right",
        database: None,
        host: "localhost",
        tls: None,
        is_local: true,
    };
    let login = Login {
        account: &account,
        nonce,
        plugin,
    };
    login.secret().expect_err("a plugin that is not spoken")
}

#[test]
fn sha256_password_is_refused_by_name_and_with_what_to_use_instead() {
    let refused = said(b"sha256_password");
    assert_eq!(
        (refused.kind, refused.code.as_str(), refused.retryable),
        (ErrorKind::Connection, "login_refused", false)
    );
    assert_eq!(
        refused.message,
        "the server requires the authentication plugin sha256_password for this user, which is not supported; use \
         its successor: ALTER USER … IDENTIFIED WITH caching_sha2_password BY '…'"
    );
}

#[test]
fn any_other_plugin_is_refused_with_those_that_work() {
    let message = said(b"authentication_ldap_simple").message;
    for name in [
        "authentication_ldap_simple",
        "caching_sha2_password",
        "ed25519",
        "mysql_native_password",
    ] {
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_challenge_of_random_bytes_keeps_a_zero_at_its_end_and_one_of_text_does_not() {
    let request = |plugin: &str, data: &[u8]| [b"\xFE", plugin.as_bytes(), b"\0", data].concat();
    let mut random = [9; 32];
    random[30..].fill(0);
    let ed25519 = request("client_ed25519", &random);
    assert_eq!(challenge(&ed25519, &AuthPlugin::Ed25519), random);
    let native = request("mysql_native_password", b"twenty bytes of text\0");
    assert_eq!(
        challenge(&native, &AuthPlugin::MysqlNativePassword),
        b"twenty bytes of text"
    );
    assert_eq!(challenge(b"\xFEname", &AuthPlugin::Ed25519), b"");
}

#[test]
fn parsec_is_refused_by_name_although_the_library_knows_it() {
    let parsec = AuthPlugin::MariadbParsec {
        iterations: 0,
        ext_salt: [0; 18],
    };
    assert!(by(parsec, vec![7; 32]).message.contains("parsec"));
}

#[test]
fn an_old_password_is_proved_by_a_challenge_or_not_at_all() {
    let refused = by(AuthPlugin::MysqlOldPassword, Vec::new());
    assert!(refused.message.contains("challenge"), "{refused}");
}

#[test]
fn a_greeting_whose_challenge_has_an_impossible_length_is_refused() {
    let greeting = |length: u8| {
        let mut greeting = b"\x0a8.0\0".to_vec();
        greeting.resize(1 + 3 + 1 + 20, 0);
        greeting.push(length);
        greeting.resize(200, 0);
        greeting
    };
    assert!(read_greeting(&greeting(21)).is_ok());
    for length in [0x80, 0x87, 0xFF] {
        assert!(read_greeting(&greeting(length)).is_err(), "{length}");
    }
}
