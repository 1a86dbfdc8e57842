//! Caches that fill slowly, named programs, relations between programs, and the confusion matrix of all families.

mod accelerating;
mod caches;
mod figures;
mod matrix;
mod named;
mod relations;
mod time;
