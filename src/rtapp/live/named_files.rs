//! What a workload names on this machine. rt-app runs as root in a live run, and opens it.

use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

use crate::rtapp::workload::{Placed, Setting, Workload};
use crate::trust;

/// What rt-app writes to where nobody says otherwise.
const NO_DEVICE: &str = "/dev/null";

/// The file that rt-app's `iorun` may write to. An error where the workload names a file or a
/// cgroup and nobody said that it may.
pub fn io_device(workload: &Workload, is_trusted: bool) -> Result<String> {
    let named = workload.global.io_device.as_ref();
    let named = named.filter(|named| named.value != NO_DEVICE);
    let devices = named.into_iter().map(|named| ("io_device", named));
    let groups = groups(workload).map(|group| ("taskgroup", group));
    if let (false, Some((key, named))) = (is_trusted, devices.chain(groups).next()) {
        bail!(
            "{}: {key} names {:?}, which rt-app would use with the rights of this command; \
             --trust-workload lets it, if you trust who wrote the workload",
            named.at,
            named.value
        );
    }
    let Some(named) = named else {
        return Ok(NO_DEVICE.into());
    };
    let path = Path::new(&named.value);
    ensure!(
        path.is_absolute(),
        "{}: io_device is no absolute path",
        named.at
    );
    let path = trust::irreplaceable(path)
        .with_context(|| format!("{}: io_device cannot be used", named.at))?;
    let path = path.to_str().context("io_device is no text")?;
    Ok(path.to_owned())
}

fn groups(workload: &Workload) -> impl Iterator<Item = &Placed<String>> {
    let settings = workload.threads.iter().flat_map(|thread| {
        let phases = thread.phases.iter().map(|phase| &phase.setting);
        std::iter::once(&thread.setting).chain(phases)
    });
    settings.filter_map(|setting: &Setting| setting.taskgroup.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, is_trusted: bool) -> Result<String, String> {
        let workload = Workload::parse(text.as_bytes()).unwrap();
        io_device(&workload, is_trusted).map_err(|why| format!("{why:#}"))
    }

    fn device(path: &str) -> String {
        format!(r#"{{"tasks": {{"t": {{"iorun": 9}}}}, "global": {{"io_device": "{path}"}}}}"#)
    }

    #[test]
    fn a_workload_names_no_file_and_no_cgroup_unless_it_is_trusted() {
        let said = asked(&device("/etc/shadow"), false).unwrap_err();
        assert!(
            said.starts_with("1:43: io_device names \"/etc/shadow\""),
            "{said}"
        );
        let group =
            r#"{"tasks": {"t": {"run": 1, "phases": {"p": {"taskgroup": "/g", "run": 1}}}}}"#;
        let said = asked(group, false).unwrap_err();
        assert!(said.contains("taskgroup names \"/g\""), "{said}");
        assert_eq!(asked(group, true).unwrap(), NO_DEVICE);
        for none in [r#"{"tasks": {"t": {"iorun": 9}}}"#, &device(NO_DEVICE)] {
            assert_eq!(asked(none, false).unwrap(), NO_DEVICE);
        }
    }

    #[test]
    fn a_trusted_workload_names_no_file_that_others_could_replace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        let text = device(file.to_str().unwrap());
        assert!(asked(&text, true).unwrap().ends_with("/disk"));
        std::os::unix::fs::symlink("/etc/shadow-not-there", &file).unwrap();
        asked(&text, true).unwrap_err();
        asked(&device("disk"), true).unwrap_err();
    }
}
