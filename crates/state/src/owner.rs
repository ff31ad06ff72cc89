//! Who owns a copy.

use std::fs;

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;

use crate::error::StateError;

/// User and group that every restored file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub user: Uid,
    /// The user's primary group.
    pub group: Gid,
}

/// The owner asked for; nobody in particular if the agent is not root and cannot give files away.
pub fn owner_named(name: Option<&str>) -> Result<Option<Owner>, StateError> {
    let Some(name) = name.filter(|_| geteuid().is_root()) else {
        return Ok(None);
    };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find(name, &users)
        .map(Some)
        .ok_or_else(|| StateError::User {
            name: name.to_owned(),
        })
}

/// By name or number; a static binary has no name service switch, so only the file counts.
fn find(name: &str, users: &str) -> Option<Owner> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [user, _, user_id, group_id, ..] = fields[..] else {
            return None;
        };
        if user != name && user_id != name {
            return None;
        }
        Some(Owner {
            user: Uid::from_raw(user_id.parse().ok()?),
            group: Gid::from_raw(group_id.parse().ok()?),
        })
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Gid, Uid};

    use super::{Owner, find};

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nmysql:x:104:106:,,,:/nonexistent:/bin/false\n";

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let mysql = Some(Owner {
            user: Uid::from_raw(104),
            group: Gid::from_raw(106),
        });
        assert_eq!(find("mysql", USERS), mysql);
        assert_eq!(find("104", USERS), mysql);
        assert_eq!(find("postgres", USERS), None);
    }
}
