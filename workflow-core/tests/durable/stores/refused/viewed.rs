//! Writes that are refused while somebody views the run (S64).

use super::*;
use crate::fixtures::assert_told_once;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = String)]
struct Question(String);

/// Asks three questions at once, of which the store does not want these.
struct AsksThree {
    unwanted: &'static [u32],
    returned: Arc<AtomicUsize>,
}

#[workflow]
impl AsksThree {
    #[step]
    async fn open(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn ask(&self, item: &Item) -> Question {
        self.returned.fetch_add(1, Ordering::SeqCst);
        Question(text_of(item.0, self.unwanted).0)
    }

    #[step(catches = [ask])]
    async fn recover(&self, failed: &StepFailed) -> Question {
        Question(format!("instead of {}", failed.execution))
    }

    #[step]
    async fn hear(&self, answer: &Reply<Question>) -> Option<Done> {
        (answer.value() == "over").then_some(Done(0))
    }
}

async fn questions(run: &RunHandle<AsksThree>) -> Vec<RequestId<Question>> {
    run.requests().await.unwrap().iter().map(|request| RequestId::new(request.seq())).collect()
}

// S38, S64
#[tokio::test]
async fn viewers_learn_of_each_request_once_although_writes_are_refused() {
    for unwanted in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
        // All questions are pending when the store refuses some.
        let store = Picky::default().held_after(2);
        let returned = Arc::<AtomicUsize>::default();
        let engine = engine(AsksThree { unwanted, returned: Arc::clone(&returned) }, &store);
        let run = start::<AsksThree>(&engine, 3).await;
        let viewer = run.display();
        until(async || returned.load(Ordering::SeqCst) == 3).await;
        store.open();
        until(async || questions(&run).await.len() == 3 && store.writes().iter().any(|it| !it.is_taken))
            .await;
        // A refused reply closes nothing.
        let [first, second, _] = questions(&run).await[..] else { panic!("there are three") };
        let refused = run.reply(first, UNWANTED.into()).await;
        assert!(matches!(refused, Err(SendError::Refused { .. })), "{refused:?}");
        assert_eq!(questions(&run).await.len(), 3);
        run.reply(first, "fine".into()).await.unwrap();
        run.reply(second, "over".into()).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(0));
        assert_told_once(run.any(), viewer).await;
    }
}
