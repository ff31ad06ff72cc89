//! Date and time as text, the form every system takes and gives.

use std::fmt::Display;

/// Text of a time, seconds since the Unix epoch, in UTC: `2026-01-31 23:59:59`.
pub fn date_time(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    text(
        (year, month, day),
        (second / 3_600, second / 60 % 60, second % 60),
    )
}

/// Text of a date and a time.
pub fn text<Day: Display, Time: Display>(
    (year, month, day): (i64, Day, Day),
    (hour, minute, second): (Time, Time, Time),
) -> String {
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a number of days since 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlites_own_calendar_agrees_over_four_centuries() {
        let connection = rusqlite::Connection::open_in_memory().expect("SQLite in memory");
        let mut statement = connection
            .prepare("SELECT datetime(?, 'unixepoch')")
            .expect("a valid query");
        // 11 days, 3 hours and 13 seconds: no calendar period divides it.
        for step in -6_000..6_000_i64 {
            let seconds = step * (11 * 86_400 + 3 * 3_600 + 13);
            let expected: String = statement
                .query_row([seconds], |row| row.get(0))
                .expect("one row");
            assert_eq!(date_time(seconds), expected);
        }
    }
}
