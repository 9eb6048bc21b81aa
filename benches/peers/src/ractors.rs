//! ractor: actors that send each other the events of a workflow's steps.

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

/// A message to an actor of the chain.
enum Turn {
    /// The other actor.
    Other(ActorRef<Turn>),
    /// How many steps there were.
    Done(u64),
}

/// One of two that take turns.
struct Player;

struct Playing {
    other: Option<ActorRef<Turn>>,
    steps: u64,
    end: Option<oneshot::Sender<u64>>,
}

impl Actor for Player {
    type Msg = Turn;
    type State = Playing;
    type Arguments = Playing;

    async fn pre_start(&self, _: ActorRef<Turn>, playing: Playing) -> Result<Playing, ActorProcessingErr> {
        Ok(playing)
    }

    async fn handle(
        &self,
        _: ActorRef<Turn>,
        turn: Turn,
        playing: &mut Playing,
    ) -> Result<(), ActorProcessingErr> {
        match (turn, &playing.other) {
            (Turn::Other(other), _) => playing.other = Some(other),
            (Turn::Done(done), Some(other)) if done + 1 < playing.steps => {
                other.cast(Turn::Done(done + 1))?
            }
            // The receiver is gone if the execution was abandoned.
            (Turn::Done(done), _) => {
                let _ = playing.end.take().map(|end| end.send(done + 1));
            }
        }
        Ok(())
    }
}

pub(crate) async fn chain(steps: u64) -> u64 {
    let (tick_ends, tick_ended) = oneshot::channel();
    let (tock_ends, tock_ended) = oneshot::channel();
    let player = |end| Actor::spawn(None, Player, Playing { other: None, steps, end: Some(end) });
    let (tick, _) = player(tick_ends).await.expect("it starts");
    let (tock, _) = player(tock_ends).await.expect("it starts");
    tick.cast(Turn::Other(tock.clone())).expect("it is there");
    tock.cast(Turn::Other(tick.clone())).expect("it is there");
    tick.cast(Turn::Done(0)).expect("it is there");
    let done = tokio::select! { done = tick_ended => done, done = tock_ended => done };
    tick.stop(None);
    tock.stop(None);
    done.expect("one of them ends")
}

/// Squares its numbers for the adder.
struct Squarer;

impl Actor for Squarer {
    type Msg = u64;
    type State = ActorRef<u64>;
    type Arguments = ActorRef<u64>;

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        sum: ActorRef<u64>,
    ) -> Result<ActorRef<u64>, ActorProcessingErr> {
        Ok(sum)
    }

    async fn handle(
        &self,
        _: ActorRef<u64>,
        number: u64,
        sum: &mut ActorRef<u64>,
    ) -> Result<(), ActorProcessingErr> {
        Ok(sum.cast(number * number)?)
    }
}

/// Adds up a number of squares.
struct Adder;

struct Adding {
    left: u64,
    sum: u64,
    end: Option<oneshot::Sender<u64>>,
}

impl Actor for Adder {
    type Msg = u64;
    type State = Adding;
    type Arguments = Adding;

    async fn pre_start(&self, _: ActorRef<u64>, adding: Adding) -> Result<Adding, ActorProcessingErr> {
        Ok(adding)
    }

    async fn handle(
        &self,
        _: ActorRef<u64>,
        square: u64,
        adding: &mut Adding,
    ) -> Result<(), ActorProcessingErr> {
        adding.sum += square;
        adding.left -= 1;
        if adding.left == 0 {
            // The receiver is gone if the execution was abandoned.
            let _ = adding.end.take().map(|end| end.send(adding.sum));
        }
        Ok(())
    }
}

/// Two actors that square, as many as there are cores here, and one that adds up.
pub(crate) async fn fan(branches: u64) -> u64 {
    let (end, ended) = oneshot::channel();
    let adding = Adding { left: branches, sum: 0, end: Some(end) };
    let (adder, _) = Actor::spawn(None, Adder, adding).await.expect("it starts");
    let (one, _) = Actor::spawn(None, Squarer, adder.clone()).await.expect("it starts");
    let (other, _) = Actor::spawn(None, Squarer, adder.clone()).await.expect("it starts");
    for number in 0..branches {
        let squarer = if number % 2 == 0 { &one } else { &other };
        squarer.cast(number).expect("it is there");
    }
    let sum = ended.await.expect("it ends");
    [one, other, adder].into_iter().for_each(|actor| actor.stop(None));
    sum
}

/// One run: it sends itself the results of its three steps.
struct Three;

/// The result of a step.
enum Step {
    Find(u64),
    Weigh(u64),
    End(u64),
}

impl Actor for Three {
    type Msg = Step;
    type State = Option<oneshot::Sender<u64>>;
    type Arguments = (u64, oneshot::Sender<u64>);

    async fn pre_start(
        &self,
        this: ActorRef<Step>,
        (number, end): (u64, oneshot::Sender<u64>),
    ) -> Result<Self::State, ActorProcessingErr> {
        this.cast(Step::Find(number))?;
        Ok(Some(end))
    }

    async fn handle(
        &self,
        this: ActorRef<Step>,
        step: Step,
        end: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match step {
            Step::Find(number) => this.cast(Step::Weigh(number + 1))?,
            Step::Weigh(number) => this.cast(Step::End(number + 1))?,
            Step::End(number) => {
                // The receiver is gone if the execution was abandoned.
                let _ = end.take().map(|end| end.send(number + 1));
                this.stop(None);
            }
        }
        Ok(())
    }
}

/// Each run is an actor.
pub(crate) async fn runs(runs: u64) -> u64 {
    let mut started = Vec::new();
    for number in 0..runs {
        let (end, ended) = oneshot::channel();
        Actor::spawn(None, Three, (number, end)).await.expect("it starts");
        started.push(ended);
    }
    let mut sum = 0;
    for ended in started {
        sum += ended.await.expect("it ends");
    }
    sum
}
