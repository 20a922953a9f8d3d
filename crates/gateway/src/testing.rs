//! What the tests of several modules need.

use rollyard_core::tokens::{ModelFiles, Tokenizer};
use std::sync::Arc;

pub(crate) const CHATML: &str = include_str!("../../core/tests/fixtures/templates/chatml.jinja");
pub(crate) const THINKING: &str = include_str!("../../core/tests/fixtures/templates/chatml_think.jinja");
pub(crate) const LLAMA: &str = include_str!("../../core/tests/fixtures/templates/llama_like.jinja");
const CHATML_TOKENS: &[u8] = include_bytes!("../../core/tests/fixtures/tokens/chatml/tokenizer.json");
const LLAMA_TOKENS: &[u8] = include_bytes!("../../core/tests/fixtures/tokens/llama3/tokenizer.json");

pub(crate) fn tokenizer() -> Arc<Tokenizer> {
    with_template(CHATML)
}

pub(crate) fn with_template(template: &str) -> Arc<Tokenizer> {
    let tokens = if template == LLAMA { LLAMA_TOKENS } else { CHATML_TOKENS };
    // The template is like Llama's but for the names of its tokens.
    let named =
        [("<|start|>", "<|start_header_id|>"), ("<|sep|>", "<|end_header_id|>"), ("<|eot|>", "<|eot_id|>")];
    let template = named.iter().fold(template.to_owned(), |text, (from, to)| text.replace(from, to));
    let files = ModelFiles { chat_template: Some(&template), ..ModelFiles::default() };
    Arc::new(Tokenizer::new(tokens, files).unwrap())
}

pub(crate) fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<i32> {
    tokenizer.encoder().encode(text).unwrap().into_iter().map(|id| id as i32).collect()
}
