//! Finds the exact law behind sizes and figures.
//!
//! The sizes of a test's cases form a grid: all combinations of some values. Exactly one polynomial
//! goes through all points of a grid if the power of each size must be lower than the number of its
//! values. Divided differences find it, one size after the other. The polynomial is a law if every
//! size has at least one value more than its power needs, because the additional points then
//! confirm it. No number is rounded.

use std::collections::{BTreeMap, BTreeSet};

use super::order::MOST;
use super::{Fraction, Law, Monomial, Order, Sizes};

/// A figure at some sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The value of every size, by name.
    pub at: Sizes,
    /// The figure at these sizes.
    pub value: u64,
}

/// The reason why no law was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLaw {
    /// A combination of the sizes is missing, or one occurs twice.
    Incomplete {
        /// Number of different combinations that were given.
        given: usize,
        /// Number of combinations that the sizes have.
        expected: usize,
    },
    /// No polynomial with whole powers goes through the points.
    Uneven {
        /// The order of growth at the largest sizes, estimated from the last steps.
        about: Order,
        /// The sizes with too few values to confirm a law of this order, and the number of their
        /// values.
        few: Sizes,
    },
}

/// Finds the law of these points.
///
/// If no law goes through all points, the function searches for one that goes through the larger
/// sizes. A peak can move to another moment once the sizes are large enough. The law contains the
/// smallest sizes for which it holds.
///
/// # Errors
/// If no law was found.
pub fn find(points: &[Point]) -> Result<Law, NoLaw> {
    let grid = Grid::from_points(points)?;
    for left_out in grid.ways_to_leave_out() {
        if let Some(law) = grid.without(&left_out).law() {
            let from = grid.axes.iter().zip(&left_out).filter(|(_, count)| **count > 0);
            let from = from.map(|(axis, &count)| (axis.size.clone(), axis.values[count])).collect();
            return Ok(Law { from, ..law });
        }
    }
    let about = grid.estimate_order();
    let few = grid.sizes_with_too_few_values(&about);
    Err(NoLaw::Uneven { about, few })
}

/// One size and its values in ascending order.
#[derive(Debug, Clone)]
struct Axis {
    size: String,
    values: Vec<u64>,
}

/// Figures at all combinations of sizes. Figures that differ in the last size only are adjacent.
#[derive(Debug, Clone)]
struct Grid {
    axes: Vec<Axis>,
    figures: Vec<Fraction>,
}

impl Grid {
    fn from_points(points: &[Point]) -> Result<Self, NoLaw> {
        let names: BTreeSet<&String> = points.iter().flat_map(|point| point.at.keys()).collect();
        let axes: Vec<Axis> = names
            .into_iter()
            .map(|size| {
                let values: BTreeSet<u64> =
                    points.iter().filter_map(|point| point.at.get(size).copied()).collect();
                Axis { size: size.clone(), values: values.into_iter().collect() }
            })
            .collect();
        let by_place: BTreeMap<&Sizes, u64> =
            points.iter().map(|point| (&point.at, point.value)).collect();
        let expected = axes.iter().map(|axis| axis.values.len()).product();
        let mut places: Vec<Sizes> = vec![Sizes::new()];
        for Axis { size, values } in &axes {
            let at = |place: &Sizes, value| {
                let mut place = place.clone();
                place.insert(size.clone(), value);
                place
            };
            places = places
                .iter()
                .flat_map(|place| values.iter().map(move |&value| at(place, value)))
                .collect();
        }
        let figures: Option<Vec<Fraction>> =
            places.iter().map(|place| by_place.get(place).copied().map(Fraction::whole)).collect();
        match figures {
            Some(figures) if points.len() == expected && expected > 0 => Ok(Self { axes, figures }),
            _ => Err(NoLaw::Incomplete { given: by_place.len(), expected }),
        }
    }

