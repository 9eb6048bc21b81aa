use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Parcel;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Letter;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weight;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Weighed;

struct Post;

#[workflow]
impl Post {
    #[step]
    async fn sort(&self, _order: &Order) -> (FanOut<Parcel>, FanOut<Letter>) {
        ([Parcel].into_iter().collect(), [Letter].into_iter().collect())
    }

    #[step]
    async fn weigh_parcel(&self, _parcel: &Parcel) -> Weight {
        Weight
    }

    #[step]
    async fn weigh_letter(&self, _letter: &Letter) -> Weight {
        Weight
    }

    #[step]
    async fn sum(&self, _weights: &Gather<Weight>) -> Weighed {
        Weighed
    }
}

fn main() {}
