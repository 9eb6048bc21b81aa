//! Pairs of workflows of one name, before and after a change. Each is a test, named after the difference.

use workflow_core::StepFailed;
use workflow_core::prelude::*;

use super::{left, resumed, told};
use crate::fixtures::{Begin, Done, Item, Note, Part};

/// Each is a test: a run of the first workflow continues as one of the second, or is refused with this.
macro_rules! changes {
    ($($name:ident { $($was:tt)* } { $($is:tt)* } $($told:literal)*;)*) => {
        $(mod $name {
            use super::*;

            mod was {
                use super::*;

                pub(super) struct Shop;

                #[workflow]
                impl Shop {
                    $($was)*

                    #[step]
                    async fn end(&self, note: &Note) -> Done {
                        Done(note.0)
                    }
                }
            }

            mod is {
                use super::*;

                pub(super) struct Shop;

                #[workflow]
                impl Shop {
                    $($is)*

                    #[step]
                    async fn end(&self, note: &Note) -> Done {
                        Done(note.0)
                    }
                }
            }

            // S41
            #[tokio::test(start_paused = true)]
            async fn is_noticed() {
                let store = left(was::Shop).await;
                let expected: &[&str] = &[$($told),*];
                let expected = if expected.is_empty() { &["it goes on"] } else { expected };
                assert_eq!(told(resumed(is::Shop, &store).await), expected);
                if expected == ["it goes on"] {
                    return;
                }
                // Nothing was lost: with the original workflow the run continues.
                assert_eq!(told(resumed(was::Shop, &store).await), ["it goes on"]);
            }
        })*
    };
}

changes! {
    a_step_that_ran_is_gone
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    { #[step] async fn start(&self, begin: &Begin) -> Item { Item(begin.0) } }
    "step `begin` is gone";

    a_step_that_never_ran_is_gone
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Option<Item> { None }
        #[step] async fn spare(&self, item: &Item) -> Part { Part(item.0) }
    }
    { #[step] async fn begin(&self, _begin: &Begin) -> Option<Item> { None } };

    a_step_that_ran_needs_more
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: &Part) {}
    }
    "step `mix` takes `Part` as well now";

    a_step_that_ran_may_take_more
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step(reruns)] async fn mix(&self, _item: &Item, _part: Option<&Part>) {}
    };

    a_step_that_ran_reads_more
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: Passive<&Part>, _begins: Passive<List<Begin>>) {}
    };

    a_step_that_ran_reads_less
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: Passive<&Part>, _begin: Passive<&Begin>) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _parts: Passive<List<Part>>) {}
    };

    a_step_that_ran_reads_what_triggered_it
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: &Part) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: Passive<&Part>) {}
    }
    "step `mix` does not take `Part` any more";

    a_step_that_ran_takes_less
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: &Part) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item) {}
    }
    "step `mix` does not take `Part` any more";

    a_step_that_ran_takes_something_in_another_way_for_the_same_trigger
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _part: &Part, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step(reruns)] async fn mix(&self, _parts: &List<Part>, _item: &Item) {}
    }
    "step `mix` takes a list of `Part` now, and took `Part`";

    a_step_that_never_ran_takes_something_else
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Option<Part>, Item) { (None, Item(begin.0)) }
        #[step] async fn mix(&self, _part: &Part) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Option<Part>, Item) { (None, Item(begin.0)) }
        #[step] async fn mix(&self, _parts: &FixedList<Part, 1>, _item: &Item) {}
    };

    parameters_in_another_order
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _part: &Part, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) }
        #[step] async fn mix(&self, _item: &Item, _part: &Part) {}
    };

    something_that_was_emitted_is_not_any_more
    { #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) } }
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    "step `begin` does not emit `Part` any more" "event `Part` is gone";

    something_that_was_never_emitted_is_not_any_more
    { #[step] async fn begin(&self, begin: &Begin) -> (Option<Part>, Item) { (None, Item(begin.0)) } }
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } };

    every_execution_emits_more
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    { #[step] async fn begin(&self, begin: &Begin) -> (Part, Item) { (Part(1), Item(begin.0)) } }
    "step `begin` emits `Part` as well now";

    an_execution_may_emit_more
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    { #[step] async fn begin(&self, begin: &Begin) -> (Option<Part>, Item) { (None, Item(begin.0)) } };

    an_execution_may_emit_more_often
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    { #[step] async fn begin(&self, begin: &Begin) -> Vec<Item> { vec![Item(begin.0)] } };

    an_execution_emits_only_once
    { #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { vec![Item(1), Item(2)] } }
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    "step `begin` emits `Item` now, and emitted any number of `Item`";

    a_step_that_ran_is_asked_for
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    {
        #[step(precondition = may)] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[precondition] fn may(_begin: &Begin) -> bool { true }
    }
    "step `begin` has precondition `may` now, and had none";

    a_step_that_never_ran_is_asked_for
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Option<Item> { None }
        #[step] async fn spare(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Option<Item> { None }
        #[step(precondition = may)] async fn spare(&self, _item: &Item) {}
        #[precondition] fn may(_item: &Item) -> bool { true }
    };

    a_step_that_was_asked_for_is_not_any_more
    {
        #[step(precondition = may)] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[precondition] fn may(_begin: &Begin) -> bool { false }
    }
    { #[step] async fn begin(&self, begin: &Begin) -> Item { Item(begin.0) } }
    "step `begin` has no precondition now, and had `may`";

    a_failure_that_was_taken_is_not_any_more
    {
        #[step] async fn breaks(&self, _begin: &Begin) -> Result<Item, StepError> { Err(StepError::tool("broken")) }
        #[step] async fn holds(&self, _begin: &Begin) -> Result<Part, StepError> { Ok(Part(1)) }
        #[step(catches = [breaks, holds])] async fn mend(&self, _failed: &StepFailed) {}
    }
    {
        #[step(on_error = "continue")]
        async fn breaks(&self, _begin: &Begin) -> Result<Item, StepError> { Err(StepError::tool("broken")) }
        #[step] async fn holds(&self, _begin: &Begin) -> Result<Part, StepError> { Ok(Part(1)) }
        #[step(catches = [holds])] async fn mend(&self, _failed: &StepFailed) {}
    }
    "step `mend` does not take failures of `breaks` any more";

    a_failure_that_was_passed_over_is_taken
    {
        #[step(on_error = "continue")]
        async fn breaks(&self, _begin: &Begin) -> Result<Item, StepError> { Err(StepError::rejected("broken")) }
        #[step] async fn holds(&self, _begin: &Begin) -> Result<Part, StepError> {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            Ok(Part(1))
        }
        #[step(catches = [holds])] async fn mend(&self, _failed: &StepFailed) {}
    }
    {
        #[step] async fn breaks(&self, _begin: &Begin) -> Result<Item, StepError> { Err(StepError::rejected("broken")) }
        #[step] async fn holds(&self, _begin: &Begin) -> Result<Part, StepError> { Ok(Part(1)) }
        #[step(catches = [breaks, holds])] async fn mend(&self, _failed: &StepFailed) {}
    }
    "the run does not continue any more when step `breaks` fails"
    "step `mend` takes failures of `breaks` now, and did not";

    a_step_ran_more_often_than_it_may
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step] async fn each(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step(max_executions = 2)] async fn each(&self, _item: &Item) {}
    }
    "step `each` executes at most 2 times now, and did any number of times";

    a_step_ran_no_more_often_than_it_may
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step] async fn each(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step(max_executions = 3)] async fn each(&self, _item: &Item) {}
    };

    a_step_may_run_more_often
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step(max_executions = 1)] async fn each(&self, _item: &Item) {}
    }
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { (1..4).map(Item).collect() }
        #[step(max_executions = 2)] async fn each(&self, _item: &Item) {}
    };

    executions_ended_in_an_order_that_there_is_not_any_more
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { vec![Item(2), Item(1)] }
        #[step] async fn each(&self, item: &Item) {
            tokio::time::sleep(std::time::Duration::from_secs(item.0.into())).await;
        }
    }
    {
        #[step] async fn begin(&self, _begin: &Begin) -> Vec<Item> { vec![Item(2), Item(1)] }
        #[step(concurrency = 1)] async fn each(&self, _item: &Item) {}
    }
    "at record 5 of its journal, step `each` ran for #3 as x3, and would not run for it any more";

    branches_are_none_any_more
    {
        #[step] async fn open(&self, begin: &Begin) -> FanOut<Item> { (0..begin.0).map(Item).collect() }
        #[step] async fn work(&self, item: &Item) -> Part { Part(item.0) }
        #[step] async fn gather(&self, _parts: &Gather<Part>) {}
    }
    {
        #[step] async fn open(&self, begin: &Begin) -> Vec<Item> { (0..begin.0).map(Item).collect() }
        #[step] async fn work(&self, item: &Item) -> Part { Part(item.0) }
        #[step(reruns)] async fn gather(&self, _parts: &List<Part>) {}
    }
    "step `open` emits any number of `Item` now, and emitted a branch per `Item`"
    "step `gather` takes a list of `Part` now, and took a gather of `Part`";
}

