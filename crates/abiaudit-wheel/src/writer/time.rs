//! Timestamps of members: MS-DOS date and time in local time (APPNOTE 4.4.6), which wheels take for UTC.

/// A member's timestamp as the headers have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DosTime {
    /// Days: year since 1980 in bits 9 to 15, month in 5 to 8, day in 0 to 4.
    pub date: u16,
    /// Hours in bits 11 to 15, minutes in 5 to 10, seconds divided by two in 0 to 4.
    pub time: u16,
}

impl DosTime {
    /// The first moment that the format knows: 1980-01-01 00:00:00.
    pub const EPOCH: Self = Self { date: 0x21, time: 0 };
    /// The last one: 2107-12-31 23:59:58.
    pub const END: Self = Self { date: 0xff9f, time: 0xbf7d };

    /// Seconds since 1970 in UTC, as in `SOURCE_DATE_EPOCH`; what the format cannot say becomes the nearest moment that it
    /// can, and odd seconds are rounded down.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Self {
        const DAY: i64 = 86_400;
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        if year < 1980 {
            return Self::EPOCH;
        }
        if year > 2107 {
            return Self::END;
        }
        let of_day = seconds.rem_euclid(DAY);
        let date = ((year - 1980) << 9) | (month << 5) | day;
        let time = ((of_day / 3600) << 11) | ((of_day / 60 % 60) << 5) | (of_day % 60 / 2);
        // Both fit: the year is at most 127 years after 1980.
        let [date, time] = [date, time].map(|value| u16::try_from(value).unwrap_or_default());
        Self { date, time }
    }
}

/// Year, month and day of a number of days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(time: DosTime) -> (u16, u16, u16, u16, u16, u16) {
        let DosTime { date, time } = time;
        (1980 + (date >> 9), (date >> 5) & 15, date & 31, time >> 11, (time >> 5) & 63, (time & 31) * 2)
    }

    #[test]
    fn known_moments() {
        assert_eq!(parts(DosTime::from_unix(1_709_210_096)), (2024, 2, 29, 12, 34, 56));
        assert_eq!(parts(DosTime::from_unix(951_868_799)), (2000, 2, 29, 23, 59, 58));
        assert_eq!(DosTime::from_unix(315_532_800), DosTime::EPOCH);
    }

    #[test]
    fn what_cannot_be_said_becomes_the_nearest() {
        for seconds in [i64::MIN, -1, 0, 315_532_799] {
            assert_eq!(DosTime::from_unix(seconds), DosTime::EPOCH);
        }
        for seconds in [4_354_819_199, 4_354_819_200, i64::MAX] {
            assert_eq!(DosTime::from_unix(seconds), DosTime::END);
        }
    }
}
