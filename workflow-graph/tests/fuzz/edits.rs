//! Edits of documents as trees, and of their texts.

use serde_json::Value;

use crate::corpus::Corpus;
use crate::pick;

/// An operation, a place, a value, and how much of it.
pub(crate) type Edit = (u8, u32, u32, u8);

/// Keeps only a few edits: they leave more of a document valid, and reach further.
pub(crate) fn few(edits: &[Edit]) -> &[Edit] {
    let most = edits.first().map_or(0, |(_, _, _, much)| if much % 8 == 0 { 8 } else { 1 + much % 2 });
    &edits[..edits.len().min(usize::from(most))]
}

fn count(of: &Value) -> usize {
    1 + match of {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value of this number, from the root.
fn at<'a>(of: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(of);
    }
    *number -= 1;
    match of {
        Value::Array(items) => items.iter_mut().find_map(|item| at(item, number)),
        Value::Object(fields) => fields.values_mut().find_map(|value| at(value, number)),
        _ => None,
    }
}

fn place(of: &mut Value, number: u32) -> &mut Value {
    let mut number = pick(number, count(of));
    at(of, &mut number).unwrap()
}

/// Edits the tree of a document.
pub(crate) fn edit_tree(document: &mut Value, (operation, at, with, much): Edit, corpus: &Corpus) {
    let other = place(document, with).clone();
    let at = place(document, at);
    match operation % 6 {
        0 => *at = other,
        1 => *at = corpus.value(with),
        operation => match at {
            Value::Object(fields) => {
                let key = fields.keys().nth(usize::from(much) % fields.len().max(1)).cloned();
                let removed = key.filter(|_| operation != 2).and_then(|key| fields.remove(&key));
                let value = removed.filter(|_| operation == 4).unwrap_or_else(|| corpus.value(with));
                if operation != 3 {
                    fields.insert(corpus.key(with.rotate_left(16)), value);
                }
            }
            Value::Array(items) if operation == 3 => drop(items.pop()),
            Value::Array(items) => items.push(corpus.value(with)),
            Value::String(text) => {
                let end = text.char_indices().nth(usize::from(much) % 32).map_or(text.len(), |(end, _)| end);
                let with = corpus.value(with);
                let with = with.as_str().map_or_else(|| with.to_string(), str::to_owned);
                text.insert_str(end, &with.chars().take(32).collect::<String>());
            }
            scalar => *scalar = corpus.value(with),
        },
    }
}

/// Edits the text of a document.
pub(crate) fn edit_text(text: &mut Vec<u8>, (operation, at, with, much): Edit, corpus: &Corpus) {
    let at = pick(at, text.len());
    let end = (at + usize::from(much)).min(text.len());
    match operation % 5 {
        0 if at < text.len() => text[at] = much,
        1 => drop(text.drain(at..end)),
        2 => {
            let copy = text[at..end].to_vec();
            let to = pick(with, text.len());
            text.splice(to..to, copy);
        }
        3 => drop(text.splice(at..at, corpus.key(with).into_bytes())),
        _ => drop(text.splice(at..at, corpus.value(with).to_string().into_bytes())),
    }
}

/// Documents as the text of one file.
pub(crate) fn text(documents: &[Value]) -> String {
    let documents: Vec<String> = documents.iter().map(|document| format!("{document:#}\n")).collect();
    format!("---\n{}", documents.join("---\n"))
}
