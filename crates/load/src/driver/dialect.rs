//! What the systems' SQL differs in. Workloads write their statements with the tokens of [`Dialect::render`].

/// A family of systems whose SQL is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// MariaDB and MySQL.
    Mysql,
    /// PostgreSQL. Its driver numbers the parameters ([`numbered`]).
    Postgres,
}

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer that fits 32 bits.
    Integer,
    /// An integer that needs 64 bits.
    Long,
    /// An exact decimal.
    Decimal {
        /// Digits in all.
        digits: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Text of a fixed length.
    Fixed(u16),
    /// Text of at most this length.
    Variable(u16),
    /// Date and time, to the second.
    Time,
}

impl Dialect {
    /// Writes a statement for this dialect.
    ///
    /// `{lock}` is a read that locks the row for the transaction (SQLite holds the whole database from `BEGIN
    /// IMMEDIATE` on and needs none). `{money}` is a parameter that is an exact decimal with two digits behind the
    /// point: MySQL would add a text parameter in floating point, SQLite stores units.
    pub fn render(self, template: &str) -> String {
        let (lock, money) = match self {
            Self::Sqlite => ("", "?"),
            Self::Mysql => (" FOR UPDATE", "CAST(? AS DECIMAL(12,2))"),
            Self::Postgres => (" FOR UPDATE", "CAST(? AS NUMERIC(12,2))"),
        };
        template.replace("{lock}", lock).replace("{money}", money)
    }

    /// The name of a column type.
    pub fn column_type(self, kind: Type) -> String {
        match (self, kind) {
            (Self::Sqlite, Type::Integer | Type::Long | Type::Decimal { .. }) => "INTEGER".into(),
            (Self::Sqlite, Type::Fixed(_) | Type::Variable(_) | Type::Time) => "TEXT".into(),
            (Self::Mysql | Self::Postgres, Type::Integer) => "INT".into(),
            (Self::Mysql | Self::Postgres, Type::Long) => "BIGINT".into(),
            (Self::Mysql, Type::Decimal { digits, scale }) => format!("DECIMAL({digits},{scale})"),
            (Self::Postgres, Type::Decimal { digits, scale }) => {
                format!("NUMERIC({digits},{scale})")
            }
            (Self::Mysql | Self::Postgres, Type::Fixed(length)) => format!("CHAR({length})"),
            (Self::Mysql | Self::Postgres, Type::Variable(length)) => format!("VARCHAR({length})"),
            (Self::Mysql, Type::Time) => "DATETIME".into(),
            (Self::Postgres, Type::Time) => "TIMESTAMP(0)".into(),
        }
    }

    /// What follows a table's columns.
    ///
    /// Text compares by bytes on every system, so that "sorted by first name" (clause 2.6.2.2) means the same; the
    /// character set holds the 128 characters that clause 4.3.2.2 asks for. SQLite's tables are clustered by their
    /// primary key, as `InnoDB`'s are. No storage engine is named: an arm may set the server's default one.
    pub fn table_options(self, has_primary_key: bool) -> &'static str {
        match (self, has_primary_key) {
            (Self::Sqlite, true) => " STRICT, WITHOUT ROWID",
            (Self::Sqlite, false) => " STRICT",
            (Self::Mysql, _) => " DEFAULT CHARACTER SET latin1 COLLATE latin1_bin",
            // Encoding and collation are the database's; tables are heaps.
            (Self::Postgres, _) => "",
        }
    }
}

/// A statement with its question marks numbered: `$1`, `$2`. Those inside quotes and comments stay.
pub fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let (mut number, mut rest) = (0, sql);
    while let Some(letter) = rest.chars().next() {
        let before = sql[..sql.len() - rest.len()].chars().next_back();
        let is_in_name = before.is_some_and(|letter| letter == '$' || is_of_names(letter));
        let length = if letter == '$' && is_in_name {
            1
        } else {
            apart(rest).unwrap_or(letter.len_utf8())
        };
        if letter == '?' {
            number += 1;
            out.push('$');
            out.push_str(&number.to_string());
        } else {
            out.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    out
}

fn is_of_names(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// The length of the quoted text or comment that a piece of SQL begins with, up to its end if nothing closes it.
fn apart(sql: &str) -> Option<usize> {
    let until = |opening: usize, closing: &str| {
        let end = sql[opening..].find(closing);
        end.map_or(sql.len(), |end| opening + end + closing.len())
    };
    match *sql.as_bytes().first()? {
        b'\'' => Some(until(1, "'")),
        b'"' => Some(until(1, "\"")),
        b'-' if sql.starts_with("--") => Some(until(2, "\n")),
        b'/' if sql.starts_with("/*") => Some(until(2, "*/")),
        b'$' => {
            let tag = sql[1..].find('$').map(|end| &sql[..end + 2])?;
            let is_tag = tag[1..tag.len() - 1].chars().all(is_of_names);
            is_tag.then(|| until(tag.len(), tag))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_become_each_systems_words() {
        let template = "SELECT a FROM t WHERE b = {money}{lock}";
        assert_eq!(
            Dialect::Sqlite.render(template),
            "SELECT a FROM t WHERE b = ?"
        );
        assert_eq!(
            Dialect::Mysql.render(template),
            "SELECT a FROM t WHERE b = CAST(? AS DECIMAL(12,2)) FOR UPDATE"
        );
        assert_eq!(
            numbered(&Dialect::Postgres.render(template)),
            "SELECT a FROM t WHERE b = CAST($1 AS NUMERIC(12,2)) FOR UPDATE"
        );
    }

    #[test]
    fn parameters_are_numbered_in_their_order_and_text_is_left_alone() {
        assert_eq!(
            numbered("SELECT '?', 'it''s ?' WHERE a = ? AND b = ?"),
            "SELECT '?', 'it''s ?' WHERE a = $1 AND b = $2"
        );
        assert_eq!(
            numbered(
                "SELECT \"a?'\", $$?'$$, $t$?$t$ /* don't ? */ -- isn't ?\nWHERE a = ? AND b = '?'"
            ),
            "SELECT \"a?'\", $$?'$$, $t$?$t$ /* don't ? */ -- isn't ?\nWHERE a = $1 AND b = '?'"
        );
        assert_eq!(numbered("? 'open ?"), "$1 'open ?");
        assert_eq!(
            numbered("SELECT a$b$c, é$$ FROM t WHERE d = ?"),
            "SELECT a$b$c, é$$ FROM t WHERE d = $1",
            "a name may hold dollars"
        );
    }
}
