//! One client's share of a drive that several clients make together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Drive;

/// What one client of several does. All count the same arrivals from the same start, and users are numbered over all
/// clients: together they do what one client with all users would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetShare {
    /// Number of this client, from 0: in an open loop it takes this one of every `clients` arrivals.
    pub client: u32,
    /// Number of clients.
    pub clients: u32,
    /// Virtual users of all clients.
    pub users: u32,
    /// Numbers of this client's virtual users among those of all, from 0: one for each of its own.
    pub user_numbers: Vec<u32>,
    /// File that does not exist yet, in which the start of ramp-up will be found once this client has said that it is
    /// ready: nanoseconds of its own monotonic clock, and the end of the line.
    pub start_path: String,
}

impl Drive {
    /// The number of one of this client's users, counted from 0, among those of all clients.
    #[must_use]
    pub fn user_number(&self, user: usize) -> u32 {
        let own = u32::try_from(user).unwrap_or(u32::MAX);
        let share = self.fleet.as_ref();
        share.map_or(own, |share| {
            share.user_numbers.get(user).copied().unwrap_or(own)
        })
    }

    /// Virtual users of all clients.
    #[must_use]
    pub fn users_of_all(&self) -> u32 {
        let share = self.fleet.as_ref();
        share.map_or(self.virtual_users, |share| share.users)
    }
}
