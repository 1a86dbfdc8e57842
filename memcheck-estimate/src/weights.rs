//! Weights that are zeros. The backend creates each tensor on the device when a model asks for its
//! name and shape, and counts it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Device, Error, Result, Shape, Tensor, Var};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use memcheck_core::size::counted;
use memcheck_core::wire::estimate::WeightFiles;

use crate::safetensors::TensorListing;

/// Returns the elements of a weight from its name and their number.
pub type Elements = fn(&str, usize) -> Vec<f32>;

/// The tensors that a model has asked for.
#[derive(Debug, Default)]
struct Created {
    /// Shapes and types by name. A tied tensor that a model asks for twice is one parameter.
    tensors: BTreeMap<String, (Shape, DType)>,
    /// Variables by name, if the model is trained.
    variables: BTreeMap<String, Var>,
    /// Bytes of all tensors that were created.
    bytes: u64,
    /// Bytes of those tensors whose name had been asked for before.
    duplicated: u64,
    /// Shapes that a model reads from its weights.
    shapes: BTreeMap<String, (usize, usize)>,
}

/// The weights of a model while it is being loaded.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    created: Arc<Mutex<Created>>,
    tied: bool,
    trained: bool,
    /// Endings of names that the file does not contain.
    absent: &'static [&'static str],
    /// The tensors of the model's files; `None` if they are not known.
    listing: Option<Arc<TensorListing>>,
    /// The elements of the weights; `None` for zeros.
    elements: Option<Elements>,
}

impl Weights {
    /// Creates the store. `tied` means that the file has no `lm_head`; `trained` means that the
    /// weights are variables.
    pub(crate) fn new(tied: bool, trained: bool) -> Self {
        Self { created: Arc::default(), tied, trained, absent: &[], listing: None, elements: None }
    }

