pub mod hint;
