//! Restoring real files on the file system that holds temporary directories.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use fairtrial_state::{StateError, restore};
use rustix::process::geteuid;

use crate::prepared::{PreparedData, parameters};

const HOLE_BYTES: u64 = 64 << 20;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn a_tree_comes_back_with_its_permissions_and_links() {
    let data = PreparedData::new();
    let table = data.write("tpcc/stock.ibd", &vec![7; 100_000]);
    fs::set_permissions(&table, Permissions::from_mode(0o640)).expect("set");
    data.write("empty", b"");
    fs::create_dir(data.prepared().join("sealed")).expect("made");
    data.write("sealed/inside", b"kept");
    fs::set_permissions(
        data.prepared().join("sealed"),
        Permissions::from_mode(0o550),
    )
    .expect("set");
    symlink("tpcc/stock.ibd", data.prepared().join("link")).expect("linked");
    symlink("/nowhere/at/all", data.prepared().join("dangling")).expect("linked");

    let restored = data.restore().expect("restored");

    assert_eq!(restored.files, 3);
    assert_eq!(
        fs::read(data.work().join("tpcc/stock.ibd")).expect("read"),
        vec![7; 100_000]
    );
    assert_eq!(mode(&data.work().join("tpcc/stock.ibd")), 0o640);
    assert_eq!(fs::read(data.work().join("empty")).expect("read"), b"");
    assert_eq!(mode(&data.work().join("sealed")), 0o550);
    assert_eq!(
        fs::read(data.work().join("sealed/inside")).expect("read"),
        b"kept"
    );
    assert_eq!(
        fs::read_link(data.work().join("link")).expect("a link"),
        Path::new("tpcc/stock.ibd")
    );
    assert_eq!(
        fs::read_link(data.work().join("dangling")).expect("a link"),
        Path::new("/nowhere/at/all")
    );
    assert!(data.is_tidy());
    // Or the temporary directory could not be removed by an unprivileged user.
    for directory in [data.prepared(), data.work()] {
        fs::set_permissions(directory.join("sealed"), Permissions::from_mode(0o750)).expect("set");
    }
}

