//! Tests that recipes of the justfile run once a week: they take long, or compile candle with other
//! features. Those of other modules are in a module `weekly` there.

mod candle_features;
pub(crate) mod candle_versions;
mod compilers;
mod estimated_flash_attention;
mod exactness;
mod projects;
mod real;
mod survey_versions;
