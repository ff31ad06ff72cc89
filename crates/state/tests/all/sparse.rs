//! Files as databases leave them: mostly holes, several names, odd permissions.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use fairtrial_state::restore;

use crate::prepared::{PreparedData, parameters};

const GIBIBYTE: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 512; // the unit of st_blocks, whatever the file system
const PIECE_BYTES: usize = 65_536;

#[test]
fn a_file_of_a_gibibyte_that_is_nearly_all_hole_stays_so() {
    let data = PreparedData::new();
    let (prepared, work) = (data.prepared(), data.work());
    let file = File::create(prepared.join("ibdata1")).expect("created");
    let places = [0, GIBIBYTE / 3, GIBIBYTE / 2, GIBIBYTE - PIECE_BYTES as u64];
    for (number, at) in (1..).zip(places) {
        file.write_all_at(&vec![number; PIECE_BYTES], at)
            .expect("written");
    }
    file.sync_all().expect("synced");
    let original = file.metadata().expect("there");
    assert!(
        original.blocks() * BLOCK_BYTES < GIBIBYTE / 100,
        "this file system keeps holes"
    );

    let restored = data.restore().expect("restored");

    let copy = File::open(work.join("ibdata1")).expect("opened");
    copy.sync_all().expect("synced");
    let metadata = copy.metadata().expect("there");
    assert_eq!(metadata.len(), GIBIBYTE);
    let slack = 4 * PIECE_BYTES as u64 / BLOCK_BYTES; // a file system may allocate around each piece
    assert!(
        metadata.blocks() <= original.blocks() + slack,
        "{} of {}",
        metadata.blocks(),
        original.blocks()
    );
    assert!(
        restored.bytes >= 4 * PIECE_BYTES as u64 && restored.bytes < GIBIBYTE / 100,
        "{}",
        restored.bytes
    );
    let mut piece = vec![0; PIECE_BYTES];
    for (number, at) in (1..).zip(places) {
        copy.read_exact_at(&mut piece, at).expect("read");
        assert!(piece.iter().all(|byte| *byte == number), "at {at}");
    }
    copy.read_exact_at(&mut piece, GIBIBYTE / 4).expect("read");
    assert!(piece.iter().all(|byte| *byte == 0));
}

#[test]
fn a_file_that_is_all_hole_has_its_length_and_no_data() {
    let data = PreparedData::new();
    let (prepared, work) = (data.prepared(), data.work());
    File::create(prepared.join("undo"))
        .expect("created")
        .set_len(GIBIBYTE)
        .expect("longer");
    let restored = data.restore().expect("restored");
    let metadata = fs::metadata(work.join("undo")).expect("there");
    assert_eq!(
        (metadata.len(), restored.bytes, restored.files),
        (GIBIBYTE, 0, 1)
    );
    assert!(metadata.blocks() * BLOCK_BYTES < GIBIBYTE / 100);
}

#[test]
fn two_names_of_one_file_become_two_files_of_equal_content() {
    let data = PreparedData::new();
    let (prepared, work) = (data.prepared(), data.work());
    fs::create_dir(prepared.join("below")).expect("made");
    fs::write(prepared.join("one"), "content").expect("written");
    fs::hard_link(prepared.join("one"), prepared.join("below/other")).expect("linked");
    assert_eq!(data.restore().expect("restored").files, 2);
    for name in ["one", "below/other"] {
        assert_eq!(fs::read(work.join(name)).expect("read"), b"content");
        assert_eq!(fs::metadata(work.join(name)).expect("there").nlink(), 1);
    }
    fs::write(work.join("one"), "changed").expect("written");
    assert_eq!(
        fs::read(prepared.join("one")).expect("read"),
        b"content",
        "prepared data are not shared"
    );
}

#[test]
fn every_permission_bit_comes_back_on_files_and_directories() {
    let data = PreparedData::new();
    let (prepared, work) = (data.prepared(), data.work());
    let modes = [0o400, 0o600, 0o644, 0o755, 0o4755, 0o2755, 0o640, 0o777];
    for mode in modes {
        let (file, below) = (
            prepared.join(format!("f{mode:o}")),
            prepared.join(format!("d{mode:o}")),
        );
        fs::write(&file, [0; 3]).expect("written");
        fs::create_dir(&below).expect("made");
        for path in [file, below] {
            fs::set_permissions(path, Permissions::from_mode(mode | 0o400)).expect("set");
        }
    }
    fs::set_permissions(&prepared, Permissions::from_mode(0o1770)).expect("set");
    data.restore().expect("restored");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!(mode(&work), 0o1770);
    for bits in modes {
        for name in [format!("f{bits:o}"), format!("d{bits:o}")] {
            assert_eq!(mode(&work.join(&name)), bits | 0o400, "{name}");
        }
    }
}

#[test]
fn links_are_copied_as_what_they_say_and_never_followed() {
    let data = PreparedData::new();
    let (prepared, work) = (data.prepared(), data.work());
    fs::create_dir(data.directory.path().join("outside")).expect("made");
    fs::write(data.directory.path().join("outside/large"), [1; 1000]).expect("written");
    let links = [
        ("to_directory", "../outside"),
        ("to_itself", "."),
        ("loop", "loop"),
        ("dangling", "/no/such/file"),
        ("odd", "a b\nc"),
        ("to_file", "../outside/large"),
    ];
    for (name, target) in links {
        symlink(target, prepared.join(name)).expect("linked");
    }
    let restored = data.restore().expect("restored, with no endless walk");
    assert_eq!((restored.files, restored.bytes), (0, 0));
    for (name, target) in links {
        assert_eq!(
            fs::read_link(work.join(name)).expect("a link"),
            Path::new(target)
        );
    }
}

#[test]
fn a_target_that_is_a_link_or_a_file_is_replaced_and_what_it_led_to_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let (prepared, elsewhere) = (
        directory.path().join("prepared"),
        directory.path().join("elsewhere"),
    );
    for (path, content) in [(&prepared, "new"), (&elsewhere, "old")] {
        fs::create_dir(path).expect("made");
        fs::write(path.join("file"), content).expect("written");
    }
    let (link, file) = (
        directory.path().join("link"),
        directory.path().join("plain"),
    );
    symlink(&elsewhere, &link).expect("linked");
    fs::write(&file, "a file").expect("written");
    for target in [&link, &file] {
        restore(&parameters(&prepared, target)).expect("restored");
        assert!(fs::symlink_metadata(target).expect("there").is_dir());
        assert_eq!(fs::read(target.join("file")).expect("read"), b"new");
    }
    assert_eq!(fs::read(elsewhere.join("file")).expect("read"), b"old");
}
