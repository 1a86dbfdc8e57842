//! Finds a public struct of a library with a constructor and `forward` whose arguments a test can
//! make: it parses the sources, follows the public modules, and runs no code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use quote::ToTokens;
use syn::{
    FnArg, GenericArgument, ImplItem, ImplItemFn, Item, ItemImpl, ItemMod, ItemStruct,
    PathArguments, ReturnType, Type, Visibility,
};

use super::CrateNames;

/// Values that a test can make, with which a constructor and `forward` are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// `VarBuilder` of candle-nn.
    Weights,
    Device,
    DType,
    /// The width of all layers.
    Width,
    /// A small number, such as an epsilon.
    Small,
    No,
    /// `None`.
    Absent,
    /// `T::default()` of a public type of the library.
    Default(usize),
    /// A tensor of numbers.
    Input,
    /// A tensor of token ids.
    Ids,
    /// A position.
    Zero,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelStruct {
    /// `app::model::Mlp`.
    pub(super) path: String,
    /// `new` or `load`.
    pub(super) constructor: String,
    pub(super) arguments: Vec<(Argument, bool)>,
    /// True if the constructor returns a `Result`.
    pub(super) is_fallible: bool,
    pub(super) forward: Vec<(Argument, bool)>,
    pub(super) forward_is_fallible: bool,
    /// The trait of `forward` in candle, if it is not a method of the type.
    pub(super) needs_module: bool,
    pub(super) is_mutable: bool,
    /// The types of [`Argument::Default`].
    pub(super) defaults: Vec<String>,
}

/// A public struct, or a type with `Default`, with its path.
#[derive(Default)]
struct Library {
    structs: Vec<(String, ItemStruct)>,
    impls: Vec<ItemImpl>,
}

const CONSTRUCTORS: [&str; 2] = ["new", "load"];
/// Of a library that includes itself.
const DEEPEST: usize = 16;

impl ModelStruct {
    /// `file` is the root of the library. The last fitting struct is the outermost layer, mostly.
    pub(super) fn find(file: &Path, crates: &CrateNames) -> Option<Self> {
        let mut library = Library::default();
        let folder = file.parent()?;
        library.read(file, folder, crates.library.as_ref()?, 0)?;
        let defaults = library.defaults();
        let mut models: Vec<Self> = Vec::new();
        for (path, item) in &library.structs {
            models.extend(library.model(path, item, &defaults, crates));
        }
        models.pop()
    }

    /// The inputs of pooling, padding or a rotary embedding have shapes that their types do not show.
    /// They have no weights, and a constructor that makes a tensor can fail.
    fn has_known_inputs(&self) -> bool {
        let takes_weights = self.arguments.iter().any(|(made, _)| *made == Argument::Weights);
        let is_input =
            |(made, _): &&(Argument, bool)| matches!(made, Argument::Input | Argument::Ids);
        match self.forward.iter().filter(is_input).count() {
            0 => false,
            1 => takes_weights || self.is_fallible,
            _ => takes_weights,
        }
    }
}

impl Library {
    fn read(&mut self, file: &Path, folder: &Path, path: &str, depth: usize) -> Option<()> {
        let text = input::read_text(file, input::SOURCE).ok()?;
        let parsed = syn::parse_file(&text).ok()?;
        self.items(parsed.items, folder, path, depth);
        Some(())
    }

