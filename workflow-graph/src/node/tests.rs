//! Checks, judges, templates and agents by their behaviour, over documents and scripted answers.

mod agents;
mod guidance;
mod judges;
mod paths;
mod rules;
mod schemas;
mod support;
mod templates;
