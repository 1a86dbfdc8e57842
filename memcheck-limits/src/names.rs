//! Choices that flags and variables spell by name. One table serves for parsing and for listing
//! them.

/// Gives names to an enum without fields: `NAMES`, in the order in which they are listed, and
/// [`std::str::FromStr`], whose error lists them.
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

/// Serializes a type as the text that [`std::fmt::Display`] writes and [`std::str::FromStr`] parses.
#[doc(hidden)]
#[macro_export]
macro_rules! serialize_as_text {
    ($type:ident) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as ::serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::shape::Metric;

    #[test]
    fn a_listed_name_is_parsed_and_another_text_is_an_error() {
        assert_eq!(Metric::NAMES[..2], ["peak_allocated", "setup"]);
        assert_eq!("setup".parse(), Ok(Metric::Setup));
        let error = "now".parse::<Metric>().unwrap_err();
        assert_eq!(error, format!("`now` is not one of {}", Metric::NAMES.join(", ")));
    }
}
