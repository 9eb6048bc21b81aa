//! Names, keys and settings of providers: mistakes are errors that say what to write.

use std::time::Duration;

use serde_json::json;
use workflow_agent::model::{Model, ModelLimits, Price};
use workflow_agent::{Provider, ProviderError};

fn error(provider: Provider) -> ProviderError {
    provider.build().unwrap_err()
}

fn openai() -> Provider {
    Provider::new("openai::m-1").unwrap().key("key")
}

/// A80
#[test]
fn a_name_without_a_known_provider_lists_the_known_ones() {
    for name in ["gpt-5", "acme::m-1", "openai", "", "::m", "OpenAI::m"] {
        let error = Provider::model(name).unwrap_err();
        assert!(matches!(error, ProviderError::UnknownProvider { .. }), "{name}");
        let text = error.to_string();
        for kind in super::KINDS {
            assert!(text.contains(kind), "{text}");
        }
        assert_eq!(text.contains("groq"), cfg!(feature = "genai"), "{text}");
    }
    assert!(matches!(Provider::model("openai:: "), Err(ProviderError::NoModel { .. })));
}

/// A80
#[test]
fn a_call_without_time_is_refused() {
    let provider = Provider::new("openai::m-1").unwrap().without_key();
    assert!(provider.clone().idle_timeout(Duration::from_millis(1)).build().is_ok());
    let error = error(provider.idle_timeout(Duration::ZERO));
    assert!(matches!(&error, ProviderError::NoTime { name } if name == "openai::m-1"), "{error}");
}

/// A80
#[test]
fn a_missing_key_names_its_variable() {
    let provider = Provider::new("anthropic::m-1").unwrap().key_from("WORKFLOW_AGENT_TEST_NO_SUCH_KEY");
    let error = error(provider);
    assert!(error.to_string().contains("WORKFLOW_AGENT_TEST_NO_SUCH_KEY"), "{error}");
    for kind in super::KINDS {
        let provider = Provider::new(&format!("{kind}::m-1")).unwrap();
        assert!(provider.clone().without_key().build().is_ok());
        // Cargo sets this one in each test.
        assert!(provider.clone().key_from("CARGO_PKG_NAME").build().is_ok());
        match (kind, provider.build()) {
            ("ollama", built) => assert!(built.is_ok()),
            (_, Ok(_)) => {}
            (_, Err(ProviderError::MissingKey { name, variable })) => {
                assert_eq!(name, format!("{kind}::m-1"));
                assert!(variable.ends_with("_API_KEY"));
            }
            (_, Err(other)) => panic!("{other}"),
        }
    }
}

/// A80
#[test]
fn unusable_settings_are_errors_that_show_no_secret() {
    let unusable = [
        openai().key("new\nline-secret"),
        openai().header("x y", "secret"),
        openai().header("x", "a\u{0}secret"),
        openai().endpoint("127.0.0.1:8080?secret"),
        openai().endpoint("ftp://secret.example"),
        openai().endpoint("http://user:secret@example.org"),
        openai().endpoint("http://example.org/#secret"),
        openai().proxy("::secret::"),
        openai().option("messages", json!(["secret"])),
        openai().option("tools", json!([])),
    ];
    for provider in unusable {
        let error = error(provider);
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        assert!(error.to_string().contains("openai::m-1"), "{error}");
    }
}

/// A80
#[test]
fn limits_and_prices_are_those_that_were_set() {
    let model = openai().build().unwrap();
    assert_eq!((model.name(), model.limits().price), ("m-1", None));
    assert!(model.limits().context > model.limits().output);
    let limits = ModelLimits::new(9_000, 900);
    let price = Price::new(1.0, 2.0);
    assert_eq!(openai().limits(limits).price(price).build().unwrap().limits(), limits.price(price));
    assert!(!openai().native_output(false).build().unwrap().has_native_output());
}
