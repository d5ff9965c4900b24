//! Time: stopwatches, clocks, and pauses.

use crate::builtins::{Builtin, Outcome, Reach, nothing};
use crate::error::{Flow, Stop, fail};
use crate::value::{Data, Tensor, Value};
use crate::vm::Interp;
use futures_timer::Delay;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "tic",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "id = tic",
        summary: "Start a stopwatch.",
        run: tic,
    },
    Builtin {
        name: "toc",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "seconds = toc (id)",
        summary: "Seconds since tic.",
        run: toc,
    },
    Builtin {
        name: "clock",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "clock ()",
        summary: "Year, month, day, hour, minute and second (UTC).",
        run: clock,
    },
    Builtin {
        name: "time",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "time ()",
        summary: "Seconds since 1970.",
        run: time,
    },
    Builtin {
        name: "now",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "now ()",
        summary: "Days since the year 0 (UTC).",
        run: now,
    },
    Builtin {
        name: "cputime",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "cputime ()",
        summary: "Seconds that the processors have spent on this process.",
        run: cputime,
    },
    Builtin {
        name: "pause",
        args_min: 0,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "pause (seconds)",
        summary: "Wait.",
        run: pause,
    },
];

fn tic(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    let now = Instant::now();
    if nargout == 0 {
        interp.env.tic = Some(now);
        return Ok(nothing());
    }
    let id = now.duration_since(interp.env.started).as_micros() as u64 + 1;
    Ok(Value::tensor(Tensor::scalar(Data::U64(vec![id]))).into())
}

fn toc(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let since = match args.first() {
        Some(id) => {
            let id = interp.env.host(id)?;
            let micros = match &*id.data {
                Data::U64(v) => v.first().copied().unwrap_or(1),
                data if !data.is_empty() => data.f64_at(0) as u64,
                _ => 1,
            };
            interp.env.started + Duration::from_micros(micros.saturating_sub(1).min(1 << 52))
        }
        None => match interp.env.tic {
            Some(tic) => tic,
            None => return fail!("toc: function called before timer initialization()"),
        },
    };
    let seconds = Instant::now().saturating_duration_since(since).as_secs_f64();
    if nargout > 0 {
        return Ok(Value::Num(seconds).into());
    }
    let text = crate::display::template::format(
        &mut interp.env,
        "toc",
        &Value::string("Elapsed time is %g seconds.\n"),
        &[Value::Num(seconds)],
    )?;
    interp.env.print(text);
    Ok(nothing())
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn time(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Num(seconds_since_1970()).into())
}

fn now(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Num(719_529.0 + seconds_since_1970() / 86_400.0).into())
}

fn clock(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let seconds = seconds_since_1970();
    let (days, of_day) = ((seconds / 86_400.0).floor(), seconds.rem_euclid(86_400.0));
    let (year, month, day) = civil(days as i64);
    let hour = (of_day / 3600.0).floor();
    let minute = ((of_day - hour * 3600.0) / 60.0).floor();
    let second = of_day - hour * 3600.0 - minute * 60.0;
    Ok(Value::row(vec![year as f64, month as f64, day as f64, hour, minute, second]).into())
}

/// Returns the year, month and day of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn cputime(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    // If the system does not report it, the elapsed time is returned, as if nothing else used the processors.
    Ok(Value::Num(used_seconds().unwrap_or_else(|| interp.env.started.elapsed().as_secs_f64())).into())
}

/// Returns the time for which the process's threads have run, which Linux reports in nanoseconds for each thread.
fn used_seconds() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    let used_ns: u64 = texts.filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok()).sum();
    (used_ns > 0).then_some(used_ns as f64 * 1e-9)
}

fn pause(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if interp.env.take_awaited().is_some() {
        return Ok(nothing());
    }
    let seconds = match args.first() {
        Some(value) if value.is_empty() => 0.0,
        Some(value) => interp.env.host(value)?.data.f64_at(0).clamp(0.0, 1e6),
        None => 0.0,
    };
    if seconds.is_nan() || seconds == 0.0 {
        return Ok(nothing());
    }
    // One thread of the process wakes all pausing scripts. So the wait needs no timer of the executor, and ends with
    // its future.
    Err(Stop::Need(crate::error::Need::Future(Box::pin(async move {
        Delay::new(Duration::from_secs_f64(seconds)).await;
        Ok(Value::Bool(true))
    }))))
}
