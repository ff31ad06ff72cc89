//! The key that a server gives to encrypt a password with. `mysql_common` 0.37 takes any key for a good one, and panics
//! or computes without end where it is not: what is handed to it is looked at here first.

use mysql_common::crypto::{der, rsa};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

/// A modulus of 1024 to 8192 bits: servers make keys of 2048 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=1024;

/// The usual exponent, 65537, has three bytes; the time to encrypt grows with it.
const EXPONENT_BYTES: usize = 8;

/// What the padding (OAEP with SHA-1, PKCS #1 v2, 7.1.1) takes of a modulus, and a byte that its first bits may lack.
const PADDING_BYTES: usize = 2 * 20 + 2 + 1;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// Encrypts a password with a public key (PEM, RFC 7468); nothing if it is not a key that this can be done with.
pub fn encrypt(password: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let info = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    let (whole, _) = element(&info, SEQUENCE)?;
    let (_algorithm, rest) = element(whole, SEQUENCE)?;
    let (bits, _) = element(rest, BIT_STRING)?;
    let key = bits.strip_prefix(&[0])?; // no unused bits
    let (numbers, _) = element(key, SEQUENCE)?;
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let fits = MODULUS_BYTES.contains(&modulus.len())
        && modulus[0] != 0
        && exponent.len() <= EXPONENT_BYTES
        && password.len() + PADDING_BYTES <= modulus.len();
    fits.then(|| {
        let (modulus, exponent) = der::parse_pub_key_pkcs1(key);
        let padding = rsa::Pkcs1OaepPadding::new(rsa::GetRandom);
        rsa::PublicKey::new(modulus, exponent).encrypt_block(password, padding)
    })
}

/// The content of the element of this kind that stands here, and what follows it (DER, ITU-T X.690).
fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[kind])?;
    let (length, rest) = rest.split_first()?;
    match *length {
        short @ ..0x80 => rest.split_at_checked(short.into()),
        long => {
            let (length, rest) = rest.split_at_checked((long & 0x7F).into())?;
            let length = length.iter().try_fold(0_u32, |sum, byte| {
                Some(sum.checked_mul(256)? + u32::from(*byte))
            })?;
            rest.split_at_checked(usize::try_from(length).ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2048 bits, from the tests of `mysql_common`.
    const KEY: &str = include_str!("key.pem");

    #[test]
    fn a_password_is_encrypted_in_as_many_bytes_as_the_modulus_has() {
        let encrypted = encrypt(b"right\0", KEY.as_bytes()).expect("a good key");
        assert_eq!(encrypted.len(), 256);
    }

    #[test]
    fn what_is_not_a_key_is_no_key_wherever_it_is_cut_or_changed() {
        assert_eq!(encrypt(b"right\0", b"no key"), None);
        assert_eq!(encrypt(&[1; 256], KEY.as_bytes()), None, "too long");
        let info = SubjectPublicKeyInfoDer::from_pem_slice(KEY.as_bytes()).expect("a key");
        for at in 0..40 {
            for byte in [0x00, 0x02, 0x30, 0x7F, 0x80, 0x84, 0xFF] {
                let mut changed = info.to_vec();
                changed[at] = byte;
                // Another algorithm and another number are keys; whatever else it is, nothing panics.
                let _ = encrypt(b"right\0", &pem(&changed));
                assert_eq!(encrypt(b"right\0", &pem(&changed[..at])), None, "{at}");
            }
        }
    }

    fn pem(der: &[u8]) -> Vec<u8> {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n").into_bytes()
    }
}
