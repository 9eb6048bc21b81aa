//! A change of a step, or its removal, under a run whose last process may have begun the step (S39, S53, S69).

use workflow_core::store::WaitingFor;
use workflow_core::{ErrorClass, RecordedRun, Retries, RetryPolicy};

use super::*;

/// The parts of a run's journal after a kill: the bank was asked, and nobody knows whether it has paid.
fn killed_in_the_payment<W: Workflow>(shop: impl FnOnce(World) -> W) -> World {
    let world = World::default();
    world.hangs(shop(world.clone()));
    assert_eq!(world.keys().len(), 1);
    world
}

fn later() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(3, Duration::from_hours(1)))
}

versions! {
    plain {
        #[step] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.note(info.may_have_begun());
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    audited_first {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step] async fn pay(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.note(info.may_have_begun());
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    asked_first {
        #[step(precondition = may_pay)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.note(info.may_have_begun());
            self.0.charge(info).await;
            Done(begin.0)
        }
        #[precondition] fn may_pay(&self) -> bool { self.0.is_open }
    }
    renamed {
        #[step] async fn debit(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    once {
        #[step(at_most_once)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    once_audited {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step(at_most_once)] async fn pay(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    once_filed {
        #[step] async fn file(&self, _begin: &Begin) {}
        #[step(at_most_once)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    once_beside {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step(at_most_once)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    once_behind {
        #[step] async fn file(&self, _begin: &Begin) {}
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step(at_most_once)] async fn pay(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    hangs_in_the_audit {
        #[step] async fn audit(&self, begin: &Begin) -> Part {
            std::future::pending::<()>().await;
            Part(begin.0)
        }
        #[step] async fn pay(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    renamed_behind {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step] async fn debit(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(begin.0)
        }
    }
    retried {
        #[step(retry = later())] async fn pay(&self, _begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
            self.0.open().charge(info).await;
            Err(StepError::transient("busy"))
        }
    }
    keyed {
        #[step(key = payment)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
            self.0.note(info.may_have_begun());
            self.0.charge(info).await;
            Done(begin.0)
        }
        fn payment(begin: &Begin) -> u32 { begin.0 }
    }
    keyed_audited {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step(key = payment)] async fn pay(&self, begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.note(info.may_have_begun());
            self.0.charge(info).await;
            Done(begin.0)
        }
        fn payment(begin: &Begin) -> u32 { begin.0 }
    }
}

// S39, S53
#[test]
fn an_attempt_that_a_changed_step_makes_under_the_same_key_may_have_begun() {
    let world = killed_in_the_payment(plain::Shop);
    assert_eq!(world.noted(), [false]);
    world.hangs(audited_first::Shop(world.clone()));
    world.ends(audited_first::Shop(world.open()));
    assert_eq!((world.noted(), world.keys()), (vec![true; 2], vec!["r/0/pay/1".to_owned(); 2]));

    let world = killed_in_the_payment(plain::Shop);
    world.ends(asked_first::Shop(world.open()));
    assert_eq!((world.noted(), world.keys()), (vec![false, true], vec!["r/0/pay/1".to_owned()]));

    let world = killed_in_the_payment(keyed::Shop);
    world.ends(keyed_audited::Shop(world.open()));
    assert_eq!((world.noted(), world.keys()), (vec![false, true], vec!["r/0/pay/=1".to_owned()]));
}

// S39, S69
#[test]
fn an_effect_of_a_changed_step_that_may_have_been_made_is_in_doubt() {
    let world = killed_in_the_payment(once::Shop);
    world.killed(once_audited::Shop(world.open()), async |engine| {
        let error = engine.attach::<once_audited::Shop>("r").await.unwrap().outcome().await.unwrap_err();
        assert!(matches!(&error, RunError::StepFailed { class: ErrorClass::InDoubt, .. }), "{error}");
    });
    assert_eq!(world.keys(), Vec::<String>::new());
}

/// A process that shuts down while the bank does not answer.
fn shut_down_in_the_payment<W: Workflow>(shop: impl FnOnce(World) -> W) -> World {
    let world = World::default();
    world.killed(shop(world.clone()), async |engine| {
        sleep(Duration::from_secs(1)).await;
        engine.shut_down(Duration::ZERO).await;
    });
    assert_eq!(world.keys().len(), 1);
    world
}

fn is_in_doubt<W: Workflow>(world: &World, workflow: W) {
    world.killed(workflow, async |engine| {
        let error = engine.attach_any("r").await.unwrap().outcome_any().await.unwrap_err();
        assert!(matches!(&error, RunError::StepFailed { class: ErrorClass::InDoubt, step, .. } if **step == *"pay"));
    });
    assert_eq!(world.keys(), Vec::<String>::new());
}

