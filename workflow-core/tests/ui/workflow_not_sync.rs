use std::cell::RefCell;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research {
    asked: RefCell<u32>,
}

#[workflow]
impl Research {
    #[precondition]
    async fn ready(&self, _question: &Question) -> bool {
        true
    }

    #[step(precondition = ready)]
    async fn draft(&self, _question: &Question) -> Draft {
        *self.asked.borrow_mut() += 1;
        Draft
    }

    #[step]
    async fn answer(&self, _draft: &Draft) -> Answer {
        Answer
    }
}

fn main() {}
