//! A tool is a function: modules, variables, parameters and imports may have its name.

#![deny(warnings)]

use workflow_agent::tool::IntoTool;

mod weather {
    use workflow_agent::tool;

    /// Forecasts the weather.
    #[tool]
    pub(crate) async fn weather(weather: String) -> String {
        weather
    }

    pub(crate) mod r#in {
        /// Looks into a box.
        #[workflow_agent::tool]
        pub async fn r#in(r#box: String) -> String {
            r#box
        }
    }
}

use weather::r#in::r#in as look;
use weather::weather;

fn takes<Marker>(_: impl IntoTool<Marker>) {}

async fn by_hand() -> String {
    let weather = weather("Bern".into()).await;
    let look = |weather: &str| look(weather.to_owned());
    look(&weather).await
}

#[test]
fn compiles_and_runs() {
    takes(weather);
    takes(look);
    takes(self::weather::weather);
    assert_eq!(futures::executor::block_on(by_hand()), "Bern");

    #[workflow_agent::tool]
    /// Inside of a function.
    async fn inside() {}
    takes(inside);
}