#[test]
fn holes_are_neither_counted_nor_filled() {
    let data = PreparedData::new();
    let file = File::create(data.prepared().join("ibdata1")).expect("created");
    file.write_all_at(&[1; 4096], 0).expect("written");
    file.write_all_at(&[2; 4096], HOLE_BYTES / 2)
        .expect("written");
    file.set_len(HOLE_BYTES).expect("longer");
    file.sync_all().expect("synced");

    let restored = data.restore().expect("restored");

    let copy = data.work().join("ibdata1");
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
    let data = PreparedData::new();
    for number in 0..FILES {
        data.write(
            &format!("d{}/e{}/f{number}", number % 7, number % 5),
            format!("{number}\n").repeat(number).as_bytes(),
        );
    }
    let restored = data.restore().expect("restored");
    assert_eq!(restored.files, FILES as u64);
    let mut bytes = 0;
    for number in 0..FILES {
        let content = fs::read(data.work().join(format!(
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
    let data = PreparedData::new();
    data.write("table", b"prepared");
    fs::create_dir_all(data.work().join("deep")).expect("made");
    fs::write(data.work().join("deep/leftover"), "of the last trial").expect("written");
    fs::write(data.work().join("table"), "changed by the last trial").expect("written");
    data.restore().expect("restored");
    assert_eq!(
        fs::read(data.work().join("table")).expect("read"),
        b"prepared"
    );
    assert!(!data.work().join("deep").exists());
    assert!(data.is_tidy());
}

#[test]
fn the_rest_of_an_interrupted_restore_is_swept_away() {
    let data = PreparedData::new();
    data.write("table", b"whole");
    let rest = data.directory.path().join("work/.data.restoring");
    fs::create_dir_all(rest.join("half")).expect("made");
    fs::write(rest.join("table"), "hal").expect("written");
    data.restore().expect("restored");
    assert_eq!(fs::read(data.work().join("table")).expect("read"), b"whole");
    assert!(!data.work().join("half").exists());
    assert!(data.is_tidy());
}

#[test]
fn prepared_data_stay_as_they_are_when_the_copy_changes() {
    let data = PreparedData::new();
    let original = data.write("table", &[1; 8192]);
    data.restore().expect("restored");
    fs::write(data.work().join("table"), [2; 8192]).expect("written");
    assert_eq!(fs::read(original).expect("read"), [1; 8192]);
}

#[test]
fn a_socket_left_behind_is_not_copied() {
    let data = PreparedData::new();
    data.write("table", b"x");
    let _listener = UnixListener::bind(data.prepared().join("s.sock")).expect("bound");
    assert_eq!(data.restore().expect("restored").files, 1);
    assert!(!data.work().join("s.sock").exists());
}

#[test]
fn a_missing_source_says_so_and_leaves_the_work_directory_alone() {
    let data = PreparedData::new();
    fs::create_dir_all(data.work()).expect("made");
    fs::write(data.work().join("table"), "still here").expect("written");
    let missing = data.directory.path().join("never-prepared");
    let error = restore(&parameters(&missing, &data.work())).expect_err("refused");
    assert!(
        matches!(&error, StateError::Missing { path } if *path == missing),
        "{error}"
    );
    assert!(error.hint().contains("makes them again"));
    assert_eq!(
        fs::read(data.work().join("table")).expect("read"),
        b"still here"
    );
}

#[test]
fn a_target_that_cannot_be_written_is_named() {
    let data = PreparedData::new();
    data.write("table", b"x");
    let file = data.directory.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let below_a_file =
        restore(&parameters(&data.prepared(), &file.join("data"))).expect_err("refused");
    assert!(
        matches!(&below_a_file, StateError::Write { path, .. } if *path == file),
        "{below_a_file}"
    );
    // Nobody, root included, creates directories in /proc.
    let in_proc =
        restore(&parameters(&data.prepared(), Path::new("/proc/fairtrial"))).expect_err("refused");
    assert!(matches!(in_proc, StateError::Write { .. }), "{in_proc}");
    assert!(in_proc.hint().contains("permissions"));
}

#[test]
fn prepared_data_cannot_be_restored_into_or_over_themselves() {
    let data = PreparedData::new();
    let table = data.write("table", b"x");
    for target in [
        data.prepared(),
        data.prepared().join("inside"),
        data.directory.path().to_owned(),
    ] {
        let error = restore(&parameters(&data.prepared(), &target)).expect_err("refused");
        assert!(matches!(error, StateError::Overlap { .. }), "{error}");
    }
    assert_eq!(fs::read(table).expect("read"), b"x");
}

#[test]
fn the_copy_belongs_to_the_user_asked_for_where_the_agent_is_root() {
    let data = PreparedData::new();
    data.write("deep/table", b"x");
    symlink("deep/table", data.prepared().join("link")).expect("linked");
    let mut request = parameters(&data.prepared(), &data.work());
    request.user = Some("nobody".to_owned());
    restore(&request).expect("restored");
    let owner = |name: &str| {
        fs::symlink_metadata(data.work().join(name))
            .expect("there")
            .uid()
    };
    let own = fs::metadata(data.prepared()).expect("there").uid();
    for name in ["", "deep", "deep/table", "link"] {
        assert_eq!(
            owner(name) != own,
            geteuid().is_root(),
            "{name:?} belongs to {}",
            owner(name)
        );
    }
    if geteuid().is_root() {
        request.user = Some("no-such-user".to_owned());
        let error = restore(&request).expect_err("refused");
        assert!(matches!(error, StateError::User { .. }), "{error}");
    }
}

#[test]
fn an_unreadable_file_leaves_nothing_behind() {
    if geteuid().is_root() {
        return; // root reads everything
    }
    let data = PreparedData::new();
    data.write("fine", b"x");
    let secret = data.write("secret", b"x");
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).expect("set");
    let error = data.restore().expect_err("refused");
    assert!(
        matches!(&error, StateError::Read { path, .. } if *path == secret),
        "{error}"
    );
    assert!(!data.work().exists() && data.is_tidy());
}
