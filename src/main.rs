use std::process::ExitCode;

fn main() -> ExitCode {
    scx_temponet::cli::run()
}
