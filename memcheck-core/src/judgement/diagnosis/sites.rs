//! The allocations of each call stack in each scope, summed over tensor types. An attribution can
//! have a hundred thousand places, so that a search for each survivor would take hours.

use std::collections::HashMap;

use crate::measurement::attribution::Place;
use crate::space::Space;

/// The allocations of one call stack in one scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SiteSum<'a> {
    /// Over the whole body.
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// In the last iteration that has some.
    pub(super) last_calls: u64,
    last: u32,
    /// The number of tensor types.
    pub(super) types: u64,
    shape: Option<&'a [u64]>,
    lengths: Lengths,
}

/// The dimensions in which the tensors of a site differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Lengths {
    /// In none, so far.
    #[default]
    Equal,
    /// In this one only.
    Of(usize),
    /// In several, or in their number.
    Several,
}

impl<'a> SiteSum<'a> {
    fn add(&mut self, place: &'a Place) {
        self.calls += place.calls;
        self.bytes += place.bytes;
        if place.last > self.last {
            (self.last, self.last_calls) = (place.last, 0);
        }
        if place.last == self.last {
            self.last_calls += place.last_calls;
        }
        if let Some(tensor) = &place.tensor {
            self.types += 1;
            let first = *self.shape.get_or_insert(&tensor.shape);
            self.lengths = self.lengths.join(first, &tensor.shape);
        }
    }

    /// The only dimension in which its tensors differ.
    pub(super) fn dimension(&self) -> Option<usize> {
        match self.lengths {
            Lengths::Of(dimension) => Some(dimension),
            Lengths::Equal | Lengths::Several => None,
        }
    }
}

impl Lengths {
    fn join(self, first: &[u64], other: &[u64]) -> Self {
        let mut differing = (0..first.len()).filter(|&at| first.get(at) != other.get(at));
        match (self, first.len() == other.len(), differing.next(), differing.next()) {
            (known, true, None, _) => known,
            (Self::Equal, true, Some(at), None) => Self::Of(at),
            (Self::Of(known), true, Some(at), None) if known == at => self,
            _ => Self::Several,
        }
    }
}

#[derive(Debug)]
pub(super) struct SiteSums<'a>(HashMap<(Space, usize, &'a str), SiteSum<'a>>);

impl<'a> SiteSums<'a> {
    /// Visits each place once.
    pub(super) fn of(places: impl IntoIterator<Item = &'a Place>) -> Self {
        let mut sums: HashMap<(Space, usize, &'a str), SiteSum<'a>> = HashMap::new();
        for place in places {
            sums.entry((place.space, place.stack, &place.scope)).or_default().add(place);
        }
        Self(sums)
    }

    pub(super) fn get(&self, space: Space, stack: usize, scope: &str) -> SiteSum<'a> {
        self.0.get(&(space, stack, scope)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::attribution::Tensor;

    #[test]
    fn calls_are_those_of_the_last_iteration_and_of_the_whole_body() {
        let place = |stack, last, last_calls| Place {
            space: Space::Host,
            stack,
            scope: "model".to_owned(),
            operation: None,
            tensor: None,
            calls: 10,
            bytes: 80,
            last_calls,
            last_bytes: 8,
            last,
        };
        let places =
            [place(0, 7, 2), place(0, 9, 3), place(1, 9, 5), place(0, 9, 4), place(0, 8, 6)];
        let sums = SiteSums::of(&places);
        let sum = sums.get(Space::Host, 0, "model");
        assert_eq!((sum.calls, sum.bytes, sum.last_calls), (40, 320, 7));
        assert_eq!(sums.get(Space::Host, 1, "model").last_calls, 5);
        assert_eq!(sums.get(Space::Host, 0, "other"), SiteSum::default());
        assert_eq!(sums.get(Space::HostSmall, 0, "model"), SiteSum::default());
    }

    #[test]
    fn the_dimension_of_a_cache_is_the_only_one_that_varies() {
        let place = |shape: &[u64]| Place {
            space: Space::Host,
            stack: 0,
            scope: String::new(),
            operation: None,
            tensor: Some(Tensor { shape: shape.to_vec(), dtype: "f32".to_owned() }),
            calls: 1,
            bytes: 4,
            last_calls: 1,
            last_bytes: 4,
            last: 1,
        };
        let sum = |shapes: &[&[u64]]| {
            let places: Vec<Place> = shapes.iter().map(|shape| place(shape)).collect();
            let sum = SiteSums::of(&places).get(Space::Host, 0, "");
            (sum.dimension(), sum.types)
        };
        assert_eq!(sum(&[&[1, 2, 64], &[1, 9, 64], &[1, 16, 64]]), (Some(1), 3));
        assert_eq!(sum(&[&[1, 2, 64]]), (None, 1));
        assert_eq!(sum(&[&[2, 2], &[3, 3]]), (None, 2));
        assert_eq!(sum(&[&[2, 2], &[3, 2], &[2, 3]]), (None, 3));
        assert_eq!(sum(&[&[2, 2], &[2, 2, 1]]), (None, 2));
    }
}