/// An event type, before and after a change.
macro_rules! marks {
    ($($name:ident [$($was:tt)*] [$($is:tt)*] $($told:literal)*;)*) => {
        $(mod $name {
            use super::*;

            mod was {
                use super::*;

                #[derive(Debug, Clone, Serialize, Deserialize, Event)]
                #[event($($was)*)]
                pub(super) struct Mark(u32);

                pub(super) struct Shop;

                #[workflow(output = Done)]
                impl Shop {
                    #[step] async fn mark(&self, begin: &Begin) -> Mark { Mark(begin.0) }
                    #[step] async fn end(&self, note: &Note) -> Done { Done(note.0) }
                }
            }

            mod is {
                use super::*;

                #[derive(Debug, Clone, Serialize, Deserialize, Event)]
                #[event($($is)*)]
                pub(super) struct Mark(u32);

                pub(super) struct Shop;

                #[workflow(output = Done)]
                impl Shop {
                    #[step] async fn mark(&self, begin: &Begin) -> Mark { Mark(begin.0) }
                    #[step] async fn end(&self, note: &Note) -> Done { Done(note.0) }
                }
            }

            // S41
            #[tokio::test]
            async fn is_noticed() {
                let store = left(was::Shop).await;
                let expected: &[&str] = &[$($told),*];
                let expected = if expected.is_empty() { &["it goes on"] } else { expected };
                assert_eq!(told(resumed(is::Shop, &store).await), expected);
            }
        })*
    };
}

marks! {
    an_event_is_shown_now [control] [control, display];
    an_event_asks_now [control] [request, reply = u32]
    "event `Mark` has the roles (request) now, and had (control)";
    an_event_comes_from_outside_no_more [external] [control]
    "event `Mark` has the roles (control) now, and had (external)";
    an_event_may_come_from_outside_now [control] [external];
}
