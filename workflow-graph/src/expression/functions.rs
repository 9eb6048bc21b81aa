//! The functions: their names, their numbers of arguments, and advice on other names. It computes none.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Len,
    Str,
    Int,
    Float,
    Bool,
    Lower,
    Upper,
    Strip,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Has,
    Default,
    Get,
    Keys,
    Values,
    Min,
    Max,
    Sum,
    Round,
    Abs,
    Any,
    All,
}

/// Name, how it is called, and the least and the largest number of arguments.
const FUNCTIONS: [(Function, &str, &str, usize, usize); 24] = [
    (Function::Len, "len", "len(text, list or map)", 1, 1),
    (Function::Str, "str", "str(value)", 1, 1),
    (Function::Int, "int", "int(number or text)", 1, 1),
    (Function::Float, "float", "float(number or text)", 1, 1),
    (Function::Bool, "bool", "bool(value)", 1, 1),
    (Function::Lower, "lower", "lower(text)", 1, 1),
    (Function::Upper, "upper", "upper(text)", 1, 1),
    (Function::Strip, "strip", "strip(text)", 1, 2),
    (Function::Contains, "contains", "contains(whole, part)", 2, 2),
    (Function::StartsWith, "starts_with", "starts_with(text, beginning)", 2, 2),
    (Function::EndsWith, "ends_with", "ends_with(text, end)", 2, 2),
    (Function::Matches, "matches", "matches(text, regular expression)", 2, 2),
    (Function::Has, "has", "has(path) or has(map, key)", 1, 2),
    (Function::Default, "default", "default(value, otherwise)", 2, 2),
    (Function::Get, "get", "get(map, key, otherwise)", 2, 3),
    (Function::Keys, "keys", "keys(map)", 1, 1),
    (Function::Values, "values", "values(map)", 1, 1),
    (Function::Min, "min", "min(list) or min(a, b)", 1, usize::MAX),
    (Function::Max, "max", "max(list) or max(a, b)", 1, usize::MAX),
    (Function::Sum, "sum", "sum(list)", 1, 1),
    (Function::Round, "round", "round(number) or round(number, digits)", 1, 2),
    (Function::Abs, "abs", "abs(number)", 1, 1),
    (Function::Any, "any", "any(list)", 1, 1),
    (Function::All, "all", "all(list)", 1, 1),
];

/// Their names in other languages.
const OTHER_NAMES: [(&str, &str); 22] = [
    ("startswith", "starts_with"),
    ("startsWith", "starts_with"),
    ("endswith", "ends_with"),
    ("endsWith", "ends_with"),
    ("length", "len"),
    ("size", "len"),
    ("count", "len"),
    ("includes", "contains"),
    ("toLowerCase", "lower"),
    ("toUpperCase", "upper"),
    ("trim", "strip"),
    ("match", "matches"),
    ("search", "matches"),
    ("number", "float"),
    ("string", "str"),
    ("exists", "has"),
    ("coalesce", "default"),
    ("ifnull", "default"),
    ("if_null", "default"),
    ("nvl", "default"),
    ("default_value", "default"),
    ("or_else", "default"),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(_, known, ..)| *known == name).map(|(function, ..)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        self.entry().1
    }

    pub(super) fn usage(self) -> String {
        format!("Write `{}`", self.entry().2.replace(" or has(", "` or `has(").replace(") or ", ")` or `"))
    }

    /// The message for a wrong number of arguments.
    pub(super) fn wrong_count(self, count: usize) -> Option<String> {
        let (_, name, _, least, most) = self.entry();
        let expected = match (least, most) {
            (least, most) if (*least..=*most).contains(&count) => return None,
            (1, 1) => "one argument".to_owned(),
            (least, &usize::MAX) => format!("at least {least}"),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        };
        Some(format!("`{name}` has {count} arguments; expected {expected}"))
    }

    fn entry(self) -> &'static (Self, &'static str, &'static str, usize, usize) {
        // The table lists them in the order of their declaration, which a test holds it to.
        &FUNCTIONS[self as usize]
    }
}

/// Advice on a name that no function has.
pub(super) fn remedy(name: &str) -> String {
    match near(name) {
        Some(known) => format!("Did you mean `{known}`?"),
        None => format!("The functions are {}", FUNCTIONS.map(|(_, name, ..)| name).join(", ")),
    }
}

/// The function that may be meant by a name that none has.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, known)| *known);
    let near = || {
        let distances = FUNCTIONS.iter().map(|(_, known, ..)| (distance(name, known), *known));
        let is_near = |distance: usize| distance <= 2 && distance * 3 <= name.len() + 1;
        distances.filter(|(distance, _)| is_near(*distance)).min().map(|(_, known)| known)
    };
    other.or_else(near)
}

/// Edits between two names.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().take(32).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0) + a.chars().count().saturating_sub(32)
}
