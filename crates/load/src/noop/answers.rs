//! The packets of a server that does nothing (MariaDB's client/server protocol, versions 4.1 and later).

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_PREPARE: u8 = 0x16;
const COM_EXECUTE: u8 = 0x17;
const COM_LONG_DATA: u8 = 0x18;
const COM_CLOSE: u8 = 0x19;

/// Long passwords, found rows, long flags, a database at login, protocol 4.1, transactions, secure connection,
/// several results, and authentication plugins. No TLS and no `DEPRECATE_EOF`: every client does without.
const CAPABILITIES: u32 =
    0x1 | 0x2 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000;

/// The session commits each statement by itself.
const AUTOCOMMIT: [u8; 2] = [2, 0];

const UTF8MB4: u8 = 45;
const VARCHAR: u8 = 0xfd;

/// What every column of every row holds.
const VALUE: &[u8] = b"1";

/// Columns of a result, kept in the low byte of a statement's number.
const COLUMNS_MASK: u32 = 0xff;

/// The first packet of a connection.
pub fn greeting() -> Vec<u8> {
    let [low0, low1, high0, high1] = CAPABILITIES.to_le_bytes();
    let mut payload = b"\x0a5.5.5-10.11.0-MariaDB-noop\0".to_vec();
    payload.extend([1, 0, 0, 0]);
    payload.extend(b"scramble\0");
    payload.extend([low0, low1, UTF8MB4]);
    payload.extend(AUTOCOMMIT);
    payload.extend([high0, high1, 21]);
    payload.extend([0; 10]);
    payload.extend(b"andtherestof\0");
    payload.extend(b"mysql_native_password\0");
    let mut out = Vec::new();
    packet(&mut out, 0, &payload);
    out
}

/// Appends the packet that says it went well.
pub fn ok(out: &mut Vec<u8>, sequence: u8) {
    packet(out, sequence, &[0, 0, 0, AUTOCOMMIT[0], 0, 0, 0]);
}

/// Appends a command's answer; `false` if the client says good-bye.
pub fn command(out: &mut Vec<u8>, payload: &[u8], statements: &mut u32) -> bool {
    match payload.split_first() {
        None | Some((&COM_QUIT, _)) => return false,
        Some((&(COM_LONG_DATA | COM_CLOSE), _)) => {}
        Some((&COM_QUERY, text)) => result(out, columns(text), &text_row),
        Some((&COM_PREPARE, text)) => prepared(out, text, statements),
        Some((&COM_EXECUTE, rest)) => {
            let columns = rest.first().copied().unwrap_or_default();
            result(out, columns, &binary_row);
        }
        Some(_) => ok(out, 1),
    }
    true
}

fn prepared(out: &mut Vec<u8>, text: &[u8], statements: &mut u32) {
    *statements = statements.wrapping_add(1);
    let columns = columns(text);
    let number = (*statements << 8) | (u32::from(columns) & COLUMNS_MASK);
    let marks = text.split(|byte| *byte == b'?').count() - 1;
    let parameters = u16::try_from(marks).unwrap_or(u16::MAX);
    let mut payload = vec![0];
    payload.extend(number.to_le_bytes());
    payload.extend(u16::from(columns).to_le_bytes());
    payload.extend(parameters.to_le_bytes());
    payload.extend([0, 0, 0]);
    packet(out, 1, &payload);
    let mut sequence = 1_u8;
    for count in [parameters, u16::from(columns)] {
        definitions(out, count, &mut sequence);
    }
}

/// A result of one row, or of none where there are no columns.
fn result(out: &mut Vec<u8>, columns: u8, row: &dyn Fn(u8) -> Vec<u8>) {
    if columns == 0 {
        return ok(out, 1);
    }
    packet(out, 1, &[columns]);
    let mut sequence = 1;
    definitions(out, columns.into(), &mut sequence);
    packet(out, sequence.wrapping_add(1), &row(columns));
    end(out, sequence.wrapping_add(2));
}

fn text_row(columns: u8) -> Vec<u8> {
    (0..columns).flat_map(|_| field(VALUE)).collect()
}

fn binary_row(columns: u8) -> Vec<u8> {
    let nulls = (usize::from(columns) + 9) / 8;
    let mut row = vec![0; 1 + nulls];
    row.extend(text_row(columns));
    row
}

/// Definitions of columns or parameters and the end behind them; nothing where there are none.
fn definitions(out: &mut Vec<u8>, count: u16, sequence: &mut u8) {
    if count == 0 {
        return;
    }
    let mut payload = Vec::new();
    for text in [&b"def"[..], b"", b"", b"", b"noop", b""] {
        payload.extend(field(text));
    }
    payload.extend([12, UTF8MB4, 0, 255, 0, 0, 0, VARCHAR, 0, 0, 0, 0, 0]);
    for _ in 0..count {
        *sequence = sequence.wrapping_add(1);
        packet(out, *sequence, &payload);
    }
    *sequence = sequence.wrapping_add(1);
    end(out, *sequence);
}

fn end(out: &mut Vec<u8>, sequence: u8) {
    packet(out, sequence, &[0xfe, 0, 0, AUTOCOMMIT[0], AUTOCOMMIT[1]]);
}

/// How many columns a statement's rows have: one more than the commas outside brackets before FROM; 0 without rows.
fn columns(text: &[u8]) -> u8 {
    let upper = text.trim_ascii_start().to_ascii_uppercase();
    if upper.starts_with(b"SHOW") {
        return 2;
    }
    if !upper.starts_with(b"SELECT") {
        return 0;
    }
    let list = upper
        .windows(6)
        .position(|window| window == b" FROM ")
        .map_or(&upper[..], |at| &upper[..at]);
    let mut depth = 0_i32;
    let mut count = 1_u8;
    for byte in list {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => count = count.saturating_add(1).min(250),
            _ => {}
        }
    }
    count
}

/// A short string with its length in front.
fn field(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or_default();
    let mut field = vec![length];
    field.extend_from_slice(&text[..length.into()]);
    field
}

fn packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    let length = u32::try_from(payload.len())
        .unwrap_or_default()
        .to_le_bytes();
    out.extend([length[0], length[1], length[2], sequence]);
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_before_from_and_outside_brackets() {
        assert_eq!(columns(b"SELECT c FROM sbtest1 WHERE id IN (1, 2)"), 1);
        assert_eq!(columns(b" select a, coalesce(b, 1), c from t"), 3);
        assert_eq!(columns(b"SELECT @@version, @@port"), 2);
        assert_eq!(columns(b"UPDATE t SET a = 1, b = 2"), 0);
        assert_eq!(columns(b"show variables"), 2, "a name and a value");
    }

    #[test]
    fn a_prepared_statement_tells_its_columns_when_executed() {
        let (mut out, mut statements) = (Vec::new(), 0);
        assert!(command(
            &mut out,
            b"\x16SELECT a, b FROM t WHERE c = ?",
            &mut statements
        ));
        assert_eq!(out[4..9], [0, 2, 1, 0, 0], "two columns of statement 1");
        assert_eq!(out[9..13], [2, 0, 1, 0], "two columns, one parameter");
        out.clear();
        assert!(command(&mut out, b"\x17\x02\x01\x00\x00", &mut statements));
        assert_eq!(out[..5], [1, 0, 0, 1, 2]);
    }

    #[test]
    fn closing_a_statement_has_no_answer_and_quitting_ends() {
        let (mut out, mut statements) = (Vec::new(), 0);
        assert!(command(&mut out, b"\x19\x01\x00\x00\x00", &mut statements));
        assert!(out.is_empty());
        assert!(!command(&mut out, b"\x01", &mut statements));
    }
}
