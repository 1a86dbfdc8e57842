//! The types of parameters and results, as far as a call passes them: their class and their width.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::Token;

/// How a call passes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterType {
    /// A pointer or a reference.
    Pointer,
    /// A pointer or a reference to something that cannot be written through it.
    PointerToConst,
    /// A pointer to pointers, whose number is not known.
    Pointers,
    /// A pointer to a text.
    Text,
    /// A stream, also as a pointer or an integer of its width.
    Stream,
    /// An integer or a small structure with one integer, by its bytes.
    Integer(u8),
    Float,
    Double,
    /// No value.
    Void,
    /// A type whose definition is not known.
    Unknown,
}

impl ParameterType {
    /// The bytes of a value; `None` if they are not known.
    pub(super) fn size(self) -> Option<u8> {
        match self {
            Self::Pointer | Self::PointerToConst | Self::Pointers => Some(8),
            Self::Text | Self::Stream | Self::Double => Some(8),
            Self::Integer(bytes) => Some(bytes),
            Self::Float => Some(4),
            Self::Void | Self::Unknown => None,
        }
    }

    /// The mark of a pointer to const in the list of a kernel's parameters.
    pub(super) fn mark(self) -> &'static str {
        if self == Self::PointerToConst { "c" } else { "" }
    }

    /// The type of a parameter that can be written through all the same.
    pub(super) fn without_const(self) -> Self {
        if self == Self::PointerToConst { Self::Pointer } else { self }
    }
}

/// The types that a source defines.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Each name with the tokens of its type.
    names: BTreeMap<String, Vec<Token>>,
    enumerations: BTreeSet<String>,
    resolved: BTreeMap<String, ParameterType>,
}

/// Types of CUDA and its libraries, whose headers are not read.
const ENUMERATIONS: [&str; 12] = [
    "cudaError_t",
    "cudaError",
    "CUresult",
    "cudaDataType_t",
    "cudaDataType",
    "cublasStatus_t",
    "cublasComputeType_t",
    "cublasOperation_t",
    "cublasGemmAlgo_t",
    "cudaMemcpyKind",
    "ncclDataType_t",
    "ncclResult_t",
];
const HANDLES: [&str; 8] = [
    "cublasHandle_t",
    "cublasLtHandle_t",
    "cudnnHandle_t",
    "cudaEvent_t",
    "cudaGraph_t",
    "cudaGraphExec_t",
    "ncclComm_t",
    "CUdeviceptr",
];
const STREAMS: [&str; 2] = ["cudaStream_t", "CUstream"];
/// Names of parameters that pass a stream as a pointer or an integer.
const STREAM_NAMES: [&str; 3] = ["stream", "cuda_stream", "cu_stream"];
const HALVES: [&str; 7] =
    ["half", "__half", "nv_half", "__nv_bfloat16", "nv_bfloat16", "__bfloat16", "__half_raw"];
const BYTES: [&str; 4] = ["__nv_fp8_e4m3", "__nv_fp8_e5m2", "__nv_fp8_storage_t", "__nv_fp8_e8m0"];

/// Words before a type that do not change how it is passed.
const IGNORED: [&str; 18] = [
    "extern",
    "static",
    "inline",
    "__inline__",
    "__forceinline__",
    "__host__",
    "__device__",
    "__noinline__",
    "const",
    "volatile",
    "constexpr",
    "__restrict__",
    "__restrict",
    "restrict",
    "struct",
    "enum",
    "class",
    "std",
];

impl Types {
    /// Notes a block that is not a function, such as `enum Name : uint8_t { … }`.
    pub(super) fn block(&mut self, head: &[Token]) {
        let Some(at) = head.iter().position(|token| token.is_word("enum")) else { return };
        let mut rest = &head[at + 1..];
        if rest.first().is_some_and(|it| it.is_word("class") || it.is_word("struct")) {
            rest = &rest[1..];
        }
        let Some(name) = rest.first().and_then(Token::word) else { return };
        match rest.get(1) {
            Some(Token::Sign(':')) => drop(self.names.insert(name.to_owned(), rest[2..].to_vec())),
            _ => drop(self.enumerations.insert(name.to_owned())),
        }
    }

    /// Notes `typedef type name` and `using name = type`.
    pub(super) fn declaration(&mut self, tokens: &[Token]) {
        let first = tokens.first().and_then(Token::word).unwrap_or_default();
        let (name, ty) = match (first, tokens) {
            ("typedef", [_, ty @ .., name]) => (name, ty),
            ("using", [_, name, Token::Sign('='), ty @ ..]) => (name, ty),
            _ => return,
        };
        let Some(name) = name.word() else { return };
        let is_enumeration = ty.first().is_some_and(|token| token.is_word("enum"));
        if is_enumeration && ty.iter().any(|token| token.is('{')) {
            self.enumerations.insert(name.to_owned());
        } else {
            self.names.insert(name.to_owned(), ty.to_vec());
        }
    }