    /// Removes the names with these endings, because a model can check which names exist.
    pub(crate) fn without(self, absent: &'static [&'static str]) -> Self {
        Self { absent, ..self }
    }

    /// Limits the tensors to those of the model's files.
    pub(crate) fn listed(self, listing: Arc<TensorListing>) -> Self {
        Self { listing: Some(listing), ..self }
    }

    /// Returns the counts of the model's files, and a remark about tensors that were not requested.
    pub(crate) fn files(&self) -> Option<(WeightFiles, Option<String>)> {
        let listing = self.listing.as_ref()?;
        let created = self.lock();
        let unread = || listing.names().filter(|name| !created.tensors.contains_key(*name));
        let count = unread().count() as u64;
        let note = unread().next().map(|first| {
            let tensors = counted(count, "tensor", "tensors");
            format!("candle does not read {tensors} of the model's files, such as `{first}`")
        });
        let (tensors, bytes) = (listing.names().count() as u64, listing.bytes);
        Some((WeightFiles { tensors, bytes, unread: count }, note))
    }

    /// Makes the weights have values.
    pub(crate) fn filled(self, elements: Elements) -> Self {
        Self { elements: Some(elements), ..self }
    }

    fn tensor(&self, shape: &Shape, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        match self.elements {
            None => Tensor::zeros(shape, dtype, device),
            Some(elements) => {
                let elements = elements(name, shape.elem_count());
                Tensor::from_vec(elements, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(device)
            }
        }
    }

    /// Returns the builder that a model's constructor takes.
    pub(crate) fn builder(&self, dtype: DType, device: &Device) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), dtype, device.clone())
    }

    /// Sets the shape of a tensor that a model asks for without a shape.
    pub(crate) fn shape(&self, name: &str, shape: (usize, usize)) {
        self.lock().shapes.insert(name.to_owned(), shape);
    }

    pub(crate) fn parameters(&self) -> u64 {
        self.lock().tensors.values().map(|(shape, _)| shape.elem_count() as u64).sum()
    }

    /// Returns the shapes and types of the tensors by their names. Tensors of which a model only
    /// reads the shape have the type `dtype`.
    pub(crate) fn tensors(&self, dtype: DType) -> BTreeMap<String, (Shape, DType)> {
        let created = self.lock();
        let shapes = created.shapes.iter().map(|(name, &it)| (name.clone(), (it.into(), dtype)));
        let mut tensors: BTreeMap<_, _> = shapes.collect();
        tensors.extend(created.tensors.clone());
        tensors
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Returns the bytes of tensors that exist more than once.
    pub(crate) fn duplicated_bytes(&self) -> u64 {
        self.lock().duplicated
    }

    /// Returns the variables in the order of their names.
    pub(crate) fn variables(&self) -> Vec<Var> {
        self.lock().variables.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Created> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of a tensor; `None` if the number is too large.
fn size(shape: &Shape, dtype: DType) -> Option<u64> {
    let elements = shape
        .dims()
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(u64::try_from(dim).ok()?))?;
    let bytes = elements.checked_mul(dtype.size_in_bytes() as u64)?;
    (bytes < 1 << 62).then_some(bytes)
}

impl SimpleBackend for Weights {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        if self.absent.iter().any(|end| name.ends_with(end)) {
            return Err(Error::CannotFindTensor { path: name.to_owned() });
        }
        if let Some(listing) = &self.listing {
            listing.check(name, &shape)?;
        }
        let Some(bytes) = size(&shape, dtype) else {
            candle_core::bail!(
                "`{name}` of shape {shape:?} has more elements than 64 bits can count"
            );
        };
        let mut created = self.lock();
        if let Some(variable) = created.variables.get(name) {
            return Ok(variable.as_tensor().clone());
        }
        let tensor = if self.trained {
            let variable = Var::zeros(&shape, dtype, device)?;
            let tensor = variable.as_tensor().clone();
            created.variables.insert(name.to_owned(), variable);
            tensor
        } else {
            self.tensor(&shape, name, dtype, device)?
        };
        if created.tensors.insert(name.to_owned(), (shape, dtype)).is_some() {
            created.duplicated += bytes;
        }
        created.bytes += bytes;
        Ok(tensor)
    }

    /// Creates a tensor that does not count, because a model only reads its shape. Models ask for
    /// the tensors that they keep with a shape.
    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        match self.lock().shapes.get(name) {
            Some(&shape) => self.tensor(&shape.into(), name, dtype, device),
            None => candle_core::bail!(
                "the shape of `{name}` is known only from the weights, which are not read"
            ),
        }
    }

    /// Claims that every tensor exists, as in the files of these models, except a head that is
    /// tied. With a listing, exactly its tensors exist. Names without a dot are prefixes and not tensors.
    fn contains_tensor(&self, name: &str) -> bool {
        if let Some(listing) = &self.listing {
            return listing.contains(name);
        }
        name.contains('.') && !(self.tied && name == "lm_head.weight")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_requested_twice_counts_as_one_parameter() -> Result<()> {
        for (trained, bytes) in [(false, 2 * 24), (true, 24)] {
            let weights = Weights::new(false, trained);
            let builder = weights.builder(DType::F32, &Device::Cpu);
            builder.get((2, 3), "a.weight")?;
            builder.get((2, 3), "a.weight")?;
            assert_eq!((weights.parameters(), weights.bytes()), (6, bytes));
            assert_eq!(weights.duplicated_bytes(), bytes - 24);
            assert_eq!(weights.variables().len(), usize::from(trained));
        }
        Ok(())
    }

    #[test]
    fn a_tensor_without_a_shape_needs_a_shape_that_was_set() -> Result<()> {
        let weights = Weights::new(false, false);
        let builder = weights.builder(DType::F32, &Device::Cpu).pp("a");
        assert!(builder.get_unchecked("w1").is_err());
        weights.shape("a.w1", (2, 3));
        assert_eq!(builder.get_unchecked("w1")?.dims(), [2, 3]);
        assert_eq!(weights.parameters(), 0);
        Ok(())
    }

    #[test]
    fn a_tensor_that_is_too_large_to_count_is_an_error() {
        let builder = Weights::new(false, false).builder(DType::F32, &Device::Cpu);
        let error = builder.get((1 << 40, 1 << 40), "a").unwrap_err().to_string();
        assert!(error.contains("more elements than 64 bits can count"), "{error}");
    }

    #[test]
    fn a_tied_head_is_not_in_the_file() {
        let (tied, own) = (Weights::new(true, false), Weights::new(false, false));
        assert!(!tied.contains_tensor("lm_head.weight") && own.contains_tensor("lm_head.weight"));
        assert!(tied.contains_tensor("shared.weight") && !tied.contains_tensor("bert"));
    }
}
