//! Is a log of our own worth it? Appends groups of 10 kB items, each group durable before the next.
//!
//!     cargo run --release -- [DIR] [ITEMS] [ROUNDS]
//!
//! Every measurement runs in a process of its own, on an empty directory, and engines take turns. The table
//! has the best rate of the rounds, because a busy machine can only take away, and the median of the rest.

mod bare;
mod engine;
mod fjall_engine;
mod raft;
mod yard;

use anyhow::Context;
use engine::{ENGINES, ITEM_BYTES, Measured};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, group, items, dir] = &args[..]
        && flag == "--one"
    {
        let measured = engine::measure(name, Path::new(dir), group.parse()?, items.parse()?)?;
        println!("{}", to_line(&measured));
        return Ok(());
    }
    let dir = PathBuf::from(args.first().map_or("engines-data", String::as_str));
    let items: u64 = args.get(1).map_or(Ok(60_000), |items| items.parse())?;
    let rounds: usize = args.get(2).map_or(Ok(5), |rounds| rounds.parse())?;
    for group in [16, 128] {
        let mut found: Vec<Vec<Measured>> = vec![Vec::new(); ENGINES.len()];
        for _ in 0..rounds {
            for (name, found) in ENGINES.iter().zip(&mut found) {
                found.push(in_own_process(name, group, items, &dir)?);
            }
        }
        print_table(group, items, &found);
    }
    Ok(())
}

fn in_own_process(name: &str, group: usize, items: u64, dir: &Path) -> anyhow::Result<Measured> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir)?;
    // Otherwise one engine pays for the writes of the one before.
    rustix::fs::sync();
    let (group, items) = (group.to_string(), items.to_string());
    let output = Command::new(std::env::current_exe()?)
        .args(["--one", name, &group, &items])
        .arg(dir)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "{name} failed with {}", output.status);
    std::fs::remove_dir_all(dir)?;
    from_line(&String::from_utf8(output.stdout)?).with_context(|| format!("{name} said nothing readable"))
}

fn to_line(measured: &Measured) -> String {
    let Measured { items_per_sec, rss_bytes, disk_bytes, reopen_secs, reads_per_sec, delete_secs, .. } =
        *measured;
    let [reopen_secs, reads_per_sec, delete_secs] =
        [reopen_secs, reads_per_sec, delete_secs].map(|number| number.unwrap_or(f64::NAN));
    let after = measured.disk_bytes_after_delete.map_or(f64::NAN, |bytes| bytes as f64);
    format!("{items_per_sec} {rss_bytes} {disk_bytes} {reopen_secs} {reads_per_sec} {delete_secs} {after}")
}

fn from_line(line: &str) -> Option<Measured> {
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [items_per_sec, rss, disk, reopen_secs, reads_per_sec, delete_secs, after] = numbers[..] else {
        return None;
    };
    let known = |number: f64| (!number.is_nan()).then_some(number);
    Some(Measured {
        items_per_sec,
        rss_bytes: rss as u64,
        disk_bytes: disk as u64,
        reopen_secs: known(reopen_secs),
        reads_per_sec: known(reads_per_sec),
        delete_secs: known(delete_secs),
        disk_bytes_after_delete: known(after).map(|bytes| bytes as u64),
    })
}

fn print_table(group: usize, items: u64, found: &[Vec<Measured>]) {
    let median = |found: &[Measured], value: &dyn Fn(&Measured) -> f64| {
        let mut values: Vec<_> = found.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let best = |found: &[Measured]| found.iter().map(|one| one.items_per_sec).fold(0.0, f64::max);
    let bare = best(&found[0]);
    let payload = (items * ITEM_BYTES) as f64;
    println!("\nGroups of {group}, {items} items of {ITEM_BYTES} bytes:\n");
    println!(
        "| engine | items/s | of bare | memory | disk / payload | reopen | reads/s | delete 90% | disk / payload left |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, found) in ENGINES.iter().zip(found) {
        let rate = best(found);
        let rss = median(found, &|measured| measured.rss_bytes as f64) / 1e6;
        let disk = median(found, &|measured| measured.disk_bytes as f64) / payload;
        let delete = median(found, &|measured| measured.delete_secs.unwrap_or(f64::NAN));
        let after =
            median(found, &|measured| measured.disk_bytes_after_delete.map_or(f64::NAN, |b| b as f64));
        let left = after / (payload / 10.0);
        let reads = median(found, &|measured| measured.reads_per_sec.unwrap_or(f64::NAN));
        let reopen = median(found, &|measured| measured.reopen_secs.unwrap_or(f64::NAN));
        let or_none = |number: f64, unit: &str| match number.is_nan() {
            true => "-".to_owned(),
            false => format!("{number:.2}{unit}"),
        };
        println!(
            "| {name} | {rate:.0} | {:.2} | {rss:.0} MB | {disk:.2} | {} | {} | {} | {} |",
            rate / bare,
            or_none(reopen, " s"),
            if reads.is_nan() { "-".to_owned() } else { format!("{reads:.0}") },
            or_none(delete, " s"),
            or_none(left, ""),
        );
    }
}
