//! Tables and traces. Knows data only: nothing here has heard of schedulers.

pub mod perfetto;
pub mod table;
