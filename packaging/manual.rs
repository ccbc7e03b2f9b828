//! Writes man pages and the shells' completions from the definition of the command line that
//! `--help` prints too. scripts/package.sh calls it.
//!
//!     manual FOLDER

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap_complete::Shell;
use scx_temponet::cli::command;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: manual FOLDER")?;
    write_all(&PathBuf::from(folder))
}

fn write_all(folder: &Path) -> Result<()> {
    let (pages, completions) = (folder.join("man"), folder.join("completions"));
    for folder in [&pages, &completions] {
        // What an older version had is not to stay.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    clap_mangen::generate_to(command(), &pages).context("cannot write the man pages")?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command(), "scx_temponet", &completions)
            .with_context(|| format!("cannot write the completions for {shell}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// As roff writes it: a hyphen that is no minus sign would be one in a copied command.
    fn has_option(page: &str, option: &str) -> bool {
        page.contains(&format!("\\-\\-{}\\f", option.replace('-', "\\-")))
    }

    fn assert_is_described(command: &Command, page: &str) {
        for argument in command.get_arguments() {
            let Some(option) = argument.get_long() else {
                continue;
            };
            assert_eq!(
                has_option(page, option),
                !argument.is_hide_set(),
                "--{option} in the page of {}",
                command.get_name()
            );
        }
    }

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path()).unwrap();
        let man = folder.path().join("man");
        assert_is_described(&command(), &read(man.join("scx_temponet.1")));
        let mut pages = 1;
        for part in command().get_subcommands() {
            let name = part.get_name();
            assert_is_described(part, &read(man.join(format!("scx_temponet-{name}.1"))));
            pages += 1;
        }
        assert!(pages > 10, "only {pages} pages");
        assert!(!read(man.join("scx_temponet.1")).contains("misbehave"));
    }

    #[test]
    fn three_shells_complete_commands_and_options() {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path()).unwrap();
        for file in ["scx_temponet.bash", "_scx_temponet", "scx_temponet.fish"] {
            let text = read(folder.path().join("completions").join(file));
            for word in ["doctor", "status", "monitor", "rules", "policy"] {
                assert!(text.contains(word), "{word} in {file}");
            }
        }
    }
}
