//! `cases(dtype = [f32, bf16], batch = [1, 8])`: the parameters with their values, and the named
//! test of each combination. Each value is checked on its own token.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Ident, Lit, Token, UnOp};

use crate::expression::{parse_value, ungroup};
use crate::list::List;

/// The maximum number of tests that one attribute makes.
const MOST: usize = 256;

const VALUES: &str = "an identifier, an integer, a float, a string or a bool";
const LIST: List = List {
    form: "`cases(dtype = [f32, bf16], batch = [1, 8])`",
    empty: "`cases` has no parameters",
};

/// The parameters of `cases(…)`; never empty.
pub(crate) struct Cases {
    /// In the order of the attribute.
    parameters: Vec<Parameter>,
}

/// One parameter: `dtype = [f32, bf16]`.
struct Parameter {
    name: String,
    values: Vec<CaseValue>,
}

struct CaseValue {
    /// The text that the body receives.
    text: String,
    span: Span,
}

/// One combination of values, which becomes one test.
pub(crate) struct Combination<'a> {
    /// The name of the test function: `dtype_f32_batch_1`.
    pub(crate) test: String,
    /// The name and the value of each parameter.
    pub(crate) case: Vec<(&'a str, &'a str)>,
}

impl Cases {
    /// Parses the list behind the word `cases`, which is at `word`.
    pub(crate) fn parse(word: &Ident, input: ParseStream<'_>) -> syn::Result<Self> {
        let mut parameters: Vec<Parameter> = Vec::new();
        for ParsedParameter(name, parameter) in LIST.parse(word, input)? {
            if parameters.iter().any(|known| known.name == parameter.name) {
                let message = format!("the case `{name}` is defined twice");
                return Err(syn::Error::new(name.span(), message));
            }
            parameters.push(parameter);
        }
        let cases = Self { parameters };
        let lengths = cases.parameters.iter().map(|parameter| parameter.values.len());
        let count = lengths.fold(1_usize, usize::saturating_mul);
        if count > MOST {
            let message =
                format!("{count} combinations (limit {MOST}): shorten a list, or split the test");
            return Err(syn::Error::new(word.span(), message));
        }
        cases.check_names()?;
        Ok(cases)
    }

    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.parameters.iter().map(|parameter| {
            let values = parameter.values.iter().map(|value| value.text.as_str());
            (parameter.name.as_str(), values.collect())
        })
    }

    /// Returns all combinations; the last parameter varies fastest.
    pub(crate) fn combinations(&self) -> Vec<Combination<'_>> {
        self.indices()
            .iter()
            .map(|indices| Combination {
                test: self.test_name(indices),
                case: self
                    .values_at(indices)
                    .into_iter()
                    .map(|(parameter, value)| (parameter.name.as_str(), value.text.as_str()))
                    .collect(),
            })
            .collect()
    }

    /// Returns all combinations, each as the indices of the values.
    fn indices(&self) -> Vec<Vec<usize>> {
        self.parameters.iter().fold(vec![Vec::new()], |combinations, parameter| {
            let longer = |combination: &Vec<usize>| {
                let combination = combination.clone();
                (0..parameter.values.len()).map(move |index| [&combination[..], &[index]].concat())
            };
            combinations.iter().flat_map(longer).collect()
        })
    }

    fn values_at<'a>(&'a self, indices: &[usize]) -> Vec<(&'a Parameter, &'a CaseValue)> {
        let at =
            |(parameter, &index): (&'a Parameter, &usize)| (parameter, &parameter.values[index]);
        self.parameters.iter().zip(indices).map(at).collect()
    }

    fn test_name(&self, indices: &[usize]) -> String {
        let parts = self
            .values_at(indices)
            .into_iter()
            .map(|(parameter, value)| format!("{}_{}", parameter.name, as_identifier(&value.text)));
        parts.collect::<Vec<_>>().join("_")
    }

    /// Rejects two combinations with the same name, because they would share one test and one
    /// baseline.
    fn check_names(&self) -> syn::Result<()> {
        let mut seen: Vec<(String, Vec<usize>)> = Vec::new();
        for indices in self.indices() {
            let test = self.test_name(&indices);
            if let Some((_, earlier)) = seen.iter().find(|(name, _)| *name == test) {
                let differing = self.values_at(&indices).into_iter().zip(self.values_at(earlier));
                let (value, other) = differing
                    .map(|((_, value), (_, other))| (value, other))
                    .find(|(value, other)| !std::ptr::eq(*value, *other))
                    .expect("two combinations differ in a value");
                let message = if value.text == other.text {
                    format!("the value `{}` is listed twice", value.text)
                } else {
                    format!("`{}` and `{}` both make a test named `{test}`", other.text, value.text)
                };
                return Err(syn::Error::new(value.span, message));
            }
            seen.push((test, indices));
        }
        Ok(())
    }
}

/// A parsed parameter, and the token of its name for error messages.
struct ParsedParameter(Ident, Parameter);

