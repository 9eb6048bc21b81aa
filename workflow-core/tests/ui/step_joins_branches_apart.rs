use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn parts(&self, _question: &Question) -> FanOut<Part> {
        [Part].into_iter().collect()
    }

    #[step]
    async fn pages(&self, _question: &Question) -> FanOut<Page> {
        [Page].into_iter().collect()
    }

    #[step]
    async fn pair(&self, _part: &Part, _page: &Page) -> Answer {
        Answer
    }

    #[step]
    async fn done(&self, _parts: Gather<Part>, _pages: Gather<Page>) -> Facts {
        Facts
    }
}

fn main() {}
