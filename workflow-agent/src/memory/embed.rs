//! Embedders, and vectors as they are stored. It ranks nothing; `index` compares vectors.

use std::error::Error;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// A model that maps texts to vectors, so that texts of similar meaning have similar vectors.
///
/// [`EpisodicMemory::embedder`](super::EpisodicMemory::embedder) takes one. Without it, episodes are found by their
/// words alone. After a change to an embedder with another dimension, vectors of the former one are ignored.
///
/// ```
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use workflow_agent::memory::{EmbedError, Embedder};
///
/// /// Counts three letters.
/// struct Letters;
///
/// impl Embedder for Letters {
///     fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
///         let count = |text: &str, letter| text.chars().filter(|c| *c == letter).map(|_| 1.0).sum();
///         let vector = |text: &&str| ['a', 'e', 'n'].map(|letter| count(text, letter)).to_vec();
///         let vectors = texts.iter().map(vector).collect();
///         async move { Ok(vectors) }.boxed()
///     }
/// }
/// # let _ = Letters;
/// ```
pub trait Embedder: Send + Sync + 'static {
    /// Returns one vector for each text, in their order, all of one dimension.
    ///
    /// A memory drops vectors that have no component, more than 4,096, one that is no finite number, or zeros only. It
    /// may drop the future early.
    ///
    /// # Errors
    /// Any reason for which there are no vectors. The memory logs a warning and uses words alone.
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        (**self).embed(texts)
    }
}

/// An error of an [`Embedder`].
///
/// ```
/// use workflow_agent::memory::EmbedError;
///
/// let error = EmbedError::failed(std::fmt::Error);
/// assert!(std::error::Error::source(&error).is_some());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The embedder has no vectors for these texts now.
    #[error("the embedder failed")]
    Failed {
        /// The embedder's own error.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The embedder returned another number of vectors than it got texts.
    #[error("the embedder returned {vectors} vectors for {texts} texts: return one for each, in their order")]
    Count {
        /// The number of texts.
        texts: usize,
        /// The number of vectors.
        vectors: usize,
    },
    /// A vector cannot be compared.
    #[error(
        "the embedder returned a vector of {dimension} components that cannot be compared: they must be finite numbers, not all zero, and at most {most}"
    )]
    Unusable {
        /// The number of components.
        dimension: usize,
        /// The most components of a vector.
        most: usize,
    },
}

impl EmbedError {
    /// Wraps the error of an embedder.
    pub fn failed(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed { source: Arc::new(source) }
    }
}

/// The most components of a vector.
const MOST_COMPONENTS: usize = 4096;

/// A vector with a byte for each component: its direction, to about half a percent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vector {
    components: Box<[i8]>,
    length: f32,
}

impl Vector {
    /// Rounds a vector; `None` if it has no direction.
    pub(super) fn new(components: &[f32]) -> Option<Self> {
        let largest = components.iter().fold(0_f32, |most, component| most.max(component.abs()));
        let finite = components.iter().all(|component| component.is_finite());
        if !finite || largest <= 0.0 || components.len() > MOST_COMPONENTS {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the quotient is at most 1")]
        let rounded = |component: &f32| (component / largest * 127.0).round() as i8;
        Self::of(components.iter().map(rounded).collect())
    }

    fn of(components: Box<[i8]>) -> Option<Self> {
        let squares: f32 = components.iter().map(|component| f32::from(*component).powi(2)).sum();
        (squares > 0.0).then(|| Self { components, length: squares.sqrt() })
    }

    /// The cosine of the angle between two vectors; `None` if their dimensions differ.
    pub(super) fn similarity(&self, other: &Self) -> Option<f32> {
        if self.components.len() != other.components.len() {
            return None;
        }
        let pairs = self.components.iter().zip(&other.components);
        let product: i32 = pairs.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rounding error below that of the components")]
        let product = product as f32;
        Some(product / (self.length * other.length))
    }

    pub(super) fn dimension(&self) -> usize {
        self.components.len()
    }

    /// Two hexadecimal digits for each component.
    pub(super) fn to_text(&self) -> String {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).expect("a half byte is one digit");
        self.components
            .iter()
            .flat_map(|c| c.to_le_bytes())
            .flat_map(|b| [digit(b >> 4), digit(b & 15)])
            .collect()
    }

    /// Reads the text form; `None` if it is damaged.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        if !text.len().is_multiple_of(2) || text.len() > 2 * MOST_COMPONENTS {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let component = |pair: &[u8]| Some(i8::from_le_bytes([digit(pair[0])? << 4 | digit(pair[1])?]));
        Self::of(text.as_bytes().chunks_exact(2).map(component).collect::<Option<_>>()?)
    }
}

/// The vector of one text.
pub(super) async fn vector_of(embedder: &dyn Embedder, text: &str) -> Result<Vector, EmbedError> {
    let mut vectors = embedder.embed(&[text]).await?;
    match (vectors.len(), vectors.pop()) {
        (1, Some(vector)) => Vector::new(&vector)
            .ok_or(EmbedError::Unusable { dimension: vector.len(), most: MOST_COMPONENTS }),
        (vectors, _) => Err(EmbedError::Count { texts: 1, vectors }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vectors_without_direction_are_none() {
        for unusable in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY], vec![1.0; 4097]] {
            assert_eq!(Vector::new(&unusable), None);
        }
        assert!(Vector::new(&[f32::MIN_POSITIVE, f32::MAX]).is_some());
    }

    #[test]
    fn only_vectors_of_one_dimension_are_compared() {
        let (plane, space) = (Vector::new(&[1.0, 0.0]).unwrap(), Vector::new(&[1.0, 0.0, 0.0]).unwrap());
        assert_eq!(plane.similarity(&space), None);
        assert_eq!(plane.similarity(&plane), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_stored_vector_keeps_its_direction(components in prop::collection::vec(-1.0_f32..1.0, 1..64)) {
            prop_assume!(components.iter().any(|component| component.abs() > 0.01));
            let vector = Vector::new(&components).unwrap();
            let read = Vector::from_text(&vector.to_text()).unwrap();
            prop_assert_eq!(&read, &vector);
            let length = components.iter().map(|c| c * c).sum::<f32>().sqrt();
            let product: f32 = components.iter().zip(&read.components).map(|(a, b)| a * f32::from(*b)).sum();
            prop_assert!(product / (length * read.length) > 0.999);
        }

        #[test]
        fn damaged_text_is_no_vector_and_no_panic(text in "[0-9a-fA-F]{0,9}|\\PC{0,12}") {
            let _ = Vector::from_text(&text);
        }
    }
}
