//! What reading and converting rt-app's files promises.

mod convert;
mod grammar;
mod idle_machine;
mod log;

use super::Workload;

/// A workload of these tasks, which run for as long as the test says.
fn tasks(text: &str) -> Workload {
    let whole = format!("{{\"tasks\": {{\n{text}\n}}}}");
    Workload::parse(whole.as_bytes()).expect("a workload")
}
