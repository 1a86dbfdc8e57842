//! Named programs, relations between programs, and the confusion matrix of all families.

mod figures;
mod matrix;
mod named;
mod relations;
