//! The functions with C linkage that preprocessed C++ defines: those of the host, which Rust can
//! call, and the kernels, which a program can launch by their names.

use std::collections::BTreeSet;

use super::calls::Calls;
use super::tokens::Token;
use super::types::{ParameterType, Types};

/// A function that Rust can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostFunction {
    pub(super) name: String,
    pub(super) returns: ParameterType,
    pub(super) parameters: Vec<ParameterType>,
    /// True if other sources may define it too.
    pub(super) is_inline: bool,
    /// The functions `cudaMalloc…` that it calls, or that are called by functions it calls.
    pub(super) allocations: BTreeSet<String>,
}

/// A definition, whatever its linkage.
struct Definition<'a> {
    /// The tokens before the body.
    head: &'a [Token],
    body: &'a [Token],
    in_c: bool,
}

/// Words that are followed by parentheses and are not the name of a function.
const ATTRIBUTES: [&str; 9] = [
    "__launch_bounds__",
    "__attribute__",
    "__declspec",
    "__cluster_dims__",
    "__maxnreg__",
    "alignas",
    "decltype",
    "noexcept",
    "throw",
];

/// The kernels with C linkage, with the types of their parameters.
pub(super) fn kernels(tokens: &[Token]) -> Vec<(String, Vec<ParameterType>)> {
    let DeclarationReader { definitions, c_names, types } = DeclarationReader::of(tokens);
    let calls = calls(&definitions);
    let kernel = |definition: &Definition<'_>| {
        let head = definition.head;
        let (name, parameters) = name_and_parameters(head)?;
        let has = |word: &str| head.iter().any(|token| token.is_word(word));
        let in_c = definition.in_c || c_names.contains(name);
        (in_c && has("__global__") && !has("template"))
            .then(|| (name.to_owned(), checked(&calls, name, types.parameters(parameters))))
    };
    definitions.iter().filter_map(kernel).collect()
}

/// The functions of the host.
pub(super) fn launchers(tokens: &[Token]) -> Vec<HostFunction> {
    let DeclarationReader { definitions, c_names, types } = DeclarationReader::of(tokens);
    let calls = calls(&definitions);
    let mut seen = BTreeSet::new();
    let launcher = |definition: &Definition<'_>| {
        let head = definition.head;
        let (name, parameters) = name_and_parameters(head)?;
        let has = |word: &str| head.iter().any(|token| token.is_word(word));
        let is_of_host = !has("__global__") && (!has("__device__") || has("__host__"));
        // Other objects cannot call these by their names.
        let is_hidden = has("static") || has("template") || is_member(head, name);
        let in_c = definition.in_c || c_names.contains(name);
        let is_exported = in_c && is_of_host && !is_hidden && name != "main";
        (is_exported && seen.insert(name.to_owned())).then(|| HostFunction {
            name: name.to_owned(),
            returns: types.result(&head[..position(head, name)]),
            parameters: checked(&calls, name, types.parameters(parameters)),
            is_inline: has("inline") || has("__forceinline__") || has("__inline__"),
            allocations: calls.allocations(name),
        })
    };
    definitions.iter().filter_map(launcher).collect()
}

fn calls<'a>(definitions: &[Definition<'a>]) -> Calls<'a> {
    let mut calls = Calls::default();
    for Definition { head, body, .. } in definitions {
        if let Some((name, parameters)) = name_and_parameters(head) {
            calls.add(name, parameters, body);
        }
    }
    calls
}

/// The types of a function's parameters, as far as its body keeps to them.
fn checked(calls: &Calls<'_>, name: &str, types: Vec<ParameterType>) -> Vec<ParameterType> {
    match calls.cast_const_away(name) {
        true => types.into_iter().map(ParameterType::without_const).collect(),
        false => types,
    }
}

fn position(head: &[Token], name: &str) -> usize {
    head.iter().position(|token| token.is_word(name)).unwrap_or(0)
}

/// True for `Type::name`.
fn is_member(head: &[Token], name: &str) -> bool {
    let at = position(head, name);
    at > 0 && head[at - 1].is(':')
}

