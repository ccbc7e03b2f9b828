//! Matrix tiles of AMX. The instructions have no intrinsics in stable Rust, so
//! they are spelled out; the only place with assembler in it.

use super::bf16::{Bf16Matrix, Bf16Rows, STEP, TILE_ROWS};
use super::kernels::Rows;
use super::lanes::Sixteen;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Panels of outputs at once: one tile each, one for the rows, one for weights.
const GROUP: usize = 4;

/// Whether this CPU has bf16 tiles and the kernel lets this process use them.
pub fn is_here() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    *HERE.get_or_init(|| has_tiles() && may_use_tiles())
}

fn has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    const OSXSAVE: u32 = 1 << 27;
    /// Tile configuration and tile data, in what the kernel saves.
    const SAVED: u64 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    if features & BF16 == 0 || features & TILES == 0 {
        return false;
    }
    // SAFETY: OSXSAVE says that the instruction is there.
    unsafe { saved() & SAVED == SAVED }
}

#[target_feature(enable = "xsave")]
unsafe fn saved() -> u64 {
    _xgetbv(0)
}

/// Tiles are 8 KiB of state per thread, which the kernel saves only for those
/// who asked.
fn may_use_tiles() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: takes numbers, changes nothing but this permission.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_arch_prctl,
            ARCH_REQ_XCOMP_PERM,
            XFEATURE_XTILEDATA,
        )
    };
    refused == 0
}

/// What LDTILECFG reads: all tiles of sixteen rows of 64 bytes.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

const CONFIG: Config = {
    let mut config = Config {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        bytes: [0; 16],
        rows: [0; 16],
    };
    let mut tile = 0;
    while tile < GROUP + 2 {
        config.bytes[tile] = 64;
        config.rows[tile] = TILE_ROWS as u8;
        tile += 1;
    }
    config
};

/// `out = x · w + b`, cut off at zero with `relu`. [`super::bf16::linear`] says the
/// same.
///
/// # Safety
/// [`is_here`] must have said so.
pub unsafe fn linear(x: &Rows, w: &Bf16Matrix, rows: &mut Bf16Rows, out: &mut Rows, relu: bool) {
    out.resize(x.len());
    rows.take(x, w.inputs());
    rows.sums.resize(GROUP * TILE_ROWS, Sixteen::default());
    let steps = w.steps();
    asm!("ldtilecfg [{}]", in(reg) &CONFIG, options(nostack, readonly, preserves_flags));
    for first in (0..x.len()).step_by(TILE_ROWS) {
        for group in (0..w.panels()).step_by(GROUP) {
            let panels = group..w.panels().min(group + GROUP);
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nomem, nostack, preserves_flags)
            );
            for step in 0..steps {
                // In range: rows come in whole tiles, and each is whole steps long.
                let from = rows.rows_from(first, steps).as_ptr().add(step * STEP);
                asm!(
                    "tileloadd tmm4, [{from} + {stride}]",
                    from = in(reg) from,
                    stride = in(reg) 2 * STEP * steps,
                    options(nostack, readonly, preserves_flags)
                );
                for (place, panel) in panels.clone().enumerate() {
                    multiply(place, w.tiles(panel)[step].0.as_ptr().cast());
                }
            }
            let sums = rows.sums.as_mut_ptr();
            asm!(
                "tilestored [{to} + {stride}], tmm0",
                "tilestored [{to} + {stride} + 1024], tmm1",
                "tilestored [{to} + {stride} + 2048], tmm2",
                "tilestored [{to} + {stride} + 3072], tmm3",
                to = in(reg) sums,
                stride = in(reg) 64usize,
                options(nostack, preserves_flags)
            );
            for row in first..x.len().min(first + TILE_ROWS) {
                for (place, panel) in panels.clone().enumerate() {
                    let sums = &rows.sums[place * TILE_ROWS + row - first];
                    w.finish(panel, sums, relu, &mut out.row_mut(row)[panel]);
                }
            }
        }
    }
    // What is not in use need not be saved.
    asm!("tilerelease", options(nomem, nostack, preserves_flags));
}

/// Adds the rows in tile 4 times these weights to the sums of a panel.
#[inline(always)]
unsafe fn multiply(place: usize, weights: *const u16) {
    macro_rules! into {
        ($sums:literal) => {
            asm!(
                "tileloadd tmm5, [{from} + {stride}]",
                concat!("tdpbf16ps ", $sums, ", tmm4, tmm5"),
                from = in(reg) weights,
                stride = in(reg) 64usize,
                options(nostack, readonly, preserves_flags)
            )
        };
    }
    match place {
        0 => into!("tmm0"),
        1 => into!("tmm1"),
        2 => into!("tmm2"),
        _ => into!("tmm3"),
    }
}
