//! x
use workflow_core::prelude::*;
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Q { n: u32 }
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part { n: u32 }
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Scored { n: u32 }
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct A(u32);
struct W;
#[workflow]
impl W {
    #[step]
    async fn split(&self, q: &Q) -> FanOut<Part> { (0..q.n).map(|n| Part { n }).collect() }
    #[step]
    async fn score(&self, part: &Part) -> Scored { tokio::task::yield_now().await; Scored { n: part.n * 10 } }
    #[step]
    async fn end(&self, q: &Q, g: Gather<Scored>) -> A { A(g.ok().map(|s| s.n).sum::<u32>() + q.n) }
}
#[tokio::test]
async fn smoke() {
    assert_eq!(W.run(Q { n: 4 }).await.unwrap(), A(64));
    assert_eq!(W.run(Q { n: 0 }).await.unwrap(), A(0));
    let e = Engine::builder().workflow(W).build().unwrap();
    let r = e.start::<W>(Q { n: 3 }).await.unwrap();
    assert_eq!(r.outcome().await.unwrap(), A(33));
    eprintln!("{}", r.report().await.unwrap());
    let t = std::time::Instant::now();
    W.run(Q { n: 20_000 }).await.unwrap();
    eprintln!("{:?}", t.elapsed());
}
