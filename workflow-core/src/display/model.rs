//! A model of rings, epochs and slow viewers (S63, S64), against the displays of a run and of its child.
//!
//! `PROPTEST_CASES=10000 cargo test -p workflow-core --lib display::model` runs it at length.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures::{FutureExt as _, StreamExt as _};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use super::tests::{Tick, child, text};
use super::*;

const CAPACITY: usize = 4;
const ENDS: [RequestEnd; 3] = [RequestEnd::Replied, RequestEnd::Expired, RequestEnd::Dropped];

#[derive(Debug, Clone, Copy)]
enum Op {
    /// The run, or its child, shows something.
    Show(bool),
    /// The run, or its child, asks.
    Ask(bool),
    /// An open request is closed.
    Close(usize, usize),
    /// The run tells all of its open requests again.
    TellAgain,
    /// A viewer reads this many items.
    Read(usize, usize),
    /// A viewer connects anew behind its position.
    Reconnect(usize),
    /// Another process continues the run.
    Restart,
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any::<bool>().prop_map(Op::Show),
        4 => any::<bool>().prop_map(Op::Ask),
        3 => (any::<usize>(), 0..3_usize).prop_map(|(which, how)| Op::Close(which, how)),
        1 => Just(Op::TellAgain),
        6 => (0..3_usize, 1..8_usize).prop_map(|(viewer, items)| Op::Read(viewer, items)),
        3 => (0..3_usize).prop_map(Op::Reconnect),
        1 => Just(Op::Restart),
    ]
}

/// All items of an epoch, of which the latest are retained.
#[derive(Default)]
struct Epoch {
    number: u64,
    items: Vec<String>,
    ended: bool,
}

/// The place of a viewer in an epoch.
#[derive(Default)]
struct Place {
    next: usize,
    is_stale: bool,
    position: Option<(u64, u64)>,
}

impl Place {
    fn after(position: Option<(u64, u64)>, epoch: &Epoch) -> Self {
        let next = position
            .filter(|(number, _)| *number == epoch.number)
            .map(|(_, index)| usize::try_from(index).unwrap() + 1);
        let is_stale = position.is_some() && next.is_none();
        Self { next: next.unwrap_or(0).min(epoch.items.len()), is_stale, position: None }
    }

    fn read(&mut self, epoch: &Epoch) -> Option<String> {
        let oldest = epoch.items.len().saturating_sub(CAPACITY);
        if std::mem::take(&mut self.is_stale) {
            (self.next, self.position) = (oldest, None);
            return Some("missed some".to_owned());
        }
        let missed = oldest.saturating_sub(self.next);
        self.next = self.next.max(oldest);
        let at = |next: usize| Some((epoch.number, next as u64 - 1));
        if missed > 0 {
            self.position = at(self.next);
            return Some(format!("missed {missed}"));
        }
        let Some(item) = epoch.items.get(self.next) else {
            self.position = if epoch.ended { at(self.next + 1) } else { self.position };
            return epoch.ended.then(|| "Cancelled".to_owned());
        };
        self.next += 1;
        self.position = at(self.next);
        Some(item.clone())
    }
}

/// A run with a child, in one process after another.
struct World {
    epoch: Epoch,
    /// By sequence number: whether it is the child's.
    open: BTreeMap<u64, bool>,
    last: u64,
    run: Shown,
    child: DisplayHub,
}

impl World {
    fn new(number: u64) -> Self {
        let (epoch, open, last) = (Epoch { number, ..Epoch::default() }, BTreeMap::new(), 0);
        let run = Shown::default();
        run.begin_epoch(u32::try_from(number).unwrap());
        let below = DisplayHub::new(CAPACITY);
        let hub = run.hub(|| DisplayHub::new(CAPACITY));
        below.forward(Forward::new(hub.display("clock".into(), ExecutionId(7), 1), child(1)));
        Self { epoch, open, last, run, child: below }
    }

    fn hub(&self, of_child: bool) -> DisplayHub {
        if of_child { self.child.clone() } else { self.run.hub(|| unreachable!()) }
    }

    fn expect(&mut self, of_child: bool, item: String) {
        self.epoch.items.push(if of_child { format!("child {item}") } else { item });
    }

    fn tell_open(&self, seq: u64, of_child: bool) {
        let (event, asked_at) = (AnyEvent::new(Tick(0)), SystemTime::UNIX_EPOCH);
        let request = OpenRequest { seq: Seq(seq), event, asked_at, expires_at: None };
        self.hub(of_child).tell(DisplayItem::Asked { request });
    }

    fn ask(&mut self, of_child: bool) {
        self.last += 1;
        self.open.insert(self.last, of_child);
        self.tell_open(self.last, of_child);
        self.expect(of_child, format!("asked {}", self.last));
    }

