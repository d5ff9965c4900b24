use super::*;
use crate::dice::Dice;
use crate::rounds::rounds;
use std::collections::{BTreeMap, VecDeque};

const STAYS: SessionId = SessionId(0);

fn next(all: &Fair) -> SessionId {
    all.in_order().next().expect("somebody has work")
}

/// Serves whose turn it is with its `piece`, so many times. Returns who that was.
fn serve(all: &mut Fair, count: usize, piece: impl Fn(SessionId) -> u64) -> Vec<SessionId> {
    let turn = |all: &mut Fair| {
        let session = next(all);
        all.charge(session, piece(session));
        session
    };
    (0..count).map(|_| turn(all)).collect()
}

fn count(served: &[SessionId], session: SessionId) -> usize {
    served.iter().filter(|s| **s == session).count()
}

#[test]
fn sessions_that_stay_have_work_by_their_weights() {
    let mut all = Fair::default();
    for (session, weight, piece) in [(1, 1, 2000), (2, 3, 1000), (3, 8, 500)] {
        all.enter(SessionId(session), weight, 1, piece, session);
    }
    let served = serve(&mut all, 24_000, |session| [0, 2000, 1000, 500][session.0 as usize]);
    let work = |n| count(&served, SessionId(n)) as f64 * [0.0, 2000.0, 1000.0, 500.0][n as usize];
    assert!((work(2) / work(1) - 3.0).abs() < 0.01, "{}", work(2) / work(1));
    assert!((work(3) / work(1) - 8.0).abs() < 0.01, "{}", work(3) / work(1));
}

#[test]
fn a_session_that_stays_has_its_share_beside_sessions_that_live_for_one_piece() {
    for (weight, tasks, piece) in [(1, 16, 1000), (8, 16, 1000), (8, 16, 20), (64, 16, 1000), (1, 300, 50), (500, 3, 7)]
    {
        let mut all = Fair::default();
        all.enter(STAYS, weight, 1, piece, 0);
        let mut came = 0;
        let newcomer = |all: &mut Fair, came: &mut u64| {
            *came += 1;
            all.enter(SessionId(*came), 1, 1, piece, *came);
        };
        (0..tasks).for_each(|_| newcomer(&mut all, &mut came));
        let (mut its, turns) = (0, 200 * (tasks as usize + weight as usize));
        for _ in 0..turns {
            let session = next(&all);
            all.charge(session, piece);
            if session == STAYS {
                its += 1;
                all.enter(STAYS, weight, 1, piece, 0);
            } else {
                // Its task opens the next one at once.
                all.leave(session);
                newcomer(&mut all, &mut came);
            }
        }
        let due = turns as f64 * f64::from(weight) / f64::from(weight + tasks);
        let share = its as f64 / due;
        assert!((0.97..1.03).contains(&share), "weight {weight} beside {tasks}: {share} of its share");
        assert!(all.known() <= 1 + 2 * tasks as usize, "{} are remembered", all.known());
    }
}

/// A session of a weight that has four requests outstanding beside sixteen of another that have one each: how much more
/// work it has than one of them.
fn work_of_four(weight: u32, others: u32) -> f64 {
    let mut all = Fair::default();
    all.enter(STAYS, weight, 4, 1000, 0);
    (1..=16).for_each(|n| all.enter(SessionId(n), others, 1, 1000, n));
    let mut its = 0;
    for turn in 0..10_000 {
        let session = next(&all);
        all.charge(session, 1000);
        its += u32::from(session == STAYS);
        let (weight, requests) = if session == STAYS { (weight, 4) } else { (others, 1) };
        all.enter(session, weight, requests, 1000, 100 + turn);
    }
    f64::from(its) * 16.0 / f64::from(10_000 - its)
}

#[test]
fn many_requests_of_a_light_session_wait_less_than_twice_as_long_as_single_ones() {
    let work = [work_of_four(1, 1), work_of_four(1, 4), work_of_four(8, 1)];
    // By weights alone these were 1, 1/4 and 8. A request of four waits 4 / 2.72 times as long as one of others.
    assert!((2.6..2.8).contains(&work[0]), "{work:?}");
    assert!((0.65..0.70).contains(&work[1]), "{work:?}");
    assert!((7.9..8.1).contains(&work[2]), "more than the average weight is enough: {work:?}");
}

