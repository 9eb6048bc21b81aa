//! The count of a `FixedList` may be the name of a constant.

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped;

const N: usize = 2;
const PARTS: usize = 2;

struct Warehouse;

#[workflow]
impl Warehouse {
    #[step]
    async fn split(&self, order: &Order) -> Vec<Part> {
        vec![Part; N]
    }

    #[step]
    async fn ship(&self, parts: FixedList<Part, N>, again: &FixedList<Part, PARTS>) -> Shipped {
        Shipped
    }
}

#[test]
fn compiles_and_runs() {
    drop(Warehouse.run(Order));
}