    /// Must be called when all declarations were read.
    pub(super) fn complete(&mut self) {
        let names: Vec<String> = self.names.keys().cloned().collect();
        for name in names {
            // With a greatest depth, because a wrong source can define a type by itself.
            let ty = self.named(&name, 8);
            self.resolved.insert(name, ty);
        }
    }

    fn named(&self, name: &str, depth: u32) -> ParameterType {
        match self.names.get(name) {
            Some(ty) if depth > 0 && !ty.iter().any(|token| token.is('{')) => {
                self.class(ty, depth - 1)
            }
            _ => ParameterType::Unknown,
        }
    }

    /// The types of the parameters between the parentheses.
    pub(super) fn parameters(&self, tokens: &[Token]) -> Vec<ParameterType> {
        let parameters = split(tokens);
        let is_empty = |tokens: &&[Token]| {
            tokens.is_empty() || matches!(tokens, [token] if token.is_word("void"))
        };
        parameters.into_iter().filter(|it| !is_empty(it)).map(|it| self.parameter(it)).collect()
    }

    fn parameter(&self, tokens: &[Token]) -> ParameterType {
        let end = tokens.iter().position(|token| token.is('='));
        let tokens = &tokens[..end.unwrap_or(tokens.len())];
        // The last of several words is the name, unless it belongs to a type of several words.
        let last = tokens.iter().rposition(|token| token.word().is_some());
        let (ty, name) = match last {
            Some(at) if at > 0 && !is_part_of_type(&tokens[at]) => {
                let without: Vec<Token> = tokens
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| *i != at)
                    .map(|it| it.1.clone())
                    .collect();
                (without, tokens[at].word())
            }
            _ => (tokens.to_vec(), None),
        };
        let class = self.class(&ty, 8);
        let is_stream = name.is_some_and(|name| STREAM_NAMES.contains(&name));
        match class {
            ParameterType::Pointer | ParameterType::PointerToConst | ParameterType::Integer(8)
                if is_stream =>
            {
                ParameterType::Stream
            }
            // A parameter that is an array is a pointer.
            _ if ty.iter().any(|token| token.is('[')) => match class {
                ParameterType::Pointer
                | ParameterType::PointerToConst
                | ParameterType::Pointers => ParameterType::Pointers,
                _ => pointer(&ty),
            },
            class => class,
        }
    }

    /// The type of the result: the tokens before the name.
    pub(super) fn result(&self, tokens: &[Token]) -> ParameterType {
        match self.class(tokens, 8) {
            ParameterType::Pointer | ParameterType::PointerToConst
                if tokens.iter().any(|token| token.is_word("char")) =>
            {
                ParameterType::Text
            }
            class => class,
        }
    }

    fn class(&self, tokens: &[Token], depth: u32) -> ParameterType {
        let stars = tokens.iter().filter(|token| token.is('*') || token.is('&')).count();
        let words: Vec<&str> =
            tokens.iter().filter_map(Token::word).filter(|word| !IGNORED.contains(word)).collect();
        let base = self.base(&words, depth);
        match (stars, base) {
            (0, base) => base,
            (
                1,
                ParameterType::Pointer | ParameterType::PointerToConst | ParameterType::Pointers,
            ) => ParameterType::Pointers,
            (1, _) => pointer(tokens),
            _ => ParameterType::Pointers,
        }
    }

    fn base(&self, words: &[&str], depth: u32) -> ParameterType {
        use ParameterType::{Double, Float, Integer, Pointer, Stream, Unknown, Void};
        match words {
            ["void"] => Void,
            ["bool" | "_Bool"] => Integer(1),
            ["char"] | ["signed" | "unsigned", "char"] => Integer(1),
            ["int8_t" | "uint8_t"] => Integer(1),
            ["int16_t" | "uint16_t"] => Integer(2),
            ["int32_t" | "uint32_t" | "uint"] => Integer(4),
            ["int64_t" | "uint64_t" | "size_t" | "ssize_t" | "ptrdiff_t"] => Integer(8),
            ["intptr_t" | "uintptr_t"] => Integer(8),
            ["float"] => Float,
            ["double"] => Double,
            [word] if STREAMS.contains(word) => Stream,
            [word] if HANDLES.contains(word) => Pointer,
            [word] if ENUMERATIONS.contains(word) || self.enumerations.contains(*word) => {
                Integer(4)
            }
            [word] if HALVES.contains(word) => Integer(2),
            [word] if BYTES.contains(word) => Integer(1),
            [word] if self.resolved.contains_key(*word) => self.resolved[*word],
            [word] if self.names.contains_key(*word) => self.named(word, depth),
            words if words.contains(&"short") => Integer(2),
            words if words.contains(&"long") && !words.contains(&"double") => Integer(8),
            [] => Unknown,
            words if words.iter().all(|it| matches!(*it, "unsigned" | "signed" | "int")) => {
                Integer(4)
            }
            _ => Unknown,
        }
    }
}

