use workflow_core::assert_taken;
use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hint;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

const _: () = assert_taken::<Research, Question>();
const _: () = assert_taken::<Research, Hint>();

fn main() {}
