//! What threads share behind a lock; a holder that panicked leaves it whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
