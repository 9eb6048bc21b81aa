//! `FanOut<E>`: opens one branch per item (S44), with its policy (S49), its bound, how many branches are enough (S50),
//! and how many may fail (S74).

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::{Emitted, EmittedItem, One, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent, EventKind, EventType, JsonType};
use crate::spec::OutputSpec;

/// The meaning of a failed branch for its fan-out.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { lines: Vec<u64> }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line(u64);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Price(u64);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Total(u64);
/// struct Shop { patient: bool }
///
/// #[workflow]
/// impl Shop {
///     #[step]
///     async fn split(&self, order: &Order) -> FanOut<Line> {
///         let lines: FanOut<Line> = order.lines.iter().copied().map(Line).collect();
///         if self.patient { lines.wait_all() } else { lines.fail_all() }
///     }
///
///     #[step]
///     async fn price(&self, line: &Line) -> Result<Price, StepError> {
///         Err(StepError::rejected(format!("line {} is not for sale", line.0)))
///     }
///
///     #[step]
///     async fn add_up(&self, prices: &Gather<Price>) -> Total { Total(prices.ok().map(|price| price.0).sum()) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let order = Order { lines: vec![1, 2] };
/// let first = Shop { patient: false }.run(order.clone()).await.unwrap_err();
/// assert!(matches!(first, RunError::StepFailed { .. }));
///
/// let all = Shop { patient: true }.run(order).await.unwrap_err();
/// assert!(matches!(all, RunError::BranchesFailed { failures } if failures.len() == 2));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FanOutPolicy {
    /// The first failure drops the other branches and fails the scope of the step that returned the [`FanOut`]:
    /// the run, or the branch in which that step ran. The default.
    #[default]
    FailAll,
    /// The gather gets the failures, and the quality of the run is degraded.
    ContinueOthers,
    /// All branches run to their end. Then any failure fails the scope of the step that returned the
    /// [`FanOut`], with all errors: [`RunError::BranchesFailed`](crate::RunError::BranchesFailed).
    WaitAll,
}

/// A step's output that opens one branch per item. Zero items are allowed.
///
/// A branch is a scope of its own. Steps in the branch and below see its events, and steps in sibling
/// branches do not. So a step that takes the item and an event derived from it gets a matching pair. When
/// every branch has settled, [`Gather<E>`](crate::Gather) triggers once.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { lines: Vec<Line> }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line { sku: String }
/// # struct Shop;
/// # impl Shop {
/// async fn split(&self, order: &Order) -> FanOut<Line> {
///     order.lines.iter().cloned().collect::<FanOut<_>>().concurrency(16).continue_others()
/// }
/// # }
/// ```
pub struct FanOut<E> {
    items: Vec<E>,
    concurrency: Option<NonZeroU32>,
    until: Option<NonZeroU32>,
    tolerated: Result<u32, FanOutError>,
    policy: FanOutPolicy,
}

impl<E> FanOut<E> {
    /// Creates a fan-out with a branch per item, in this order.
    pub fn new(items: Vec<E>) -> Self {
        Self { items, concurrency: None, until: None, tolerated: Ok(0), policy: FanOutPolicy::default() }
    }

