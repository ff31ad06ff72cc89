use std::io;

use super::*;
use crate::driver::{Cell, Row};
use crate::reactor::Address;
use crate::tests::mariadb::Server;

mod exchanges;
mod values;

fn driver(server: &Server, database: &str) -> Mysql {
    let fairtrial_protocol::load::Endpoint::Mysql {
        socket: Some(socket),
        ..
    } = server.endpoint(database)
    else {
        panic!("a socket")
    };
    Mysql(RemoteServer {
        address: Address::Socket(socket.into()),
        user: "root".into(),
        password: String::new(),
        database: database.into(),
        tls: None,
    })
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

/// The cell of a column of this kind, from its bytes in a row of a prepared statement.
fn cell(kind: u8, bytes: &[u8]) -> Cell {
    let column = answer::MysqlColumn::read(&[kind, 0, 0, 6, 0, 0]).expect("a column");
    let content = [&[0, 0], bytes].concat();
    let Row(mut cells) = answer::row(&content, &[column]).expect("a row");
    cells.remove(0)
}

#[test]
fn a_time_keeps_the_fraction_of_its_second() {
    const DATETIME: u8 = 12;
    let at = |bytes: &[u8]| cell(DATETIME, bytes);
    let text = |text: &str| Cell::Text(text.into());
    let second = [7, 0xea, 0x07, 1, 31, 23, 59, 58];
    assert_eq!(at(&second), text("2026-01-31 23:59:58"));
    let fraction = [11, 0xea, 0x07, 1, 31, 23, 59, 58, 0x40, 0xe2, 0x01, 0];
    assert_eq!(at(&fraction), text("2026-01-31 23:59:58.123456"));
    assert_eq!(
        at(&[4, 0xea, 0x07, 1, 31]),
        text("2026-01-31 00:00:00"),
        "midnight"
    );
}

#[test]
fn bytes_that_are_no_text_are_told_from_text() {
    const STRING: u8 = 254;
    assert_eq!(cell(STRING, b"\x02ab"), Cell::Text("ab".into()));
    assert_eq!(cell(STRING, b"\x02a\xff"), Cell::Binary);
}

#[test]
fn a_length_of_time_is_read_with_its_sign_and_fraction() {
    const TIME: u8 = 11;
    let lasts = |bytes: &[u8], text: &str| assert_eq!(cell(TIME, bytes), Cell::Text(text.into()));
    lasts(&[0], "00:00:00");
    lasts(&[8, 0, 0, 0, 0, 0, 9, 5, 7], "09:05:07");
    lasts(
        &[12, 1, 34, 0, 0, 0, 22, 59, 59, 7, 0, 0, 0],
        "-838:59:59.000007",
    );
}

#[test]
fn a_decimal_of_more_digits_than_64_bits_hold_is_kept_as_text() {
    const NEWDECIMAL: u8 = 246;
    let long = b"1234.5678000000000000";
    let length = u8::try_from(long.len()).expect("short");
    let kept = cell(NEWDECIMAL, &[&[length], &long[..]].concat());
    assert_eq!(kept, Cell::Text("1234.5678000000000000".into()));
}
