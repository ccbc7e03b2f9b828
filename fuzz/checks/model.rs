//! A model file that anybody may have written: refused in a sentence, or a network
//! that comes back from its own file and scores without a panic.

use scx_temponet::policy::network::{GraphKind, Model, Native, Precision};

pub fn check(file: &[u8]) {
    let model = match Model::from_onnx(file) {
        Ok(model) => model,
        Err(error) => {
            assert!(error.to_string().len() < 10_000, "{error}");
            return;
        }
    };
    assert!(model.weights().values().iter().all(|w| w.is_finite()));
    let again = Model::from_onnx(&model.to_onnx(GraphKind::Multiset));
    let again = again.expect("its own file");
    assert!(again.tokenizer() == model.tokenizer() && again.weights() == model.weights());
    let tokenizer = model.tokenizer();
    let tokens: Vec<_> = (0..tokenizer.vocabulary().min(16))
        .map(|index| tokenizer.token_at(index))
        .collect();
    let counts = vec![u32::MAX; tokens.len()];
    for precision in [Precision::Float, Precision::Int8] {
        let mut native = Native::new(model.weights(), precision);
        assert_eq!(native.forward_rows(&tokens, &counts, 2).len(), tokens.len());
    }
}
