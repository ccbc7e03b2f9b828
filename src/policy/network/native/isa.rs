//! The kernels, compiled for each kind of CPU, and which of them this one runs.

use super::bf16::{self, Bf16Matrix, Bf16Rows};
use super::int8::{self, Int8Matrix, Int8Rows};
use super::kernels::{self, Attention, Matrix, Norm, Rows, Scratch};
use super::lanes::{Plain, Sixteen};
use super::sparse;
use crate::policy::mitigation::SparsePlan;

/// Vector instructions that there are kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Plain,
    Avx2,
    Avx512,
    Avx512Vnni,
    /// The same, and tiles for bf16.
    Amx,
}

impl Isa {
    pub fn name(self) -> &'static str {
        match self {
            Isa::Plain => "plain",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
            Isa::Avx512Vnni => "AVX-512 VNNI",
            Isa::Amx => "AVX-512 VNNI and AMX",
        }
    }

    /// Those that this CPU has, the best last.
    pub fn here() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut found = vec![Isa::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Isa::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
            {
                found.push(Isa::Avx512);
                if is_x86_feature_detected!("avx512vnni") {
                    found.push(Isa::Avx512Vnni);
                    if super::amx::is_here() {
                        found.push(Isa::Amx);
                    }
                }
            }
        }
        found
    }
}

/// The steps of a forward pass. Made only for CPUs that can run them, which is
/// why its methods are safe.
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    isa: Isa,
    linear: unsafe fn(&Rows, &Matrix, &mut Rows),
    linear_relu: unsafe fn(&Rows, &Matrix, &mut Rows),
    int8: unsafe fn(&Rows, &Int8Matrix, &mut Int8Rows, &mut Rows),
    int8_relu: unsafe fn(&Rows, &Int8Matrix, &mut Int8Rows, &mut Rows),
    bf16: unsafe fn(&Rows, &Bf16Matrix, &mut Bf16Rows, &mut Rows, bool),
    add_norm: unsafe fn(&mut Rows, &Rows, &Norm),
    attend: unsafe fn(&Attention<'_>, &mut Scratch, &mut Rows),
    attend_sparse: unsafe fn(&Attention<'_>, &SparsePlan, &mut Scratch, &mut Rows),
    dot: unsafe fn(&Rows, &[Sixteen], f32, &mut Vec<f32>),
}

macro_rules! kernels {
    ($name:ident, $isa:expr, $lanes:ty $(, $features:literal)?) => {
        fn $name() -> Kernels {
            type L = $lanes;
            $(#[target_feature(enable = $features)])?
            unsafe fn linear(x: &Rows, w: &Matrix, out: &mut Rows) {
                kernels::linear::<L, false>(x, w, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn linear_relu(x: &Rows, w: &Matrix, out: &mut Rows) {
                kernels::linear::<L, true>(x, w, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn int8(x: &Rows, w: &Int8Matrix, narrow: &mut Int8Rows, out: &mut Rows) {
                int8::linear::<L, false>(x, w, narrow, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn int8_relu(x: &Rows, w: &Int8Matrix, narrow: &mut Int8Rows, out: &mut Rows) {
                int8::linear::<L, true>(x, w, narrow, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn bf16(
                x: &Rows,
                w: &Bf16Matrix,
                narrow: &mut Bf16Rows,
                out: &mut Rows,
                relu: bool,
            ) {
                bf16::linear(x, w, narrow, out, relu)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn add_norm(x: &mut Rows, y: &Rows, norm: &Norm) {
                kernels::add_norm::<L>(x, y, norm)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn attend(of: &Attention<'_>, scratch: &mut Scratch, out: &mut Rows) {
                kernels::attend::<L>(of, scratch, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn attend_sparse(
                of: &Attention<'_>,
                plan: &SparsePlan,
                scratch: &mut Scratch,
                out: &mut Rows,
            ) {
                sparse::attend::<L>(of, plan, scratch, out)
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn dot(x: &Rows, w: &[Sixteen], bias: f32, out: &mut Vec<f32>) {
                kernels::dot::<L>(x, w, bias, out)
            }
            Kernels {
                isa: $isa,
                linear,
                linear_relu,
                int8,
                int8_relu,
                bf16,
                add_norm,
                attend,
                attend_sparse,
                dot,
            }
        }
    };
}

kernels!(plain, Isa::Plain, Plain);
#[cfg(target_arch = "x86_64")]
kernels!(avx2, Isa::Avx2, super::x86::Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(
    avx512,
    Isa::Avx512,
    super::x86::Avx512<false>,
    "avx512f,avx512bw,avx512dq"
);
#[cfg(target_arch = "x86_64")]
kernels!(
    avx512_vnni,
    Isa::Avx512Vnni,
    super::x86::Avx512<true>,
    "avx512f,avx512bw,avx512dq,avx512vnni"
);

impl Kernels {
    /// None if this CPU cannot run them.
    pub fn new(isa: Isa) -> Option<Kernels> {
        if !Isa::here().contains(&isa) {
            return None;
        }
        Some(match isa {
            Isa::Plain => plain(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => avx512_vnni(),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Kernels {
                isa,
                bf16: super::amx::linear,
                ..avx512_vnni()
            },
            #[cfg(not(target_arch = "x86_64"))]
            _ => return None,
        })
    }

    pub fn best() -> Kernels {
        let best = Isa::here().last().copied().and_then(Kernels::new);
        best.unwrap_or_else(plain)
    }

    pub fn isa(&self) -> Isa {
        self.isa
    }

    pub fn linear(&self, x: &Rows, w: &Matrix, out: &mut Rows) {
        // SAFETY: new() has seen that the CPU has the instructions; so below.
        unsafe { (self.linear)(x, w, out) }
    }

    pub fn linear_relu(&self, x: &Rows, w: &Matrix, out: &mut Rows) {
        // SAFETY: see linear.
        unsafe { (self.linear_relu)(x, w, out) }
    }

    pub fn int8(&self, x: &Rows, w: &Int8Matrix, narrow: &mut Int8Rows, out: &mut Rows) {
        // SAFETY: see linear.
        unsafe { (self.int8)(x, w, narrow, out) }
    }

    pub fn int8_relu(&self, x: &Rows, w: &Int8Matrix, narrow: &mut Int8Rows, out: &mut Rows) {
        // SAFETY: see linear.
        unsafe { (self.int8_relu)(x, w, narrow, out) }
    }

    pub fn bf16(
        &self,
        x: &Rows,
        w: &Bf16Matrix,
        narrow: &mut Bf16Rows,
        out: &mut Rows,
        relu: bool,
    ) {
        // SAFETY: see linear.
        unsafe { (self.bf16)(x, w, narrow, out, relu) }
    }

    pub fn add_norm(&self, x: &mut Rows, y: &Rows, norm: &Norm) {
        // SAFETY: see linear.
        unsafe { (self.add_norm)(x, y, norm) }
    }

    pub fn attend(&self, of: &Attention<'_>, scratch: &mut Scratch, out: &mut Rows) {
        // SAFETY: see linear.
        unsafe { (self.attend)(of, scratch, out) }
    }

    pub fn attend_sparse(
        &self,
        of: &Attention<'_>,
        plan: &SparsePlan,
        scratch: &mut Scratch,
        out: &mut Rows,
    ) {
        // SAFETY: see linear.
        unsafe { (self.attend_sparse)(of, plan, scratch, out) }
    }

    pub fn dot(&self, x: &Rows, w: &[Sixteen], bias: f32, out: &mut Vec<f32>) {
        // SAFETY: see linear.
        unsafe { (self.dot)(x, w, bias, out) }
    }
}
