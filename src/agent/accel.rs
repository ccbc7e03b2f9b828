//! What inference could run on: ONNX Runtime and CUDA, both opened at run time
//! and both optional, because the native backend is built in.

use super::kernel::Check;
use crate::trust;
use std::env;
use std::ffi::{c_char, c_int, c_void, CStr, CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The oldest whose API the `ort` crate is built for here.
const ORT_OLDEST: (u32, u32) = (1, 17);

/// Where to look for ONNX Runtime.
#[derive(Debug, Default)]
pub struct OrtSearch {
    /// `ORT_DYLIB_PATH`: if set, the only place.
    pub given: Option<PathBuf>,
    /// `${XDG_CACHE_HOME:-~/.cache}/scx_temponet`, filled by scripts/setup.sh.
    pub cache: Option<PathBuf>,
    pub system: Vec<PathBuf>,
}

impl OrtSearch {
    pub fn here() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let cache = set("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
        Self {
            given: set("ORT_DYLIB_PATH").map(PathBuf::from),
            cache: cache.map(|dir| dir.join("scx_temponet")),
            system: [
                "/usr/lib",
                "/usr/lib64",
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/local/lib",
            ]
            .map(PathBuf::from)
            .to_vec(),
        }
    }

    /// Libraries that are there, best first: what was asked for, else the
    /// cache (newest version first), else the system's.
    pub fn candidates(&self) -> Vec<PathBuf> {
        if let Some(given) = &self.given {
            return vec![given.clone()];
        }
        let mut found = Vec::new();
        let roots = self.cache.iter().flat_map(|cache| entries(cache));
        for root in roots.filter(|dir| starts_with(dir, "onnxruntime")) {
            // As unpacked by us (onnxruntime/VERSION/), by hand, or a release.
            found.extend(libraries(&root));
            let mut below = entries(&root);
            below.sort_by_key(|dir| std::cmp::Reverse(version(dir)));
            for dir in below {
                found.extend(libraries(&dir));
                found.extend(libraries(&dir.join("lib")));
            }
        }
        for dir in &self.system {
            found.extend(libraries(dir));
        }
        found
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()))
}

/// `libonnxruntime.so` or `.so.VERSION`, one per folder; not its providers.
fn libraries(dir: &Path) -> Option<PathBuf> {
    entries(dir)
        .into_iter()
        .find(|path| starts_with(path, "libonnxruntime.so") && path.is_file())
}

fn version(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Path and version of the ONNX Runtime that would be used. With sudo, HOME may be
/// somebody else's: their code is not run as root. The path has no links, so nobody can lead
/// it elsewhere before the library is opened.
pub fn find_onnxruntime(search: &OrtSearch) -> Result<Option<(PathBuf, String)>, String> {
    let mut last = None;
    for path in search.candidates() {
        let trusted = trust::unchangeable(&path).map_err(|e| e.to_string());
        match trusted.and_then(|path| Ok((onnxruntime_version(&path)?, path))) {
            Ok((version, path)) => return Ok(Some((path, version))),
            Err(e) => last = Some(format!("{} cannot be used: {e}", path.display())),
        }
    }
    last.map_or(Ok(None), Err)
}

pub fn check_onnxruntime(search: &OrtSearch) -> Check {
    const NAME: &str = "onnxruntime";
    const FIX: &str = "scripts/setup.sh fetches it; without it the built-in backend runs";
    match find_onnxruntime(search) {
        Ok(Some((path, version))) => {
            let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
            let known = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            if known < ORT_OLDEST {
                return Check::note(
                    NAME,
                    format!("{version} in {} is older than 1.17", path.display()),
                    FIX,
                );
            }
            Check::ok(NAME, format!("{version}, {}", path.display()))
        }
        Ok(None) => Check::note(NAME, "not found", FIX),
        Err(e) if search.given.is_some() => Check::note(
            NAME,
            e,
            "set ORT_DYLIB_PATH to libonnxruntime.so, or unset it",
        ),
        Err(e) => Check::note(NAME, e, FIX),
    }
}

/// `root` is where /dev is looked for.
pub fn check_cuda(root: &Path) -> Check {
    const NAME: &str = "cuda";
    let device_files = root.join("dev/nvidia0").exists();
    match cuda_devices() {
        Ok((devices @ 1.., driver)) => Check::ok(
            NAME,
            format!(
                "{devices} device{}, driver for CUDA {}.{}",
                if devices == 1 { "" } else { "s" },
                driver / 1000,
                driver % 1000 / 10
            ),
        ),
        Ok(_) if !device_files => Check::ok(NAME, "no device; inference runs on the CPU"),
        Ok(_) => Check::note(
            NAME,
            "there are NVIDIA device files, but the driver finds no device",
            "see what nvidia-smi says; inference runs on the CPU meanwhile",
        ),
        Err(_) if !device_files => Check::ok(NAME, "not present; inference runs on the CPU"),
        Err(e) => Check::note(
            NAME,
            format!("there are NVIDIA device files, but {e}"),
            "install the driver's libraries; inference runs on the CPU meanwhile",
        ),
    }
}

/// A library that stays open: closing ONNX Runtime or CUDA is not safe.
struct Library(*mut c_void);

impl Library {
    fn open(name: &CStr) -> Result<Self, String> {
        // SAFETY: name is a C string. The library's initialisers run, which is
        // why only libraries of trusted owners are opened by path.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: after a failure dlerror gives a C string.
            let why = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(why.to_string_lossy().into_owned());
        }
        Ok(Self(handle))
    }

    fn symbol(&self, name: &CStr) -> Result<*mut c_void, String> {
        // SAFETY: an open library and a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return Err(format!("it has no {}", name.to_string_lossy()));
        }
        Ok(symbol)
    }
}

