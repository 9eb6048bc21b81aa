//! Names of models with their providers, and what a mistaken one may have meant. It knows no settings.

use super::{ProviderError, Source};

/// The providers of the feature `genai`, as its crate names them: the error for one of them names the feature.
pub(super) const OF_GENAI: [&str; 32] = [
    "aihubmix",
    "aliyun",
    "api_route",
    "atlascloud",
    "baidu",
    "bedrock_api",
    "bigmodel",
    "cloudgpu",
    "cohere",
    "deepseek",
    "fireworks",
    "gemini_ix",
    "github_copilot",
    "groq",
    "heabsy",
    "kimi",
    "mimo",
    "minimax",
    "mistral",
    "moonshot",
    "nebius",
    "ollama_cloud",
    "omlx",
    "open_router",
    "opencode_go",
    "qwen_cloud",
    "requesty",
    "runcrate",
    "together",
    "vertex",
    "xai",
    "zai",
];

/// The beginnings of well-known names of models, and their providers.
const MODELS: [(&str, &str); 6] = [
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
];

/// The provider and the model of a name.
pub(super) fn split(name: &str) -> Result<(Source, &str), ProviderError> {
    let Some((provider, model)) = name.split_once("::") else { return Err(unknown(name)) };
    let source = Source::of_name(provider).ok_or_else(|| unknown(name))?;
    if model.trim().is_empty() {
        return Err(ProviderError::NoModel { name: name.to_owned() });
    }
    Ok((source, model))
}

/// The error for a name without a known provider.
pub(super) fn unknown(name: &str) -> ProviderError {
    let (name, provider) = (name.to_owned(), name.split_once("::").map(|(provider, _)| provider));
    match provider.filter(|provider| OF_GENAI.contains(provider) && Source::of_name(provider).is_none()) {
        Some(provider) => ProviderError::NeedsGenai { provider: provider.to_owned(), name },
        None => ProviderError::UnknownProvider { meant: meant(&name), known: Source::known(), name },
    }
}

/// The name that was probably meant: with another separator, or with a typing error in its provider, or without one.
fn meant(name: &str) -> Option<String> {
    let separator = ["::", ":", "/"].into_iter().find(|separator| name.contains(separator));
    let Some((provider, model)) = separator.and_then(|separator| name.split_once(separator)) else {
        let (_, provider) = MODELS.into_iter().find(|(beginning, _)| name.starts_with(beginning))?;
        return Some(format!("{provider}::{name}"));
    };
    if model.trim().is_empty() {
        return None;
    }
    let names = Source::names();
    let exact = names.iter().find(|known| known.eq_ignore_ascii_case(provider));
    let near = || names.iter().find(|known| is_near(provider, known));
    exact.or_else(near).map(|known| format!("{known}::{model}"))
}

/// Whether one name may be a typing error for the other: a few letters differ.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().take(64).collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    shorter >= 3 && distance(&one, &other) <= 1 + shorter / 5
}

/// The number of letters to add, remove or change.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut left = at + 1;
        let mut corner = std::mem::replace(&mut row[0], left);
        for (column, other) in other.iter().enumerate() {
            let changed = corner + usize::from(!letter.eq_ignore_ascii_case(other));
            corner = row[column + 1];
            left = changed.min(corner + 1).min(left + 1);
            row[column + 1] = left;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::unknown;
    use crate::provider::ProviderError;

    fn meant(name: &str) -> Option<String> {
        match unknown(name) {
            ProviderError::UnknownProvider { meant, .. } => meant,
            other => panic!("{other}"),
        }
    }

    /// A80
    #[test]
    fn a_mistaken_name_leads_to_the_one_that_was_meant() {
        for name in ["antropic::m-1", "anthropic:m-1", "anthropic/m-1", "Anthropic::m-1", "anthropc/m-1"] {
            assert_eq!(meant(name).as_deref(), Some("anthropic::m-1"), "{name}");
        }
        assert_eq!(meant("claude-sonnet-5").as_deref(), Some("anthropic::claude-sonnet-5"));
        assert_eq!(meant("gpt-5").as_deref(), Some("openai::gpt-5"));
        for name in ["", "qwen3", "acme::m-1", "anthropic:", "::m-1"] {
            assert_eq!(meant(name), None, "{name}");
        }
    }

    /// A80
    #[cfg(not(feature = "genai"))]
    #[test]
    fn a_provider_of_the_feature_genai_names_the_feature() {
        assert!(
            matches!(unknown("groq::m-1"), ProviderError::NeedsGenai { provider, .. } if provider == "groq")
        );
    }

    /// A80
    #[cfg(feature = "genai")]
    #[test]
    fn the_list_of_genais_providers_is_that_of_its_crate() {
        let mut names = crate::provider::genai::Adapter::names();
        names.sort_unstable();
        assert_eq!(names, super::OF_GENAI);
    }
}
