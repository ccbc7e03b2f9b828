//! One file per subcommand.

pub mod sim;
