use super::*;
use crate::driver::Decimal;

fn body(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = u16::try_from(values.len())
        .expect("few")
        .to_be_bytes()
        .to_vec();
    for value in values {
        let length = value.map_or(-1, |bytes| i32::try_from(bytes.len()).expect("short"));
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default());
    }
    body
}

#[test]
fn cells_are_what_their_types_say() {
    const VARCHAR: u32 = 1043;
    let kinds = [
        oid::INT2,
        oid::INT4,
        oid::INT8,
        oid::NUMERIC,
        oid::BOOL,
        VARCHAR,
        VARCHAR,
    ];
    let values: [Option<&[u8]>; 7] = [
        Some(&(-2_i16).to_be_bytes()),
        Some(&70_000_i32.to_be_bytes()),
        Some(&i64::MIN.to_be_bytes()),
        Some(b"-0.05"),
        Some(b"t"),
        Some(b"12.50"),
        None,
    ];
    let expected = [
        Cell::Integer(-2),
        Cell::Integer(70_000),
        Cell::Integer(i64::MIN),
        Cell::Decimal(Decimal::money(-5)),
        Cell::Integer(1),
        Cell::Text("12.50".into()),
        Cell::Null,
    ];
    assert_eq!(row(&body(&values), &kinds), Ok(Row(expected.to_vec())));
}

#[test]
fn a_decimal_of_more_digits_than_64_bits_hold_is_kept_as_text() {
    // What PostgreSQL's AVG gives of whole numbers has sixteen digits behind its point.
    for text in ["1234.5678000000000000", "NaN"] {
        let cells = row(&body(&[Some(text.as_bytes())]), &[oid::NUMERIC]);
        assert_eq!(cells, Ok(Row(vec![Cell::Text(text.into())])));
    }
}

#[test]
fn blanks_that_pad_fixed_text_are_no_content_of_it() {
    let cells = row(&body(&[Some(b" a  "), Some(b"b ")]), &[oid::BPCHAR, 25]);
    let expected = [Cell::Text(" a".into()), Cell::Text("b ".into())];
    assert_eq!(cells, Ok(Row(expected.to_vec())));
}

#[test]
fn rows_that_are_cut_or_of_other_columns_are_errors_of_the_connection() {
    let whole = body(&[Some(b"abc"), None]);
    for cut in 0..whole.len() {
        let error = row(&whole[..cut], &[25, 25]).expect_err("it is cut");
        assert_eq!(error.kind, ErrorKind::Connection, "{cut}");
    }
    assert!(
        row(&whole, &[25]).is_err(),
        "one column more than described"
    );
    assert!(
        row(&body(&[Some(b"abc")]), &[oid::INT4]).is_err(),
        "no four bytes"
    );
}

#[test]
fn commands_say_how_many_rows_they_touched() {
    for (tag, rows) in [
        ("INSERT 0 5", 5),
        ("UPDATE 3", 3),
        ("COPY 100000", 100_000),
        ("BEGIN", 0),
        ("", 0),
    ] {
        assert_eq!(affected(tag), rows, "{tag}");
    }
}

#[test]
fn errors_are_classified_by_what_the_workload_can_do_about_them() {
    let kind = |severity: &str, code: &str| {
        let error = error(format!("SERROR\0V{severity}\0C{code}\0Mwords\0Dmore\0\0").as_bytes());
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            (code, "words: more")
        );
        (error.kind, error.retryable)
    };
    assert_eq!(kind("ERROR", "40P01"), (ErrorKind::Deadlock, true));
    assert_eq!(kind("ERROR", "40001"), (ErrorKind::Other, true));
    assert_eq!(kind("ERROR", "55P03"), (ErrorKind::LockTimeout, true));
    assert_eq!(kind("ERROR", "57014"), (ErrorKind::LockTimeout, true));
    assert_eq!(kind("FATAL", "57P01"), (ErrorKind::Connection, false));
    assert_eq!(kind("FATAL", "28P01"), (ErrorKind::Connection, false));
    assert_eq!(
        kind("FATAL", "25P03"),
        (ErrorKind::Connection, false),
        "whatever its code"
    );
    assert_eq!(kind("ERROR", "53100"), (ErrorKind::DiskFull, false));
    assert_eq!(
        kind("PANIC", "53100"),
        (ErrorKind::Connection, false),
        "there is no room for the log"
    );
    assert_eq!(kind("ERROR", "23505"), (ErrorKind::Other, true));
    assert_eq!(kind("ERROR", "23502"), (ErrorKind::Other, false));
    assert_eq!(error(b"Mwithout a code\0\0").code, "unexpected_answer");
    // A message that grew with each would take as long as the square of what came.
    let details = error(b"C42601\0Mwords\0Da\0Db\0\0");
    assert_eq!(details.message, "words: b");
}

#[test]
fn a_warning_that_ends_the_connection_is_its_error_and_others_are_none() {
    let warning = |code: &str| farewell(format!("VWARNING\0C{code}\0Mwords\0\0").as_bytes());
    let last = warning("57P02").expect("the server crashed");
    assert_eq!(
        (last.kind, last.code.as_str()),
        (ErrorKind::Connection, "57P02")
    );
    assert_eq!(warning("01000"), None);
}
