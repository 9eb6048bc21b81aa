//! Many joins: 50 steps over 20 types of events, each of which requires three. Cards of all types are dealt in rounds.
//! So each card runs the seven or eight steps that take it, with the latest of the other types.

use std::hint::black_box;

use workflow_core::prelude::*;

use super::{By, Extent, Work, engine};
use crate::hand::{Emitted, Erased, Kind, Log, Running, Step, Table, begin, floor, spawn};

/// How many types of cards there are.
const CARDS: u64 = 20;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    rounds: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Deal {
    round: u64,
    rounds: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

#[derive(Debug, EventSet)]
enum Next {
    Deal(Deal),
    Done(Done),
}

/// The result of the cards of the last type, for both implementations.
fn next(round: u64, rounds: u64) -> Next {
    if round == rounds { Next::Done(Done(rounds)) } else { Next::Deal(Deal { round: round + 1, rounds }) }
}

macro_rules! table {
    ($($card:ident)*; $last:ident; $($step:ident($one:ident, $two:ident, $three:ident);)*) => {
        $(
            #[derive(Debug, Clone, Serialize, Deserialize, Event)]
            struct $card {
                round: u64,
                rounds: u64,
            }
        )*

        #[derive(Debug, EventSet)]
        enum Card {
            $($card($card),)*
        }

        struct Cards;

        #[workflow]
        impl Cards {
            #[step]
            async fn begin(&self, begin: &Begin) -> Deal {
                Deal { round: 1, rounds: begin.rounds }
            }

            #[step]
            async fn deal(&self, deal: &Deal) -> Vec<Card> {
                let Deal { round, rounds } = *deal;
                vec![$(Card::$card($card { round, rounds })),*]
            }

            $(
                #[step]
                async fn $step(&self, one: &$one, two: &$two, three: &$three) {
                    black_box(one.round + two.round + three.round);
                }
            )*

            #[step]
            async fn next(&self, card: &$last) -> Next {
                next(card.round, card.rounds)
            }
        }
    };
}

table! {
    C0 C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 C16 C17 C18 C19;
    C19;
    j0(C0, C1, C7); j1(C1, C2, C8); j2(C2, C3, C9); j3(C3, C4, C10); j4(C4, C5, C11); j5(C5, C6, C12);
    j6(C6, C7, C13); j7(C7, C8, C14); j8(C8, C9, C15); j9(C9, C10, C16); j10(C10, C11, C17);
    j11(C11, C12, C18); j12(C12, C13, C19); j13(C13, C14, C0); j14(C14, C15, C1); j15(C15, C16, C2);
    j16(C16, C17, C3); j17(C17, C18, C4); j18(C18, C19, C5); j19(C19, C0, C6); j20(C0, C2, C8);
    j21(C1, C3, C9); j22(C2, C4, C10); j23(C3, C5, C11); j24(C4, C6, C12); j25(C5, C7, C13);
    j26(C6, C8, C14); j27(C7, C9, C15); j28(C8, C10, C16); j29(C9, C11, C17); j30(C10, C12, C18);
    j31(C11, C13, C19); j32(C12, C14, C0); j33(C13, C15, C1); j34(C14, C16, C2); j35(C15, C17, C3);
    j36(C16, C18, C4); j37(C17, C19, C5); j38(C18, C0, C6); j39(C19, C1, C7); j40(C0, C3, C9);
    j41(C1, C4, C10); j42(C2, C5, C11); j43(C3, C6, C12); j44(C4, C7, C13); j45(C5, C8, C14);
    j46(C6, C9, C15); j47(C7, C10, C16); j48(C8, C11, C17); j49(C9, C12, C18);
}

/// A card by hand, of which the type is a number.
#[derive(Debug)]
struct ByHand<const TYPE: usize> {
    round: u64,
    rounds: u64,
}

impl<const TYPE: usize> Kind for ByHand<TYPE> {
    const KIND: usize = TYPE;
}

impl Kind for Begin {
    const KIND: usize = 20;
}

impl Kind for Deal {
    const KIND: usize = 21;
}

/// Runs if each type has a card, with the latest of each.
fn join<const ONE: usize, const TWO: usize, const THREE: usize>(log: &Log, _: &Erased) -> Option<Running> {
    let (one, two, three) = (
        log.latest::<ByHand<ONE>>()?.clone(),
        log.latest::<ByHand<TWO>>()?.clone(),
        log.latest::<ByHand<THREE>>()?.clone(),
    );
    begin(async move {
        let rounds = one.of::<ByHand<ONE>>().round + two.of::<ByHand<TWO>>().round;
        black_box(rounds + three.of::<ByHand<THREE>>().round);
        Emitted::Nothing
    })
}

const NEXT: Step = |_, event| {
    let event = event.clone();
    begin(async move {
        let card = event.of::<ByHand<19>>();
        match next(card.round, card.rounds) {
            Next::Deal(deal) => Emitted::one(deal),
            Next::Done(done) => Emitted::Stop(done.0),
        }
    })
};

const BEGIN: Step = |_, event| {
    let event = event.clone();
    begin(async move { Emitted::one(Deal { round: 1, rounds: event.of::<Begin>().rounds }) })
};

const DEAL: Step = |_, event| {
    let event = event.clone();
    begin(async move {
        let Deal { round, rounds } = *event.of::<Deal>();
        Emitted::Many(cards(round, rounds))
    })
};

fn cards(round: u64, rounds: u64) -> Vec<Erased> {
    macro_rules! cards {
        ($($card:literal)*) => { vec![$(Erased::new(ByHand::<$card> { round, rounds })),*] };
    }
    cards!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19)
}

