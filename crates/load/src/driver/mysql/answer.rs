//! What a server's packets say.

use super::classify_server;
use crate::calendar;
use crate::driver::{Cell, DriverError, ErrorKind, Row};

/// There are more results after this one (`SERVER_MORE_RESULTS_EXISTS`).
const MORE_RESULTS: u16 = 8;

/// A column's numbers have no sign (`UNSIGNED_FLAG`).
const UNSIGNED: u16 = 0x20;

/// How one command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEnd {
    /// Rows changed, or found by a condition.
    pub affected: u64,
    /// Things the server noticed.
    pub warnings: u16,
    status: u16,
}

impl CommandEnd {
    /// Whether another result follows.
    pub fn has_more(self) -> bool {
        self.status & MORE_RESULTS != 0
    }
}

/// The first packet of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// No rows.
    End(CommandEnd),
    /// Rows of this many columns.
    Rows(usize),
    /// The server asks for a file.
    File,
}

/// An answer that is read no further: nothing after it can be understood, so the connection is of no use any more.
pub fn abandoned(message: impl Into<String>) -> DriverError {
    DriverError {
        kind: ErrorKind::Connection,
        ..DriverError::unexpected(message)
    }
}

/// A packet that is not understood.
fn malformed() -> DriverError {
    abandoned("the server sent a packet that is cut or of another protocol")
}

/// Bytes, read from the front.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A packet's content.
    pub fn new(content: &'a [u8]) -> Self {
        Self(content)
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
        self.array().map(u16::from_le_bytes)
    }

    /// An integer of four bytes.
    pub fn u32(&mut self) -> Result<u32, DriverError> {
        self.array().map(u32::from_le_bytes)
    }

    /// An integer whose first byte says how long it is; `None` is NULL.
    pub fn length(&mut self) -> Result<Option<u64>, DriverError> {
        Ok(Some(match self.u8()? {
            0xFB => return Ok(None),
            0xFC => self.u16()?.into(),
            0xFD => {
                let [low, middle, high] = self.array()?;
                u32::from_le_bytes([low, middle, high, 0]).into()
            }
            0xFE => self.array().map(u64::from_le_bytes)?,
            0xFF => return Err(malformed()),
            small => small.into(),
        }))
    }

    /// Bytes with their length before them; `None` is NULL.
    pub fn text(&mut self) -> Result<Option<&'a [u8]>, DriverError> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        self.bytes(usize::try_from(length).map_err(|_| malformed())?)
            .map(Some)
    }
}

/// Reads the first packet of an answer; an error packet is an error.
pub fn head(content: &[u8]) -> Result<Head, DriverError> {
    match content.first() {
        None => Err(malformed()),
        Some(0x00) => end(content).map(Head::End),
        Some(0xFB) => Ok(Head::File),
        Some(0xFF) => Err(error(content)),
        Some(_) => {
            let columns = Reader::new(content).length()?.ok_or_else(malformed)?;
            // As many as a prepared statement can say it has; no server has as many.
            let columns = u16::try_from(columns).map_err(|_| malformed())?;
            Ok(Head::Rows(columns.into()))
        }
    }
}

/// Reads an OK packet, also one that ends rows.
pub fn end(content: &[u8]) -> Result<CommandEnd, DriverError> {
    let mut reader = Reader::new(content);
    reader.u8()?;
    let affected = reader.length()?.ok_or_else(malformed)?;
    reader.length()?;
    let status = reader.u16()?;
    let warnings = reader.u16()?;
    Ok(CommandEnd {
        affected,
        warnings,
        status,
    })
}

/// Reads a packet that comes where rows do, if it is none: how they ended.
pub fn rows_end(content: &[u8], has_old_end: bool) -> Option<Result<CommandEnd, DriverError>> {
    match content.first() {
        Some(0xFE) if has_old_end && content.len() < 9 => Some(old_end(content)),
        Some(0xFE) if !has_old_end => Some(end(content)),
        Some(0xFF) => Some(Err(error(content))),
        _ => None,
    }
}

/// Reads the packet that ends rows in servers before MySQL 5.7 and MariaDB 10.2.
fn old_end(content: &[u8]) -> Result<CommandEnd, DriverError> {
    let mut reader = Reader::new(content);
    reader.u8()?;
    let warnings = reader.u16()?;
    let status = reader.u16()?;
    Ok(CommandEnd {
        affected: 0,
        warnings,
        status,
    })
}

/// Reads an error packet.
pub fn error(content: &[u8]) -> DriverError {
    let mut reader = Reader::new(content.get(1..).unwrap_or_default());
    let Ok(code) = reader.u16() else {
        return malformed();
    };
    let message = match reader.0 {
        [b'#', _, _, _, _, _, message @ ..] | message => message,
    };
    classify_server(code, String::from_utf8_lossy(message).into_owned())
}

/// A column of a result, as far as its values depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MysqlColumn {
    kind: u8,
    flags: u16,
}