    /// Limits the branches that work at the same time. 0 means 1. Default: no limit.
    ///
    /// The others open in order, as branches settle or only wait for a reply or a timer. A branch that only waits does
    /// not count. When it continues, it counts again, even if there are more than `most` then. So a fan-out asks for ten
    /// thousand approvals at once. A retry delay, a child run, and an execution that waits for its turn count as work.
    ///
    /// A branch that opens later sees the events that the outer scopes have by then.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Month { expenses: Vec<u64> }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Expense { cents: u64 }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(request, reply = bool)]
    /// # struct Approve { cents: u64 }
    /// # struct Office;
    /// # impl Office {
    /// async fn split(&self, month: &Month) -> FanOut<Expense> {
    ///     month.expenses.iter().map(|cents| Expense { cents: *cents }).collect::<FanOut<_>>().concurrency(8)
    /// }
    ///
    /// // Each branch asks and then only waits, so the next one opens.
    /// async fn ask(&self, expense: &Expense) -> Approve {
    ///     Approve { cents: expense.cents }
    /// }
    /// # }
    /// ```
    pub fn concurrency(self, most: u32) -> Self {
        Self { concurrency: Some(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)), ..self }
    }

    /// Settles the fan-out once this many branches have settled without a failure, and drops the others. 0 means 1.
    /// Default: all branches.
    ///
    /// The gather lists the others as [dropped](crate::Gather::dropped): their executions are dropped, their requests
    /// and timers are closed, and those that were not open yet never open.
    ///
    /// A branch that fails before does not end the fan-out: the gather has the failure, and the run is degraded. Only
    /// once fewer than `enough` branches can still settle without a failure does the policy decide over all failures,
    /// as without `until`. With the default policy these failures then fail the scope of the step that returned the
    /// `FanOut`. Where there are fewer items than `enough`, the policy decides from the start.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Question;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # struct Model(String);
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Answer(String);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct First { answer: String, failed: usize, dropped: usize }
    /// struct Race;
    ///
    /// #[workflow]
    /// impl Race {
    ///     #[step]
    ///     async fn ask_all(&self, _question: &Question) -> FanOut<Model> {
    ///         ["broken", "slow", "fast"].map(|name| Model(name.into())).into_iter().collect::<FanOut<_>>().until(1)
    ///     }
    ///
    ///     #[step]
    ///     async fn ask(&self, model: &Model) -> Result<Answer, StepError> {
    ///         match model.0.as_str() {
    ///             "broken" => Err(StepError::permanent("it has no answer")),
    ///             "slow" => std::future::pending().await,
    ///             name => Ok(Answer(format!("of {name}"))),
    ///         }
    ///     }
    ///
    ///     #[step]
    ///     async fn first(&self, answers: &Gather<Answer>) -> First {
    ///         let answer = answers.ok().next().map(|answer| answer.0.clone()).unwrap_or_default();
    ///         First { answer, failed: answers.failed().count(), dropped: answers.dropped().count() }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// let first = Race.run(Question).await?;
    /// assert_eq!(first, First { answer: "of fast".into(), failed: 1, dropped: 1 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn until(self, enough: u32) -> Self {
        Self { until: Some(NonZeroU32::new(enough).unwrap_or(NonZeroU32::MIN)), ..self }
    }

    /// Tolerates this many failed branches: the policy decides from the next one on. Default: 0.
    ///
    /// Tolerated failures are in the gather, and the quality of the run is degraded. With one more,
    /// [`fail_all`](Self::fail_all) drops the other branches at that moment and fails, and
    /// [`wait_all`](Self::wait_all) lets all branches run to their end and then fails, each with all failures there are.
    /// [`continue_others`](Self::continue_others) never fails, so the number changes nothing there.
    ///
    /// With [`until`](Self::until), failures are only gathered as long as enough branches can still settle without one,
    /// however many have failed. Once fewer can, the policy decides with this number.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Import { rows: Vec<String> }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Row(String);
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Stored(u64);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Imported { sum: u64, failed: usize }
    /// struct Imports;
    ///
    /// #[workflow]
    /// impl Imports {
    ///     #[step]
    ///     async fn split(&self, import: &Import) -> FanOut<Row> {
    ///         import.rows.iter().cloned().map(Row).collect::<FanOut<_>>().tolerate(1)
    ///     }
    ///
    ///     #[step]
    ///     async fn store(&self, row: &Row) -> Result<Stored, StepError> { Ok(Stored(row.0.parse()?)) }
    ///
    ///     #[step]
    ///     async fn finish(&self, stored: &Gather<Stored>) -> Imported {
    ///         Imported { sum: stored.ok().map(|stored| stored.0).sum(), failed: stored.failed().count() }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// let rows = |rows: [&str; 3]| Import { rows: rows.map(String::from).into() };
    /// assert_eq!(Imports.run(rows(["1", "two", "3"])).await?, Imported { sum: 4, failed: 1 });
    /// let failed = Imports.run(rows(["1", "two", "three"])).await.unwrap_err();
    /// assert!(matches!(failed, RunError::BranchesFailed { failures } if failures.len() == 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn tolerate(self, failures: u32) -> Self {
        Self { tolerated: Ok(failures), ..self }
    }

    /// Tolerates this share of failed branches, from 0 to 100 percent: as [`tolerate`](Self::tolerate) with that share
    /// of the items, rounded down.
    ///
    /// With any other number, and with one that is none, the execution that returns the fan-out fails:
    /// [`FanOutError`](crate::errors::FanOutError).
    ///
    /// ```
    /// use workflow_core::prelude::*;
    ///
    /// // 2 of 250.
    /// let rows: FanOut<u32> = (0..250).collect::<FanOut<_>>().tolerate_percent(1.0);
    /// # let _ = rows;
    /// ```
    pub fn tolerate_percent(self, percent: f64) -> Self {
        let tolerated = share(self.items.len(), percent);
        Self { tolerated, ..self }
    }

    /// The first failure drops the other branches and fails the scope of the step that returned the `FanOut`:
    /// the run, or the branch in which that step ran. The default.
    pub fn fail_all(self) -> Self {
        Self { policy: FanOutPolicy::FailAll, ..self }
    }

    /// The gather gets the failures.
    pub fn continue_others(self) -> Self {
        Self { policy: FanOutPolicy::ContinueOthers, ..self }
    }

    /// All branches run to their end. Then any failure fails the scope of the step that returned the `FanOut`,
    /// with all errors.
    pub fn wait_all(self) -> Self {
        Self { policy: FanOutPolicy::WaitAll, ..self }
    }
}

