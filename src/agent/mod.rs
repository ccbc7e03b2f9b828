pub mod hint;
pub mod rules;