    /// Returns the numbers of smallest values that can be left out of each size, the fewest first.
    /// At least three values of each size must remain, if it has so many, because two always lie on a
    /// straight line.
    fn ways_to_leave_out(&self) -> Vec<Vec<usize>> {
        let mut ways: Vec<Vec<usize>> = vec![Vec::new()];
        for axis in &self.axes {
            let most = axis.values.len().saturating_sub(3);
            ways = ways
                .iter()
                .flat_map(|way| (0..=most).map(move |count| [way.as_slice(), &[count]].concat()))
                .collect();
        }
        ways.sort_by_key(|way| way.iter().sum::<usize>());
        ways
    }

    fn without(&self, left_out: &[usize]) -> Self {
        let lengths: Vec<usize> = self.axes.iter().map(|axis| axis.values.len()).collect();
        let stays = |index: usize| {
            place(index, &lengths).iter().zip(left_out).all(|(at, count)| at >= count)
        };
        let axes = self.axes.iter().zip(left_out);
        Self {
            axes: axes
                .map(|(axis, &count)| Axis {
                    size: axis.size.clone(),
                    values: axis.values[count..].to_vec(),
                })
                .collect(),
            figures: (0..self.figures.len())
                .filter(|&index| stays(index))
                .map(|index| self.figures[index])
                .collect(),
        }
    }

    /// Returns the law through all points, if there is one.
    fn law(&self) -> Option<Law> {
        let lengths: Vec<usize> = self.axes.iter().map(|axis| axis.values.len()).collect();
        let mut coefficients = self.figures.clone();
        for (number, axis) in self.axes.iter().enumerate() {
            let stride: usize = lengths[number + 1..].iter().product();
            let length = lengths[number];
            for start in (0..coefficients.len()).filter(|i| (i / stride).is_multiple_of(length)) {
                let at = |k: usize| start + k * stride;
                let line: Vec<Fraction> = (0..length).map(|k| coefficients[at(k)]).collect();
                for (k, coefficient) in polynomial(&axis.values, &line)?.into_iter().enumerate() {
                    coefficients[at(k)] = coefficient;
                }
            }
        }
        let terms = coefficients.into_iter().enumerate().filter(|(_, value)| !value.is_zero());
        let terms = terms.map(|(index, coefficient)| {
            let powers = place(index, &lengths);
            let powers = self
                .axes
                .iter()
                .zip(powers)
                .map(|(axis, power)| Some((axis.size.clone(), u32::try_from(power).ok()?)));
            Some((Monomial::new(powers.collect::<Option<Vec<_>>>()?), coefficient))
        });
        Some(Law { terms: terms.collect::<Option<_>>()?, from: Sizes::new() })
    }

    /// Returns the sizes with too few values for this order, each with its number of values. A law
    /// must be confirmed by one value more than it needs, and its power counts as at least 1.
    fn sizes_with_too_few_values(&self, order: &Order) -> Sizes {
        let has_few =
            |axis: &&Axis| axis.values.len() < order.power(&axis.size).max(1) as usize + 2;
        let few = self.axes.iter().filter(has_few);
        few.map(|axis| (axis.size.clone(), axis.values.len() as u64)).collect()
    }

    /// Estimates the power of each size from its last three values, or from both values of a size
    /// that has only two.
    fn estimate_order(&self) -> Order {
        let lengths: Vec<usize> = self.axes.iter().map(|axis| axis.values.len()).collect();
        let mut powers = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
            let stride: usize = lengths[number + 1..].iter().product();
            let length = lengths[number];
            let power_at = |i: usize| {
                let figure = |back: usize| self.figures[i - back * stride].numerator() as f64;
                match axis.values[..] {
                    [.., x, y, z] => power_of_two_steps(
                        [x, y, z].map(|x| x as f64),
                        [figure(2), figure(1), figure(0)],
                    ),
                    [x, y] => power_of_step([x, y].map(|x| x as f64), [figure(1), figure(0)]),
                    _ => 0,
                }
            };
            let ends = (0..self.figures.len()).filter(|i| (i / stride) % length == length - 1);
            let steepest = ends.map(power_at).max();
            powers.push((axis.size.clone(), steepest.unwrap_or(0)));
        }
        Order::of_sum([Monomial::new(powers)])
    }
}