// S39, S53, S69: the journal names the dropped attempt by its number in the table before.
#[test]
fn an_effect_that_a_shut_down_cut_off_is_in_doubt_whatever_the_next_table_numbers() {
    let world = shut_down_in_the_payment(once::Shop);
    is_in_doubt(&world, once_filed::Shop(world.open()));
    let world = shut_down_in_the_payment(once_beside::Shop);
    is_in_doubt(&world, once_behind::Shop(world.open()));
}

// S61, S69: nothing runs behind the wait of a pause, and an attempt may have begun before it.
#[test]
fn an_effect_that_may_have_been_made_before_a_pause_is_in_doubt() {
    let mut world = killed_in_the_payment(once::Shop);
    world.rewrite(|records| {
        let at = VirtualClock::beginning() + Duration::from_mins(1);
        let (table, configs) = (None, [].into());
        records.push(Record::RunResumed { format: 1, table, stable_keys: false, configs, at });
        let (by_parent, running, dropped, origin) = (false, Vec::new(), Vec::new(), None);
        records.push(Record::RunPaused { by_parent, running, dropped, origin, at });
        records.push(Record::RunWaiting { waits_for: WaitingFor::default(), at });
    });
    world.killed(once_audited::Shop(world.open()), async |engine| {
        let run = engine.attach::<once_audited::Shop>("r").await.unwrap();
        run.unpause().await.unwrap();
        let error = run.outcome().await.unwrap_err();
        assert!(matches!(error, RunError::StepFailed { class: ErrorClass::InDoubt, .. }), "{error}");
    });
    assert_eq!(world.keys(), Vec::<String>::new());
}

// S39, S84: a service knows the key of the attempt that failed.
#[test]
fn a_run_is_refused_other_keys_for_a_step_that_waits_for_a_retry() {
    let world = World::default();
    world.killed(retried::Shop(world.clone()), async |engine| {
        sleep(Duration::from_secs(1)).await;
        engine.shut_down(Duration::ZERO).await;
    });
    assert_eq!(world.keys(), ["r/0/pay/1"]);
    assert_eq!(world.refusal(keyed::Shop(world.open())), [rekeyed("pay")]);
}

// S39, S41
#[test]
fn a_step_that_may_have_begun_two_tables_ago_is_not_left_out() {
    let world = killed_in_the_payment(plain::Shop);
    world.hangs(hangs_in_the_audit::Shop(world.clone()));
    let refused = world.refusal(renamed_behind::Shop(world.open()));
    assert_eq!(refused, [TableDifference::StepRemoved { step: "pay".into() }]);
    world.ends(audited_first::Shop(world.open()));
    assert_eq!((world.noted(), world.keys()), (vec![false, true], vec!["r/0/pay/1".to_owned()]));
}

/// Pays for each note, under keys of its own.
mod each {
    use super::*;

    versions! {
        first {
            #[step(at_most_once, key = payment, on_error = "continue")]
            async fn pay(&self, note: &Note, info: &RunInfo) { self.0.charge(info).await; self.0.note(note.0 == 2); }
            #[step] async fn end(&self, _begin: &Begin, part: &Part) -> Done { Done(part.0) }
            #[step] async fn stop(&self, note: &Note) -> Option<Part> { (note.0 == 9).then_some(Part(1)) }
            fn payment(note: &Note) -> u32 { note.0 }
        }
        second {
            #[step(at_most_once, key = payment, on_error = "continue", concurrency = 2)]
            async fn pay(&self, note: &Note, info: &RunInfo) { self.0.charge(info).await; self.0.note(note.0 == 2); }
            #[step] async fn end(&self, _begin: &Begin, part: &Part) -> Done { Done(part.0) }
            #[step] async fn stop(&self, note: &Note) -> Option<Part> { (note.0 == 9).then_some(Part(1)) }
            fn payment(note: &Note) -> u32 { note.0 }
        }
        third {
            #[step(at_most_once, key = payment, on_error = "continue")]
            async fn pay(&self, _begin: &Begin, note: &Note, info: &RunInfo) {
                self.0.charge(info).await;
                self.0.note(note.0 == 2);
            }
            #[step] async fn end(&self, _begin: &Begin, part: &Part) -> Done { Done(part.0) }
            #[step] async fn stop(&self, note: &Note) -> Option<Part> { (note.0 == 9).then_some(Part(1)) }
            fn payment(note: &Note) -> u32 { note.0 }
        }
    }

