//! Measures large tables: building with all checks, forecasting every step, and drawing, at 1,000 and at 10,000 steps,
//! with the ratios side by side.
//!
//! `cargo bench -p workflow-benches --bench tables`
//!
//! `-- chain` measures only the shapes whose names contain `chain`. The ratios are the point: a ratio of 10 is a cost
//! that grows with the table. The shapes are in `shapes.rs`.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use workflow_core::table::DependencyTable;

mod shapes;

/// The two sizes, in steps.
const SIZES: [usize; 2] = [1_000, 10_000];

/// The processes for each size of a shape, of which the fastest counts. A table is built once in a program, so each
/// process builds one: the memory of a process that builds and drops many lies scattered.
const REPETITIONS: usize = 7;

/// The measured parts, in the order of the columns; last everything together.
const COLUMNS: [&str; 7] = ["build", "forecast", "graph", "mermaid", "dot", "json", "all"];

type Times = [Duration; COLUMNS.len()];

/// The argument with which a process measures one table.
const ONCE: &str = "--once";

#[expect(clippy::print_stdout, reason = "the result of the bench")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, shape, steps] = &arguments[..]
        && first == ONCE
    {
        let steps = steps.parse().expect("a number of steps");
        let times = once(shape_named(shape), steps);
        for time in times {
            println!("{}", time.as_nanos());
        }
        return;
    }
    let wanted = arguments.into_iter().find(|argument| !argument.starts_with("--")).unwrap_or_default();
    println!("milliseconds at {} and {} steps, and their ratio", SIZES[0], SIZES[1]);
    print!("{:<12}", "shape");
    for column in COLUMNS {
        print!("{column:>26}");
    }
    println!();
    let mut worst = (0.0, String::new());
    for (name, _) in shapes::ALL.iter().filter(|(name, _)| name.contains(&*wanted)) {
        let [small, large] = SIZES.map(|steps| fastest(name, steps));
        print!("{name:<12}");
        for (column, (small, large)) in COLUMNS.iter().zip(small.iter().zip(&large)) {
            let ratio = large.as_secs_f64() / small.as_secs_f64();
            print!("{:>8.2} {:>9.2} {ratio:>6.1}×", small.as_secs_f64() * 1e3, large.as_secs_f64() * 1e3);
            if ratio > worst.0 {
                worst = (ratio, format!("{column} of {name}"));
            }
        }
        println!();
    }
    println!("greatest ratio: {:.1}, {}", worst.0, worst.1);
}

fn shape_named(name: &str) -> shapes::Shape {
    shapes::ALL.iter().find(|(known, _)| *known == name).expect("the name of a shape").1
}

/// The fastest times of a shape at this size, each of some process.
fn fastest(shape: &str, steps: usize) -> Times {
    let program = std::env::current_exe().expect("the bench has a path");
    let mut best: Times = [Duration::MAX; COLUMNS.len()];
    for _ in 0..REPETITIONS {
        let output = Command::new(&program).args([ONCE, shape, &steps.to_string()]).output();
        let output = output.expect("the bench can start itself").stdout;
        let times = String::from_utf8_lossy(&output).lines().map(nanoseconds).collect::<Vec<_>>();
        assert_eq!(times.len(), COLUMNS.len(), "the process of `{shape}` did not end well");
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    best
}

fn nanoseconds(line: &str) -> Duration {
    Duration::from_nanos(line.parse().expect("a number of nanoseconds"))
}

fn once(shape: shapes::Shape, steps: usize) -> Times {
    // The code itself is in memory then.
    measure(shape, 40);
    measure(shape, steps)
}

fn measure(shape: shapes::Shape, steps: usize) -> Times {
    let builder = shape(steps);
    let (table, build) = timed(|| builder.build().expect("the shapes have no problems"));
    assert_eq!(table.steps().len(), steps, "a shape has as many steps as asked for");
    let ((), forecast) = timed(|| forecast_all(&table));
    // The forecasts are made already.
    let (graph, draw) = timed(|| table.graph());
    let (_, mermaid) = timed(|| graph.to_mermaid());
    let (_, dot) = timed(|| graph.to_dot());
    let (_, json) = timed(|| graph.to_json());
    [build, forecast, draw, mermaid, dot, json, build + forecast + draw + mermaid + dot + json]
}

fn forecast_all(table: &DependencyTable) {
    for step in table.steps() {
        let index = table.step_named(step.name()).expect("it is a step of the table");
        black_box(table.forecast(index));
    }
}

/// The result of the work and how long it took, without dropping the result.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = Instant::now();
    let result = black_box(work());
    (result, before.elapsed())
}
