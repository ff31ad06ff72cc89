//! Users of the place by name or number, from its files: a static binary has no name service switch.

use std::fs;

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
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    parse(name, &users, &groups).ok_or_else(|| Failure::NotFound {
        what: format!("user {name} (in /etc/passwd)"),
    })
}

/// Name of a user id; the number where it has none.
pub fn name_of(id: u32) -> String {
    let number = id.to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = users
        .lines()
        .map(fields)
        .find(|fields| fields.get(2) == Some(&number.as_str()));
    user.map_or_else(|| number.clone(), |fields| fields[0].to_owned())
}

fn parse(name: &str, users: &str, groups: &str) -> Option<Credentials> {
    let user = users
        .lines()
        .map(fields)
        .find(|fields| fields.len() > 3 && (fields[0] == name || fields[2] == name))?;
    let group = user[3].parse().ok()?;
    let member = |fields: &Vec<&str>| {
        fields.len() > 3 && fields[3].split(',').any(|member| member == user[0])
    };
    let others = groups
        .lines()
        .map(fields)
        .filter(member)
        .filter_map(|fields| fields[2].parse().ok());
    Some(Credentials {
        id: Uid::from_raw(user[2].parse().ok()?),
        group: Gid::from_raw(group),
        groups: std::iter::once(group)
            .chain(others)
            .map(Gid::from_raw)
            .collect(),
    })
}

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nmysql:x:104:106:MySQL,,,:/nonexistent:/bin/false\n";
    const GROUPS: &str = "root:x:0:\nssl-cert:x:107:postgres,mysql\nmysql:x:106:\n";

    #[test]
    fn a_user_is_found_by_name_or_number_with_all_its_groups() {
        let by_name = parse("mysql", USERS, GROUPS).expect("listed");
        assert_eq!((by_name.id.as_raw(), by_name.group.as_raw()), (104, 106));
        assert_eq!(
            by_name
                .groups
                .iter()
                .map(|group| group.as_raw())
                .collect::<Vec<_>>(),
            [106, 107]
        );
        assert_eq!(parse("104", USERS, GROUPS), Some(by_name));
        assert_eq!(parse("nobody", USERS, GROUPS), None);
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
