//! The functions that a Rust source declares in its `extern "C"` blocks. These are the ones that
//! the linker must find, whatever features the source is compiled with.

/// A declared function, with the texts of its types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, which is that of its symbol.
    pub name: String,
    /// Its arguments in order.
    pub arguments: Vec<Argument>,
    /// `None` if the function returns nothing.
    pub returns: Option<String>,
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// The text of its type.
    pub ty: String,
}

/// Returns the functions in the order of the source. A function that is declared for several
/// versions of a library occurs several times.
///
/// # Panics
///
/// If a declaration has another form than the ones that bindgen and candle-kernels write.
pub fn declared(source: &str) -> Vec<Function> {
    let text = without_comments(source);
    let blocks = text.split("extern \"C\" {").skip(1).map(|rest| {
        split(rest, '}').next().unwrap_or_else(|| panic!("a block without an end: {rest}"))
    });
    let declarations = blocks.flat_map(|block| split(block, ';'));
    // Attributes, such as the features of cudarc, are above the function.
    let starts = declarations.filter_map(|text| Some(&text[text.find("fn ")? + 3..]));
    let read = |text: &str| {
        function(text).unwrap_or_else(|| panic!("not a declaration of a function: {text}"))
    };
    starts.map(read).collect()
}

/// Reads `name(a: i32) -> Status`.
fn function(text: &str) -> Option<Function> {
    let (name, rest) = text.split_once('(')?;
    let arguments = split(rest, ')').next()?;
    let returns = rest.get(arguments.len() + 1..)?.trim().strip_prefix("->");
    let arguments = split(arguments, ',').filter(|argument| !argument.trim().is_empty());
    let arguments = arguments.map(|argument| {
        let (name, ty) = argument.split_once(':')?;
        Some(Argument { name: name.trim().to_owned(), ty: ty.trim().to_owned() })
    });
    Some(Function {
        name: name.to_owned(),
        arguments: arguments.collect::<Option<_>>()?,
        returns: returns.map(|text| text.trim().to_owned()),
    })
}

/// Splits a text at a character that is not inside brackets.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        let is_outside = depth == 0 && character == at;
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_outside
    })
}

fn without_comments(source: &str) -> String {
    let lines = source.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_declared_with_their_types() {
        let source = "
            type F = unsafe extern \"C\" fn(i32) -> i32;
            pub unsafe fn wrapper(a: i32) { extern \"C\" { fn wrapped(a: i32) -> Status; } }
            extern \"C\" {
                #[cfg(feature = \"a\")]
                pub fn of_arrays(a: *const [f32; 3], // b: i32,
                    call: Option<unsafe extern \"C\" fn(x: i32, y: i32)>,
                );
            }";
        let functions = declared(source);
        let names: Vec<_> = functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["wrapped", "of_arrays"]);
        assert_eq!(functions[0].returns.as_deref(), Some("Status"));
        assert_eq!(functions[1].returns, None);
        let types: Vec<_> = functions[1].arguments.iter().map(|it| it.ty.as_str()).collect();
        let call = "Option<unsafe extern \"C\" fn(x: i32, y: i32)>";
        assert_eq!(types, ["*const [f32; 3]", call]);
        assert_eq!(functions[1].arguments[1].name, "call");
    }
}