#[test]
fn sessions_of_equally_many_requests_share_by_their_weights_alone() {
    for (heavy, light) in [(8, 1), (8, 2), (8, 16), (2, 1), (1000, 16)] {
        let mut all = Fair::default();
        let weight = |session: SessionId| if session == STAYS { heavy } else { 1 };
        (0..=light).for_each(|n| all.enter(SessionId(n), weight(SessionId(n)), 4, 1000, n));
        let turn = |n: u64| {
            let session = next(&all);
            all.charge(session, 1000);
            all.enter(session, weight(session), 4, 1000, 100 + n);
            session
        };
        let served: Vec<SessionId> = (0..20_000).map(turn).collect();
        let due = f64::from(heavy) / (f64::from(heavy) + light as f64);
        let share = count(&served, STAYS) as f64 / 20_000.0 / due;
        assert!((0.98..1.02).contains(&share), "{heavy} beside {light}: {share} of its share");
    }
}

#[test]
fn requests_of_some_take_no_more_than_a_sixth_from_others() {
    for (many, single) in [(1, 4), (1, 16), (4, 16), (8, 16), (20, 16), (2, 60), (20, 60)] {
        let mut all = Fair::default();
        let requests = |session: SessionId| if session.0 < many { 1000 } else { 1 };
        (0..many + single).for_each(|n| all.enter(SessionId(n), 1, requests(SessionId(n)), 1000, n));
        let turn = |n: u64| {
            let session = next(&all);
            all.charge(session, 1000);
            all.enter(session, 1, requests(session), 1000, 100 + n);
            session
        };
        let served: Vec<SessionId> = (0..20_000).map(turn).collect();
        let share = served.iter().filter(|session| session.0 >= many).count() as f64 / 20_000.0;
        let due = single as f64 / (many + single) as f64;
        assert!(share > 0.82 * due, "{many} beside {single}: {} of their share", share / due);
    }
}

#[test]
fn a_small_piece_of_a_newcomer_goes_before_large_ones_of_sessions_that_wait() {
    let mut all = Fair::default();
    for session in 1..=40 {
        all.enter(SessionId(session), 1, 1, 2_000_000, session);
    }
    serve(&mut all, 100, |_| 2_000_000);
    all.enter(SessionId(99), 1, 1, 10_000, 99);
    assert_eq!(next(&all), SessionId(99));
}

#[test]
fn who_comes_and_goes_neither_saves_up_nor_escapes_what_it_owes() {
    let mut all = Fair::default();
    all.enter(STAYS, 1, 1, 1000, 0);
    let (mut its, mut others) = (0, 0);
    // Three sessions that have never more than one piece of work at a time, in turn.
    for n in 0..4000u64 {
        let session = SessionId(1 + n % 3);
        all.enter(session, 1, 1, 1000, n);
        while next(&all) == STAYS {
            all.charge(STAYS, 1000);
            its += 1;
        }
        all.charge(session, 1000);
        all.leave(session);
        others += 1;
    }
    assert!(its * 3 >= others - 8, "{its} beside {others}: each of four has a quarter");
    // A session that had nothing to do for long has no more than its share afterwards.
    all.enter(SessionId(9), 1, 1, 1000, 9);
    let served = serve(&mut all, 100, |_| 1000);
    assert!((45..=55).contains(&count(&served, STAYS)), "{served:?}");
}

#[test]
fn in_the_end_sessions_are_charged_what_their_work_took() {
    for (estimate, took) in [(10, [5, 40]), (100, [5, 40]), (1, [50, 400])] {
        let mut all = Fair::default();
        all.enter(SessionId(0), 1, 1, 10, 0);
        all.enter(SessionId(1), 1, 1, 10, 1);
        let mut had = [0; 2];
        for _ in 0..9000 {
            let session = next(&all);
            all.lend(session, estimate);
            all.settle(session, 1, estimate, took[session.0 as usize]);
            had[session.0 as usize] += 1;
        }
        assert!((7900..=8100).contains(&had[0]), "{had:?}: the second's work takes eight times as long");
    }
}