const TABLE: Table = &[
    &[
        join::<0, 1, 7>,
        join::<13, 14, 0>,
        join::<19, 0, 6>,
        join::<0, 2, 8>,
        join::<12, 14, 0>,
        join::<18, 0, 6>,
        join::<0, 3, 9>,
    ],
    &[
        join::<0, 1, 7>,
        join::<1, 2, 8>,
        join::<14, 15, 1>,
        join::<1, 3, 9>,
        join::<13, 15, 1>,
        join::<19, 1, 7>,
        join::<1, 4, 10>,
    ],
    &[
        join::<1, 2, 8>,
        join::<2, 3, 9>,
        join::<15, 16, 2>,
        join::<0, 2, 8>,
        join::<2, 4, 10>,
        join::<14, 16, 2>,
        join::<2, 5, 11>,
    ],
    &[
        join::<2, 3, 9>,
        join::<3, 4, 10>,
        join::<16, 17, 3>,
        join::<1, 3, 9>,
        join::<3, 5, 11>,
        join::<15, 17, 3>,
        join::<0, 3, 9>,
        join::<3, 6, 12>,
    ],
    &[
        join::<3, 4, 10>,
        join::<4, 5, 11>,
        join::<17, 18, 4>,
        join::<2, 4, 10>,
        join::<4, 6, 12>,
        join::<16, 18, 4>,
        join::<1, 4, 10>,
        join::<4, 7, 13>,
    ],
    &[
        join::<4, 5, 11>,
        join::<5, 6, 12>,
        join::<18, 19, 5>,
        join::<3, 5, 11>,
        join::<5, 7, 13>,
        join::<17, 19, 5>,
        join::<2, 5, 11>,
        join::<5, 8, 14>,
    ],
    &[
        join::<5, 6, 12>,
        join::<6, 7, 13>,
        join::<19, 0, 6>,
        join::<4, 6, 12>,
        join::<6, 8, 14>,
        join::<18, 0, 6>,
        join::<3, 6, 12>,
        join::<6, 9, 15>,
    ],
    &[
        join::<0, 1, 7>,
        join::<6, 7, 13>,
        join::<7, 8, 14>,
        join::<5, 7, 13>,
        join::<7, 9, 15>,
        join::<19, 1, 7>,
        join::<4, 7, 13>,
        join::<7, 10, 16>,
    ],
    &[
        join::<1, 2, 8>,
        join::<7, 8, 14>,
        join::<8, 9, 15>,
        join::<0, 2, 8>,
        join::<6, 8, 14>,
        join::<8, 10, 16>,
        join::<5, 8, 14>,
        join::<8, 11, 17>,
    ],
    &[
        join::<2, 3, 9>,
        join::<8, 9, 15>,
        join::<9, 10, 16>,
        join::<1, 3, 9>,
        join::<7, 9, 15>,
        join::<9, 11, 17>,
        join::<0, 3, 9>,
        join::<6, 9, 15>,
        join::<9, 12, 18>,
    ],
    &[
        join::<3, 4, 10>,
        join::<9, 10, 16>,
        join::<10, 11, 17>,
        join::<2, 4, 10>,
        join::<8, 10, 16>,
        join::<10, 12, 18>,
        join::<1, 4, 10>,
        join::<7, 10, 16>,
    ],
    &[
        join::<4, 5, 11>,
        join::<10, 11, 17>,
        join::<11, 12, 18>,
        join::<3, 5, 11>,
        join::<9, 11, 17>,
        join::<11, 13, 19>,
        join::<2, 5, 11>,
        join::<8, 11, 17>,
    ],
    &[
        join::<5, 6, 12>,
        join::<11, 12, 18>,
        join::<12, 13, 19>,
        join::<4, 6, 12>,
        join::<10, 12, 18>,
        join::<12, 14, 0>,
        join::<3, 6, 12>,
        join::<9, 12, 18>,
    ],
    &[
        join::<6, 7, 13>,
        join::<12, 13, 19>,
        join::<13, 14, 0>,
        join::<5, 7, 13>,
        join::<11, 13, 19>,
        join::<13, 15, 1>,
        join::<4, 7, 13>,
    ],
    &[
        join::<7, 8, 14>,
        join::<13, 14, 0>,
        join::<14, 15, 1>,
        join::<6, 8, 14>,
        join::<12, 14, 0>,
        join::<14, 16, 2>,
        join::<5, 8, 14>,
    ],
    &[
        join::<8, 9, 15>,
        join::<14, 15, 1>,
        join::<15, 16, 2>,
        join::<7, 9, 15>,
        join::<13, 15, 1>,
        join::<15, 17, 3>,
        join::<6, 9, 15>,
    ],
    &[
        join::<9, 10, 16>,
        join::<15, 16, 2>,
        join::<16, 17, 3>,
        join::<8, 10, 16>,
        join::<14, 16, 2>,
        join::<16, 18, 4>,
        join::<7, 10, 16>,
    ],
    &[
        join::<10, 11, 17>,
        join::<16, 17, 3>,
        join::<17, 18, 4>,
        join::<9, 11, 17>,
        join::<15, 17, 3>,
        join::<17, 19, 5>,
        join::<8, 11, 17>,
    ],
    &[
        join::<11, 12, 18>,
        join::<17, 18, 4>,
        join::<18, 19, 5>,
        join::<10, 12, 18>,
        join::<16, 18, 4>,
        join::<18, 0, 6>,
        join::<9, 12, 18>,
    ],
    &[
        join::<12, 13, 19>,
        join::<18, 19, 5>,
        join::<19, 0, 6>,
        join::<11, 13, 19>,
        join::<17, 19, 5>,
        join::<19, 1, 7>,
        NEXT,
    ],
    &[BEGIN],
    &[DEAL],
];

async fn ours(engine: Engine, rounds: u64) -> u64 {
    let run = engine.start::<Cards>(Begin { rounds }).await.expect("it starts");
    run.outcome().await.map_or(0, |done| done.0)
}

/// A thousand cards, and ten thousand to see whether a card costs more in a long log.
pub(super) fn works(extent: Extent) -> Vec<Work> {
    let work = |name: &str, cards| {
        let (engine, rounds) = (engine(Cards), cards / CARDS);
        Work::named(name, "event", cards)
            .by(By::Ours, move || ours(engine.clone(), rounds))
            .by(By::Spawn, move || spawn(TABLE, Begin { rounds }))
            .by(By::Floor, move || floor(TABLE, Begin { rounds }))
    };
    let few = work("joins", 1_000);
    if extent == Extent::Quick { vec![few] } else { vec![few, work("joins/10000", 10_000)] }
}