/// Returns the place of a figure on each axis.
fn place(index: usize, lengths: &[usize]) -> Vec<usize> {
    let mut rest = index;
    let mut place: Vec<usize> = lengths
        .iter()
        .rev()
        .map(|length| {
            let at = rest % length;
            rest /= length;
            at
        })
        .collect();
    place.reverse();
    place
}

/// Returns the coefficients of the polynomial through these points, beginning with that of power 0.
/// There are as many coefficients as points. The result is `None` unless at least one point remains
/// to confirm the polynomial.
fn polynomial(at: &[u64], figures: &[Fraction]) -> Option<Vec<Fraction>> {
    let at: Vec<Fraction> = at.iter().copied().map(Fraction::whole).collect();
    // Newton's form: after each level, `newton[level]` is the divided difference over the first
    // `level` + 1 points.
    let mut newton = figures.to_vec();
    for level in 1..newton.len() {
        for i in (level..newton.len()).rev() {
            let rise = newton[i].minus(newton[i - 1])?;
            newton[i] = rise.over(at[i].minus(at[i - level])?)?;
        }
    }
    let degree = newton.iter().rposition(|difference| !difference.is_zero()).unwrap_or(0);
    if degree > MOST as usize || degree + 2 > newton.len() {
        return None;
    }
    // Multiplies Newton's form out, from the innermost bracket.
    let mut coefficients = vec![Fraction::ZERO; newton.len()];
    for k in (0..=degree).rev() {
        for i in (0..=degree).rev() {
            let lower = if i == 0 { Fraction::ZERO } else { coefficients[i - 1] };
            coefficients[i] = lower.minus(coefficients[i].times(at[k])?)?;
        }
        coefficients[0] = coefficients[0].plus(newton[k])?;
    }
    Some(coefficients)
}

/// Returns the power by which the whole figure has grown in one step. A constant part, such as
/// weights, hides how fast the rest grows. The power is therefore at least 1 if the figure rises.
fn power_of_step(x: [f64; 2], y: [f64; 2]) -> u32 {
    if y[1] <= y[0] {
        return 0;
    }
    nearest_power(y[1] / y[0].max(1.0), |power| libm::pow(x[1] / x[0].max(1.0), f64::from(power)))
        .max(1)
}

/// Returns the power for which `factor_of_power` is nearest to `steps`.
fn nearest_power(steps: f64, factor_of_power: impl Fn(u32) -> f64) -> u32 {
    let distance = |power: &u32| (libm::log(steps) - libm::log(factor_of_power(*power))).abs();
    let nearer = |a: &u32, b: &u32| distance(a).total_cmp(&distance(b));
    (0..=MOST).min_by(nearer).unwrap_or(MOST)
}

/// Returns the power whose steps between three sizes are most similar to these.
fn power_of_two_steps(x: [f64; 3], y: [f64; 3]) -> u32 {
    let [first, second] = [y[1] - y[0], y[2] - y[1]];
    if second <= 0.0 {
        return 0;
    }
    // The figure was flat before the last step, so the growth of the whole figure in that step
    // decides.
    let (steps, factor_of_power): (f64, &dyn Fn(u32) -> f64) = if first <= 0.0 {
        (y[2] / y[1].max(1.0), &|power| libm::pow(x[2] / x[1].max(1.0), f64::from(power)))
    } else {
        (second / first, &|power| {
            let at = x.map(|x| match power {
                // Power 0 stands for growth that is slower than any power.
                0 => libm::log(x + 1.0),
                power => libm::pow(x, f64::from(power)),
            });
            (at[2] - at[1]) / (at[1] - at[0])
        })
    };
    nearest_power(steps, factor_of_power)
}