    fn pays_for_the_second_note_alone<W: Workflow<Output = Done>>(changed: impl FnOnce(World) -> W) {
        let world = World::default();
        world.killed(first::Shop(world.clone()), async |engine| {
            engine.attach::<first::Shop>("r").await.unwrap().send(Note(1)).await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
        assert_eq!(world.keys(), ["r/0/pay/=1"]);
        world.killed(changed(world.open()), async |engine| {
            let run = engine.attach::<W>("r").await.unwrap();
            for note in [2, 9] {
                run.any().send(Note(note)).await.unwrap();
                run.settled().await;
            }
            assert_eq!(run.outcome().await.unwrap(), Done(1));
        });
        assert_eq!(world.keys()[0], "r/0/pay/=2");
    }

    // S53, S84
    #[test]
    fn only_the_execution_that_may_have_begun_is_in_doubt() {
        pays_for_the_second_note_alone(second::Shop);
        pays_for_the_second_note_alone(third::Shop);
    }
}

// S39
#[test]
fn a_run_is_refused_without_a_step_that_may_have_begun_in_it() {
    let world = killed_in_the_payment(plain::Shop);
    let refused = world.refusal(renamed::Shop(world.open()));
    assert_eq!(refused, [TableDifference::StepRemoved { step: "pay".into() }]);
    world.ends(plain::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/1"]);
}

/// A payment, and its undoing.
mod undone {
    use super::*;

    versions! {
        first {
            #[step] async fn pay(&self, begin: &Begin) -> Part { Part(begin.0) }
            #[step] async fn ship(&self, _part: &Part) -> Result<Done, StepError> {
                Err(StepError::permanent("no ship sails"))
            }
            #[step(on_end)] async fn refund(&self, _part: &Part, info: &RunInfo) { self.0.charge(info).await; }
        }
        removed {
            #[step] async fn pay(&self, begin: &Begin) -> Part { self.0.note(true); Part(begin.0) }
            #[step] async fn ship(&self, _part: &Part) -> Result<Done, StepError> { Ok(Done(1)) }
        }
        renamed {
            #[step] async fn pay(&self, begin: &Begin) -> Part { Part(begin.0) }
            #[step] async fn ship(&self, _part: &Part) -> Result<Done, StepError> { Ok(Done(1)) }
            #[step(on_end)] async fn pay_back(&self, _part: &Part, info: &RunInfo) {
                self.0.charge(info).await;
            }
        }
        audited {
            #[step] async fn pay(&self, begin: &Begin) -> Part { Part(begin.0) }
            #[step] async fn audit(&self, _begin: &Begin) {}
            #[step] async fn ship(&self, _part: &Part) -> Result<Done, StepError> { Ok(Done(1)) }
            #[step(on_end)] async fn refund(&self, _part: &Part, info: &RunInfo) { self.0.charge(info).await; }
        }
        noted {
            #[step] async fn pay(&self, begin: &Begin) -> Part { Part(begin.0) }
            #[step] async fn ship(&self, _part: &Part) -> Result<Done, StepError> { Ok(Done(1)) }
            #[step] async fn file(&self, _note: &Note) {}
            #[step(on_end)] async fn refund(&self, _part: &Part, _note: &Note, info: &RunInfo) {
                self.0.charge(info).await;
            }
        }
    }

    // S31, S39
    #[test]
    fn a_run_that_cleans_up_is_refused_without_the_rest_of_its_clean_up() {
        let world = killed_in_the_payment(first::Shop);
        let removed = TableDifference::StepRemoved { step: "refund".into() };
        assert!(world.refusal(removed::Shop(world.open())).contains(&removed));
        assert!(world.refusal(renamed::Shop(world.open())).contains(&removed));
        let refused = world.refusal(noted::Shop(world.open()));
        let is_added = |difference: &TableDifference| matches!(difference, TableDifference::InputAdded { step, .. } if **step == *"refund");
        assert!(refused.iter().any(is_added), "{refused:?}");
        world.killed(audited::Shop(world.open()), async |engine| {
            let run = engine.attach::<audited::Shop>("r").await.unwrap();
            run.outcome().await.unwrap_err();
            let explanation = run.explain().await.unwrap().to_string();
            assert!(
                explanation.contains("the run had ended before its workflow had the step"),
                "{explanation}"
            );
        });
        assert_eq!(world.keys().len(), 1, "the refund is made again");
    }
}

// S39: its report stays.
#[test]
fn a_run_that_has_ended_can_be_looked_at_after_any_change() {
    let world = World::default();
    world.hangs(plain::Shop(world.open()));
    for _ in 0..2 {
        world.killed(renamed::Shop(world.open()), async |engine| {
            let run = engine.attach::<renamed::Shop>("r").await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(1));
            let report = run.report().await.unwrap();
            assert_eq!((report.executions("pay"), report.executions("debit")), (1, 0));
            let recorded = RecordedRun::of(run.id(), &engine.history(run.id()).await.unwrap()).unwrap();
            assert_eq!(run.explain().await.unwrap().to_string(), recorded.explain().to_string());
        });
    }
    assert_eq!(world.keys(), ["r/0/pay/1"]);
}
