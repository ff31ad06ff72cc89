use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

const PUBLISHED: LadderShape = LadderShape {
    least: 1,
    most: 4,
    low_water: 20,
    stop: 80,
    hysteresis: 0,
};

fn look(age: u64, history: u64) -> Look {
    Look {
        age,
        history,
        active: true,
        lag_limit: 0,
    }
}

fn ladder(most: u32) -> Ladder {
    Ladder::new(LadderShape { most, ..PUBLISHED })
}

/// Where it stands after each look at an age, the history longer every time; 0: held.
fn walk(ladder: &mut Ladder, ages: &[u64], history: &mut u64) -> Vec<u32> {
    ages.iter()
        .map(|age| {
            *history += 1;
            ladder.look(&look(*age, *history));
            if ladder.is_held() {
                0
            } else {
                ladder.threads()
            }
        })
        .collect()
}

/// The algorithm once more as the server has it: one loop over state that each step changes.
struct ServerModel {
    n: usize,
    used: usize,
    low: i64,
    high: i64,
    series: Vec<i64>,
    history: u64,
}

impl ServerModel {
    fn new(n: usize) -> Self {
        let sum = n * (n + 1) / 2;
        let mut series = vec![0; n + 1];
        if 60 % sum == 0 {
            let mut growth = 0;
            for point in (1..=n).rev() {
                growth += 60 / sum;
                series[point] = i64::try_from(growth).expect("small");
            }
        } else {
            for (point, share) in series.iter_mut().enumerate().skip(1) {
                let left = usize::from(point <= 60 % n);
                *share = i64::try_from(60 / n + left).expect("small");
            }
        }
        let high = 20 + series[n];
        Self {
            n,
            used: n,
            low: 20,
            high,
            series,
            history: 0,
        }
    }

    /// Whether it purges, and with how many threads.
    fn pass(&mut self, age: i64, history: u64) -> Option<usize> {
        if history > self.history {
            if self.used < self.n && age < self.low {
                self.used += 1;
                self.high = self.low;
                self.low -= self.series[self.used];
            } else if self.used > 1 && age >= self.high {
                self.used -= 1;
                self.low = self.high;
                self.high += self.series[self.used];
            } else if self.used == 1 && age >= 80 {
                return None;
            }
        }
        self.history = history;
        Some(self.used)
    }
}

#[test]
fn sixty_points_are_shared_between_the_threads() {
    for (threads, expected) in [
        (1, vec![60]),
        (2, vec![40, 20]),
        (3, vec![30, 20, 10]),
        (4, vec![24, 18, 12, 6]),
        (5, vec![20, 16, 12, 8, 4]),
        (6, vec![10; 6]),
        (7, vec![9, 9, 9, 9, 8, 8, 8]),
        (8, vec![8, 8, 8, 8, 7, 7, 7, 7]),
    ] {
        assert_eq!(series(threads, 60)[1..], expected, "{threads} threads");
    }
    for threads in 1..=32 {
        assert_eq!(
            series(threads, 60).iter().sum::<u32>(),
            60,
            "{threads} threads"
        );
    }
}

#[test]
fn the_marks_of_four_threads() {
    let ladder = ladder(4);
    let marks: Vec<_> = (1..=4).rev().map(|threads| ladder.marks(threads)).collect();
    assert_eq!(marks, [(20, 26), (26, 38), (38, 56), (56, 80)]);
}

#[test]
fn threads_are_given_up_one_by_one_and_taken_back_one_by_one() {
    let (mut ladder, mut history) = (ladder(4), 0);
    assert_eq!(
        walk(&mut ladder, &[25, 26, 37, 38, 55, 56, 79, 80], &mut history),
        [4, 3, 3, 2, 2, 1, 1, 0]
    );
    assert_eq!(
        walk(
            &mut ladder,
            &[80, 79, 56, 55, 38, 37, 26, 25, 26],
            &mut history
        ),
        [0, 1, 1, 2, 2, 3, 3, 4, 3]
    );
}

#[test]
fn a_leap_of_the_age_is_followed_one_step_at_a_look() {
    let (mut ladder, mut history) = (ladder(4), 0);
    assert_eq!(
        walk(&mut ladder, &[95, 95, 95, 95, 95], &mut history),
        [3, 2, 1, 0, 0]
    );
    assert_eq!(
        walk(&mut ladder, &[5, 5, 5, 5, 5], &mut history),
        [1, 2, 3, 4, 4]
    );
}

#[test]
fn nothing_moves_while_the_history_does_not_grow() {
    let mut ladder = ladder(4);
    assert_eq!(ladder.look(&look(0, 500)), None);
    for history in [500, 499, 400, 400] {
        assert_eq!(
            ladder.look(&look(99, history)),
            None,
            "it purges well enough"
        );
    }
    let step = ladder
        .look(&look(99, 401))
        .expect("it grew since the last look");
    assert_eq!(step.decided, Decided::Fewer);
    assert_eq!(step.reason, "age 99 % has reached 26 %");
}

