use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

/// Has no serde.
#[derive(Debug, Clone)]
struct Handle;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external, display)]
struct Wrapped<T>(T);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn find(&self, _question: &Question) -> Wrapped<Handle> {
        Wrapped(Handle)
    }

    #[step]
    async fn answer(&self, _borrowed: &Wrapped<Handle>, _wrapped: Wrapped<Handle>) -> Answer {
        Answer
    }
}

fn main() {}
