//! Effects of a call of a function: of the function, and of all that it calls in the same source.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::Token;

/// The functions of a source, by their names. Several can have one name.
#[derive(Default)]
pub(super) struct Calls<'a> {
    /// The words of each function's body.
    words: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The functions that can remove the `const` of a pointer.
    casting: BTreeSet<&'a str>,
}

impl<'a> Calls<'a> {
    pub(super) fn add(&mut self, name: &'a str, parameters: &'a [Token], body: &'a [Token]) {
        self.words.entry(name).or_default().extend(body.iter().filter_map(Token::word));
        if casts_const_away(parameters, body) {
            self.casting.insert(name);
        }
    }

    /// The functions that a call of `name` can reach, itself included.
    fn reached(&self, name: &'a str) -> BTreeSet<&'a str> {
        let (mut reached, mut next) = (BTreeSet::from([name]), vec![name]);
        while let Some(function) = next.pop() {
            for &word in self.words.get(function).into_iter().flatten() {
                if self.words.contains_key(word) && reached.insert(word) {
                    next.push(word);
                }
            }
        }
        reached
    }

    /// The functions `cudaMalloc…` that a call of `name` can reach.
    pub(super) fn allocations(&self, name: &'a str) -> BTreeSet<String> {
        let reached = self.reached(name);
        let words = reached.iter().filter_map(|function| self.words.get(function)).flatten();
        let allocating = words.filter(|word| word.starts_with("cudaMalloc"));
        allocating.map(|&word| word.to_owned()).collect()
    }

    /// True if a call of `name` can remove the `const` of a pointer, so that the types of its
    /// parameters do not decide what it writes to.
    pub(super) fn cast_const_away(&self, name: &'a str) -> bool {
        !self.casting.is_disjoint(&self.reached(name))
    }
}

/// True if a body has a `const_cast`, or a cast as in C, to a pointer without `const`, of something
/// that is declared with it. The other casts of C++ keep it.
fn casts_const_away(parameters: &[Token], body: &[Token]) -> bool {
    let mut names = names_of_constants(parameters);
    names.extend(names_of_constants(body));
    // In the operand it is a cast of its own.
    names.insert("const");
    let is_cast = |at: usize| {
        let is_to_pointer = body[at].is(')') && at > 0 && body[at - 1].is('*');
        let open = body[..at].iter().rposition(|token| token.is('('));
        let target = &body[open.unwrap_or(at)..at];
        let is_prefix = |token: &&Token| ['(', '&', '*'].iter().any(|&it| token.is(it));
        let operand = body[at + 1..].iter().find(|token| !is_prefix(token)).and_then(Token::word);
        is_to_pointer
            && !target.iter().any(|token| token.is_word("const"))
            && operand.is_some_and(|operand| names.contains(operand))
    };
    body.iter().any(|token| token.is_word("const_cast")) || (0..body.len()).any(is_cast)
}

/// The names of parameters and variables whose declaration says `const`, or `auto`, which can be.
fn names_of_constants(tokens: &[Token]) -> BTreeSet<&str> {
    let is_end = |token: &Token| [';', ',', '(', ')', '{', '}'].iter().any(|&it| token.is(it));
    let declarations = tokens.split(is_end);
    let constants = declarations.filter(|tokens| {
        tokens.iter().any(|token| token.is_word("const") || token.is_word("auto"))
    });
    constants
        .filter_map(|tokens| {
            let declarator = tokens.split(|token| token.is('=')).next()?;
            declarator.iter().rev().find_map(Token::word)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn casts_that_remove_const_are_found() {
        for (parameters, body, expected) in [
            ("const float *x, float *y", "y[0] = x[0];", false),
            (
                "const float *x, float *y",
                "*(int *)y = *(const int *)x; float *z = (float *)(y + 1);",
                false,
            ),
            ("const float *x, float *y", "f((half *)x);", true),
            ("const float *x", "f((half *)(x + 1)); g((half *)&x[1]);", true),
            ("const float *x", "f((half *)((const char *)x + 1));", true),
            ("const float *x", "const auto *y = x; f((half *)y);", true),
            ("const float *x", "auto y = x; f((half *)y);", true),
            ("const float *x", "f(const_cast<float *>(x));", true),
            ("const float *x", "f(reinterpret_cast<const half *>(x), sizeof(float *));", false),
            ("const float *x, void *y", "for (const int i : x) { f(i); } g((half *)y);", false),
        ] {
            let (parameters, body) = (tokens(parameters), tokens(body));
            assert_eq!(casts_const_away(&parameters, &body), expected, "{body:?}");
        }
    }
}
