//! An independent model of the walk: it interprets documents by the rules, without the core and without this crate.
//!
//! `document` and `expression` are the part of the format that it has, `random` makes documents, `walk` says how they
//! have to end, `cases` tests the model itself, and `compare` runs the real walk.

mod document;
mod expression;
mod random;
mod walk;
mod cases;
mod compare;
