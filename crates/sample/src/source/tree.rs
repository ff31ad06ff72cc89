//! A process and its children, those that have ended included: a server with a process for each connection.
//!
//! A child that ends leaves its counters to its parent once that has waited for it (proc(5), `cutime` and its like), so
//! the sum goes on. Children of children count from when they end. What grows is added up; resident bytes are not,
//! since processes share most of theirs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::io::{Errno, pread};

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

/// Our columns; `processes` is how many there were.
const COLUMNS: [&str; 5] = [
    "minor_faults",
    "major_faults",
    "user_ticks",
    "system_ticks",
    "processes",
];
/// Counters that are summed: all but the last column.
const SUMMED: usize = COLUMNS.len() - 1;

/// Of `stat`, by their numbers in proc(5): a process's own counters and those of its ended children.
const OWN: [usize; SUMMED] = [10, 12, 14, 15];
const ENDED: [usize; SUMMED] = [11, 13, 16, 17];
/// The first field behind the command's name, and the last one needed.
const STATE: usize = 3;
const LAST: usize = 17;

/// A line of `stat` is some 400 bytes; its fields up to `LAST` stand in the first half.
const LINE_BYTES: usize = 1024;

/// A child that ends while the others are read would be counted twice or not at all; then all is read again, this often.
const ATTEMPTS: usize = 3;

/// Each thread lists the children that it forked, at some 10 us a thread. Of a process with more threads, only the
/// children of the main one are listed: the others would cost the machine that is measured more than half a percent of
/// a processor at a row a second. Their children count from when they end.
const MOST_THREADS: usize = 500;

/// Counters of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessCounters {
    own: [u64; SUMMED],
    ended: [u64; SUMMED],
}

/// A process and its children.
pub struct ProcessTree {
    root: PathBuf,
    stat: ProcFile,
    /// The main thread's.
    children: ProcFile,
    threads: PathBuf,
    main_thread: PathBuf,
    /// Each child's `stat`, which stands for this very process even if its number is used again.
    open: BTreeMap<i32, File>,
    columns: Vec<String>,
    /// The last row's sums, below which none may fall.
    reached: [u64; SUMMED],
}

impl ProcessTree {
    /// Opens the process below `root`, the place's `/proc`.
    pub fn open(root: &Path, process: i32) -> io::Result<Self> {
        let directory = root.join(process.to_string());
        let threads = directory.join("task");
        let main_thread = threads.join(process.to_string());
        let children = ProcFile::open(&main_thread.join("children")).map_err(|error| {
            let problem = format!("its children are not listed (CONFIG_PROC_CHILDREN): {error}");
            io::Error::new(error.kind(), problem)
        })?;
        let mut tree = Self {
            root: root.into(),
            stat: ProcFile::open_single(&directory.join("stat"))?,
            children,
            threads,
            main_thread,
            open: BTreeMap::new(),
            columns: COLUMNS.map(Into::into).into(),
            reached: [0; SUMMED],
        };
        tree.read(&mut [None; COLUMNS.len()])?;
        Ok(tree)
    }

    /// Opens the children that are new, and forgets those that are gone.
    fn list(&mut self) -> io::Result<()> {
        let listed = self.listed()?;
        let mut cursor = Cursor::new(&listed);
        let mut files = BTreeMap::new();
        while let Some(child) = cursor
            .number()
            .and_then(|number| i32::try_from(number).ok())
        {
            let file = match self.open.remove(&child) {
                Some(file) => file,
                // One that has ended since has left its counters.
                None => match File::open(self.root.join(child.to_string()).join("stat")) {
                    Ok(file) => file,
                    Err(_) => continue,
                },
            };
            files.insert(child, file);
        }
        self.open = files;
        Ok(())
    }