    /// `folder` has the files of the modules.
    fn items(&mut self, items: Vec<Item>, folder: &Path, path: &str, depth: usize) {
        for item in items {
            match item {
                Item::Struct(item) if is_public(&item.vis) && !has_cfg(&item.attrs) => {
                    self.structs.push((format!("{path}::{}", item.ident), item));
                }
                Item::Impl(item) if !has_cfg(&item.attrs) => self.impls.push(item),
                Item::Mod(item)
                    if is_public(&item.vis) && !has_cfg(&item.attrs) && depth < DEEPEST =>
                {
                    self.module(item, folder, path, depth + 1);
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, item: ItemMod, folder: &Path, path: &str, depth: usize) {
        let name = item.ident.to_string();
        let (path, inner) = (format!("{path}::{name}"), folder.join(&name));
        if let Some((_, items)) = item.content {
            return self.items(items, &inner, &path, depth);
        }
        let files: [PathBuf; 2] = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            self.read(file, &inner, &path, depth);
        }
    }

    /// The public structs with `Default`, without those that have the same name as another.
    fn defaults(&self) -> Vec<(String, String)> {
        let implemented: BTreeSet<String> = self
            .impls
            .iter()
            .filter(|item| trait_name(item).as_deref() == Some("Default"))
            .filter_map(|item| last_name(&item.self_ty))
            .collect();
        let derives = |item: &ItemStruct| {
            item.attrs.iter().any(|attribute| {
                attribute.path().is_ident("derive")
                    && attribute.meta.to_token_stream().to_string().contains("Default")
            })
        };
        let all = self.structs.iter().map(|(path, item)| (path, item, item.ident.to_string()));
        let known = all.filter(|(_, item, name)| derives(item) || implemented.contains(name));
        known
            .filter(|(_, _, name)| self.is_unique(name))
            .map(|(path, _, name)| (name, path.clone()))
            .collect()
    }

    /// Methods are found by the name of their type alone.
    fn is_unique(&self, name: &str) -> bool {
        self.structs.iter().filter(|(_, item)| item.ident == name).count() == 1
    }

    fn model(
        &self,
        path: &str,
        item: &ItemStruct,
        defaults: &[(String, String)],
        crates: &CrateNames,
    ) -> Option<ModelStruct> {
        let name = item.ident.to_string();
        if !item.generics.params.is_empty() || !self.is_unique(&name) {
            return None;
        }
        let own =
            || self.impls.iter().filter(|it| last_name(&it.self_ty).as_deref() == Some(&name));
        let methods = |of_trait: Option<&'static str>| {
            own()
                .filter(move |item| trait_name(item).as_deref() == of_trait)
                .flat_map(|item| &item.items)
                .filter_map(|item| match item {
                    ImplItem::Fn(method) => Some(method),
                    _ => None,
                })
        };
        let is_open = |method: &&ImplItemFn| {
            is_public(&method.vis)
                && method.sig.generics.type_params().next().is_none()
                // A test has no executor for a future.
                && method.sig.asyncness.is_none()
        };
        let forward = |method: &&ImplItemFn| method.sig.ident == "forward";
        let of_type = methods(None).filter(is_open).find(forward);
        let (forward, needs_module) = match of_type {
            Some(method) => (method, false),
            None => (methods(Some("Module")).find(forward)?, true),
        };
        let has_weights = crates.candle_nn.is_some();
        let mut types = Vec::new();
        let constructor = CONSTRUCTORS.iter().find_map(|name| {
            let method = methods(None).filter(is_open).find(|it| it.sig.ident == *name)?;
            let is_static = !matches!(method.sig.inputs.first(), Some(FnArg::Receiver(_)));
            is_static.then_some(method)
        })?;
        let mut made = |argument: &FnArg, is_input: bool| {
            let FnArg::Typed(argument) = argument else { return None };
            let name = argument.pat.to_token_stream().to_string();
            let (made, is_borrowed) = value(&name, &argument.ty, is_input, defaults, &mut types)?;
            (made != Argument::Weights || has_weights).then_some((made, is_borrowed))
        };
        let inputs = constructor.sig.inputs.iter();
        let arguments = inputs.map(|it| made(it, false)).collect::<Option<Vec<_>>>()?;
        let receiver = forward.sig.receiver()?;
        let is_mutable = receiver.mutability.is_some() && receiver.reference.is_some();
        // A model that `forward` consumes cannot be called in a second iteration.
        receiver.reference.as_ref()?;
        let inputs = forward.sig.inputs.iter().skip(1);
        let forward_arguments = inputs.map(|it| made(it, true)).collect::<Option<Vec<_>>>()?;
        let model = ModelStruct {
            path: path.to_owned(),
            constructor: constructor.sig.ident.to_string(),
            arguments,
            is_fallible: is_fallible(&constructor.sig.output),
            forward: forward_arguments,
            forward_is_fallible: is_fallible(&forward.sig.output),
            needs_module,
            is_mutable,
            defaults: types,
        };
        model.has_known_inputs().then_some(model)
    }
}

/// The value of an argument, and true if it is passed by reference.
fn value(
    name: &str,
    argument: &Type,
    is_input: bool,
    defaults: &[(String, String)],
    types: &mut Vec<String>,
) -> Option<(Argument, bool)> {
    let (argument, is_borrowed) = match argument {
        Type::Reference(reference) if reference.mutability.is_some() => return None,
        Type::Reference(reference) => (&*reference.elem, true),
        other => (other, false),
    };
    let named = last_name(argument)?;
    let is_ids = ["id", "token"].iter().any(|part| name.contains(part));
    let made = match named.as_str() {
        "VarBuilder" => Argument::Weights,
        "Device" => Argument::Device,
        "DType" => Argument::DType,
        "Tensor" if is_input && is_ids => Argument::Ids,
        "Tensor" if is_input => Argument::Input,
        "usize" if is_input => Argument::Zero,
        "usize" => Argument::Width,
        "f64" | "f32" => Argument::Small,
        "bool" => Argument::No,
        "Option" => Argument::Absent,
        _ => {
            let (_, path) = defaults.iter().find(|(known, _)| *known == named)?;
            types.push(path.clone());
            Argument::Default(types.len() - 1)
        }
    };
    Some((made, is_borrowed))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn has_cfg(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg"))
}

fn trait_name(item: &ItemImpl) -> Option<String> {
    let (_, path, _) = item.trait_.as_ref()?;
    Some(path.segments.last()?.ident.to_string())
}

/// The last part of the path of a type, without arguments other than lifetimes and those of
/// `Option`.
fn last_name(named: &Type) -> Option<String> {
    let Type::Path(named) = named else { return None };
    let last = named.path.segments.last()?;
    let is_plain = match &last.arguments {
        PathArguments::None => true,
        PathArguments::AngleBracketed(list) => {
            last.ident == "Option"
                || list.args.iter().all(|it| matches!(it, GenericArgument::Lifetime(_)))
        }
        PathArguments::Parenthesized(_) => false,
    };
    is_plain.then(|| last.ident.to_string())
}

fn is_fallible(output: &ReturnType) -> bool {
    let ReturnType::Type(_, returned) = output else { return false };
    let Type::Path(path) = &**returned else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(files: &[(&str, &str)]) -> Option<ModelStruct> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let crates = CrateNames {
            candle_core: "candle_core".to_owned(),
            candle_nn: Some("candle_nn".to_owned()),
            runtime: "memcheck_runtime".to_owned(),
            library: Some("app".to_owned()),
        };
        ModelStruct::find(&folder.path().join("lib.rs"), &crates)
    }

    const MLP: &str = "pub struct Mlp { inner: usize }
impl Mlp {
    pub fn new(width: usize, config: &Config, vb: VarBuilder<'_>) -> Result<Self> { todo!() }
}
impl Module for Mlp {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> { todo!() }
}
#[derive(Clone, Default)]
pub struct Config;
";

    #[test]
    fn a_layer_in_a_public_module_is_found_with_its_arguments() {
        let model = find(&[("lib.rs", "pub mod layers;"), ("layers/mod.rs", MLP)]).unwrap();
        assert_eq!((&*model.path, &*model.constructor), ("app::layers::Mlp", "new"));
        use Argument::{Default, Input, Weights, Width};
        assert_eq!(model.arguments, [(Width, false), (Default(0), true), (Weights, false)]);
        assert_eq!(model.forward, [(Input, true)]);
        assert_eq!(model.defaults, ["app::layers::Config"]);
        assert!(model.needs_module && model.is_fallible && model.forward_is_fallible);
        assert!(!model.is_mutable);
    }

    #[test]
    fn a_model_takes_ids_and_a_position() {
        let text = "pub struct Llama;
impl Llama {
    pub fn load(vb: VarBuilder, device: &Device) -> anyhow::Result<Self> { todo!() }
    pub fn forward(&mut self, input_ids: &Tensor, index: usize, mask: Option<&Tensor>) -> Tensor {
        todo!()
    }
}";
        let model = find(&[("lib.rs", text)]).unwrap();
        use Argument::{Absent, Ids, Zero};
        assert_eq!(model.forward, [(Ids, true), (Zero, false), (Absent, false)]);
        assert!(model.is_mutable && !model.needs_module && !model.forward_is_fallible);
    }

    #[test]
    fn a_layer_whose_inputs_have_unknown_shapes_is_not_found() {
        let is_found = |constructor: &str, inputs: &str| {
            let text = format!(
                "pub struct Layer;
impl Layer {{
    pub fn new({constructor} {{ todo!() }}
    pub fn forward(&self, {inputs}) -> Result<Tensor> {{ todo!() }}
}}"
            );
            find(&[("lib.rs", &text)]).is_some()
        };
        let (one, two) = ("xs: &Tensor", "q: &Tensor, k: &Tensor");
        assert!(!is_found("kernel_size: usize, stride: usize) -> Self", one));
        assert!(!is_found("head_dim: usize, device: &Device) -> Result<Self>", two));
        assert!(is_found("offset: f64, device: &Device) -> Result<Self>", one));
        assert!(is_found("width: usize, vb: VarBuilder) -> Self", one));
        assert!(is_found("width: usize, vb: VarBuilder) -> Result<Self>", two));
    }

    #[test]
    fn what_a_test_cannot_call_is_not_found() {
        let private_module = [("lib.rs", "mod layers;"), ("layers.rs", MLP)];
        assert_eq!(find(&private_module), None);
        for (from, to) in [
            ("pub struct Mlp", "struct Mlp"),
            ("pub struct Mlp {", "#[cfg(test)] pub struct Mlp {"),
            ("config: &Config", "config: &Unknown"),
            ("pub fn new", "fn new"),
            ("for Mlp", "for Other"),
            ("pub struct Config;", "struct Config;"),
            ("pub struct Mlp { inner", "pub struct Mlp<T> { inner"),
        ] {
            assert!(MLP.contains(from), "{from}");
            assert_eq!(find(&[("lib.rs", &MLP.replace(from, to))]), None, "{to}");
        }
        assert_eq!(find(&[("lib.rs", "not rust")]), None);
    }
}
