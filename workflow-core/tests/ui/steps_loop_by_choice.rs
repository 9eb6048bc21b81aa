use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Note;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(EventSet)]
enum DraftOrReview {
    Draft(Draft),
    Review(Review),
}

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn begin(&self, _question: &Question) -> Note {
        Note
    }

    #[step]
    async fn write(&self, _note: &Note) -> DraftOrReview {
        DraftOrReview::Draft(Draft)
    }

    #[step]
    async fn read(&self, _either: &DraftOrReview) -> Note {
        Note
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