#[test]
fn what_is_known_late_is_owed_by_who_has_left_and_given_back_as_far_as_it_owes() {
    let mut all = Fair::default();
    all.enter(STAYS, 1, 1, 10, 0);
    all.enter(SessionId(1), 3, 1, 10, 1);
    all.lend(SessionId(1), 3_000);
    all.leave(SessionId(1));
    assert_eq!((all.now(), all.owing[&SessionId(1)]), (0, 1_000));
    all.settle(SessionId(1), 3, 3_000, 303_000);
    // Virtual time has moved by a fourth of it, its own by a third.
    assert_eq!((all.now(), all.owing[&SessionId(1)]), (75_750, 101_000));
    all.settle(SessionId(1), 3, 30_000, 0);
    assert_eq!(all.owing[&SessionId(1)], 91_000);
    all.settle(SessionId(1), 3, 900_000, 0);
    assert!(all.owing.is_empty(), "nothing is saved up");
}

#[test]
fn nothing_is_left_of_sessions_that_have_gone() {
    let mut all = Fair::default();
    for n in 1..100_000u64 {
        let session = SessionId(n);
        all.enter(session, 1, 1, 1000, n);
        all.charge(session, 1000);
        all.leave(session);
        all.enter(STAYS, 1, 1, 1000, 0);
        all.charge(STAYS, 1000);
        assert!(all.known() <= 4, "{}", all.known());
    }
    all.leave(STAYS);
    all.forget_debts();
    assert_eq!(all.known(), 0);
}

#[test]
fn who_could_not_go_on_saves_nothing_up_meanwhile() {
    let mut all = Fair::default();
    all.enter(STAYS, 1, 1, 10, 0);
    all.enter(SessionId(1), 1, 1, 10, 1);
    for _ in 0..100 {
        all.charge(SessionId(1), 10);
        all.pass_over(STAYS);
    }
    let served = serve(&mut all, 20, |_| 10);
    assert!((9..=12).contains(&count(&served, STAYS)), "{served:?}");
}

/// A server, and sessions of all kinds that come and go: what FAIR-1 to FAIR-4 say is looked at after every piece.
struct World {
    dice: Dice,
    all: Fair,
    /// Weights, pieces left (none: it stays), and their own books, of sessions with work.
    there: BTreeMap<SessionId, Books>,
    next: u64,
    work: u64,
    piece_max: u64,
    /// Estimates are wrong by up to this factor.
    wrong: u64,
    /// Pieces under way, and how many there are at a time.
    flights: VecDeque<(SessionId, u32, u64, u64)>,
    depth: usize,
    seed: u64,
}

