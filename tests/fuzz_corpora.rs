//! What fuzzing came upon, tried again: the inputs in fuzz/corpora reached every piece of
//! code that ten minutes of each target did, and fuzz/checks says what must hold.

#[path = "../fuzz/checks/accounts.rs"]
mod accounts;
#[path = "../fuzz/checks/answers.rs"]
mod answers;
#[path = "../fuzz/checks/case.rs"]
mod case;
#[path = "../fuzz/checks/hint.rs"]
mod hint;
#[path = "../fuzz/checks/model.rs"]
mod model;
#[path = "../fuzz/checks/model_metadata.rs"]
mod model_metadata;
#[path = "../fuzz/checks/ring.rs"]
mod ring;
#[path = "../fuzz/checks/rtapp_log.rs"]
mod rtapp_log;
#[path = "../fuzz/checks/rtapp_workload.rs"]
mod rtapp_workload;
#[path = "../fuzz/checks/rules.rs"]
mod rules;
#[path = "../fuzz/checks/scrape.rs"]
mod scrape;
#[path = "../fuzz/checks/task_set.rs"]
mod task_set;

use std::path::Path;
use std::process::Command;

/// Unpacks a corpus and has every input checked; says which one failed.
fn try_all(target: &str, check: fn(&[u8])) {
    let folder = tempfile::tempdir().unwrap();
    let archive = Path::new("fuzz/corpora").join(format!("{target}.txz"));
    let unpacked = Command::new("tar")
        .arg("-xJf")
        .arg(&archive)
        .arg("-C")
        .arg(folder.path())
        .status();
    assert!(unpacked.unwrap().success(), "{}", archive.display());
    let mut tried = 0;
    for entry in std::fs::read_dir(folder.path().join(target)).unwrap() {
        let path = entry.unwrap().path();
        let input = std::fs::read(&path).unwrap();
        let outcome = std::panic::catch_unwind(|| check(&input));
        assert!(
            outcome.is_ok(),
            "{target}: {}",
            String::from_utf8_lossy(&input)
        );
        tried += 1;
    }
    assert!(tried > 100, "{tried} inputs");
}

macro_rules! again {
    ($($target:ident)*) => {
        mod again {$(
            #[test]
            fn $target() {
                super::try_all(stringify!($target), super::$target::check);
            }
        )*}
    };
}

again!(rules task_set rtapp_workload rtapp_log model model_metadata hint ring accounts answers case scrape);
