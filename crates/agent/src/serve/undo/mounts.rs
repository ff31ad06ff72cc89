//! What is mounted where.

use std::fs;
use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;

const TABLE: &str = "/proc/self/mountinfo";

/// Whether a file system is mounted exactly there.
pub fn is_mount_point(target: &str) -> Result<bool, Failure> {
    let Ok(target) = fs::canonicalize(target) else {
        return Ok(false);
    };
    Ok(points()?.contains(&target))
}

/// Whether anything is mounted there or below.
pub fn any_below(directory: &str) -> Result<bool, Failure> {
    let Ok(directory) = fs::canonicalize(directory) else {
        return Ok(false);
    };
    Ok(points()?.iter().any(|point| point.starts_with(&directory)))
}

fn points() -> Result<Vec<PathBuf>, Failure> {
    let table = fs::read_to_string(TABLE).map_err(|cause| Failure::system("read", TABLE, cause))?;
    Ok(table
        .lines()
        .filter_map(|line| Some(point(line.split(' ').nth(4)?)))
        .collect())
}

/// proc(5): blank, tab, newline and backslash are written as three octal digits.
fn point(field: &str) -> PathBuf {
    let text = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (code, character)| {
        text.replace(code, character)
    });
    Path::new(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_a_mount_point_and_its_files_are_below_the_root() {
        assert!(is_mount_point("/proc").expect("the table is readable"));
        assert!(!is_mount_point("/proc/self").expect("the table is readable"));
        assert!(any_below("/").expect("the table is readable"));
        assert!(!any_below("/no/such/directory").expect("the table is readable"));
    }

    #[test]
    fn blanks_in_names_are_decoded() {
        assert_eq!(point("/mnt/a\\040b\\134c"), Path::new("/mnt/a b\\c"));
    }
}
