//! Random expressions, in our spelling and in Python's.

use std::fmt::Write as _;

use fastrand::Rng;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Text,
    Boolean,
    List,
    Any,
}

/// An expression as it grows, for us and for Python.
pub(super) struct Source<'r> {
    rng: &'r mut Rng,
    ours: String,
    theirs: String,
}

impl<'r> Source<'r> {
    pub(super) fn random(rng: &'r mut Rng) -> (String, String) {
        let depth = rng.usize(1..5);
        let mut source = Self { rng, ours: String::new(), theirs: String::new() };
        source.write(Kind::Any, depth);
        if source.rng.u8(..40) == 0 {
            // A broken one: Python decides whether it still is an expression.
            for text in [" + ", " not", ")", " if", " 1"] {
                if source.rng.u8(..6) == 0 {
                    source.both(text);
                }
            }
        }
        (source.ours, source.theirs)
    }

    fn both(&mut self, text: &str) {
        self.ours += text;
        self.theirs += text;
    }

    /// Two spellings, of which Python knows one only.
    fn spelled(&mut self, ours: &str, theirs: &str) {
        self.ours += if self.rng.bool() { ours } else { theirs };
        self.theirs += theirs;
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.rng.usize(..texts.len())]
    }

    fn write(&mut self, kind: Kind, depth: usize) {
        // Sometimes another kind: most expressions shall have values, and some shall not.
        let all = [Kind::Number, Kind::Text, Kind::Boolean, Kind::List];
        let kind = if kind == Kind::Any || self.rng.u8(..25) == 0 { all[self.rng.usize(..4)] } else { kind };
        // Without parentheses, precedence decides; with them, the tree does.
        let has_parentheses = self.rng.u8(..3) == 0;
        if has_parentheses {
            self.both("(");
        }
        match (depth, kind) {
            (0, kind) => self.leaf(kind),
            (_, kind) if self.rng.u8(..12) == 0 => self.conditional(kind, depth - 1),
            (_, Kind::Number) => self.number(depth - 1),
            (_, Kind::Text) => self.text(depth - 1),
            (_, Kind::Boolean) => self.boolean(depth - 1),
            (_, _) => self.list(depth - 1),
        }
        if has_parentheses {
            self.both(")");
        }
    }

    fn leaf(&mut self, kind: Kind) {
        let path = match kind {
            Kind::Number => {
                self.pick(&["n", "m", "k", "d.a", "d[\"a\"]", "ns[0]", "ns[-1]", "d.l[1][0]", "x"])
            }
            Kind::Text => self.pick(&["s", "t", "d.b", "ss[0]", "s[0]", "t[-1]", "d['b']"]),
            Kind::Boolean => self.pick(&["b", "bs[0]", "b", "b"]),
            _ => {
                self.pick(&["ns", "ss", "bs", "d.l", "[]", "()", "x", "d.c.a", "none", "d.missing", "none.a"])
            }
        };
        if self.rng.bool() {
            return self.both(path);
        }
        match kind {
            Kind::Number => {
                let number = self.pick(&[
                    "0",
                    "1",
                    "2",
                    "-1",
                    "3.5",
                    "1e3",
                    ".5",
                    "2.",
                    "1_000",
                    "9223372036854775807",
                    "-9223372036854775808",
                ]);
                self.both(number);
            }
            Kind::Text => {
                let text = self.pick(&[
                    "'a'",
                    "\"b\"",
                    "''",
                    "'it\\'s'",
                    "\"\\u00e9\\x41\\n\"",
                    "'\\d+'",
                    "'\\101\\0'",
                    "'12'",
                    "' x '",
                ]);
                self.both(text);
            }
            Kind::Boolean => {
                if self.rng.bool() {
                    self.spelled("true", "True");
                } else {
                    self.spelled("false", "False");
                }
            }
            _ => match self.rng.u8(..3) {
                0 => self.spelled("null", "None"),
                1 => self.both("[1, 'a', 2.0]"),
                _ => self.both("(1, [2], 'b',)"),
            },
        }
    }

    fn conditional(&mut self, kind: Kind, depth: usize) {
        self.write(kind, depth);
        self.both(" if ");
        self.write(Kind::Boolean, depth);
        self.both(" else ");
        self.write(kind, depth);
    }

    /// A function, sometimes as a method.
    fn call(&mut self, name: &str, arguments: &[Kind], depth: usize) {
        let is_method = self.rng.u8(..3) == 0;
        if is_method {
            self.both("(");
            self.write(arguments[0], depth);
            let _ = write!(self.ours, ").{name}(");
            let _ = write!(self.theirs, ").{name}(");
        } else {
            self.both(name);
            self.both("(");
        }
        for (place, kind) in arguments.iter().enumerate().skip(usize::from(is_method)) {
            self.both(if place > usize::from(is_method) { ", " } else { "" });
            self.write(*kind, depth);
        }
        self.both(")");
    }

    fn number(&mut self, depth: usize) {
        use Kind::{Any, List, Number, Text};
        match self.rng.u8(..14) {
            0..8 => {
                self.write(Number, depth);
                let operator = self.pick(&[" + ", " - ", " * ", " / ", " // ", " % ", "-", "+"]);
                self.both(operator);
                self.write(Number, depth);
            }
            8 => {
                let sign = self.pick(&["-", "+", "- -"]);
                self.both(sign);
                self.write(Number, depth);
            }
            9 => {
                let kind = [Text, List][self.rng.usize(..2)];
                self.call("len", &[kind], depth);
            }
            10 => {
                let name = self.pick(&["int", "float"]);
                let kind = [Number, Text, Any][self.rng.usize(..3)];
                self.call(name, &[kind], depth);
            }
            11 => {
                let name = self.pick(&["abs", "round"]);
                self.call(name, &[Number], depth);
            }
            12 => {
                self.both("round(");
                self.write(Number, depth);
                let digits = self.pick(&[
                    ", 0)", ", 1)", ", 2)", ", -1)", ", -2)", ", 15)", ", -18)", ", -19)", ", 400)",
                    ", -400)",
                ]);
                self.both(digits);
            }
            _ => {
                let name = self.pick(&["min", "max", "sum"]);
                if self.rng.bool() && name != "sum" {
                    self.call(name, &[Number, Number, Number], depth);
                } else {
                    self.both(&format!("{name}(ns)"));
                }
            }
        }
    }

    fn text(&mut self, depth: usize) {
        use Kind::{Any, Text};
        match self.rng.u8(..8) {
            0..3 => {
                self.write(Text, depth);
                self.both(" + ");
                self.write(Text, depth);
            }
            3..5 => self.call("str", &[Any], depth),
            5 => {
                let name = self.pick(&["lower", "upper", "strip", "lower"]);
                self.call(name, &[Text], depth);
            }
            6 => self.call("strip", &[Text, Text], depth),
            _ => {
                let name = self.pick(&["min", "max"]);
                self.call(name, &[Text, Text], depth);
            }
        }
    }

    fn boolean(&mut self, depth: usize) {
        use Kind::{Any, Boolean, List, Number, Text};
        match self.rng.u8(..16) {
            0..3 => {
                self.write(Boolean, depth);
                if self.rng.bool() {
                    self.spelled(" && ", " and ");
                } else {
                    self.spelled(" || ", " or ");
                }
                self.write(Boolean, depth);
            }
            3 => {
                self.spelled("!", "not ");
                self.write(Boolean, depth);
            }
            4..8 => {
                let kind = [Number, Number, Text, List][self.rng.usize(..4)];
                self.write(kind, depth);
                for _ in 0..self.rng.usize(1..3) {
                    let operator = self.pick(&[" < ", " <= ", " > ", " >= ", " == ", " != ", "<", "=="]);
                    self.both(operator);
                    self.write(kind, depth);
                }
            }
            8 => {
                self.write(Any, depth);
                let operator = self.pick(&[" is ", " is not ", " == ", " != "]);
                self.both(operator);
                self.leaf(Any);
            }
            9..11 => {
                let (part, whole) = [(Any, List), (Text, Text), (Number, List)][self.rng.usize(..3)];
                self.write(part, depth);
                let operator = self.pick(&[" in ", " not in "]);
                self.both(operator);
                self.write(whole, depth);
            }
            11 => {
                let name = self.pick(&["starts_with", "ends_with", "contains"]);
                self.call(name, &[Text, Text], depth);
            }
            12 => self.call("bool", &[Any], depth),
            13 => {
                let name = self.pick(&["any(bs)", "all(bs)", "any(x)", "all([b, true])", "all(ns)"]);
                self.spelled(name, &name.replace("true", "True"));
            }
            14 => {
                let pattern = self.pick(&["'^a'", "'[0-9]+'", "'b$'", "'(a|é).'", "'^.$'"]);
                self.both("matches(");
                self.write(Text, depth);
                self.both(", ");
                self.both(pattern);
                self.both(")");
            }
            _ => {
                let path = self.pick(&[
                    "has(d.a)",
                    "has(d.zz)",
                    "has(none)",
                    "has(zz.a)",
                    "has(n.a)",
                    "has(d, 'c')",
                    "has(ns[1])",
                    "'a' in d",
                    "'a' in d.c",
                    "n in d",
                    "ns in d",
                ]);
                self.both(path);
            }
        }
    }

    fn list(&mut self, depth: usize) {
        use Kind::{Any, List};
        match self.rng.u8(..8) {
            0..2 => {
                self.write(List, depth);
                self.both(" + ");
                self.write(List, depth);
            }
            2..5 => {
                let (open, close) = if self.rng.bool() { ("[", "]") } else { ("(", ",)") };
                self.both(open);
                for place in 0..self.rng.usize(1..4) {
                    self.both(if place == 0 { "" } else { ", " });
                    self.write(Any, depth);
                }
                self.both(close);
            }
            5 => {
                let path = self.pick(&[
                    "keys(d)",
                    "values(d)",
                    "d.keys()",
                    "x.values()",
                    "keys(d.c)",
                    "d.l[1]",
                    "[ns, ss][0]",
                    "(ns + [1])[-1]",
                ]);
                self.both(path);
            }
            6 => {
                let path = self.pick(&[
                    "d.get('a', 1)",
                    "d.get('zz', [1])",
                    "d.get('zz')",
                    "get(d.c, 'a', ss)",
                    "get(zz, 'a', 2)",
                    "n.get('a', 1)",
                    "get(ns, 0, 5)",
                ]);
                self.both(path);
            }
            _ => {
                self.both("default(");
                let path = self.pick(&["d.zz", "d.a", "none", "zz", "zz.a.b", "n.a", "d.l[7]", "x.a"]);
                self.both(path);
                self.both(", ");
                self.write(Any, depth);
                self.both(")");
            }
        }
    }
}
