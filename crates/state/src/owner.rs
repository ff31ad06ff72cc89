//! Accounts of a place, from its file: a static binary has no name service switch.

use std::fs;

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;

use crate::error::StateError;

/// A user of the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// User id.
    pub user: Uid,
    /// The user's primary group.
    pub group: Gid,
}

/// Every account in `/etc/passwd`; none without it.
#[must_use]
pub fn accounts() -> Vec<Account> {
    parse(&fs::read_to_string("/etc/passwd").unwrap_or_default())
}

/// The account of a name or number.
#[must_use]
pub fn account(name: &str) -> Option<Account> {
    named(accounts(), name)
}

/// The owner asked for; nobody in particular if the agent is not root and cannot give files away.
pub fn owner_named(name: Option<&str>) -> Result<Option<Account>, StateError> {
    let Some(name) = name.filter(|_| geteuid().is_root()) else {
        return Ok(None);
    };
    account(name).map(Some).ok_or_else(|| StateError::User {
        name: name.to_owned(),
    })
}

fn named(accounts: Vec<Account>, name: &str) -> Option<Account> {
    let id = name.parse().ok();
    accounts
        .into_iter()
        .find(|account| account.name == name || Some(account.user.as_raw()) == id)
}

fn parse(users: &str) -> Vec<Account> {
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, user, group, ..] = fields[..] else {
            return None;
        };
        Some(Account {
            name: name.to_owned(),
            user: Uid::from_raw(user.parse().ok()?),
            group: Gid::from_raw(group.parse().ok()?),
        })
    };
    users.lines().filter_map(account).collect()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Gid, Uid};

    use super::{Account, named, parse};

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nmysql:x:104:106:,,,:/nonexistent:/bin/false\n";

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let mysql = Some(Account {
            name: "mysql".into(),
            user: Uid::from_raw(104),
            group: Gid::from_raw(106),
        });
        assert_eq!(named(parse(USERS), "mysql"), mysql);
        assert_eq!(named(parse(USERS), "104"), mysql);
        assert_eq!(named(parse(USERS), "postgres"), None);
    }
}
