//! What this process cost so far, as the kernel accounts it.

use fairtrial_protocol::event::Usage;

/// CPU, memory, faults and switches of the whole process since it began (`getrusage`).
#[allow(unsafe_code)] // no safe wrapper among the dependencies
pub fn now() -> Usage {
    // SAFETY: rusage is plain numbers, for which zero is valid, and the kernel writes to that one structure only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    Usage::from(&usage)
}

/// What was spent between two looks; memory is the larger one.
pub fn between(before: &Usage, after: &Usage) -> Usage {
    Usage {
        user_s: after.user_s - before.user_s,
        system_s: after.system_s - before.system_s,
        max_resident_bytes: after.max_resident_bytes,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
        blocks_in: after.blocks_in - before.blocks_in,
        blocks_out: after.blocks_out - before.blocks_out,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        involuntary_switches: after.involuntary_switches - before.involuntary_switches,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_between_two_looks_costs_cpu() {
        let before = now();
        let mut spent = between(&before, &now());
        while spent.user_s + spent.system_s < 0.02 {
            std::hint::black_box((0..10_000).sum::<u64>());
            spent = between(&before, &now());
        }
        assert!(spent.max_resident_bytes > 0);
    }
}
