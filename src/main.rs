use std::process::ExitCode;

use scx_temponet::agent::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    scx_temponet::cli::run()
}
