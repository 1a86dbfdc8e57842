//! The target of the fuzzer: the input of the attribute.

use proc_macro2::TokenStream;

use crate::expand;
use crate::options::AttributeOptions;

const SIGNATURES: [&str; 3] = [
    "fn a(trial: &mut Trial) -> Result<(), Error> {}",
    "#[ignore] #[should_panic(expected = \"b\")] fn a(device: &Device) {}",
    "async fn a<T>(self, b: T) where T: Copy {}",
];

/// Expands the attribute, if the input is one, above functions of several forms.
pub(crate) fn attribute(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // rustc limits the depth of the tokens that it passes to a macro.
    let depth = text.chars().filter(|c| "([{<&*-!|".contains(*c)).count();
    if depth > 100 {
        return;
    }
    let Ok(tokens) = text.parse::<TokenStream>() else { return };
    let Ok(options) = syn::parse2::<AttributeOptions>(tokens.clone()) else { return };
    for signature in SIGNATURES {
        if let Ok(function) = syn::parse_str(signature) {
            for has_candle in [true, false] {
                let _ = expand::expand(&options, &function, has_candle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_corpus_of_attributes_is_expanded() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/attribute");
        let mut count = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            super::attribute(&std::fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }
}
