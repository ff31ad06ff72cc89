//! Restoring real files on the file system that holds temporary directories.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use fairtrial_protocol::state::{Restore, Restored};
use fairtrial_state::{StateError, restore};
use rustix::process::geteuid;
use tempfile::TempDir;

const HOLE_BYTES: u64 = 64 << 20;

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            directory: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(place.prepared()).expect("made");
        place
    }

    fn prepared(&self) -> PathBuf {
        self.directory.path().join("prepared")
    }

    fn work(&self) -> PathBuf {
        self.directory.path().join("work").join("data")
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.prepared().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, content).expect("written");
        path
    }

    fn restore(&self) -> Result<Restored, StateError> {
        restore(&parameters(&self.prepared(), &self.work()))
    }

    /// Nothing but the work directory itself may be left where it is.
    fn is_tidy(&self) -> bool {
        let parent = self.directory.path().join("work");
        fs::read_dir(parent)
            .expect("listed")
            .all(|entry| entry.expect("an entry").file_name() == "data")
    }
}

fn parameters(from: &Path, to: &Path) -> Restore {
    let text = |path: &Path| path.to_str().expect("plain").to_owned();
    Restore {
        from: text(from),
        to: text(to),
        user: None,
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn a_tree_comes_back_with_its_permissions_and_links() {
    let place = Place::new();
    let table = place.write("tpcc/stock.ibd", &vec![7; 100_000]);
    fs::set_permissions(&table, Permissions::from_mode(0o640)).expect("set");
    place.write("empty", b"");
    fs::create_dir(place.prepared().join("sealed")).expect("made");
    place.write("sealed/inside", b"kept");
    fs::set_permissions(
        place.prepared().join("sealed"),
        Permissions::from_mode(0o550),
    )
    .expect("set");
    symlink("tpcc/stock.ibd", place.prepared().join("link")).expect("linked");
    symlink("/nowhere/at/all", place.prepared().join("dangling")).expect("linked");

    let restored = place.restore().expect("restored");

    assert_eq!(restored.files, 3);
    assert_eq!(
        fs::read(place.work().join("tpcc/stock.ibd")).expect("read"),
        vec![7; 100_000]
    );
    assert_eq!(mode(&place.work().join("tpcc/stock.ibd")), 0o640);
    assert_eq!(fs::read(place.work().join("empty")).expect("read"), b"");
    assert_eq!(mode(&place.work().join("sealed")), 0o550);
    assert_eq!(
        fs::read(place.work().join("sealed/inside")).expect("read"),
        b"kept"
    );
    assert_eq!(
        fs::read_link(place.work().join("link")).expect("a link"),
        Path::new("tpcc/stock.ibd")
    );
    assert_eq!(
        fs::read_link(place.work().join("dangling")).expect("a link"),
        Path::new("/nowhere/at/all")
    );
    assert!(place.is_tidy());
    // Or the temporary directory could not be removed by an unprivileged user.
    for directory in [place.prepared(), place.work()] {
        fs::set_permissions(directory.join("sealed"), Permissions::from_mode(0o750)).expect("set");
    }
}

#[test]
fn holes_are_neither_counted_nor_filled() {
    let place = Place::new();
    let file = File::create(place.prepared().join("ibdata1")).expect("created");
    file.write_all_at(&[1; 4096], 0).expect("written");
    file.write_all_at(&[2; 4096], HOLE_BYTES / 2)
        .expect("written");
    file.set_len(HOLE_BYTES).expect("longer");
    file.sync_all().expect("synced");

    let restored = place.restore().expect("restored");

    let copy = place.work().join("ibdata1");
    let metadata = fs::metadata(&copy).expect("there");
    assert_eq!(metadata.len(), HOLE_BYTES);
    assert!(
        metadata.blocks() * 512 < HOLE_BYTES / 8,
        "{} blocks are allocated",
        metadata.blocks()
    );
    assert!(
        (8192..HOLE_BYTES / 8).contains(&restored.bytes),
        "{} bytes of data",
        restored.bytes
    );
    let mut middle = [0; 4097];
    File::open(&copy)
        .expect("opened")
        .read_exact_at(&mut middle, HOLE_BYTES / 2)
        .expect("read");
    assert_eq!((middle[0], middle[4095], middle[4096]), (2, 2, 0));
}

#[test]
fn many_files_in_many_directories_all_arrive_with_their_own_content() {
    const FILES: usize = 500;
    let place = Place::new();
    for number in 0..FILES {
        place.write(
            &format!("d{}/e{}/f{number}", number % 7, number % 5),
            format!("{number}\n").repeat(number).as_bytes(),
        );
    }
    let restored = place.restore().expect("restored");
    assert_eq!(restored.files, FILES as u64);
    let mut bytes = 0;
    for number in 0..FILES {
        let content = fs::read(place.work().join(format!(
            "d{}/e{}/f{number}",
            number % 7,
            number % 5
        )))
        .expect("read");
        assert_eq!(content, format!("{number}\n").repeat(number).as_bytes());
        bytes += content.len() as u64;
    }
    // A file system that reports data by the block counts the last block's rest.
    assert!(
        restored.bytes >= bytes,
        "{} of {bytes} bytes",
        restored.bytes
    );
}

#[test]
fn what_was_in_the_work_directory_is_gone() {
    let place = Place::new();
    place.write("table", b"prepared");
    fs::create_dir_all(place.work().join("deep")).expect("made");
    fs::write(place.work().join("deep/leftover"), "of the last trial").expect("written");
    fs::write(place.work().join("table"), "changed by the last trial").expect("written");
    place.restore().expect("restored");
    assert_eq!(
        fs::read(place.work().join("table")).expect("read"),
        b"prepared"
    );
    assert!(!place.work().join("deep").exists());
    assert!(place.is_tidy());
}

#[test]
fn the_rest_of_an_interrupted_restore_is_swept_away() {
    let place = Place::new();
    place.write("table", b"whole");
    let rest = place.directory.path().join("work/.data.restoring");
    fs::create_dir_all(rest.join("half")).expect("made");
    fs::write(rest.join("table"), "hal").expect("written");
    place.restore().expect("restored");
    assert_eq!(
        fs::read(place.work().join("table")).expect("read"),
        b"whole"
    );
    assert!(!place.work().join("half").exists());
    assert!(place.is_tidy());
}

#[test]
fn prepared_data_stay_as_they_are_when_the_copy_changes() {
    let place = Place::new();
    let original = place.write("table", &[1; 8192]);
    place.restore().expect("restored");
    fs::write(place.work().join("table"), [2; 8192]).expect("written");
    assert_eq!(fs::read(original).expect("read"), [1; 8192]);
}

#[test]
fn a_socket_left_behind_is_not_copied() {
    let place = Place::new();
    place.write("table", b"x");
    let _listener = UnixListener::bind(place.prepared().join("s.sock")).expect("bound");
    assert_eq!(place.restore().expect("restored").files, 1);
    assert!(!place.work().join("s.sock").exists());
}

#[test]
fn a_missing_source_says_so_and_leaves_the_work_directory_alone() {
    let place = Place::new();
    fs::create_dir_all(place.work()).expect("made");
    fs::write(place.work().join("table"), "still here").expect("written");
    let missing = place.directory.path().join("never-prepared");
    let error = restore(&parameters(&missing, &place.work())).expect_err("refused");
    assert!(
        matches!(&error, StateError::Missing { path } if *path == missing),
        "{error}"
    );
    assert!(error.hint().contains("makes them again"));
    assert_eq!(
        fs::read(place.work().join("table")).expect("read"),
        b"still here"
    );
}

#[test]
fn a_target_that_cannot_be_written_is_named() {
    let place = Place::new();
    place.write("table", b"x");
    let file = place.directory.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let below_a_file =
        restore(&parameters(&place.prepared(), &file.join("data"))).expect_err("refused");
    assert!(
        matches!(&below_a_file, StateError::Write { path, .. } if *path == file),
        "{below_a_file}"
    );
    // Nobody, root included, creates directories in /proc.
    let in_proc =
        restore(&parameters(&place.prepared(), Path::new("/proc/fairtrial"))).expect_err("refused");
    assert!(matches!(in_proc, StateError::Write { .. }), "{in_proc}");
    assert!(in_proc.hint().contains("permissions"));
}

#[test]
fn prepared_data_cannot_be_restored_into_or_over_themselves() {
    let place = Place::new();
    let table = place.write("table", b"x");
    for target in [
        place.prepared(),
        place.prepared().join("inside"),
        place.directory.path().to_owned(),
    ] {
        let error = restore(&parameters(&place.prepared(), &target)).expect_err("refused");
        assert!(matches!(error, StateError::Overlap { .. }), "{error}");
    }
    assert_eq!(fs::read(table).expect("read"), b"x");
}

#[test]
fn the_copy_belongs_to_the_user_asked_for_where_the_agent_is_root() {
    let place = Place::new();
    place.write("deep/table", b"x");
    symlink("deep/table", place.prepared().join("link")).expect("linked");
    let mut wanted = parameters(&place.prepared(), &place.work());
    wanted.user = Some("nobody".to_owned());
    restore(&wanted).expect("restored");
    let owner = |name: &str| {
        fs::symlink_metadata(place.work().join(name))
            .expect("there")
            .uid()
    };
    let own = fs::metadata(place.prepared()).expect("there").uid();
    for name in ["", "deep", "deep/table", "link"] {
        assert_eq!(
            owner(name) != own,
            geteuid().is_root(),
            "{name:?} belongs to {}",
            owner(name)
        );
    }
    if geteuid().is_root() {
        wanted.user = Some("no-such-user".to_owned());
        let error = restore(&wanted).expect_err("refused");
        assert!(matches!(error, StateError::User { .. }), "{error}");
    }
}

#[test]
fn an_unreadable_file_leaves_nothing_behind() {
    if geteuid().is_root() {
        return; // root reads everything
    }
    let place = Place::new();
    place.write("fine", b"x");
    let secret = place.write("secret", b"x");
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).expect("set");
    let error = place.restore().expect_err("refused");
    assert!(
        matches!(&error, StateError::Read { path, .. } if *path == secret),
        "{error}"
    );
    assert!(!place.work().exists() && place.is_tidy());
}