/// The name of a function, and the tokens between its parentheses.
fn name_and_parameters(head: &[Token]) -> Option<(&str, &[Token])> {
    let mut found = None;
    let (mut at, mut angles) = (0, 0_usize);
    while at < head.len() {
        match &head[at] {
            Token::Sign('<') => angles += 1,
            Token::Sign('>') => angles = angles.saturating_sub(1),
            Token::Sign('(') => {
                let end = closing(head, at);
                let name = at.checked_sub(1).and_then(|before| head[before].word());
                if let Some(name) = name.filter(|name| angles == 0 && !ATTRIBUTES.contains(name)) {
                    found = Some((name, &head[at + 1..end]));
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The position of the parenthesis, bracket or brace that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let (start, end) = match tokens[open] {
        Token::Sign('(') => ('(', ')'),
        Token::Sign('[') => ('[', ']'),
        _ => ('{', '}'),
    };
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.is(start) {
            depth += 1;
        } else if token.is(end) {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len().saturating_sub(1)
}

#[derive(Default)]
struct DeclarationReader<'a> {
    definitions: Vec<Definition<'a>>,
    /// The functions that a declaration gives C linkage.
    c_names: BTreeSet<&'a str>,
    types: Types,
}

impl<'a> DeclarationReader<'a> {
    /// Reads a whole source.
    fn of(tokens: &'a [Token]) -> Self {
        let mut reader = Self::default();
        reader.declarations(tokens, false);
        reader.types.complete();
        reader
    }

    /// Reads the declarations of a file, a namespace or a linkage block.
    fn declarations(&mut self, tokens: &'a [Token], in_c: bool) {
        let (mut start, mut at) = (0, 0);
        while at < tokens.len() {
            match &tokens[at] {
                Token::Sign('(' | '[') => at = closing(tokens, at),
                Token::Sign(';') => {
                    self.declaration(&tokens[start..at], in_c);
                    start = at + 1;
                }
                Token::Sign('{') => {
                    let end = closing(tokens, at);
                    let (head, body) = (&tokens[start..at], &tokens[at + 1..end.max(at + 1)]);
                    if self.block(head, body, in_c) {
                        start = end + 1;
                    }
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads a block. Returns true if the declaration ends with it.
    fn block(&mut self, head: &'a [Token], body: &'a [Token], in_c: bool) -> bool {
        let word = |at: usize| head.get(at).and_then(Token::word).unwrap_or_default();
        let is_linkage = word(0) == "extern" && head.len() == 2;
        if is_linkage {
            let is_c = matches!(&head[1], Token::Text(text) if text == "C");
            self.declarations(body, is_c);
            return true;
        }
        if word(0) == "namespace" || (word(0) == "inline" && word(1) == "namespace") {
            self.declarations(body, in_c);
            return true;
        }
        if is_function(head) {
            let in_c = in_c || has_c_prefix(head);
            self.definitions.push(Definition { head, body, in_c });
            return true;
        }
        self.types.block(head);
        false
    }

    /// Reads a declaration without a body.
    fn declaration(&mut self, tokens: &'a [Token], in_c: bool) {
        if (in_c || has_c_prefix(tokens))
            && let Some((name, _)) = name_and_parameters(tokens)
        {
            self.c_names.insert(name);
        }
        self.types.declaration(tokens);
    }
}

/// True if the tokens before a brace are those of a function: the last parentheses are followed by
/// the brace, or by words that only a function has. A default value or a constructor before them
/// does not count.
fn is_function(head: &[Token]) -> bool {
    const AFTER: [&str; 6] = ["const", "final", "mutable", "noexcept", "override", "try"];
    let Some(end) = head.iter().rposition(|token| token.is(')')) else { return false };
    let is_after = match head.get(end + 1) {
        None => true,
        Some(Token::Word(word)) => AFTER.contains(&word.as_str()),
        // The type of the result, as in `auto f() -> int`.
        Some(token) => token.is('-'),
    };
    is_after && name_and_parameters(head).is_some()
}

fn has_c_prefix(tokens: &[Token]) -> bool {
    let mut pairs = tokens.windows(2);
    pairs.any(|pair| {
        pair[0].is_word("extern") && matches!(&pair[1], Token::Text(text) if text == "C")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn names(source: &str) -> Vec<String> {
        launchers(&tokens(source)).into_iter().map(|launcher| launcher.name).collect()
    }

    #[test]
    fn functions_of_the_host_with_c_linkage_are_found() {
        let source = r#"
            extern "C" void prefixed(float *x) { kernel<<<1, 2>>>(x); }
            extern "C" {
                int in_block(int n) { return n; }
                void only_declared(int n);
                static void hidden(void) {}
                __global__ void a_kernel(float *x) { x[0] = 1; }
                __device__ float of_device(float x) { return x; }
                __host__ __device__ int both(void) { return 1; }
            }
            extern "C" __global__ void __launch_bounds__(32, 1) kernel(float *x) { }
            extern "C" __attribute__((visibility("default"))) void attributed(void) noexcept { }
            extern "C" void declared_before(int n);
            void declared_before(int n) { if (n) { } }
            void of_cpp(int n) { }
            template <typename T> void generic(T *x) { }
            namespace a { inline namespace b { extern "C" void in_namespace(void) { } } }
            struct S { int x; void method() { } } s = { 1 };
            extern "C" S *after_a_type(void) { return &s; }
            int table[] = { 1, 2 };
            extern "C" const char *a_text(int code) { return "{"; }
            extern "C" inline void in_line(void) { }
            extern "C" void in_line(void);
            void S::method() { }
            template <typename T, int N = 4, bool B = (N > 3)> __global__ void with_values(T *x) { }
            extern "C" void after_a_template(void) { }
            auto lambda = [](int x) { return x; };
            struct __align__(16) Aligned { int x; };
            extern "C" auto arrow(int x) -> int { return x; }
            struct S *of_a_structure(int x) { return nullptr; }
            int values[] { 1, 2 };
            extern "C" int trailing(std::vector<int> x) try { return 0; } catch (...) { return 1; }
        "#;
        let found = names(source);
        let expected = [
            "prefixed",
            "in_block",
            "both",
            "attributed",
            "declared_before",
            "in_namespace",
            "after_a_type",
            "a_text",
            "in_line",
            "after_a_template",
            "arrow",
            "trailing",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn kernels_with_c_linkage_are_found() {
        let source = r#"
            extern "C" __global__ void __launch_bounds__(256) a(const size_t n, float *out) { }
            template <typename T> __global__ void generic(T *x) { }
            extern "C" { __global__ void b(S s, int n) { } void launcher(int n) { } }
            extern "C" __global__ void reads(const float *x, float *out) { out[0] = x[0]; }
            template <typename T> __device__ void write(const T *x) { *(float *)x = 1; }
            extern "C" __global__ void casts(const float *x) { write(x); }
            __global__ void of_cpp(float *x) { }
        "#;
        use ParameterType::{Integer, Pointer, PointerToConst, Unknown};
        let expected = [
            ("a".to_owned(), vec![Integer(8), Pointer]),
            ("b".to_owned(), vec![Unknown, Integer(4)]),
            ("reads".to_owned(), vec![PointerToConst, Pointer]),
            // A function that it calls can write to it.
            ("casts".to_owned(), vec![Pointer]),
        ];
        assert_eq!(kernels(&tokens(source)), expected);
    }

    #[test]
    fn allocations_are_those_of_the_launcher_and_of_what_it_calls() {
        let source = r#"
            static void *scratch(size_t n) { void *p; cudaMallocAsync(&p, n, 0); return p; }
            template <typename T> void run(T *x) { scratch(8); run(x); }
            extern "C" void direct(float *x) { cudaMalloc(&x, 4); }
            extern "C" void indirect(float *x) { run<float>(x); }
            extern "C" void none(float *x) { kernel<<<1, 1>>>(x); }
        "#;
        let found = launchers(&tokens(source));
        let allocations: Vec<Vec<&str>> =
            found.iter().map(|it| it.allocations.iter().map(String::as_str).collect()).collect();
        assert_eq!(allocations, [vec!["cudaMalloc"], vec!["cudaMallocAsync"], vec![]]);
    }
}
