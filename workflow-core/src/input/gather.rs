//! `Gather<E>` and `Gather<E, Item>`: the settled branches of a fan-out, in the order of its items (S48).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{EventInput, Slot, StepInput};
use crate::error::{BranchFailure, StepError};
use crate::event::{AnyEvent, ControlEvent, EventType, Gathered, GatheredBranch};
use crate::id::ScopeId;
use crate::spec::InputSpec;

/// The settled branches of a fan-out. The input triggers once per fan-out, also for an empty one.
///
/// Branches stand in the order of the fan-out's items, in whatever order they settled. A branch has its item,
/// the events of type `E` that were emitted in its own scope (usually one, possibly none or several), and its
/// failure if it has one. With [`FanOut::until`](crate::FanOut::until), branches may have been
/// [dropped](Self::dropped). A clone shares the branches.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { articles: Vec<String> }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # struct Line { article: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # struct Quote { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Offer { cents: u64, left_out: Vec<String>, has_lamp: bool }
/// struct Offers;
///
/// #[workflow]
/// impl Offers {
///     #[step]
///     async fn split(&self, order: &Order) -> FanOut<Line> {
///         let lines = order.articles.iter().map(|article| Line { article: article.clone() });
///         // With `fail_all` or `wait_all`, the failed branch would fail the run.
///         lines.collect::<FanOut<_>>().continue_others()
///     }
///
///     #[step]
///     async fn price(&self, line: &Line) -> Result<Quote, StepError> {
///         match line.article.as_str() {
///             "moon" => Err(StepError::rejected("it is not for sale")),
///             _ => Ok(Quote { cents: 100 }),
///         }
///     }
///
///     #[step]
///     async fn offer(&self, quotes: Gather<Quote>) -> Offer {
///         // Each branch has its item, its events and its failure.
///         let failed = quotes.branches().filter(|branch| branch.failure().is_some());
///         let left_out = failed.filter_map(|branch| Some(branch.item::<Line>()?.article.clone())).collect();
///         let lamp = quotes.branch_of(&Line { article: "lamp".into() });
///         let has_lamp = lamp.is_some_and(|lamp| lamp.event().is_some());
///         // Or only the events of those that did not fail.
///         Offer { cents: quotes.into_vec().iter().map(|quote| quote.cents).sum(), left_out, has_lamp }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// let offer = Offers.run(Order { articles: vec!["moon".into(), "lamp".into()] }).await?;
/// assert_eq!(offer, Offer { cents: 100, left_out: vec!["moon".into()], has_lamp: true });
/// # Ok(())
/// # }
/// ```
///
/// A gather takes the fan-outs whose branches can have `E`: as the item, or emitted in the branch's own scope. Where
/// that fits fan-outs of several items, name the item as `Item`; leaving it out is a compile error then, which lists
/// the items. All fan-outs with one item type count as one.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Parcel { grams: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Letter { grams: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Weight { grams: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Weighed { parcels: u64, letters: u64 }
/// struct Post;
///
/// #[workflow]
/// impl Post {
///     #[step]
///     async fn sort(&self, _order: &Order) -> (FanOut<Parcel>, FanOut<Letter>) {
///         ([Parcel { grams: 900 }].into_iter().collect(), [Letter { grams: 20 }].into_iter().collect())
///     }
///
///     #[step]
///     async fn weigh_parcel(&self, parcel: &Parcel) -> Weight {
///         Weight { grams: parcel.grams }
///     }
///
///     #[step]
///     async fn weigh_letter(&self, letter: &Letter) -> Weight {
///         Weight { grams: letter.grams }
///     }
///
///     #[step]
///     async fn sum(&self, parcels: &Gather<Weight, Parcel>, letters: &Gather<Weight, Letter>) -> Weighed {
///         let parcels = parcels.ok().map(|weight| weight.grams).sum();
///         Weighed { parcels, letters: letters.ok().map(|weight| weight.grams).sum() }
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// let weighed = Post.run(Order).await?;
/// assert_eq!((weighed.parcels, weighed.letters), (900, 20));
/// # Ok(())
/// # }
/// ```
pub struct Gather<E, Item = ()> {
    gathered: Arc<Gathered>,
    types: PhantomData<fn() -> (E, Item)>,
}

