//! Dates of ignores that expire, as `YYYY-MM-DD`.

/// The date of this machine; a build that must be reproducible sets `SOURCE_DATE_EPOCH`.
pub fn today() -> Option<String> {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|e| e.parse::<u64>().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok().map(|d| d.as_secs());
    epoch.or_else(now).map(|seconds| civil_date(seconds / 86_400))
}

/// A day that there is, from 1970 on, in exactly this form.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, digits: usize| {
        let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| plain)
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let length = (1..).zip(month_lengths(year)).find(|(number, _)| *number == month).map(|(_, days)| days);
    year >= 1970 && day >= 1 && length.is_some_and(|days| day <= days)
}

/// Days since 1970-01-01 as `YYYY-MM-DD` (proleptic Gregorian calendar).
fn civil_date(days: u64) -> String {
    /// 400 years have the same number of days wherever they begin.
    const DAYS_PER_ERA: u64 = 146_097;
    let (mut year, mut rest) = (1970 + days / DAYS_PER_ERA * 400, days % DAYS_PER_ERA);
    while rest >= if is_leap(year) { 366 } else { 365 } {
        rest -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let mut month = 1;
    for length in month_lengths(year) {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", rest + 1)
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn month_lengths(year: u64) -> [u64; 12] {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::{civil_date, is_date};

    #[test]
    fn days_become_dates() {
        assert_eq!(civil_date(0), "1970-01-01");
        assert_eq!(civil_date(19_782), "2024-02-29");
        assert_eq!(civil_date(20_788), "2026-12-01");
        assert_eq!(civil_date(146_097), "2370-01-01");
        assert_eq!(civil_date(47_482), "2100-01-01");
        // The largest SOURCE_DATE_EPOCH there is.
        assert!(civil_date(u64::MAX / 86_400).starts_with("584554051223-"));
    }

    #[test]
    fn only_days_that_there_are_count() {
        for date in ["2027-02-28", "2028-02-29", "2000-02-29", "2027-12-31", "1970-01-01"] {
            assert!(is_date(date), "{date}");
        }
        for text in
            ["2027-02-31", "2027-02-29", "2100-02-29", "2027-04-31", "2027-13-01", "2027-00-10", "2027-01-00"]
        {
            assert!(!is_date(text), "{text}");
        }
        for text in
            ["soon", "", "2027-1-01", "2027-01-1", "27-01-01", "+027-01-01", "2027-01-01-01", "1969-12-31"]
        {
            assert!(!is_date(text), "{text}");
        }
    }
}
