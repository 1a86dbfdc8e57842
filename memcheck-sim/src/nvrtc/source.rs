//! The kernels of a CUDA source, without a parser of C++: each `__global__`, the name and the
//! parameters after it.
//!
//! | source | names of the module |
//! |---|---|
//! | a kernel with C linkage | its name |
//! | another kernel | every mangled name of it (`_Z3addPf`, `_ZN2ns3addE…`) |
//! | a macro that defines kernels, an unknown header in quotes | every name |

use std::fmt::Write as _;

use memcheck_kernels::ANY_NAME;

/// The first line of the text.
const HEAD: &str = memcheck_kernels::RUN_TIME;

/// Returns the PTX of a source and its headers: its kernels and the sizes of their parameters.
pub(super) fn ptx(texts: &[String], includes: &[String]) -> String {
    let mut ptx = format!("{HEAD}\n.version 9.0\n.target sm_90\n.address_size 64\n");
    let texts: Vec<String> = texts.iter().map(|text| without_comments(text)).collect();
    if texts.iter().any(|text| hides_names(text, includes)) {
        ptx.push_str(ANY_NAME);
        ptx.push('\n');
        return ptx;
    }
    for SourceKernel { name, has_c_linkage, parameters } in
        texts.iter().flat_map(|text| kernels(text))
    {
        // The star stands for the types of the parameters.
        let name = if has_c_linkage { name.to_owned() } else { format!("_Z{}{name}*", name.len()) };
        let sizes: Vec<String> = parameters.iter().map(|parameter| declared(parameter)).collect();
        let _ = writeln!(ptx, ".visible .entry {name}({})\n{{ }}", sizes.join(", "));
    }
    ptx
}

/// Returns the name of the kernel that an expression such as `&ns::add<float>` stands for. It is
/// one of the names that [`ptx`] lists for the kernel.
pub(super) fn lowered(expression: &str, index: usize) -> String {
    let name = expression.trim().trim_start_matches('&');
    let name = name.split('<').next().unwrap_or(name).trim();
    let name = name.rsplit("::").next().unwrap_or(name);
    format!("_Z{}{name}L{index}", name.len())
}

/// Writes a parameter as PTX does.
fn declared(parameter: &str) -> String {
    match size(parameter) {
        Some(bytes) => format!(".param .align {bytes} .b8 p[{bytes}]"),
        None => ".param unknown".to_owned(),
    }
}

#[derive(Debug, PartialEq)]
struct SourceKernel<'a> {
    name: &'a str,
    has_c_linkage: bool,
    parameters: Vec<&'a str>,
}

fn kernels(text: &str) -> Vec<SourceKernel<'_>> {
    let blocks: Vec<_> = text
        .match_indices("extern \"C\"")
        .filter_map(|(at, head)| {
            let start = at + head.len();
            let inner = text[start..].trim_start().strip_prefix('{')?;
            let begin = text.len() - inner.len();
            Some(begin..begin + closing(inner, '{', '}')?)
        })
        .collect();
    let kernel = |(at, word): (usize, &str)| {
        let before = &text[..at];
        let statement = before.rfind([';', '{', '}']).map_or(before, |end| &before[end + 1..]);
        let has_c_linkage =
            statement.contains("extern \"C\"") || blocks.iter().any(|block| block.contains(&at));
        let (name, parameters) = signature(&text[at + word.len()..])?;
        Some(SourceKernel { name, has_c_linkage, parameters })
    };
    text.match_indices("__global__").filter_map(kernel).collect()
}

/// Returns the name and the parameters of the function whose declaration `text` continues.
fn signature(mut text: &str) -> Option<(&str, Vec<&str>)> {
    loop {
        let open = text.find('(')?;
        let name = text[..open].split_whitespace().next_back()?;
        let inner = &text[open + 1..];
        let end = closing(inner, '(', ')')?;
        // `__launch_bounds__(256)` and similar attributes.
        if name.starts_with("__") {
            text = &inner[end + 1..];
            continue;
        }
        return Some((name, split(&inner[..end])));
    }
}

/// Returns the place of the bracket that closes the text.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, character)| {
        if character == open {
            depth += 1;
        } else if character == close {
            depth -= 1;
        }
        (depth < 0).then_some(at)
    })
}

/// Splits parameters at the commas that are not in angle brackets.
fn split(parameters: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = parameters.split(|character| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0 && character == ','
    });
    parts.map(str::trim).filter(|part| !part.is_empty() && *part != "void").collect()
}

