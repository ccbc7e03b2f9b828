//! Sixteen floats at a time: what the kernels need of a CPU, and the plain
//! form of it that every CPU has.

/// Memory for sixteen lanes, aligned so that no load crosses a cache line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Sixteen(pub [f32; LANES]);

pub const LANES: usize = 16;

/// The same memory as single numbers.
pub fn flat(blocks: &[Sixteen]) -> &[f32] {
    // SAFETY: Sixteen is LANES floats without padding.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * LANES) }
}

pub fn flat_mut(blocks: &mut [Sixteen]) -> &mut [f32] {
    // SAFETY: as in flat, and the borrow is unique.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * LANES) }
}

/// Blocks of LANES that hold so many numbers.
pub const fn panels(numbers: usize) -> usize {
    numbers.div_ceil(LANES)
}

/// A row of numbers, filled up with zeros.
pub fn padded(numbers: &[f32]) -> Vec<Sixteen> {
    let mut blocks = vec![Sixteen::default(); panels(numbers.len())];
    flat_mut(&mut blocks)[..numbers.len()].copy_from_slice(numbers);
    blocks
}

/// Arithmetic on sixteen lanes.
///
/// # Safety
/// Every function may be called only on a CPU that has the instructions the
/// implementation is made of, from code compiled for them.
#[allow(dead_code)]
pub unsafe trait Lanes {
    type Floats: Copy;
    /// Sixteen sums of integer products.
    type Sums: Copy;
    /// Rows that the matrix kernels hold in registers at once.
    const ROWS: usize;

    unsafe fn load(from: *const Sixteen) -> Self::Floats;
    unsafe fn store(to: *mut Sixteen, value: Self::Floats);
    unsafe fn splat(value: f32) -> Self::Floats;
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a * b + c, in one rounding where the CPU does that at no cost.
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn min(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `value` where a >= b, else 0.
    unsafe fn keep_where_ge(a: Self::Floats, b: Self::Floats, value: Self::Floats) -> Self::Floats;
    /// a * 2^power for whole powers from -126 to 127.
    unsafe fn scale(a: Self::Floats, power: Self::Floats) -> Self::Floats;
    unsafe fn sum(a: Self::Floats) -> f32;

    unsafe fn no_sums() -> Self::Sums;
    /// Adds a[0] * b[2i] + a[1] * b[2i + 1] to lane i, exactly. `a` are two
    /// i16 in one number, `b` points at 32 of them.
    unsafe fn dot_pairs(sums: Self::Sums, a: i32, b: *const [i16; 2 * LANES]) -> Self::Sums;
    unsafe fn to_floats(sums: Self::Sums) -> Self::Floats;

    /// e^a for a <= 0, within two units in the last place; below -87 it stays
    /// where it is there, at 1e-38.
    #[inline(always)]
    unsafe fn exp(a: Self::Floats) -> Self::Floats {
        const LOG2_E: f32 = std::f32::consts::LOG2_E;
        /// Adding it leaves no room for a fraction: rounds to the nearest.
        const ROUND: f32 = 12_582_912.0;
        /// ln 2 in two parts, the first with zeros at its end.
        const LN2_HIGH: f32 = 0.693_359_4;
        const LN2_LOW: f32 = -2.121_944_4e-4;
        /// Cephes' expf.
        const TERMS: [f32; 6] = [
            1.987_569_1e-4,
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            0.5,
        ];
        let a = Self::max(a, Self::splat(-87.0));
        let round = Self::splat(ROUND);
        let shifted = Self::mul_add(a, Self::splat(LOG2_E), round);
        let power = Self::sub(shifted, round);
        let rest = Self::mul_add(power, Self::splat(-LN2_HIGH), a);
        let rest = Self::mul_add(power, Self::splat(-LN2_LOW), rest);
        let mut series = Self::splat(TERMS[0]);
        for term in &TERMS[1..] {
            series = Self::mul_add(series, rest, Self::splat(*term));
        }
        let above_one = Self::mul_add(Self::mul(rest, rest), series, rest);
        Self::scale(Self::add(above_one, Self::splat(1.0)), power)
    }
}

/// No instruction beyond what the program was compiled for.
pub struct Plain;

#[inline(always)]
fn map(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

// SAFETY: made of nothing but what the compiler may use anyway.
unsafe impl Lanes for Plain {
    type Floats = [f32; LANES];
    type Sums = [i32; LANES];
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn load(from: *const Sixteen) -> [f32; LANES] {
        (*from).0
    }
    #[inline(always)]
    unsafe fn store(to: *mut Sixteen, value: [f32; LANES]) {
        (*to).0 = value;
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; LANES] {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn add(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        map(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        map(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        map(a, b, |a, b| a * b)
    }
    // Two roundings: f32::mul_add would call a library on CPUs without it.
    #[inline(always)]
    unsafe fn mul_add(a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn max(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        map(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        map(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn keep_where_ge(a: [f32; LANES], b: [f32; LANES], value: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| if a[i] >= b[i] { value[i] } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn scale(a: [f32; LANES], power: [f32; LANES]) -> [f32; LANES] {
        map(a, power, |a, power| {
            a * f32::from_bits(((power as i32 + 127) as u32) << 23)
        })
    }
    #[inline(always)]
    unsafe fn sum(a: [f32; LANES]) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|i| a[i] + a[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
    #[inline(always)]
    unsafe fn no_sums() -> [i32; LANES] {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn dot_pairs(sums: [i32; LANES], a: i32, b: *const [i16; 2 * LANES]) -> [i32; LANES] {
        let (low, high) = (a as i16 as i32, a >> 16);
        let b = &*b;
        std::array::from_fn(|i| sums[i] + low * b[2 * i] as i32 + high * b[2 * i + 1] as i32)
    }
    #[inline(always)]
    unsafe fn to_floats(sums: [i32; LANES]) -> [f32; LANES] {
        sums.map(|sum| sum as f32)
    }
}