impl MysqlColumn {
    /// Reads a column definition: type and flags stand at fixed places before its end.
    pub fn read(content: &[u8]) -> Result<Self, DriverError> {
        match content {
            [.., kind, low, high, _decimals, 0, 0] => Ok(Self {
                kind: *kind,
                flags: u16::from_le_bytes([*low, *high]),
            }),
            _ => Err(malformed()),
        }
    }

    /// Its name, the fifth of the texts that a definition begins with.
    pub fn name(content: &[u8]) -> Result<String, DriverError> {
        let mut reader = Reader::new(content);
        for _ in 0..4 {
            reader.text()?;
        }
        let name = reader.text()?.ok_or_else(malformed)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn is_unsigned(self) -> bool {
        self.flags & UNSIGNED != 0
    }
}

/// Reads a row of a prepared statement.
pub fn row(content: &[u8], columns: &[MysqlColumn]) -> Result<Row, DriverError> {
    let mut reader = Reader::new(content);
    reader.u8()?;
    // The first two bits are not of columns.
    let nulls = reader.bytes((columns.len() + 9) / 8)?;
    let mut cells = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let bit = index + 2;
        let is_null = nulls[bit / 8] & (1 << (bit % 8)) != 0;
        cells.push(if is_null {
            Cell::Null
        } else {
            cell(&mut reader, *column)?
        });
    }
    Ok(Row(cells))
}

/// Types by their numbers in the protocol.
mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const DECIMAL: u8 = 0;
    pub const NEWDECIMAL: u8 = 246;
}

fn cell(reader: &mut Reader<'_>, column: MysqlColumn) -> Result<Cell, DriverError> {
    let integer = |signed: i64, unsigned: u64| {
        if !column.is_unsigned() {
            return Ok(Cell::Integer(signed));
        }
        i64::try_from(unsigned)
            .map(Cell::Integer)
            .map_err(|_| DriverError::unexpected(format!("{unsigned} exceeds 63 bits")))
    };
    match column.kind {
        kind::TINY => {
            let [byte] = reader.array()?;
            integer(i8::from_le_bytes([byte]).into(), byte.into())
        }
        kind::SHORT | kind::YEAR => {
            let bytes = reader.array()?;
            integer(
                i16::from_le_bytes(bytes).into(),
                u16::from_le_bytes(bytes).into(),
            )
        }
        kind::LONG | kind::INT24 => {
            let bytes = reader.array()?;
            integer(
                i32::from_le_bytes(bytes).into(),
                u32::from_le_bytes(bytes).into(),
            )
        }
        kind::LONGLONG => {
            let bytes = reader.array()?;
            integer(i64::from_le_bytes(bytes), u64::from_le_bytes(bytes))
        }
        kind::FLOAT => Ok(Cell::Text(f32::from_le_bytes(reader.array()?).to_string())),
        kind::DOUBLE => Ok(Cell::Text(f64::from_le_bytes(reader.array()?).to_string())),
        kind::TIMESTAMP | kind::DATETIME | kind::DATE => time(reader),
        kind::TIME => duration(reader),
        kind::NEWDECIMAL | kind::DECIMAL => reader.text()?.map(Cell::decimal).ok_or_else(malformed),
        _ => {
            let text = std::str::from_utf8(reader.text()?.ok_or_else(malformed)?);
            Ok(text.map_or(Cell::Binary, |text| Cell::Text(text.to_owned())))
        }
    }
}

/// A date and time: as many fields as are not zero, the fraction of the second last.
fn time(reader: &mut Reader<'_>) -> Result<Cell, DriverError> {
    let length = reader.u8()?;
    let bytes = reader.bytes(length.into())?;
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let year = i64::from(u16::from_le_bytes([at(0), at(1)]));
    let text = calendar::text((year, at(2), at(3)), (at(4), at(5), at(6)));
    Ok(Cell::Text(text + &fraction(bytes.get(7..))))
}

/// A `TIME`, which may be negative and longer than a day.
fn duration(reader: &mut Reader<'_>) -> Result<Cell, DriverError> {
    let length = reader.u8()?;
    let bytes = reader.bytes(length.into())?;
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let sign = if at(0) == 1 { "-" } else { "" };
    let days = u32::from_le_bytes([at(1), at(2), at(3), at(4)]);
    let hours = 24 * u64::from(days) + u64::from(at(5));
    let text = format!("{sign}{hours:02}:{:02}:{:02}", at(6), at(7));
    Ok(Cell::Text(text + &fraction(bytes.get(8..))))
}

/// The fraction of a second, where it is sent: microseconds.
fn fraction(bytes: Option<&[u8]>) -> String {
    let microseconds = bytes.and_then(<[u8]>::first_chunk).copied();
    let text = microseconds.map(|bytes| format!(".{:06}", u32::from_le_bytes(bytes)));
    text.unwrap_or_default()
}