/// Returns the bytes of a parameter, such as `const float *__restrict__ x`; `None` for a type that
/// is not built in.
fn size(parameter: &str) -> Option<u64> {
    if parameter.contains(['*', '[']) && !parameter.contains('<') {
        return Some(8);
    }
    let mut words: Vec<&str> = parameter.split_whitespace().collect();
    words.retain(|word| !matches!(*word, "const" | "volatile" | "signed" | "__grid_constant__"));
    // The last word is the name.
    words.pop().filter(|_| !words.is_empty())?;
    let longs = words.iter().filter(|&&word| word == "long").count();
    words.retain(|&word| word != "unsigned" && word != "long");
    Some(match (longs, words.as_slice()) {
        (0, ["bool" | "char" | "int8_t" | "uint8_t"]) => 1,
        (0, ["short" | "int16_t" | "uint16_t" | "__half" | "half" | "__nv_bfloat16"]) => 2,
        (0, [] | ["int" | "float" | "int32_t" | "uint32_t"]) => 4,
        (0, ["double" | "size_t" | "int64_t" | "uint64_t"]) | (1 | 2, [] | ["int"]) => 8,
        _ => return None,
    })
}

/// True if the source can have kernels whose names it does not spell out.
fn hides_names(text: &str, includes: &[String]) -> bool {
    let joined = text.replace("\\\n", " ");
    joined.lines().any(|line| {
        let Some(directive) = line.trim_start().strip_prefix('#').map(str::trim_start) else {
            return false;
        };
        if let Some(header) = directive.strip_prefix("include") {
            let header = header.trim();
            return header.starts_with('"')
                && !includes.iter().any(|it| it == header.trim_matches('"'));
        }
        directive.starts_with("define")
            && (directive.contains("__global__") || directive.contains("##"))
    })
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut result = String::with_capacity(text.len());
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        result.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") { "\n" } else { "*/" };
        rest = match rest[at + 2..].find(end) {
            Some(length) if end == "\n" => &rest[at + 2 + length..],
            Some(length) => &rest[at + 2 + length + end.len()..],
            None => "",
        };
        result.push(' ');
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_kernels::Image;

    fn image(source: &str) -> Image {
        Image::of_text(&ptx(&[source.to_owned()], &["mine.h".to_owned()]))
    }

    fn found(source: &str, name: &str) -> Option<String> {
        image(source).find(name, 90).map(|code| format!("{code:?}"))
    }

    #[test]
    fn a_kernel_with_c_linkage_has_its_name_and_the_sizes_of_its_parameters() {
        let source = "// __global__ void comment(int)\n/* __global__ void other() */\n\
            #include <cuda_fp16.h>\n#include \"mine.h\"\n\
            extern \"C\" __global__ void __launch_bounds__(256, 2) scale(\n\
                float *__restrict__ out, const float* in, unsigned long long n, unsigned k,\n\
                float by, bool is_on, const size_t rest) { out[0] = f(in, n); }\n\
            extern \"C\" { __device__ void helper(int) {}\n\
                __global__ void second(void) {}\n }\n\
            extern \"C\" __global__ void structured(Pair<int, float> pair, int n);";
        let sizes = "Parameters([8, 8, 8, 4, 4, 1, 8])";
        assert_eq!(found(source, "scale").unwrap(), sizes);
        assert_eq!(found(source, "second").unwrap(), "Parameters([])");
        assert_eq!(found(source, "structured").unwrap(), "Opaque");
        for absent in ["comment", "other", "helper", "_Z5scalePf", "scal", ""] {
            assert_eq!(found(source, absent), None, "{absent}");
        }
    }

    #[test]
    fn another_kernel_has_each_of_its_mangled_names() {
        let source = "namespace ns { template <typename T> __global__ void add(T *x, T y) {} }";
        let lowered = lowered("&ns::add<float>", 3);
        for name in ["_Z3addPfi", "_ZN2ns3addIfEEvPT_S1_", lowered.as_str()] {
            assert_eq!(found(source, name).unwrap(), "Opaque", "{name}");
        }
        for absent in ["add", "_Z3subPf", "_Z4add2Pf", "_ZN2ns3subEv"] {
            assert_eq!(found(source, absent), None, "{absent}");
        }
    }

    #[test]
    fn a_name_of_a_kernel_of_candle_has_no_values_either() {
        let source = "extern \"C\" __global__ void softmax_f32(float *a, float *b, int c) {}";
        assert_eq!(found(source, "softmax_f32").unwrap(), "Parameters([8, 8, 4])");
    }

    #[test]
    fn names_are_unknown_if_a_macro_or_another_file_can_define_them() {
        let sources = [
            "#define KERNEL(N) \\\n  extern \"C\" __global__ void N() {}\nKERNEL(one)",
            "#define NAME(T) scale_##T\nextern \"C\" __global__ void NAME(f32)() {}",
            "#include \"kernels.cuh\"\n",
        ];
        for source in sources {
            assert_eq!(found(source, "anything").unwrap(), "Opaque", "{source}");
        }
        assert_eq!(found("__device__ void helper() {}", "helper"), None);
    }
}
