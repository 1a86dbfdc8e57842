//! The presentation: findings and profiles as text and in short forms.

pub mod by_line;
pub mod digest;
pub mod folded;
pub mod profile;
pub mod sizes;
pub mod text;
