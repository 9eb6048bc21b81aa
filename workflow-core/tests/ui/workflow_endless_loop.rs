use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hint;

#[derive(EventSet)]
enum Either {
    Question(Question),
    Review(Review),
}

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn write(&self, _either: &Either) -> Draft {
        Draft
    }

    #[step]
    async fn review(&self, _draft: &Draft) -> Review {
        Review
    }

    #[step(reruns)]
    async fn answer(&self, _question: &Question, _hint: Option<&Hint>) -> Option<Answer> {
        None
    }
}

fn main() {}