    /// Numbers of the children of all threads, with blanks between them.
    fn listed(&mut self) -> io::Result<Vec<u8>> {
        let mut listed = self.children.read()?.to_vec();
        let threads = fs::read_dir(&self.threads)?.take(MOST_THREADS + 1);
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        if threads.len() > MOST_THREADS {
            return Ok(listed);
        }
        for thread in threads.iter().map(fs::DirEntry::path) {
            if thread == self.main_thread {
                continue;
            }
            // One that has ended since has left its children to another.
            if let Ok(mut children) = File::open(thread.join("children")) {
                listed.push(b' ');
                let _ = children.read_to_end(&mut listed);
            }
        }
        Ok(listed)
    }

    /// Counters of the process as `root` reads them, and sums of its living children, from a moment at which no child
    /// ended, if there is one.
    fn together(
        &mut self,
        mut root: impl FnMut(&mut Self) -> io::Result<ProcessCounters>,
    ) -> io::Result<(ProcessCounters, [u64; SUMMED])> {
        let mut before = root(self)?;
        for _ in 1..ATTEMPTS {
            self.list()?;
            let living = self.living()?;
            let after = root(self)?;
            if after.ended == before.ended {
                return Ok((before, living));
            }
            before = after;
        }
        // A child that ends now is missing until the next row, and is not counted twice.
        self.list()?;
        Ok((before, self.living()?))
    }

    /// Sums of the children that live, with those that they have waited for.
    fn living(&self) -> io::Result<[u64; SUMMED]> {
        let mut sums = [0; SUMMED];
        let mut line = [0; LINE_BYTES];
        for file in self.open.values() {
            let length = match pread(file, &mut line, 0) {
                Ok(length) => length,
                Err(Errno::SRCH) => continue,
                Err(error) => return Err(error.into()),
            };
            let counted = counted(&line[..length])?;
            for (sum, (own, ended)) in sums.iter_mut().zip(counted.own.iter().zip(counted.ended)) {
                *sum = own.saturating_add(ended).saturating_add(*sum);
            }
        }
        Ok(sums)
    }
}

impl Counters for ProcessTree {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let (before, living) = self.together(|tree| root_counted(tree.stat.read()?))?;
        for (column, value) in row.iter_mut().take(SUMMED).enumerate() {
            let own = before.own[column].saturating_add(before.ended[column]);
            let sum = own.saturating_add(living[column]);
            self.reached[column] = self.reached[column].max(sum);
            *value = Some(self.reached[column]);
        }
        row[SUMMED] = Some(1 + self.open.len() as u64);
        Ok(())
    }
}

/// The process whose children are followed must live.
fn root_counted(content: &[u8]) -> io::Result<ProcessCounters> {
    let mut cursor = Cursor::new(content);
    cursor.skip_past_last(b')');
    if matches!(cursor.word(), b"Z" | b"X") {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process ended"));
    }
    counted(content)
}