    fn close(&mut self, which: usize, how: RequestEnd) {
        let Some((seq, of_child)) =
            self.open.iter().nth(which % self.open.len().max(1)).map(|(s, c)| (*s, *c))
        else {
            return;
        };
        self.open.remove(&seq);
        // The second time it is closed already.
        for _ in 0..2 {
            self.hub(of_child).tell(DisplayItem::Closed { seq: Seq(seq), how });
        }
        self.expect(of_child, format!("{how:?} {seq}"));
    }

    fn show(&mut self, of_child: bool) {
        self.last += 1;
        self.hub(of_child)
            .display("clock".into(), ExecutionId(7), 1)
            .show(Tick(u32::try_from(self.last).unwrap()));
        self.expect(of_child, self.last.to_string());
    }

    /// The child is left to another process, and then the run.
    fn end(&mut self) {
        self.child.close(RunStatus::Cancelled, true);
        self.run.close(RunStatus::Cancelled, true);
        for of_child in [false, true] {
            for seq in
                self.open.iter().filter(|(_, of)| **of == of_child).map(|(seq, _)| *seq).collect::<Vec<_>>()
            {
                self.expect(of_child, format!("Dropped {seq}"));
            }
        }
        self.epoch.ended = true;
    }

    /// Another process has the run. Its first viewer learns of each open request as it is told.
    fn restart(&mut self, seen: &mut Vec<String>) -> Viewer {
        let next = Self::new(self.epoch.number + 3);
        let (open, last) = (std::mem::take(&mut self.open), self.last);
        *self = Self { open, last, ..next };
        let mut first = Viewer::new(self, None);
        for (seq, of_child) in self.open.clone() {
            self.tell_open(seq, of_child);
            self.expect(of_child, format!("asked {seq}"));
            seen.extend(first.read(&self.epoch));
        }
        first
    }
}

struct Viewer {
    stream: DisplayStream,
    place: Place,
}

impl Viewer {
    fn new(world: &World, position: Option<(u64, u64)>) -> Self {
        let place = Place::after(position, &world.epoch);
        let position = position.map(|(epoch, index)| DisplayPosition { epoch, index });
        Self { stream: world.hub(false).subscribe(position, None), place }
    }

    /// Reads one item; `None` if there is none yet, or the stream has ended.
    fn read(&mut self, epoch: &Epoch) -> Option<String> {
        let item = self.stream.next().now_or_never().flatten().map(|item| text(&item));
        let has_ended = self.stream.cursor.is_none() && item.is_none();
        let expected = if has_ended { None } else { self.place.read(epoch) };
        assert_eq!(item, expected);
        let position = self.stream.position().map(|position| (position.epoch, position.index));
        assert_eq!(position, self.place.position);
        item
    }

    fn reconnect(&mut self, world: &World) {
        *self = Self::new(world, self.place.position);
    }
}

/// Each request is asked once, and then closed once, before the end.
fn check_whole(seen: &[String]) {
    let (end, items) = seen.split_last().expect("the end is an item");
    assert_eq!(end, "Cancelled");
    let mut open = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let Some((what, seq)) = item.trim_start_matches("child ").split_once(' ') else { continue };
        match what {
            "asked" => assert!(open.insert(seq, at).is_none(), "{seq} is asked once: {seen:?}"),
            _ => assert!(open.remove(seq).is_some(), "{seq} is closed once: {seen:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?} in {seen:?}");
}

fn play(ops: Vec<Op>) {
    let mut world = World::new(0);
    let mut viewers: Vec<_> = (0..3).map(|_| Viewer::new(&world, None)).collect();
    // Reads everything at once, and is never interrupted.
    let (mut eager, mut seen) = (Viewer::new(&world, None), Vec::new());
    for op in ops.into_iter().chain([Op::Restart]) {
        match op {
            Op::Show(of_child) => world.show(of_child),
            Op::Ask(of_child) => world.ask(of_child),
            Op::Close(which, how) => world.close(which, ENDS[how]),
            Op::TellAgain => world.open.iter().for_each(|(seq, of_child)| world.tell_open(*seq, *of_child)),
            Op::Read(viewer, items) => (0..items).for_each(|_| drop(viewers[viewer].read(&world.epoch))),
            Op::Reconnect(viewer) => viewers[viewer].reconnect(&world),
            Op::Restart => {
                let told = seen.len();
                world.end();
                // More requests may be open than a viewer can read of.
                seen.extend(std::iter::from_fn(|| eager.read(&world.epoch)));
                if !seen[told..].iter().any(|item| item.starts_with("missed")) {
                    check_whole(&seen);
                }
                for viewer in &mut viewers {
                    viewer.reconnect(&world);
                    while viewer.read(&world.epoch).is_some() {}
                }
                seen.clear();
                eager = world.restart(&mut seen);
                for viewer in &mut viewers {
                    viewer.reconnect(&world);
                }
            }
        }
        seen.extend(std::iter::from_fn(|| eager.read(&world.epoch)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // S63, S64
    #[test]
    fn viewers_that_come_back_see_what_others_see(ops in proptest::collection::vec(ops(), 0..60)) {
        play(ops);
    }
}
