//! Users of the place by name or number, with all their groups.

use std::fs;

use fairtrial_state::{Account, account, accounts};
use rustix::process::{Gid, Uid};

use crate::serve::failure::Failure;

/// Whom a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User id.
    pub id: Uid,
    /// Primary group.
    pub group: Gid,
    /// Supplementary groups.
    pub groups: Vec<Gid>,
}

/// Finds a user by name or number.
pub fn find(name: &str) -> Result<Credentials, Failure> {
    let user = account(name).ok_or_else(|| Failure::NotFound {
        what: format!("user {name} (in /etc/passwd)"),
    })?;
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    Ok(with_groups(&user, &groups))
}

/// Name of a user id; the number where it has none.
pub fn name_of(id: u32) -> String {
    let mut accounts = accounts().into_iter();
    let user = accounts.find(|account| account.user.as_raw() == id);
    user.map_or_else(|| id.to_string(), |account| account.name)
}

fn with_groups(user: &Account, groups: &str) -> Credentials {
    let others = groups.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, group, members, ..] = fields[..] else {
            return None;
        };
        let mut members = members.split(',');
        members.any(|member| member == user.name).then_some(())?;
        group.parse().ok().map(Gid::from_raw)
    });
    Credentials {
        id: user.user,
        group: user.group,
        groups: std::iter::once(user.group).chain(others).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "root:x:0:\nbroken\nssl-cert:x:107:postgres,mysql\nmysql:x:106:\n";

    #[test]
    fn a_user_has_the_primary_group_and_those_that_name_it() {
        let mysql = Account {
            name: "mysql".into(),
            user: Uid::from_raw(104),
            group: Gid::from_raw(106),
        };
        let found = with_groups(&mysql, GROUPS);
        assert_eq!((found.id, found.group), (mysql.user, mysql.group));
        assert_eq!(found.groups, [106, 107].map(Gid::from_raw));
    }

    #[test]
    fn an_unknown_user_is_said_to_be_missing() {
        let failure = find("no-such-user-anywhere").expect_err("nobody is called that");
        assert_eq!(
            failure.to_string(),
            "user no-such-user-anywhere (in /etc/passwd) does not exist"
        );
    }
}
