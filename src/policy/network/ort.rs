//! TempoNet in ONNX Runtime, which is opened at run time and may be absent.

use super::model::Model;
use super::onnx::GraphKind;
use super::ort_run::Runner;
use crate::policy::mitigation::SparsePlan;
use crate::policy::tokenizer::TokenSet;
use log::warn;
use ort::environment::Environment;
use ort::ep::CUDA;
use ort::logging::LogLevel;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::Session;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// What ONNX Runtime computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda,
}

#[derive(Debug, Error)]
pub enum OrtError {
    #[error("cannot open ONNX Runtime {}: {why}", .path.display())]
    Library { path: PathBuf, why: String },
    #[error("this process already runs the ONNX Runtime {}", .0.display())]
    Another(PathBuf),
    #[error("ONNX Runtime: {0}")]
    Runtime(#[from] ort::Error),
}

/// One thread, no spinning, nothing sent anywhere.
pub struct Ort {
    runner: Runner,
    device: Device,
    tokens: Vec<i64>,
    counts: Vec<f32>,
    q: Vec<f32>,
}

/// ONNX Runtime allows one environment per process; it is never given back.
static RUNTIME: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

fn environment(library: &Path) -> Result<Environment, OrtError> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((path, environment)) = &*runtime {
        if path != library {
            return Err(OrtError::Another(path.clone()));
        }
        return Ok(environment.clone());
    }
    // With a relative path, `ort` would look beside the executable.
    let absolute = library.canonicalize().map_err(|error| OrtError::Library {
        path: library.into(),
        why: error.to_string(),
    })?;
    let builder = ort::init_from(&absolute)
        .map_err(|error| error.to_string())
        .and_then(|builder| has_api(&absolute).map(|()| builder))
        .map_err(|why| OrtError::Library {
            path: library.into(),
            why,
        })?;
    let environment = builder
        .with_name(env!("CARGO_PKG_NAME"))
        .with_telemetry(false)
        .build()?;
    environment.set_log_level(LogLevel::Error);
    *runtime = Some((library.into(), environment.clone()));
    Ok(environment)
}

/// `ort` panics where a library says that it is new enough and has no such API.
fn has_api(library: &Path) -> Result<(), String> {
    let name = CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: C strings; the entry point is of the type that ONNX Runtime's header says,
    // and what it points to lives as long as the library, which nobody closes.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err("it cannot be opened".into());
        }
        let entry = libc::dlsym(handle, c"OrtGetApiBase".as_ptr());
        if entry.is_null() {
            return Err("it has no OrtGetApiBase".into());
        }
        type Entry = unsafe extern "C" fn() -> *const ort::sys::OrtApiBase;
        let base = std::mem::transmute::<*mut libc::c_void, Entry>(entry)();
        if base.is_null() || ((*base).GetApi)(ort::MINOR_VERSION).is_null() {
            return Err(format!("it has no API of version {}", ort::MINOR_VERSION));
        }
    }
    Ok(())
}

impl Ort {
    /// `library` is libonnxruntime.so, 1.17 or newer. Where CUDA is asked for
    /// and cannot be had, the CPU takes over with a warning.
    pub fn open(
        library: &Path,
        model: &Model,
        kind: GraphKind,
        device: Device,
    ) -> Result<Ort, OrtError> {
        let environment = environment(library)?;
        let file = model.to_onnx(kind);
        let opened = match device {
            Device::Cpu => None,
            Device::Cuda => match on_cuda(&environment, &file) {
                Ok(session) => Some(session),
                Err(error) => {
                    warn!("ONNX Runtime cannot use CUDA, the CPU takes over: {error}");
                    None
                }
            },
        };
        let device = if opened.is_some() {
            Device::Cuda
        } else {
            Device::Cpu
        };
        let session = match opened {
            Some(session) => session,
            None => builder(&environment)?.commit_from_memory(&file)?,
        };
        Ok(Ort {
            runner: Runner::new(session)?,
            device,
            tokens: Vec::new(),
            counts: Vec::new(),
            q: Vec::new(),
        })
    }

    /// Where it really runs.
    pub fn device(&self) -> Device {
        self.device
    }

    /// One Q per distinct token, idle first. For [`GraphKind::Multiset`].
    pub fn forward(&mut self, set: &TokenSet, cpus: usize) -> Result<&[f32], OrtError> {
        self.tokens.clear();
        self.tokens
            .extend(set.indices().iter().map(|&place| place as i64));
        self.counts.clear();
        self.counts
            .extend(set.counts().iter().map(|&count| count as f32));
        // Idle comes first, and stands for one per CPU.
        self.counts[0] = cpus.max(1) as f32;
        let dims = [1, self.tokens.len()];
        let tokens = self.runner.tensor(&self.tokens, &dims)?;
        let counts = self.runner.tensor(&self.counts, &dims)?;
        let rows = self.tokens.len();
        self.runner.run(&[&tokens, &counts], rows, &mut self.q)?;
        Ok(&self.q)
    }

    /// One Q per row, given as places in the vocabulary, idle among them once
    /// per CPU. For [`GraphKind::Dense`].
    pub fn forward_rows(&mut self, rows: impl Iterator<Item = u32>) -> Result<&[f32], OrtError> {
        self.tokens.clear();
        self.tokens.extend(rows.map(i64::from));
        let rows = self.tokens.len();
        let tokens = self.runner.tensor(&self.tokens, &[1, rows])?;
        self.runner.run(&[&tokens], rows, &mut self.q)?;
        Ok(&self.q)
    }
}

/// With the paper's sparse attention.
impl Ort {
    /// One Q per row, given as places in the vocabulary: idle, then the jobs in
    /// order of deadline. For [`GraphKind::Sparse`].
    pub fn forward_sparse(
        &mut self,
        rows: impl Iterator<Item = u32>,
        cpus: usize,
        plan: &SparsePlan,
    ) -> Result<&[f32], OrtError> {
        self.tokens.clear();
        self.tokens.extend(rows.map(i64::from));
        self.counts.clear();
        self.counts.resize(self.tokens.len(), 1.0);
        if let Some(idle) = self.counts.first_mut() {
            *idle = cpus.max(1) as f32;
        }
        let plan = [plan.chunk, plan.block, plan.keep].map(|size| size.max(1) as i64);
        let dims = [1, self.tokens.len()];
        let tokens = self.runner.tensor(&self.tokens, &dims)?;
        let counts = self.runner.tensor(&self.counts, &dims)?;
        let plan = self.runner.tensor(&plan, &[plan.len()])?;
        let rows = self.tokens.len();
        self.runner
            .run(&[&tokens, &counts, &plan], rows, &mut self.q)?;
        Ok(&self.q)
    }
}

fn builder(environment: &Environment) -> Result<SessionBuilder, OrtError> {
    let builder = Session::builder(environment)?
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(ort::Error::from)?
        .with_intra_threads(1)
        .map_err(ort::Error::from)?
        .with_inter_threads(1)
        .map_err(ort::Error::from)?
        .with_intra_op_spinning(false)
        .map_err(ort::Error::from)?
        .with_inter_op_spinning(false)
        .map_err(ort::Error::from)?
        .with_log_level(LogLevel::Error)
        .map_err(ort::Error::from)?;
    Ok(builder)
}

fn on_cuda(environment: &Environment, file: &[u8]) -> Result<Session, OrtError> {
    let cuda = CUDA::default().build().error_on_failure();
    let mut builder = builder(environment)?
        .with_execution_providers([cuda])
        .map_err(ort::Error::from)?;
    Ok(builder.commit_from_memory(file)?)
}
