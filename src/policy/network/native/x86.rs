//! Sixteen lanes with AVX-512, or with AVX2 and FMA. The only place with
//! vector instructions in it.

use super::lanes::{Lanes, Sixteen, LANES};
use std::arch::x86_64::*;

/// AVX-512 F, BW and DQ, and the dot products of VNNI where there are some.
pub struct Avx512<const VNNI: bool>;

// SAFETY: callers have these instructions, says the trait.
unsafe impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    type Floats = __m512;
    type Sums = __m512i;
    const ROWS: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const Sixteen) -> __m512 {
        _mm512_load_ps(from.cast())
    }
    #[inline(always)]
    unsafe fn store(to: *mut Sixteen, value: __m512) {
        _mm512_store_ps(to.cast(), value)
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        _mm512_set1_ps(value)
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(a, b)
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        _mm512_sub_ps(a, b)
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        _mm512_mul_ps(a, b)
    }
    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        _mm512_fmadd_ps(a, b, c)
    }
    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        _mm512_max_ps(a, b)
    }
    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        _mm512_min_ps(a, b)
    }
    #[inline(always)]
    unsafe fn keep_where_ge(a: __m512, b: __m512, value: __m512) -> __m512 {
        _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b), value)
    }
    #[inline(always)]
    unsafe fn scale(a: __m512, power: __m512) -> __m512 {
        _mm512_scalef_ps(a, power)
    }
    #[inline(always)]
    unsafe fn sum(a: __m512) -> f32 {
        _mm512_reduce_add_ps(a)
    }
    #[inline(always)]
    unsafe fn no_sums() -> __m512i {
        _mm512_setzero_si512()
    }
    #[inline(always)]
    unsafe fn dot_pairs(sums: __m512i, a: i32, b: *const [i16; 2 * LANES]) -> __m512i {
        let (a, b) = (_mm512_set1_epi32(a), _mm512_loadu_si512(b.cast()));
        if VNNI {
            _mm512_dpwssd_epi32(sums, a, b)
        } else {
            _mm512_add_epi32(sums, _mm512_madd_epi16(a, b))
        }
    }
    #[inline(always)]
    unsafe fn to_floats(sums: __m512i) -> __m512 {
        _mm512_cvtepi32_ps(sums)
    }
}

/// AVX2 and FMA: two registers for sixteen lanes.
pub struct Avx2;

// SAFETY: callers have these instructions, says the trait.
unsafe impl Lanes for Avx2 {
    type Floats = [__m256; 2];
    type Sums = [__m256i; 2];
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const Sixteen) -> [__m256; 2] {
        let from: *const f32 = from.cast();
        [_mm256_load_ps(from), _mm256_load_ps(from.add(8))]
    }
    #[inline(always)]
    unsafe fn store(to: *mut Sixteen, value: [__m256; 2]) {
        let to: *mut f32 = to.cast();
        _mm256_store_ps(to, value[0]);
        _mm256_store_ps(to.add(8), value[1]);
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> [__m256; 2] {
        [_mm256_set1_ps(value); 2]
    }
    #[inline(always)]
    unsafe fn add(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
    }
    #[inline(always)]
    unsafe fn sub(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]
    }
    #[inline(always)]
    unsafe fn mul(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]
    }
    #[inline(always)]
    unsafe fn mul_add(a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
        [
            _mm256_fmadd_ps(a[0], b[0], c[0]),
            _mm256_fmadd_ps(a[1], b[1], c[1]),
        ]
    }
    #[inline(always)]
    unsafe fn max(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])]
    }
    #[inline(always)]
    unsafe fn min(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])]
    }
    #[inline(always)]
    unsafe fn keep_where_ge(a: [__m256; 2], b: [__m256; 2], value: [__m256; 2]) -> [__m256; 2] {
        [
            _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(a[0], b[0]), value[0]),
            _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(a[1], b[1]), value[1]),
        ]
    }
    #[inline(always)]
    unsafe fn scale(a: [__m256; 2], power: [__m256; 2]) -> [__m256; 2] {
        let bias = _mm256_set1_epi32(127);
        let scaled = |a, power| {
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), bias);
            _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent)))
        };
        [scaled(a[0], power[0]), scaled(a[1], power[1])]
    }
    #[inline(always)]
    unsafe fn sum(a: [__m256; 2]) -> f32 {
        let eight = _mm256_add_ps(a[0], a[1]);
        let four = _mm_add_ps(
            _mm256_castps256_ps128(eight),
            _mm256_extractf128_ps::<1>(eight),
        );
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
    #[inline(always)]
    unsafe fn no_sums() -> [__m256i; 2] {
        [_mm256_setzero_si256(); 2]
    }
    #[inline(always)]
    unsafe fn dot_pairs(sums: [__m256i; 2], a: i32, b: *const [i16; 2 * LANES]) -> [__m256i; 2] {
        let a = _mm256_set1_epi32(a);
        let b: *const __m256i = b.cast();
        let dot = |sums, b| _mm256_add_epi32(sums, _mm256_madd_epi16(a, _mm256_loadu_si256(b)));
        [dot(sums[0], b), dot(sums[1], b.add(1))]
    }
    #[inline(always)]
    unsafe fn to_floats(sums: [__m256i; 2]) -> [__m256; 2] {
        [_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])]
    }
}