/// The head of onnxruntime_c_api.h's OrtApiBase, unchanged since 1.0.
#[repr(C)]
struct OrtApiBase {
    get_api: extern "C" fn(u32) -> *const c_void,
    get_version_string: extern "C" fn() -> *const c_char,
}

fn onnxruntime_version(path: &Path) -> Result<String, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let library = Library::open(&name)?;
    let symbol = library.symbol(c"OrtGetApiBase")?;
    // SAFETY: the function of that name has had this type in every release.
    unsafe {
        let base: extern "C" fn() -> *const OrtApiBase = std::mem::transmute(symbol);
        let base = base();
        if base.is_null() {
            return Err("it has no API".into());
        }
        let version = ((*base).get_version_string)();
        if version.is_null() {
            return Err("it has no version".into());
        }
        Ok(CStr::from_ptr(version).to_string_lossy().into_owned())
    }
}

/// Number of devices and the CUDA version of the driver, as 1000 * major + 10 * minor.
fn cuda_devices() -> Result<(c_int, c_int), String> {
    let library = Library::open(c"libcuda.so.1")?;
    let (init, count, version) = (
        library.symbol(c"cuInit")?,
        library.symbol(c"cuDeviceGetCount")?,
        library.symbol(c"cuDriverGetVersion")?,
    );
    // SAFETY: the driver API's functions of these names have these types.
    unsafe {
        let init: extern "C" fn(u32) -> c_int = std::mem::transmute(init);
        let count: extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(count);
        let version: extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(version);
        let (mut devices, mut driver) = (0, 0);
        match init(0) {
            0 => {}
            // CUDA_ERROR_NO_DEVICE
            100 => return Ok((0, 0)),
            error => return Err(format!("cuInit fails with error {error}")),
        }
        if count(&mut devices) != 0 || version(&mut driver) != 0 {
            return Err("the driver does not answer".into());
        }
        Ok((devices, driver))
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Finding;
    use super::*;

    fn touch(dir: &Path, path: &str) -> PathBuf {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "not a library").unwrap();
        path
    }

    #[test]
    fn the_newest_cached_runtime_comes_before_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let old = touch(dir.path(), "onnxruntime/1.9.0/libonnxruntime.so");
        let new = touch(dir.path(), "onnxruntime/1.31.1/libonnxruntime.so");
        let release = touch(
            dir.path(),
            "onnxruntime-linux-x64-1.20.0/lib/libonnxruntime.so.1.20.0",
        );
        touch(
            dir.path(),
            "onnxruntime/1.31.1/libonnxruntime_providers_cuda.so",
        );
        touch(dir.path(), "kernels/libonnxruntime.so");
        let system = touch(dir.path(), "usr/libonnxruntime.so.1.15");
        let mut search = OrtSearch {
            given: None,
            cache: Some(dir.path().to_owned()),
            system: vec![dir.path().join("usr")],
        };
        assert_eq!(
            search.candidates()[..2],
            [new, old],
            "versions compare as numbers"
        );
        assert_eq!(search.candidates()[2..], [release.clone(), system]);
        search.given = Some("/elsewhere.so".into());
        assert_eq!(search.candidates(), [PathBuf::from("/elsewhere.so")]);
    }

    #[test]
    fn what_cannot_be_opened_is_a_note_and_not_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let search = OrtSearch {
            given: Some(dir.path().join("missing.so")),
            ..OrtSearch::default()
        };
        let check = check_onnxruntime(&search);
        assert_eq!(check.verdict, Finding::Note);
        assert!(check.fix.unwrap().contains("ORT_DYLIB_PATH"));
        touch(dir.path(), "onnxruntime/1.2.3/libonnxruntime.so");
        let search = OrtSearch {
            cache: Some(dir.path().to_owned()),
            ..OrtSearch::default()
        };
        let check = check_onnxruntime(&search);
        assert!(check.detail.contains("cannot be used"), "{check:?}");
        let nothing = check_onnxruntime(&OrtSearch::default());
        assert_eq!(nothing.detail, "not found");
    }

    #[test]
    fn a_library_that_another_user_could_replace_is_not_opened() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = touch(dir.path(), "open/libonnxruntime.so");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(path.parent().unwrap(), open).unwrap();
        let search = OrtSearch {
            given: Some(path),
            ..OrtSearch::default()
        };
        let said = find_onnxruntime(&search).unwrap_err();
        assert!(said.contains("open can be written by others"), "{said}");
    }

    #[test]
    fn a_library_without_the_api_is_said_so() {
        let libc = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"];
        if let Some(path) = libc.iter().map(Path::new).find(|p| p.exists()) {
            assert_eq!(
                onnxruntime_version(path),
                Err("it has no OrtGetApiBase".into())
            );
        }
    }
}