impl<E> FromIterator<E> for FanOut<E> {
    fn from_iter<I: IntoIterator<Item = E>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

impl<E> fmt::Debug for FanOut<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FanOut({} items, {:?}", self.items.len(), self.policy)?;
        match &self.tolerated {
            Ok(0) => f.write_str(")"),
            Ok(tolerated) => write!(f, ", {tolerated} tolerated)"),
            Err(error) => write!(f, ", {error})"),
        }
    }
}

/// Why a [`FanOut`] cannot open. The execution that returned it fails.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FanOutError {
    /// The share of tolerated failures is no percentage.
    #[error("a fan-out cannot tolerate {percent} percent of its branches: `tolerate_percent` takes 0 to 100")]
    Percent {
        /// The share.
        percent: f64,
    },
}

/// This share of so many items, rounded down.
fn share(items: usize, percent: f64) -> Result<u32, FanOutError> {
    if !(0.0..=100.0).contains(&percent) {
        return Err(FanOutError::Percent { percent });
    }
    let items = u32::try_from(items).unwrap_or(u32::MAX);
    let (share, whole) = (f64::from(items) * percent / 100.0, (f64::from(items) * percent / 100.0).round());
    // 2.3 percent of 1,000 are 23, although no float is exactly 2.3.
    let share = if (share - whole).abs() < 1e-9 * whole { whole } else { share };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and the items"
    )]
    Ok(share as u32)
}

/// A fan-out in a batch, with erased items.
#[derive(Debug)]
pub(crate) struct OpenedFanOut {
    pub(crate) items: Vec<AnyEvent>,
    pub(crate) concurrency: Option<NonZeroU32>,
    pub(crate) until: Option<NonZeroU32>,
    /// How many branches may fail.
    pub(crate) tolerated: Result<u32, FanOutError>,
    pub(crate) policy: FanOutPolicy,
    pub(crate) item_type: ItemType,
}

/// The type of the items, known also without an item.
#[derive(Debug)]
pub(crate) enum ItemType {
    Rust(&'static EventType),
    Json(Arc<JsonType>),
}

impl ItemType {
    pub(crate) fn kind(&self) -> EventKind<'_> {
        match self {
            Self::Rust(known) => EventKind::Rust(known),
            Self::Json(known) => EventKind::Json(known),
        }
    }
}

impl OpenedFanOut {
    /// Opens the fan-out with its items as events.
    pub(super) fn of<E>(fan_out: FanOut<E>, item_type: ItemType, event: impl FnMut(E) -> AnyEvent) -> Self {
        let FanOut { items, concurrency, until, tolerated, policy } = fan_out;
        let items = items.into_iter().map(event).collect();
        Self { items, concurrency, until, tolerated, policy, item_type }
    }
}

impl<E: ControlEvent> StepOutput for FanOut<E> {
    const SPEC: OutputSpec = OutputSpec::FanOut(E::TYPE);
    type Events = One<E>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        let opened = OpenedFanOut::of(self, ItemType::Rust(&E::TYPE), AnyEvent::new);
        emitted.put(EmittedItem::FanOut(Box::new(opened)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S74
    #[test]
    fn a_share_is_rounded_down_and_whole_numbers_of_items_stay_whole() {
        let shares = [(250, 1.0, 2), (99, 1.0, 0), (1_000, 2.3, 23), (1_000, 0.07, 0), (100, 29.0, 29)];
        let more =
            [(7, 100.0, 7), (0, 50.0, 0), (3, 33.4, 1), (3, 33.3, 0), (u32::MAX as usize, 100.0, u32::MAX)];
        for (items, percent, expected) in shares.into_iter().chain(more) {
            assert_eq!(share(items, percent), Ok(expected), "{percent} % of {items}");
        }
        assert_eq!(share(1_000_000, 0.000_1), Ok(1));
    }

    // S74
    #[test]
    fn what_is_no_percentage_is_refused() {
        for percent in [-0.001, 100.001, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let Err(FanOutError::Percent { percent: refused }) = share(10, percent) else {
                panic!("{percent}")
            };
            assert!(refused.to_bits() == percent.to_bits());
        }
        assert_eq!(share(10, -0.0), Ok(0));
        let fan_out = FanOut::new(vec![1, 2]).tolerate_percent(50.0);
        assert_eq!(format!("{fan_out:?}"), "FanOut(2 items, FailAll, 1 tolerated)");
    }
}
