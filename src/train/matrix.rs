//! Products of small dense matrices, row-major.

/// How the left or the right matrix is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Plain,
    Transposed,
}

/// out[n, c] += x[n, k] · w[k, c].
pub fn add_product(x: &[f32], w: &[f32], out: &mut [f32], k: usize, c: usize) {
    let n = x.len() / k;
    gemm((x, Read::Plain), (w, Read::Plain), out, (n, k, c));
}

/// out[k, c] += x[n, k]ᵀ · y[n, c]: the gradient of a weight matrix.
pub fn add_left_transposed(x: &[f32], y: &[f32], out: &mut [f32], k: usize, c: usize) {
    let n = x.len() / k;
    gemm((x, Read::Transposed), (y, Read::Plain), out, (k, n, c));
}

/// out[n, k] += y[n, c] · w[k, c]ᵀ: the gradient of what went in.
pub fn add_right_transposed(y: &[f32], w: &[f32], out: &mut [f32], k: usize, c: usize) {
    let n = y.len() / c;
    gemm((y, Read::Plain), (w, Read::Transposed), out, (n, c, k));
}

/// out[rows, columns] += a[rows, inner] · b[inner, columns], each as read.
fn gemm(
    (a, read_a): (&[f32], Read),
    (b, read_b): (&[f32], Read),
    out: &mut [f32],
    (rows, inner, columns): (usize, usize, usize),
) {
    assert_eq!(a.len(), rows * inner);
    assert_eq!(b.len(), inner * columns);
    assert_eq!(out.len(), rows * columns);
    let strides = |read, rows: usize, columns: usize| match read {
        Read::Plain => (columns as isize, 1),
        Read::Transposed => (1, rows as isize),
    };
    let (a_row, a_column) = strides(read_a, rows, inner);
    let (b_row, b_column) = strides(read_b, inner, columns);
    // SAFETY: the lengths asserted above are those of the three matrices, the
    // strides stay inside them, and `out` is borrowed alone.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            inner,
            columns,
            1.0,
            a.as_ptr(),
            a_row,
            a_column,
            b.as_ptr(),
            b_row,
            b_column,
            1.0,
            out.as_mut_ptr(),
            columns as isize,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_add_to_what_is_there() {
        // x = [1 2; 3 4; 5 6], w = [1 0 2; 0 1 1]
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let w = [1.0, 0.0, 2.0, 0.0, 1.0, 1.0];
        let mut y = [1.0; 9];
        add_product(&x, &w, &mut y, 2, 3);
        assert_eq!(y, [2.0, 3.0, 5.0, 4.0, 5.0, 11.0, 6.0, 7.0, 17.0]);
        let y = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let mut dw = [0.0; 6];
        add_left_transposed(&x, &y, &mut dw, 2, 3);
        assert_eq!(dw, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let mut dx = [0.0; 6];
        add_right_transposed(&y, &w, &mut dx, 2, 3);
        assert_eq!(dx, [1.0, 0.0, 0.0, 1.0, 2.0, 1.0]);
    }
}