#[test]
fn a_held_purge_is_let_go_by_the_age_or_by_a_history_that_shrank() {
    let held = || {
        let (mut ladder, mut history) = (
            Ladder::new(LadderShape {
                hysteresis: 5,
                ..PUBLISHED
            }),
            0,
        );
        assert_eq!(walk(&mut ladder, &[90; 4], &mut history), [3, 2, 1, 0]);
        ladder
    };
    let mut by_age = held();
    assert_eq!(by_age.look(&look(79, 10)), None, "hysteresis: 80 less 5");
    assert_eq!(by_age.look(&look(75, 11)), None);
    assert_eq!(
        by_age.look(&look(74, 12)).expect("a step").decided,
        Decided::Release
    );
    assert_eq!((by_age.is_held(), by_age.threads()), (false, 1));
    let mut by_history = held();
    assert_eq!(
        by_history.look(&look(90, 4)),
        None,
        "longer than before it was held"
    );
    assert_eq!(
        by_history.look(&look(90, 3)).expect("a step").decided,
        Decided::Release
    );
}

#[test]
fn an_idle_server_gives_its_threads_up() {
    let mut ladder = ladder(3);
    ladder.look(&look(0, 7));
    let idle = Look {
        active: false,
        ..look(0, 7)
    };
    assert_eq!(
        ladder.look(&idle).expect("a step").reason,
        "nothing is written"
    );
    ladder.look(&idle);
    assert_eq!((ladder.look(&idle), ladder.threads()), (None, 1));
}

#[test]
fn a_history_beyond_the_servers_own_limit_wants_threads_whatever_the_age() {
    let (mut ladder, mut history) = (ladder(4), 1000);
    assert_eq!(walk(&mut ladder, &[60; 3], &mut history), [3, 2, 1]);
    let lagging = Look {
        lag_limit: 1000,
        ..look(60, history)
    };
    assert_eq!(
        ladder.look(&lagging).expect("a step").decided,
        Decided::More
    );
    let within = Look {
        lag_limit: 1003,
        ..look(60, history)
    };
    assert_eq!(ladder.look(&within), None);
}

#[test]
fn with_one_thread_only_the_stop_is_left() {
    let (mut ladder, mut history) = (ladder(1), 0);
    assert_eq!(
        walk(&mut ladder, &[79, 80, 79, 81, 10], &mut history),
        [1, 0, 1, 0, 1]
    );
}

#[test]
fn the_fewest_threads_are_kept_and_held_at_the_stop() {
    let (mut ladder, mut history) = (
        Ladder::new(LadderShape {
            least: 3,
            ..PUBLISHED
        }),
        0,
    );
    assert_eq!(
        walk(&mut ladder, &[79, 79, 80, 79], &mut history),
        [3, 3, 0, 3]
    );
}

#[test]
fn it_does_what_the_server_does_whatever_is_seen() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let threads = random.random_range(1..=32);
        let (mut ladder, mut server) = (ladder(threads), ServerModel::new(threads as usize));
        let (mut age, mut history) = (10_i64, 100_i64);
        for _ in 0..500 {
            age = (age + random.random_range(-9..=9)).clamp(0, 110);
            history = (history + random.random_range(-20..=25)).max(0);
            let (seen_age, seen_history) = (age.unsigned_abs(), history.unsigned_abs());
            let observation = look(seen_age, seen_history);
            let step = ladder.look(&observation);
            if step.is_some_and(|step| step.decided == Decided::Release) {
                ladder.look(&observation); // a step of its own here, and none of the server's
            }
            let purging = server.pass(age, seen_history);
            let standing = (!ladder.is_held()).then_some(ladder.threads() as usize);
            assert_eq!(
                standing, purging,
                "seed {seed}, age {age}, history {history}: {ladder:?}"
            );
        }
    }
}

#[test]
fn bounds_hold_and_marks_never_cross_whatever_is_seen() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let least = random.random_range(1..=8);
        let low_water = random.random_range(0..=50);
        let shape = LadderShape {
            least,
            most: least + random.random_range(0..=24),
            low_water,
            stop: low_water + random.random_range(1..=50),
            hysteresis: random.random_range(0..=10),
        };
        let mut ladder = Ladder::new(shape);
        for threads in 1..=shape.most {
            let (low, high) = ladder.marks(threads);
            assert!(
                shape.low_water <= low && low <= high && high <= shape.stop,
                "{shape:?}"
            );
        }
        for _ in 0..300 {
            let before = (ladder.threads(), ladder.is_held());
            let observation = Look {
                age: random.random_range(0..=120),
                history: random.random_range(0..=50),
                active: random.random_bool(0.8),
                lag_limit: random.random_range(0..=40),
            };
            let step = ladder.look(&observation);
            let after = (ladder.threads(), ladder.is_held());
            assert!(
                (shape.least..=shape.most).contains(&after.0),
                "{shape:?} stands on {after:?}"
            );
            assert!(
                before.0.abs_diff(after.0) + u32::from(before.1 != after.1) <= 1,
                "one step at a look"
            );
            assert_eq!(
                step.is_some(),
                before != after,
                "a step is said, and only a step"
            );
        }
    }
}
