use super::answer::units;
use super::*;

mod values;

#[test]
fn decimals_keep_every_digit() {
    assert_eq!(units(b"12.34"), Ok(1234));
    assert_eq!(units(b"-0.05"), Ok(-5));
    assert_eq!(units(b"0.1230"), Ok(1230));
    assert_eq!(units(b"300000"), Ok(300_000));
    assert!(units(b"1e3").is_err());
    assert!(
        units(b"99999999999999999999").is_err(),
        "too long for 63 bits"
    );
}

#[test]
fn errors_are_classified_by_what_the_workload_can_do_about_them() {
    let kind = |code| {
        let error = classify_server(code, String::new());
        (error.kind, error.retryable)
    };
    assert_eq!(kind(1213), (ErrorKind::Deadlock, true));
    assert_eq!(kind(1205), (ErrorKind::LockTimeout, true));
    assert_eq!(kind(1020), (ErrorKind::Other, true));
    assert_eq!(kind(1040), (ErrorKind::Connection, false));
    assert_eq!(kind(1062), (ErrorKind::Other, false));
    let lost = lost(io::ErrorKind::BrokenPipe.into());
    assert_eq!(
        (lost.kind, lost.code.as_str()),
        (ErrorKind::Connection, "connection_lost")
    );
}
