//! The functions with C linkage in a CUDA source, after its macros are expanded.
//!
//! Most kernels of candle are written by macros such as `UNARY_OP(float, uneg_f32, -x)`, which are
//! defined in the same sources. The preprocessor of the C compiler expands them exactly. The headers
//! of CUDA and C++ are replaced by empty files, because they define none of these macros, and only
//! the versions that the sources compare (`VERSION`). A macro that is defined nowhere would leave its
//! call in the text, so [`functions`] refuses such a text, and [`expand`] refuses a condition on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The version of CUDA that a simulated build has, as nvcc and `cuda.h` define it.
const VERSION: [&str; 3] =
    ["-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0", "-DCUDA_VERSION=13000"];

/// A function with C linkage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, which is that of its symbol.
    pub name: String,
    /// True for a kernel (`__global__`), false for a function of the host.
    pub is_kernel: bool,
    /// The types of its arguments in order.
    pub arguments: Vec<Argument>,
}

/// The type of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A pointer of any type.
    Pointer {
        /// True if the function only reads what the pointer points to.
        is_const: bool,
    },
    /// The name of the type, without `const`.
    Scalar(String),
}

/// Expands the macros of a source text in `folder`, as nvcc does for a compute capability such as 80.
///
/// # Errors
///
/// If there is no C compiler, or with its messages.
pub fn expand(source: &str, folder: &Path, capability: u32) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cc -E in {}: {error}", folder.display());
    let headers = tempfile::tempdir().map_err(failed)?;
    for name in included(source, folder).map_err(failed)? {
        let path = headers.path().join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        std::fs::write(path, "").map_err(failed)?;
    }
    let file = headers.path().join("expanded.cu");
    std::fs::write(&file, source).map_err(failed)?;
    let output = Command::new("cc")
        // A condition on a macro that only a header of CUDA defines must not become false silently.
        .args(["-E", "-P", "-x", "c", "-nostdinc", "-undef", "-Werror=undef"])
        .args(VERSION)
        .arg(format!("-D__CUDA_ARCH__={}", capability * 10))
        .arg("-iquote")
        .arg(folder)
        .arg("-I")
        .arg(headers.path())
        .arg(&file)
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// The names of the headers that the source, or a header in its folder, includes from elsewhere.
fn included(source: &str, folder: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut texts = vec![source.to_owned()];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cuh") {
            texts.push(std::fs::read_to_string(path)?);
        }
    }
    let names = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let name = line.trim().strip_prefix('#')?.trim().strip_prefix("include")?.trim();
        Some(name.trim_matches(['<', '>', '"']).to_owned())
    });
    Ok(names.filter(|name| !folder.join(name).exists()).collect())
}

/// Returns the functions with C linkage of an expanded text.
///
/// # Errors
///
/// If the text has a call of an unknown macro, or a form of linkage that this parser does not know.
pub fn functions(expanded: &str) -> Result<Vec<Function>, String> {
    const LINKAGE: &str = "extern \"C\"";
    let mut functions = Vec::new();
    for declaration in declarations(expanded) {
        let declaration = declaration.trim();
        let word = declaration.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        let word = word.unwrap_or_default();
        let is_macro = |word: &str| word.len() > 1 && !word.contains(|c: char| c.is_lowercase());
        if is_macro(word) && declaration[word.len()..].trim_start().starts_with('(') {
            return Err(format!("the macro {word} is not defined in the sources: {declaration}"));
        }
        if let Some(rest) = declaration.strip_prefix(LINKAGE) {
            functions.push(function(rest)?);
        }
    }
    let found = expanded.matches(LINKAGE).count();
    if found != functions.len() {
        return Err(format!("{found} functions have C linkage, and {} were read", functions.len()));
    }
    Ok(functions)
}