/// The item that a [`Gather`] names: the item's type, or `()` for none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the item of a fan-out",
    label = "not an event that can drive steps",
    note = "`Gather<E, Item>` names the item of the `FanOut<Item>` that it takes"
)]
pub trait GatherItem: Send + Sync + 'static {
    /// The event type of the item; `None` for `()`.
    const TYPE: Option<EventType>;
}

impl GatherItem for () {
    const TYPE: Option<EventType> = None;
}

impl<E: ControlEvent> GatherItem for E {
    const TYPE: Option<EventType> = Some(<E as crate::event::Event>::TYPE);
}

impl<E: ControlEvent, Item: GatherItem> Gather<E, Item> {
    fn bound(slot: &Slot<'_>) -> Result<Self, StepError> {
        let gathered = slot.event()?.payload_arc().ok_or_else(|| slot.mismatch())?;
        Ok(Self { gathered, types: PhantomData })
    }

    /// The number of branches.
    pub fn len(&self) -> usize {
        self.gathered.branches.len()
    }

    /// Whether the fan-out had no items.
    pub fn is_empty(&self) -> bool {
        self.gathered.branches.is_empty()
    }

    /// The branches, in the order of the fan-out's items.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = Branch<'_, E>> + DoubleEndedIterator {
        self.gathered.branches.iter().map(|branch| Branch::of(&self.gathered, branch))
    }

    /// The events of the branches that settled without a failure, in the items' order.
    pub fn ok(&self) -> impl Iterator<Item = &E> {
        let ok = self.branches().filter(|branch| branch.failure().is_none() && !branch.is_dropped());
        ok.flat_map(Branch::into_events)
    }

    /// The branches that failed, in the order of the fan-out's items.
    pub fn failed(&self) -> impl Iterator<Item = Branch<'_, E>> {
        self.branches().filter(|branch| branch.failure().is_some())
    }

    /// The branches that were dropped since enough others had settled ([`FanOut::until`](crate::FanOut::until)), in
    /// the order of the fan-out's items. A branch that had failed by then is among the [failed](Self::failed) ones.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Bidder { name: String }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Bid { cents: u64 }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Bought { cents: Option<u64>, too_late: Vec<String> }
    /// # struct Purchase;
    /// # impl Purchase {
    /// async fn choose(&self, bids: &Gather<Bid>) -> Bought {
    ///     let too_late = bids.dropped().filter_map(|branch| branch.item::<Bidder>());
    ///     let too_late = too_late.map(|bidder| bidder.name.clone()).collect();
    ///     Bought { cents: bids.ok().map(|bid| bid.cents).min(), too_late }
    /// }
    /// # }
    /// ```
    pub fn dropped(&self) -> impl Iterator<Item = Branch<'_, E>> {
        self.branches().filter(Branch::is_dropped)
    }

    /// The branch of the first item equal to `item`, if the fan-out has one. O(branches).
    pub fn branch_of<I: ControlEvent + PartialEq>(&self, item: &I) -> Option<Branch<'_, E>> {
        self.branches().find(|branch| branch.item::<I>() == Some(item))
    }

    /// Clones the events of the branches that settled without a failure, in the items' order.
    pub fn into_vec(self) -> Vec<E>
    where
        E: Clone,
    {
        self.ok().cloned().collect()
    }
}

impl<E, Item> Clone for Gather<E, Item> {
    fn clone(&self) -> Self {
        Self { gathered: Arc::clone(&self.gathered), types: PhantomData }
    }
}

