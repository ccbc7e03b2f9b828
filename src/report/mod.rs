//! Tables, timelines and pages. Knows data only: nothing here has heard of schedulers.

pub mod file;
pub mod html;
pub mod perfetto;
pub mod plot;
pub mod scatter;
pub mod table;
