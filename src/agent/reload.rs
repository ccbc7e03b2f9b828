//! Keeps the scheduler loaded: again when the kernel asks for a restart, and
//! until it works where loading it again fails.

use std::time::Duration;

use anyhow::{Error, Result};
use log::{info, warn};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How one life of the BPF half went.
pub enum Life {
    NotLoaded(Error),
    /// It was loaded, and the kernel or the BPF half asked for a restart.
    Restart,
    /// It was loaded and is not to be loaded again.
    Over,
}

/// What came of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    Through,
    /// The daemon is to end.
    Stopped,
}

/// Lives until it is over. A failure of the first load is final: it is most likely a
/// mistake of whoever started the daemon. Later ones are tried again without limit, because
/// the declarations that the daemon holds would be lost with it.
pub fn keep_loaded(
    mut live: impl FnMut() -> Result<Life>,
    mut pause: impl FnMut(Duration) -> Paused,
) -> Result<()> {
    let mut was_loaded = false;
    let mut next_pause = FIRST_PAUSE;
    loop {
        match live()? {
            Life::Over => return Ok(()),
            Life::Restart => {
                was_loaded = true;
                next_pause = FIRST_PAUSE;
                info!("restarting: the machine's CPUs changed");
            }
            Life::NotLoaded(error) if !was_loaded => return Err(error),
            Life::NotLoaded(error) => {
                warn!("the scheduler could not be loaded again, next try in {next_pause:?}: {error:#}");
                if pause(next_pause) == Paused::Stopped {
                    return Ok(());
                }
                next_pause = (2 * next_pause).min(LONGEST_PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Life {
        Life::NotLoaded(Error::msg("no memory"))
    }

    /// The pauses it made, in milliseconds, while it had these lives.
    fn pauses_of(lives: Vec<Life>) -> (Result<()>, Vec<u128>) {
        let mut lives = lives.into_iter();
        let mut pauses = Vec::new();
        let result = keep_loaded(
            || Ok(lives.next().expect("a life too many")),
            |pause| {
                pauses.push(pause.as_millis());
                Paused::Through
            },
        );
        assert_eq!(lives.count(), 0, "it gave up too early");
        (result, pauses)
    }

    #[test]
    fn a_first_load_that_fails_is_final() {
        let (result, pauses) = pauses_of(vec![failure()]);
        assert_eq!(result.unwrap_err().to_string(), "no memory");
        assert!(pauses.is_empty());
    }

    #[test]
    fn a_later_load_is_tried_again_after_longer_and_longer_pauses() {
        let mut lives = vec![Life::Restart];
        lives.extend((0..9).map(|_| failure()));
        lives.push(Life::Over);
        let (result, pauses) = pauses_of(lives);
        assert!(result.is_ok());
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn pauses_begin_anew_once_it_was_loaded() {
        let lives = vec![
            Life::Restart,
            failure(),
            failure(),
            Life::Restart,
            failure(),
            Life::Over,
        ];
        let (result, pauses) = pauses_of(lives);
        assert!(result.is_ok());
        assert_eq!(pauses, [100, 200, 100]);
    }

    #[test]
    fn a_restart_that_works_takes_no_pause() {
        let (result, pauses) = pauses_of(vec![Life::Restart, Life::Restart, Life::Over]);
        assert!(result.is_ok());
        assert!(pauses.is_empty());
    }

    #[test]
    fn whoever_stops_the_daemon_in_a_pause_ends_it() {
        let mut lives = vec![Life::Restart, failure()].into_iter();
        let result = keep_loaded(
            || Ok(lives.next().expect("a life after the end")),
            |_| Paused::Stopped,
        );
        assert!(result.is_ok());
    }

    #[test]
    fn an_error_of_a_loaded_scheduler_ends_the_daemon() {
        let mut lives = vec![Ok(Life::Restart), Err(Error::msg("ejected"))].into_iter();
        let result = keep_loaded(
            || lives.next().expect("a life after the end"),
            |_| Paused::Through,
        );
        assert_eq!(result.unwrap_err().to_string(), "ejected");
    }
}