fn counted(content: &[u8]) -> io::Result<ProcessCounters> {
    let mut cursor = Cursor::new(content);
    cursor.skip_past_last(b')');
    let mut counted = ProcessCounters::default();
    for field in STATE..=LAST {
        let word = cursor.word();
        for (fields, values) in [(OWN, &mut counted.own), (ENDED, &mut counted.ended)] {
            if let Some(position) = fields.iter().position(|number| *number == field) {
                let number = Cursor::new(word).number();
                values[position] = number.ok_or_else(|| damaged("a counter of a process"))?;
            }
        }
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A `stat` with these own and ended ticks of user time.
    fn line(process: i32, state: char, own: u64, ended: u64) -> String {
        format!("{process} (post) gres: x) {state} 1 1 1 0 -1 0 10 20 3 4 {own} 5 {ended} 6 20 0 1")
    }

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, content).expect("written");
        }

        fn open(&self) -> ProcessTree {
            ProcessTree::open(self.0.path(), 7).expect("opened")
        }
    }

    fn row(tree: &mut ProcessTree) -> [u64; COLUMNS.len()] {
        let mut row = [None; COLUMNS.len()];
        tree.read(&mut row).expect("read");
        row.map(|value| value.expect("a value"))
    }

    #[test]
    fn what_a_process_and_its_children_used_is_summed_those_that_ended_too() {
        let place = Place::new();
        place.write("7/stat", &line(7, 'S', 100, 1_000));
        place.write("7/task/7/children", "8 9 ");
        place.write("8/stat", &line(8, 'R', 10, 0));
        place.write("9/stat", &line(9, 'Z', 20, 5));
        let mut tree = place.open();
        assert_eq!(row(&mut tree), [90, 21, 1_135, 33, 3]);

        // Child 9 is waited for and leaves its 25 to its parent; 10 comes, and ended before it could be opened.
        place.write("7/stat", &line(7, 'S', 100, 1_025));
        place.write("7/task/7/children", "8 10 ");
        place.write("8/stat", &line(8, 'R', 12, 0));
        assert_eq!(row(&mut tree)[2], 1_137);
        assert_eq!(row(&mut tree)[4], 2);
    }

    #[test]
    fn sums_never_fall_even_where_a_child_is_missed() {
        let place = Place::new();
        place.write("7/stat", &line(7, 'S', 0, 0));
        place.write("7/task/7/children", "8 ");
        place.write("8/stat", &line(8, 'R', 50, 0));
        let mut tree = place.open();
        place.write("7/task/7/children", "");
        assert_eq!(row(&mut tree)[2], 50, "not yet among the ended");
        place.write("7/stat", &line(7, 'S', 0, 60));
        assert_eq!(row(&mut tree)[2], 60);
    }

    #[test]
    fn a_child_that_ends_at_the_last_attempt_is_not_counted_twice() {
        let place = Place::new();
        place.write("7/stat", &line(7, 'S', 0, 0));
        place.write("7/task/7/children", "8 ");
        place.write("8/stat", &line(8, 'R', 50, 0));
        let mut tree = place.open();
        // Other children end at each attempt, and child 8 at the last one, once it was read.
        let mut ended = [0, 1, 2, 52].into_iter();
        let (root, living) = tree
            .together(|_| {
                let ticks = ended.next().expect("as many attempts");
                counted(line(7, 'S', 0, ticks).as_bytes())
            })
            .expect("read");
        assert_eq!(root.ended[2] + living[2], 2 + 50);
    }

    #[test]
    fn children_that_other_threads_forked_count_unless_there_are_too_many_threads() {
        let place = Place::new();
        place.write("7/stat", &line(7, 'S', 1, 0));
        place.write("7/task/7/children", "8");
        place.write("7/task/70/children", "9");
        for child in [8, 9] {
            place.write(
                &format!("{child}/stat"),
                &line(child, 'R', 10 * u64::from(child.unsigned_abs()), 0),
            );
        }
        assert_eq!(row(&mut place.open())[2], 1 + 80 + 90);
        for thread in 100..100 + MOST_THREADS {
            place.write(&format!("7/task/{thread}/children"), "");
        }
        assert_eq!(row(&mut place.open())[2], 1 + 80);
    }

    #[test]
    fn sums_that_no_number_holds_are_the_largest() {
        let place = Place::new();
        place.write("7/task/7/children", "8 ");
        for process in [7, 8] {
            let stat = line(process, 'S', u64::MAX, u64::MAX);
            place.write(&format!("{process}/stat"), &stat);
        }
        assert_eq!(row(&mut place.open())[2], u64::MAX);
    }

    #[test]
    fn it_ends_with_its_root_and_says_what_the_kernel_must_have() {
        let place = Place::new();
        place.write("7/stat", &line(7, 'S', 0, 0));
        let error = ProcessTree::open(place.0.path(), 7).err().expect("refused");
        assert!(error.to_string().contains("CONFIG_PROC_CHILDREN"));
        place.write("7/task/7/children", "");
        let mut tree = place.open();
        place.write("7/stat", &line(7, 'Z', 0, 0));
        let ended = tree.read(&mut [None; COLUMNS.len()]).expect_err("it ended");
        assert_eq!(ended.kind(), io::ErrorKind::NotFound);
        place.write("7/stat", "7 (cut) S 1 1");
        assert!(tree.read(&mut [None; COLUMNS.len()]).is_err());
    }
}
