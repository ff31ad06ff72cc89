//! Covariates by a tree of the test's own; the loop is timed for real.

use std::fs;
use std::path::Path;

use fairtrial_state::{covariates, covariates_below};
use tempfile::TempDir;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        fs::write(path, text).expect("written");
    }
    root
}

#[test]
fn a_place_that_tells_nothing_is_timed_all_the_same() {
    let here = covariates_below(Path::new("/nonexistent"));
    assert!(here.calibration_loop_ns > 1_000_000 && here.time_since_boot_s > 0.0);
    assert_eq!(
        (here.memory_fragmentation, here.processor_frequency_hz),
        (None, None)
    );
}

#[test]
fn this_machine_tells_how_its_free_memory_lies() {
    let share = covariates().memory_fragmentation.expect("a share");
    assert!((0.0..=1.0).contains(&share));
}

#[test]
fn fragmentation_is_the_share_of_free_bytes_below_a_huge_page() {
    // Four pages alone; one piece of 256 pages, half a huge page; one piece of 512.
    let root = tree(&[(
        "proc/buddyinfo",
        "Node 0, zone      DMA      4      0      0      0      0      0      0      0      0      0      0 \n\
         Node 0, zone   Normal      0      0      0      0      0      0      0      0      1      1      0 \n",
    )]);
    let share = covariates_below(root.path()).memory_fragmentation;
    assert_eq!(share, Some(260.0 / 772.0));
}

#[test]
fn frequencies_are_the_drivers_where_there_is_one() {
    let kernel = "processor\t: 0\ncpu MHz\t\t: 1000.000\nprocessor\t: 1\ncpu MHz\t\t: 2000.000\n";
    let root = tree(&[("proc/cpuinfo", kernel)]);
    let told = || covariates_below(root.path()).processor_frequency_hz;
    assert_eq!(told(), Some(1.5e9));
    let policy = root.path().join("sys/devices/system/cpu/cpufreq/policy0");
    fs::create_dir_all(&policy).expect("made");
    fs::write(policy.join("scaling_cur_freq"), "3000000\n").expect("written");
    assert_eq!(told(), Some(3e9));
}