#[derive(Clone, Copy)]
struct Books {
    weight: u32,
    left: Option<u32>,
    /// What it had since it came, and what its share of all work was.
    had: u64,
    due: f64,
    /// At the last piece: all work until then, and the largest of each since.
    waits_since: u64,
    weights_max: u64,
    count_max: u64,
    piece_max: u64,
    q_max: f64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed);
        // Nanoseconds: far more than what is lost in rounding.
        let piece_max = [1_000, 30_000, 2_000_000][dice.below(3)];
        let wrong = [1, 1, 4][dice.below(3)];
        let depth = dice.below(4);
        let flights = VecDeque::new();
        World {
            dice,
            flights,
            depth,
            all: Fair::default(),
            there: BTreeMap::new(),
            next: 0,
            work: 0,
            piece_max,
            wrong,
            seed,
        }
    }

    fn come(&mut self, weight: u32, left: Option<u32>) {
        let session = SessionId(self.next);
        self.next += 1;
        let piece = self.piece();
        self.all.enter(session, weight, 1, piece, self.next);
        // Pieces under way count later.
        let under_way =
            self.flights.iter().map(|&(_, weight, charged, piece)| charged.max(piece) as f64 / f64::from(weight));
        let q_max = under_way.fold(piece as f64 / f64::from(weight), f64::max);
        let books = Books {
            weight,
            left,
            had: 0,
            due: 0.0,
            waits_since: self.work,
            weights_max: 0,
            count_max: 0,
            piece_max: piece,
            q_max,
        };
        self.there.insert(session, books);
    }

    fn piece(&mut self) -> u64 {
        1 + self.dice.next() % self.piece_max
    }

    fn serve(&mut self) {
        let Some(session) = self.all.in_order().next() else { return };
        let (piece, before) = (self.piece(), self.all.now());
        // Who has left while its last piece is under way has work.
        let leaving = self.flights.iter().filter(|flight| !self.there.contains_key(&flight.0)).map(|flight| flight.1);
        let weights: u64 = self.there.values().map(|books| books.weight).chain(leaving).map(u64::from).sum();
        let weight = self.there[&session].weight;
        let charged =
            if self.wrong > 1 { 1 + piece * self.wrong / (1 + self.dice.next() % (2 * self.wrong)) } else { piece };
        self.all.lend(session, charged);
        self.flights.push_back((session, weight, charged, piece));
        if self.flights.len() > self.depth {
            let (session, weight, charged, piece) = self.flights.pop_front().expect("it was pushed");
            self.all.settle(session, weight, charged, piece);
        }
        self.work += piece;
        assert!(self.all.now() >= before, "FAIR-1: seed {}", self.seed);
        let (count, largest) = (self.there.len() as u64, piece.max(charged));
        let q = largest as f64 / f64::from(weight);
        for (&other, books) in &mut self.there {
            books.due += piece as f64 * f64::from(books.weight) / weights as f64;
            books.weights_max = books.weights_max.max(weights);
            books.count_max = books.count_max.max(count);
            books.piece_max = books.piece_max.max(largest);
            books.q_max = books.q_max.max(q).max(1.0);
            let lag_max = 3.0 + 2.0 * self.depth as f64 + (books.weights_max as f64 / f64::from(books.weight)).ln();
            let lag = self.all.lag(other) as f64;
            assert!(
                lag <= lag_max * books.q_max + 2.0,
                "FAIR-2: seed {}, {lag} of {}",
                self.seed,
                lag_max * books.q_max
            );
            if other == session {
                books.had += piece;
                books.waits_since = self.work;
                continue;
            }
            let waits = (self.work - books.waits_since) as f64;
            let most =
                books.weights_max as f64 * (lag_max + 1.0) * books.q_max + (books.count_max * books.piece_max) as f64;
            assert!(waits <= most, "FAIR-3: seed {}, {waits} of {most}", self.seed);
            let short = books.due - books.had as f64;
            let most = f64::from(books.weight) * ((lag_max + 2.0) * books.q_max + 2.0)
                + (1 + self.depth) as f64 * books.piece_max as f64;
            assert!(short <= most, "FAIR-2: seed {}, {short} too little of {most}", self.seed);
        }
        let books = self.there.get_mut(&session).unwrap();
        let ends = books.left.as_mut().is_some_and(|left| {
            *left -= 1;
            *left == 0
        });
        if ends {
            self.there.remove(&session);
            self.all.leave(session);
        } else {
            let piece = self.piece();
            let books = self.there.get_mut(&session).expect("it stays");
            books.piece_max = books.piece_max.max(piece);
            books.q_max = books.q_max.max(piece as f64 / f64::from(weight));
            self.all.enter(session, weight, 1, piece, session.0);
        }
    }

    fn run(&mut self) {
        let stays = 1 + self.dice.below(3);
        for _ in 0..stays {
            let weight = [1, 2, 8, 64][self.dice.below(4)];
            self.come(weight, None);
        }
        let tasks = 1 + self.dice.below(60);
        let burst = self.dice.one_in(3);
        for step in 0..1500 {
            let missing = tasks.saturating_sub(self.there.len() - stays);
            // All at once now and then, or one for one.
            if !burst || step % 200 == 0 {
                for _ in 0..missing {
                    let weight = [1, 1, 1, 2, 4][self.dice.below(5)];
                    let pieces = [1, 1, 1, 3][self.dice.below(4)];
                    self.come(weight, Some(pieces));
                }
            }
            self.serve();
        }
        assert!(self.all.known() <= self.there.len() + 20 * tasks, "FAIR-4: {} are remembered", self.all.known());
    }
}

/// Runs for all seeds that were asked for, on all cores: `SEED` is one, `SEEDS` how many from `FIRST` on.
#[test]
fn every_session_with_work_has_its_share_and_waits_no_longer_than_the_bound_says() {
    crate::dice::for_seeds(rounds(60, 400), |seed| World::new(seed).run());
}
