//! Known state of a place.
