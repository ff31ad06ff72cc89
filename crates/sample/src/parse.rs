//! Parsing what the kernel prints, byte by byte and without allocation: this runs hundreds of times a second beside
//! what is measured.

/// Where a parser stands in a file's content.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start.
    pub fn new(content: &'a [u8]) -> Self {
        Self { rest: content }
    }

    /// Whether everything was read.
    pub fn at_end(self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Skips blanks, then reads an unsigned number; nothing if there is none on this line.
    pub fn number(&mut self) -> Option<u64> {
        self.skip_blanks();
        let mut value = 0_u64;
        let mut digits = 0;
        while let Some(digit) = self
            .rest
            .get(digits)
            .map(|byte| byte.wrapping_sub(b'0'))
            .filter(|digit| *digit < 10)
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        self.rest = &self.rest[digits..];
        (digits > 0).then_some(value)
    }

    /// Skips blanks, then reads up to the next blank, newline or colon, which stays.
    pub fn word(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let end = self
            .rest
            .iter()
            .position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b':'));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Takes `word` if it stands here and ends here; says whether it did.
    pub fn take(&mut self, word: &[u8]) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) if matches!(rest.first(), None | Some(b' ' | b'\t' | b'\n' | b':')) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Goes behind the first `byte`, or to the end if there is none.
    pub fn skip_past(&mut self, byte: u8) {
        let end = self
            .rest
            .iter()
            .position(|each| *each == byte)
            .map_or(self.rest.len(), |position| position + 1);
        self.rest = &self.rest[end..];
    }

    /// Goes behind the last `byte`; stays if there is none.
    pub fn skip_past_last(&mut self, byte: u8) {
        let end = self
            .rest
            .iter()
            .rposition(|each| *each == byte)
            .map_or(0, |position| position + 1);
        self.rest = &self.rest[end..];
    }

    /// Goes to the start of the next line.
    pub fn next_line(&mut self) {
        self.skip_past(b'\n');
    }

    fn skip_blanks(&mut self) {
        let blanks = self
            .rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        self.rest = &self.rest[blanks..];
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn numbers_are_read_across_blanks_but_not_across_lines() {
        let mut cursor = Cursor::new(b"  12\t18446744073709551615 x\n7");
        assert_eq!(cursor.number(), Some(12));
        assert_eq!(cursor.number(), Some(u64::MAX));
        assert_eq!(cursor.number(), None);
        assert_eq!(cursor.word(), b"x");
        assert_eq!(cursor.number(), None);
        cursor.next_line();
        assert_eq!(cursor.number(), Some(7));
        assert!(cursor.at_end());
    }

    #[test]
    fn a_word_is_taken_only_whole() {
        let mut cursor = Cursor::new(b"pgscan_direct_throttle 1\npgscan_direct 2\n");
        assert!(!cursor.take(b"pgscan_direct"));
        assert!(cursor.take(b"pgscan_direct_throttle"));
        cursor.next_line();
        assert!(cursor.take(b"pgscan_direct"));
        assert_eq!(cursor.number(), Some(2));
    }

    #[test]
    fn skipping_past_nothing_goes_to_the_end_and_past_the_last_of_nothing_stays() {
        let mut cursor = Cursor::new(b"a)b)c");
        cursor.skip_past_last(b')');
        assert_eq!(cursor.rest(), b"c");
        cursor.skip_past_last(b')');
        assert_eq!(cursor.rest(), b"c");
        cursor.skip_past(b')');
        assert!(cursor.at_end());
    }
}
