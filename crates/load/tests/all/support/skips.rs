//! Tests that this machine lacks a package for.

/// Says that a test is skipped for want of a Debian package. Where continuous integration runs it fails by that, as
/// tests/support/skips.py has it: `scripts/install-servers` has installed each.
pub fn lacks(package: &str) {
    let said = format!("skipped: needs {package} (apt install {package})");
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{said}");
    eprintln!("{said}");
}
