//! Choices that flags and variables spell by name: one table for reading them
//! and for listing them.

/// Gives a type without fields its names: `NAMES`, in the order in which they are
/// listed, and [`std::str::FromStr`], whose error lists them.
#[doc(hidden)]
#[macro_export]
macro_rules! names {
    ($type:ident { $($name:literal => $variant:ident),+ $(,)? }) => {
        impl $type {
            /// The names, as flags and variables spell them.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #[derive(Debug, PartialEq)]
    enum When {
        Never,
        Always,
    }

    names!(When { "never" => Never, "always" => Always });

    #[test]
    fn every_name_is_read_and_no_other() {
        assert_eq!(When::NAMES, ["never", "always"]);
        assert_eq!("never".parse(), Ok(When::Never));
        assert_eq!("always".parse(), Ok(When::Always));
        let error = "now".parse::<When>().unwrap_err();
        assert_eq!(error, "`now` is not one of never, always");
    }
}