/// The class of a pointer, a reference or an array. It is to const only if the word is before the
/// first sign of the type, because it can belong to an argument of a template or of a function.
fn pointer(tokens: &[Token]) -> ParameterType {
    let mut words = tokens.iter().map_while(Token::word);
    match words.any(|word| word == "const") {
        true => ParameterType::PointerToConst,
        false => ParameterType::Pointer,
    }
}

fn is_part_of_type(token: &Token) -> bool {
    const WORDS: [&str; 10] =
        ["int", "long", "short", "char", "unsigned", "signed", "float", "double", "const", "bool"];
    WORDS.iter().any(|word| token.is_word(word))
}

/// Splits at the commas that are not within brackets.
fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '<' | '{') => depth += 1,
            Token::Sign(')' | ']' | '>' | '}') => depth -= 1,
            Token::Sign(',') if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::ParameterType::*;
    use super::*;

    #[test]
    fn a_parameter_has_the_class_by_which_it_is_passed() {
        let source = [
            "typedef int64_t fptr_t;",
            "using Count = unsigned long long;",
            "enum class Kind : uint8_t { A };",
            "typedef enum { X, Y } Mode;",
            "struct Large { int x[9]; };",
            "typedef Large *LargePointer;",
            "using Twice = fptr_t;",
        ];
        let mut types = Types::default();
        for line in source {
            let read = tokens(line.trim_end_matches(';'));
            if let Some(brace) = read.iter().position(|token| token.is('{')) {
                types.block(&read[..brace]);
            }
            types.declaration(&read);
        }
        types.complete();
        for (parameter, expected) in [
            ("const float *__restrict__ x", PointerToConst),
            ("float const *x", PointerToConst),
            ("const half& x", PointerToConst),
            ("const int x[]", PointerToConst),
            ("float *const x", Pointer),
            ("Box<const float> *x", Pointer),
            ("const LargePointer x", Pointer),
            ("void *", Pointer),
            ("float x[]", Pointer),
            ("half& x", Pointer),
            ("void **x", Pointers),
            ("const void* const* x", Pointers),
            ("const float *x[4]", Pointers),
            ("LargePointer *x", Pointers),
            ("void (*callback)(int)", Pointer),
            ("cudaStream_t s", Stream),
            ("int64_t stream", Stream),
            ("void *stream", Stream),
            ("int stream", Integer(4)),
            ("unsigned", Integer(4)),
            ("const unsigned int n = 3", Integer(4)),
            ("unsigned long long n", Integer(8)),
            ("unsigned char n", Integer(1)),
            ("bool is_causal", Integer(1)),
            ("const short n", Integer(2)),
            ("__nv_bfloat16 scale", Integer(2)),
            ("std::size_t n", Integer(8)),
            ("float eps", Float),
            ("double eps", Double),
            ("long double eps", Unknown),
            ("fptr_t x", Integer(8)),
            ("Twice x", Integer(8)),
            ("Count x", Integer(8)),
            ("Kind kind", Integer(1)),
            ("Mode mode", Integer(4)),
            ("LargePointer x", Pointer),
            ("Large x", Unknown),
            ("std::vector<int> x", Unknown),
            ("dim3 grid", Unknown),
        ] {
            assert_eq!(types.parameters(&tokens(parameter)), [expected], "{parameter}");
        }
        let several = types.parameters(&tokens("std::pair<int, int> a, int b, float"));
        assert_eq!(several, [Unknown, Integer(4), Float]);
        assert!(types.parameters(&tokens("void")).is_empty());
        assert!(types.parameters(&[]).is_empty());
    }

    #[test]
    fn a_result_has_its_class() {
        let types = Types::default();
        for (result, expected) in [
            ("extern void", Void),
            ("static inline const char *", Text),
            ("cudaError_t", Integer(4)),
            ("size_t", Integer(8)),
            ("float *", Pointer),
            ("S", Unknown),
        ] {
            assert_eq!(types.result(&tokens(result)), expected, "{result}");
        }
    }
}