impl<E, Item> fmt::Debug for Gather<E, Item> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather({} branches)", self.gathered.branches.len())
    }
}

/// One branch of a [`Gather`]: it settled, failed, or was dropped since enough others had settled.
pub struct Branch<'a, E> {
    gathered: &'a Gathered,
    result: &'a GatheredBranch,
    event: PhantomData<fn() -> E>,
}

impl<'a, E: ControlEvent> Branch<'a, E> {
    fn of(gathered: &'a Gathered, branch: &'a GatheredBranch) -> Self {
        Self { gathered, result: branch, event: PhantomData }
    }

    /// The item that opened the branch, if its type is `I`.
    ///
    /// Always `Some` for the type of the fan-out's items, which a `Branch` does not have in its own type.
    pub fn item<I: ControlEvent>(&self) -> Option<&'a I> {
        self.result.item.downcast_ref()
    }

    /// The item that opened the branch, of any type.
    pub fn any_item(&self) -> &'a AnyEvent {
        &self.result.item
    }

    /// The events of type `E` emitted in the branch's own scope, in log order. For a branch that was dropped, those
    /// until then.
    pub fn events(&self) -> impl Iterator<Item = &'a E> + use<'a, E> {
        self.result.events.iter().filter_map(AnyEvent::downcast_ref)
    }

    /// The first of these events, for the usual branch that emits one.
    pub fn event(&self) -> Option<&'a E> {
        self.events().next()
    }

    /// The failure of the branch, if it failed.
    pub fn failure(&self) -> Option<&'a BranchFailure> {
        self.result.failure.as_deref()
    }

    /// Whether the branch was dropped, since enough others had settled ([`FanOut::until`](crate::FanOut::until)). False
    /// for a branch that had failed by then.
    pub fn is_dropped(&self) -> bool {
        self.result.is_dropped()
    }

    /// How many branches of the fan-out settled before this one, from 0: the order in which they settled.
    ///
    /// Of branches that settle at the same event, the first in the order of the items comes first. Dropped branches come
    /// behind all others, in the order of the items.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Runner { name: String }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Arrived;
    /// /// The names in the order of arrival.
    /// fn ranking(runners: &Gather<Arrived>) -> Vec<String> {
    ///     let mut branches: Vec<_> = runners.branches().collect();
    ///     branches.sort_by_key(|branch| branch.settled());
    ///     let runners = branches.iter().filter_map(|branch| branch.item::<Runner>());
    ///     runners.map(|runner| runner.name.clone()).collect()
    /// }
    /// ```
    pub fn settled(&self) -> u32 {
        self.gathered.settled(self.result)
    }

    /// The scope of the branch, under which explanations and traces show it.
    pub fn scope(&self) -> ScopeId {
        self.result.scope
    }

    fn into_events(self) -> impl Iterator<Item = &'a E> + use<'a, E> {
        self.events()
    }
}

impl<E> fmt::Debug for Branch<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Branch")
            .field("item", &self.result.item)
            .field("events", &self.result.events)
            .field("failure", &self.result.failure)
            .field("dropped", &self.result.is_dropped())
            .finish()
    }
}

impl<E: ControlEvent, I: GatherItem> StepInput for Gather<E, I> {
    const SPEC: InputSpec = InputSpec::gather::<E>(I::TYPE);
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::bound(&slot)
    }
}

impl<E: ControlEvent, I: GatherItem> StepInput for &Gather<E, I> {
    const SPEC: InputSpec = InputSpec::gather::<E>(I::TYPE);
    type Item<'a> = &'a Gather<E, I>;

    fn fill(slot: Slot<'_>) -> Result<&Gather<E, I>, StepError> {
        let bound = Gather::bound(&slot)?;
        Ok(slot.keep(bound))
    }
}

impl<E: ControlEvent, I: GatherItem> EventInput for Gather<E, I> {}
impl<E: ControlEvent, I: GatherItem> EventInput for &Gather<E, I> {}