impl Parse for ParsedParameter {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = LIST.name(input)?;
        let expected = format!("expected `{name} = [value, …]`");
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(name.span(), expected));
        }
        input.parse::<Token![=]>()?;
        let value = parse_value(input)?;
        let list = match ungroup(&value) {
            Expr::Array(list) => list,
            other => {
                let message = format!("{expected}, each value {VALUES}");
                return Err(syn::Error::new_spanned(other, message));
            }
        };
        if list.elems.is_empty() {
            let message = format!("`{name}` has no values, {expected}");
            return Err(syn::Error::new_spanned(list, message));
        }
        let mut values = Vec::new();
        let mut errors: Option<syn::Error> = None;
        for element in &list.elems {
            match CaseValue::parse(element) {
                Ok(value) => values.push(value),
                Err(error) => match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                },
            }
        }
        let parameter = Parameter { name: name.unraw().to_string(), values };
        errors.map_or(Ok(Self(name, parameter)), Err)
    }
}

impl CaseValue {
    fn parse(element: &Expr) -> syn::Result<Self> {
        let text = value_text(element)?;
        Ok(Self { text, span: element.span() })
    }
}

/// Returns the value as the body receives it: numbers in plain digits, strings without quotes.
fn value_text(element: &Expr) -> syn::Result<String> {
    let error = || syn::Error::new_spanned(element, format!("expected {VALUES}"));
    let number = |digits: &str, suffix: &str, token: &dyn ToTokens| match suffix {
        "" => Ok(digits.to_owned()),
        _ => {
            let mut tokens = TokenStream::new();
            token.to_tokens(&mut tokens);
            let message = format!("a value must not have a type suffix: write `{digits}`");
            Err(syn::Error::new_spanned(tokens, message))
        }
    };
    match ungroup(element) {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Int(literal) => number(literal.base10_digits(), literal.suffix(), literal),
            Lit::Float(literal) => number(literal.base10_digits(), literal.suffix(), literal),
            Lit::Str(text) => Ok(text.value()),
            Lit::Bool(boolean) => Ok(boolean.value.to_string()),
            _ => Err(error()),
        },
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match ungroup(expr) {
            Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) => {
                Ok(format!("-{}", value_text(expr)?))
            }
            _ => Err(error()),
        },
        Expr::Path(ExprPath { qself: None, path, .. }) => {
            path.get_ident().map(|ident| ident.unraw().to_string()).ok_or_else(error)
        }
        _ => Err(error()),
    }
}

/// Converts a value to a part of a function name. A minus sign becomes `minus`. Every run of
/// characters that are not ASCII letters or digits becomes one underscore; at the ends it is
/// dropped.
fn as_identifier(text: &str) -> String {
    let text = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("minus_{rest}"),
        _ => text.to_owned(),
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    if name.is_empty() { "empty".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> syn::Result<Cases> {
        let parse = |input: ParseStream<'_>| {
            let word: Ident = input.parse()?;
            Cases::parse(&word, input)
        };
        syn::parse::Parser::parse_str(parse, text)
    }

    fn tests(text: &str) -> Vec<String> {
        cases(text).unwrap().combinations().into_iter().map(|c| c.test).collect()
    }

    #[test]
    fn combinations_are_in_the_order_in_which_they_are_written() {
        assert_eq!(
            tests("cases(dtype = [f32, bf16], batch = [1, 8])"),
            ["dtype_f32_batch_1", "dtype_f32_batch_8", "dtype_bf16_batch_1", "dtype_bf16_batch_8"]
        );
    }

    #[test]
    fn every_kind_of_value_has_a_text_and_a_name() {
        let cases = cases("cases(x = [-1, 0.5, 1_000, 0x10, \"a b-c\", \"\", true, r#type, -2.5])");
        let cases = cases.unwrap();
        let combinations = cases.combinations();
        let texts: Vec<&str> = combinations.iter().map(|one| one.case[0].1).collect();
        assert_eq!(texts, ["-1", "0.5", "1000", "16", "a b-c", "", "true", "type", "-2.5"]);
        let names: Vec<&str> = combinations.iter().map(|one| one.test.as_str()).collect();
        assert_eq!(
            names,
            [
                "x_minus_1",
                "x_0_5",
                "x_1000",
                "x_16",
                "x_a_b_c",
                "x_empty",
                "x_true",
                "x_type",
                "x_minus_2_5"
            ]
        );
    }

    #[test]
    fn two_tests_with_the_same_name_are_an_error() {
        for (text, expected) in [
            ("cases(x = [1, 2, 1])", "the value `1` is listed twice"),
            ("cases(x = [\"a b\", a_b])", "`a b` and `a_b`"),
            ("cases(a = [\"1\", \"1 b 2\"], b = [\"2 b 3\", \"3\"])", "a_1_b_2_b_3"),
        ] {
            let error = cases(text).err().expect(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn more_than_256_combinations_are_an_error() {
        let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(tests(&format!("cases(a = [{}], b = [{}])", list(16), list(16))).len(), MOST);
        let error = cases(&format!("cases(a = [{}])", list(MOST + 1))).err().unwrap().to_string();
        assert!(error.starts_with("257 combinations (limit 256)"), "{error}");
    }
}