/// Reads `__global__ void __launch_bounds__(32) name(const float *x, int n)`.
fn function(declaration: &str) -> Result<Function, String> {
    let refuse = || format!("not a function with C linkage: {declaration}");
    // The last parentheses are those of the arguments. Attributes before the name can have some.
    let rest = declaration.trim_end().strip_suffix(')').ok_or_else(refuse)?;
    let (start, arguments) = rest.rsplit_once('(').ok_or_else(refuse)?;
    let name =
        start.split(|c: char| !c.is_alphanumeric() && c != '_').rfind(|word| !word.is_empty());
    let arguments = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    Ok(Function {
        name: name.ok_or_else(refuse)?.to_owned(),
        is_kernel: start.contains("__global__"),
        arguments: arguments.map(argument).collect(),
    })
}

/// Reads `const float *__restrict__ x` or `const unsigned int n`.
fn argument(text: &str) -> Argument {
    let words: Vec<&str> = text.split_whitespace().collect();
    if text.contains('*') {
        return Argument::Pointer { is_const: words.contains(&"const") };
    }
    // The last word is the name.
    let types = words.iter().take(words.len().saturating_sub(1)).filter(|word| **word != "const");
    Argument::Scalar(types.copied().collect::<Vec<_>>().join(" "))
}

/// Returns the declarations outside of braces: what precedes each body, and each `;`.
fn declarations(expanded: &str) -> Vec<String> {
    let lines = expanded.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let (mut all, mut current, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            // Assembler in a text has braces.
            '"' | '\'' => {
                let mut literal = String::from(character);
                while let Some(next) = characters.next() {
                    literal.push(next);
                    match next {
                        '\\' => literal.extend(characters.next()),
                        _ if next == character => break,
                        _ => {}
                    }
                }
                if depth == 0 {
                    current.push_str(&literal);
                }
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && character != ';' => current.push(character),
            _ => {}
        }
        if depth == 0 && matches!(character, '}' | ';') {
            all.push(std::mem::take(&mut current));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str, capability: u32) -> Result<Vec<Function>, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("macros.cuh"), "#include <cub/none.h>\n#define OP(T, NAME) extern \"C\" __global__ void NAME(const T *x, T *out, const unsigned int n) { asm(\"{\"); }\n").unwrap();
        functions(&expand(source, folder.path(), capability)?)
    }

    #[test]
    fn macros_are_expanded_for_a_capability() {
        let source = "#include \"macros.cuh\"
            template <typename T> __global__ void hidden(T x) { if (x) { } }
            #if __CUDA_ARCH__ >= 800
            OP(half, a_f16)
            #endif
            OP(float, a_f32);
            extern \"C\" int __launch_bounds__(32, 1) host(void * x, bool b);";
        let names = |capability| -> Vec<String> {
            read(source, capability).unwrap().into_iter().map(|function| function.name).collect()
        };
        assert_eq!(names(75), ["a_f32", "host"]);
        assert_eq!(names(80), ["a_f16", "a_f32", "host"]);
        let functions = read(source, 75).unwrap();
        let pointer = |is_const| Argument::Pointer { is_const };
        let scalar = |name: &str| Argument::Scalar(name.to_owned());
        let expected = [pointer(true), pointer(false), scalar("unsigned int")];
        assert_eq!((functions[0].is_kernel, &functions[0].arguments[..]), (true, &expected[..]));
        let expected = [pointer(false), scalar("bool")];
        assert_eq!((functions[1].is_kernel, &functions[1].arguments[..]), (false, &expected[..]));
    }

    #[test]
    fn an_unknown_macro_and_an_unknown_linkage_are_refused() {
        let error = read("#include \"macros.cuh\"\nNEW_OP(float, a_f32)\nOP(float, b_f32)", 80);
        assert!(
            error.clone().unwrap_err().contains("the macro NEW_OP is not defined"),
            "{error:?}"
        );
        let error = read("extern \"C\" { void a(); }", 80).unwrap_err();
        assert!(error.contains("not a function with C linkage"), "{error}");
        let error = read("namespace a { extern \"C\" void b(); }", 80).unwrap_err();
        assert!(error.contains("1 functions have C linkage, and 0 were read"), "{error}");
        let error = read("#if CUDNN_VERSION > 9\nextern \"C\" void a();\n#endif", 80).unwrap_err();
        assert!(error.contains("CUDNN_VERSION"), "{error}");
        assert!(read("#include \"none", 80).is_err());
    }
}
