//! Buckets of times: four to an octave, so that a bucket is at most a quarter wider than its lowest time.

const FINE: usize = 4;
const OCTAVES: usize = 40; // up to 2^40 ns, 18 minutes; what takes longer is in the last bucket

/// How many there are.
pub const BUCKETS: usize = (OCTAVES - 1) * FINE;

/// The bucket of a time in nanoseconds.
#[must_use]
pub const fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < FINE as u64 {
        #[allow(clippy::cast_possible_truncation)] // below 4
        return nanoseconds as usize;
    }
    let octave = nanoseconds.ilog2();
    #[allow(clippy::cast_possible_truncation)] // two bits
    let fine = ((nanoseconds >> (octave - 2)) & 3) as usize;
    let index = (octave as usize - 1) * FINE + fine;
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// The lowest time of a bucket in nanoseconds.
#[must_use]
pub const fn lowest(bucket: usize) -> u64 {
    if bucket < FINE {
        return bucket as u64;
    }
    ((FINE + bucket % FINE) as u64) << (bucket / FINE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_it_says_and_follows_the_one_before() {
        for each in 0..BUCKETS {
            assert_eq!(bucket(lowest(each)), each);
            if each > 0 {
                assert_eq!(bucket(lowest(each) - 1), each - 1);
            }
        }
    }

    #[test]
    fn a_bucket_is_at_most_a_quarter_wide() {
        for each in FINE..BUCKETS - 1 {
            assert!((lowest(each + 1) - lowest(each)) * 4 <= lowest(each));
        }
    }

    #[test]
    fn what_takes_longer_is_in_the_last() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket(1 << 40), BUCKETS - 1);
    }
}
