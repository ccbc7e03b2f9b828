use super::*;
use clap::Parser;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    hint: HintArgs,
}

fn understood(line: &str) -> Result<Action, Failure> {
    let words = std::iter::once("hint").chain(line.split_whitespace());
    action(&Program::try_parse_from(words).unwrap().hint)
}

fn refused(line: &str) -> String {
    let failure = understood(line).unwrap_err();
    assert_eq!(failure.status, 2, "{line}");
    assert!(!failure.sentence.contains('\n'), "{line}");
    failure.sentence
}

const MS: u64 = 1_000_000;

#[test]
fn the_deadline_is_the_period_unless_given() {
    let hint = Hint::new(10 * MS, 40 * MS, 40 * MS, 0).unwrap();
    assert_eq!(
        understood("--runtime 10ms --period 40ms --pid 1"),
        Ok(Action::Declare(1, hint))
    );
    let hint = Hint::new(10 * MS, 30 * MS, 40 * MS, 2).unwrap();
    assert_eq!(
        understood("--runtime 10ms --deadline 30ms --period 40ms --criticality 2 -- a -b"),
        Ok(Action::Start(vec!["a".into(), "-b".into()], hint))
    );
}

#[test]
fn every_mistake_is_one_sentence_and_status_2() {
    for (line, said) in [
        ("--runtime 10ms --period 0ms --pid 1", "the period is zero"),
        (
            "--runtime 50ms --deadline 40ms --period 40ms --pid 1",
            "does not fit",
        ),
        (
            "--runtime 10 --period 40ms --pid 1",
            "--runtime: `10` has no unit",
        ),
        ("--runtime 10ms --pid 1", "needs --runtime and --period"),
        ("--runtime 10ms --period 40ms", "--pid N, or a command"),
        ("--runtime 10ms --period 40ms --pid 1 -- true", "not both"),
        (
            "--runtime 10ms --period 40ms --pid x",
            "`x` is not a task id",
        ),
        (
            "--runtime 10ms --period 40ms --pid 2147483647",
            "no task has id",
        ),
        (
            "--runtime 10ms --period 40ms --pid 99999999999",
            "not a task id",
        ),
        (
            "--runtime 10ms --period 40ms --criticality high --pid 1",
            "is not 0, 1, 2 or 3",
        ),
        (
            "--runtime 10ms --period 40ms --threads -- true",
            "no threads yet",
        ),
        ("--show", "--show needs --pid"),
        ("--clear", "--clear needs --pid"),
        ("--show --clear --pid 1", "exclude each other"),
        ("--show --period 40ms --pid 1", "no declaration"),
        ("--json --pid 1", "goes with --show"),
        ("--suggest 2147483647", "no task has id"),
        ("--watch 2s --show", "--watch goes with --suggest"),
        ("--suggest x", "--suggest: `x` is not a task id"),
    ] {
        let sentence = refused(line);
        assert!(sentence.contains(said), "{line}: {sentence}");
    }
}

#[test]
fn a_suggestion_excludes_a_declaration() {
    assert_eq!(
        understood("--suggest 1 --watch 250ms"),
        Ok(Action::Suggest(1))
    );
    for line in ["--suggest 1 --pid 1", "--suggest 1 --period 4ms"] {
        let words = std::iter::once("hint").chain(line.split_whitespace());
        assert!(Program::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn a_missing_daemon_is_said_so() {
    let mut args = HintArgs {
        socket: "/nonexistent/hint.sock".into(),
        ..HintArgs::default()
    };
    args.show = true;
    let failure = perform(&args, Action::Show(1)).unwrap_err();
    assert_eq!(failure.status, 2);
    assert!(failure.sentence.starts_with("scx_temponet is not running"));
}

#[test]
fn limits_are_numbers_in_range() {
    assert_eq!(share("2.0"), Ok(2.0));
    for text in ["-1", "nan", "inf", "65", "x"] {
        assert!(share(text).is_err(), "{text}");
    }
}
