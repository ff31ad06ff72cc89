use super::*;

fn said(plugin: &[u8]) -> DriverError {
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
        nonce: vec![7; 20],
        plugin: AuthPlugin::Other(plugin.to_vec().into()),
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
        "the server wants this user to log in by the authentication plugin sha256_password, which is not supported; use \
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
