//! What a server's messages say.

use crate::driver::{Cell, DriverError, ErrorKind, Row};

/// Types by their numbers in `pg_type.dat`, which never change.
pub mod oid {
    pub const BOOL: u32 = 16;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const BPCHAR: u32 = 1042;
    pub const NUMERIC: u32 = 1700;
}

/// Values as text, the form every type has.
pub const TEXT: i16 = 0;
/// Values as the server keeps them.
pub const BINARY: i16 = 1;

/// The format in which values of a type travel: integers as they are, everything else as text.
pub fn format(kind: u32) -> i16 {
    match kind {
        oid::INT2 | oid::INT4 | oid::INT8 => BINARY,
        _ => TEXT,
    }
}

/// A message that is not understood.
pub fn malformed() -> DriverError {
    DriverError {
        kind: ErrorKind::Connection, // nothing after it can be understood either
        ..DriverError::unexpected("the server sent a message that is cut or of another protocol")
    }
}

/// Bytes, read from the front.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A message's body.
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], DriverError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DriverError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// An integer of one byte.
    pub fn u8(&mut self) -> Result<u8, DriverError> {
        Ok(self.array::<1>()?[0])
    }

    /// An integer of two bytes.
    pub fn u16(&mut self) -> Result<u16, DriverError> {
        self.array().map(u16::from_be_bytes)
    }

    /// An integer of four bytes.
    pub fn u32(&mut self) -> Result<u32, DriverError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Text that ends with a zero.
    pub fn text(&mut self) -> Result<String, DriverError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let bytes = self.bytes(end.ok_or_else(malformed)?)?;
        self.u8()?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// A value with its length before it; `None` is NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, DriverError> {
        match i32::from_be_bytes(self.array()?) {
            -1 => Ok(None),
            length => self
                .bytes(usize::try_from(length).map_err(|_| malformed())?)
                .map(Some),
        }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresColumn {
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub kind: u32,
}

/// Reads a row description.
pub fn columns(body: &[u8]) -> Result<Vec<PostgresColumn>, DriverError> {
    let mut reader = Reader::new(body);
    let count = reader.u16()?;
    (0..count)
        .map(|_| {
            let name = reader.text()?;
            reader.bytes(6)?; // table, column
            let kind = reader.u32()?;
            reader.bytes(8)?; // size, modifier, format
            Ok(PostgresColumn { name, kind })
        })
        .collect()
}

/// Reads the types of a statement's parameters.
pub fn parameters(body: &[u8]) -> Result<Vec<u32>, DriverError> {
    let mut reader = Reader::new(body);
    let count = reader.u16()?;
    (0..count).map(|_| reader.u32()).collect()
}

/// Reads a row, given its columns' types, each in its [`format`].
pub fn row(body: &[u8], kinds: &[u32]) -> Result<Row, DriverError> {
    let mut reader = Reader::new(body);
    if usize::from(reader.u16()?) != kinds.len() {
        return Err(malformed());
    }
    kinds
        .iter()
        .map(|kind| {
            reader
                .value()?
                .map_or(Ok(Cell::Null), |value| cell(value, *kind))
        })
        .collect::<Result<_, _>>()
        .map(Row)
}

/// Reads a row of text.
pub fn text_row(body: &[u8]) -> Result<Vec<Option<String>>, DriverError> {
    let mut reader = Reader::new(body);
    let count = reader.u16()?;
    (0..count)
        .map(|_| {
            let value = reader.value()?;
            Ok(value.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        })
        .collect()
}

fn cell(value: &[u8], kind: u32) -> Result<Cell, DriverError> {
    let integer = match kind {
        oid::INT2 => fixed(value).map(i16::from_be_bytes)?.into(),
        oid::INT4 => fixed(value).map(i32::from_be_bytes)?.into(),
        oid::INT8 => fixed(value).map(i64::from_be_bytes)?,
        oid::NUMERIC => return Ok(Cell::decimal(value)),
        oid::BOOL => i64::from(value == b"t"),
        // Blanks at the end of CHAR are no content, as MySQL has it.
        oid::BPCHAR => return Ok(Cell::Text(read(value).trim_end_matches(' ').into())),
        _ => return Ok(Cell::Text(read(value))),
    };
    Ok(Cell::Integer(integer))
}

fn read(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], DriverError> {
    value.try_into().map_err(|_| malformed())
}

/// The number of rows that a command touched: the last word of its tag (`INSERT 0 5`, `UPDATE 3`, `BEGIN`).
pub fn affected(tag: &str) -> u64 {
    let last = tag.rsplit(' ').next().unwrap_or_default();
    last.parse().unwrap_or_default()
}

/// The same of a command's end as the server sends it.
pub fn affected_by(body: &[u8]) -> Result<u64, DriverError> {
    Ok(affected(&Reader::new(body).text()?))
}

/// Reads an error.
pub fn error(body: &[u8]) -> DriverError {
    let mut reader = Reader::new(body);
    let (mut severity, mut code) = (String::new(), String::new());
    let (mut message, mut detail) = (String::new(), None);
    while let Ok(field @ 1..) = reader.u8() {
        let Ok(text) = reader.text() else {
            return malformed();
        };
        match field {
            b'V' => severity = text,
            b'C' => code = text,
            b'M' => message = text,
            b'D' => detail = Some(text),
            _ => {}
        }
    }
    if let Some(detail) = detail {
        message = format!("{message}: {detail}");
    }
    if code.is_empty() {
        return malformed();
    }
    classify(&severity, code, message)
}

/// Reads a notice that is the last word of a server: when it crashes it warns (57P02), and closes the connection.
pub fn farewell(body: &[u8]) -> Option<DriverError> {
    Some(error(body)).filter(|error| error.code.starts_with("57P"))
}

/// What a workload can do about an error (PostgreSQL, appendix A).
fn classify(severity: &str, code: String, message: String) -> DriverError {
    // the server closes the connection after it
    let closes = matches!(severity, "FATAL" | "PANIC");
    let (kind, retryable) = match code.as_str() {
        "40P01" => (ErrorKind::Deadlock, true),
        // serialization failure: the row was changed since the snapshot; a key that is there already may be the same in
        // disguise, as where two transactions replace one row (PostgreSQL 13.5.1)
        "40001" | "23505" => (ErrorKind::Other, true),
        // lock_timeout or NOWAIT; statement_timeout
        "55P03" | "57014" => (ErrorKind::LockTimeout, true),
        // too many connections; no such database; shutting down, crashed, starting
        "53300" | "3D000" | "57P01" | "57P02" | "57P03" => (ErrorKind::Connection, false),
        // disk full, and the connection stays (where the log cannot be written the server panics): room may come, but not
        // at once
        "53100" if !closes => (ErrorKind::DiskFull, false),
        // the classes of lost connections and of refused logins
        _ if code.starts_with("08") || code.starts_with("28") => (ErrorKind::Connection, false),
        _ if closes => (ErrorKind::Connection, false),
        _ => (ErrorKind::Other, false),
    };
    DriverError {
        kind,
        code,
        message,
        retryable,
    }
}

#[cfg(test)]
mod tests;
