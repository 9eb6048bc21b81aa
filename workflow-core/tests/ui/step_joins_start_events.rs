use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Price;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Invoice;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Shop;

#[workflow]
impl Shop {
    #[step]
    async fn price(&self, _order: &Order) -> Price {
        Price
    }

    #[step]
    async fn bill(&self, _question: &Question, _price: &Price) -> Invoice {
        Invoice
    }

    #[step]
    async fn answer(&self, _invoice: &Invoice) -> Answer {
        Answer
    }
}

fn main() {}
