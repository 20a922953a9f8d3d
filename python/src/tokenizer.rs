//! A model's tokenizer and chat templates, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rollyard_core::tokens::Tokenizer as CoreTokenizer;
use rollyard_core::tokens::config::ModelFiles;
use rollyard_core::tokens::template::{ChatTemplate, Render};
use std::path::PathBuf;
use std::sync::Arc;

use crate::errors::{TemplateError, TokenizerError};
use crate::values::{messages_of, now, optional, variables};

/// Text to tokens and back, and conversations as the model's own template writes them.
#[pyclass(frozen, module = "rollyard")]
pub(crate) struct Tokenizer {
    pub(crate) inner: Arc<CoreTokenizer>,
    source: Source,
}

/// What it was made from, to be made again in another process.
enum Source {
    Dir(PathBuf),
    Files { tokenizer_json: String, tokenizer_config: String },
}

#[pymethods]
impl Tokenizer {
    /// Loads the files of a model's folder.
    #[staticmethod]
    fn from_pretrained(py: Python<'_>, dir: PathBuf) -> PyResult<Self> {
        let path = dir.clone();
        let inner = py.detach(|| {
            let folder = rollyard_store::model_folder::read(&path).map_err(|error| error.to_string())?;
            CoreTokenizer::new(&folder.tokenizer, folder.files())
                .map_err(|error| format!("{error} (in {})", path.display()))
        });
        let inner = Arc::new(inner.map_err(TokenizerError::new_err)?);
        // Another process may stand in another folder.
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        Ok(Self { inner, source: Source::Dir(dir) })
    }

    /// The same from the text of `tokenizer.json` and `tokenizer_config.json`.
    #[staticmethod]
    #[pyo3(
        signature = (tokenizer_json, tokenizer_config = String::from("{}")),
        text_signature = "(tokenizer_json, tokenizer_config='{}')"
    )]
    fn from_files(py: Python<'_>, tokenizer_json: String, tokenizer_config: String) -> PyResult<Self> {
        let files =
            ModelFiles { tokenizer_config: Some(tokenizer_config.as_bytes()), ..ModelFiles::default() };
        let inner = py.detach(|| CoreTokenizer::new(tokenizer_json.as_bytes(), files));
        let inner = Arc::new(inner.map_err(TokenizerError::of)?);
        Ok(Self { inner, source: Source::Files { tokenizer_json, tokenizer_config } })
    }

    #[pyo3(signature = (text, add_special_tokens = true))]
    fn encode(&self, py: Python<'_>, text: &str, add_special_tokens: bool) -> PyResult<Vec<u32>> {
        let encoder = self.inner.encoder();
        let ids = py.detach(|| {
            if add_special_tokens { encoder.encode_with_special(text) } else { encoder.encode(text) }
        });
        ids.map_err(TokenizerError::of)
    }

    #[pyo3(signature = (ids, skip_special_tokens = false))]
    fn decode(&self, py: Python<'_>, ids: Vec<u32>, skip_special_tokens: bool) -> PyResult<String> {
        py.detach(|| self.inner.encoder().decode(&ids, skip_special_tokens)).map_err(TokenizerError::of)
    }

    #[pyo3(signature = (
        messages, tools = None, add_generation_prompt = false, tokenize = true, *, documents = None,
        chat_template = None, continue_final_message = None, **kwargs
    ))]
    #[expect(clippy::too_many_arguments, reason = "the arguments that transformers has, by name in Python")]
    fn apply_chat_template<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        tools: Option<&Bound<'py, PyAny>>,
        add_generation_prompt: bool,
        tokenize: bool,
        documents: Option<&Bound<'py, PyAny>>,
        chat_template: Option<&str>,
        continue_final_message: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let messages = messages_of(messages)?;
        let (tools, documents) = (optional("tools", tools)?, optional("documents", documents)?);
        let kwargs = variables(kwargs)?;
        let field = continued_field(continue_final_message)?;
        let how = Render {
            tools: tools.as_ref(),
            documents: documents.as_ref(),
            add_generation_prompt,
            continue_final_message: field.as_deref(),
            now: Some(now(py)?),
            kwargs: &kwargs,
        };
        let text = py.detach(|| self.render(&messages, chat_template, &how))?;
        if !tokenize {
            return Ok(text.into_pyobject(py)?.into_any());
        }
        let ids = py.detach(|| self.inner.encoder().encode(&text)).map_err(TokenizerError::of)?;
        ids.into_pyobject(py)
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.encoder().token_to_id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.encoder().id_to_token(id)
    }

    /// Tokens that are found as a whole wherever they stand, and their ids.
    fn get_added_vocab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        for token in self.inner.encoder().added_tokens() {
            vocab.set_item(&token.content, token.id)?;
        }
        Ok(vocab)
    }

    /// The content of a special token by its name, such as `eos_token`.
    fn special_token(&self, name: &str) -> Option<String> {
        self.inner.config().special.get(name).map(str::to_owned)
    }

    #[getter]
    fn template_names(&self) -> Vec<String> {
        self.inner.config().template_names().map(str::to_owned).collect()
    }

    /// `fast`, or `tokenizers` with the reason why not.
    #[getter]
    fn path(&self) -> String {
        self.inner.encoder().path().to_string()
    }

    fn __len__(&self) -> usize {
        self.inner.encoder().vocab_size()
    }

    fn __repr__(&self) -> String {
        let encoder = self.inner.encoder();
        let source = match &self.source {
            Source::Dir(dir) => format!("{:?}, ", dir.display().to_string()),
            Source::Files { .. } => String::new(),
        };
        format!("Tokenizer({source}{} tokens, path={:?})", encoder.vocab_size(), encoder.path().to_string())
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, class) = (slf.py(), slf.get_type());
        Ok(match &slf.get().source {
            Source::Dir(dir) => (class.getattr("from_pretrained")?, (dir,).into_pyobject(py)?.into_any()),
            Source::Files { tokenizer_json, tokenizer_config } => {
                let files = (tokenizer_json, tokenizer_config).into_pyobject(py)?.into_any();
                (class.getattr("from_files")?, files)
            }
        })
    }
}

impl Tokenizer {
    /// By the model's own template, one of its others by name, or one given as text.
    fn render(
        &self,
        messages: &[rollyard_core::tokens::template::Message],
        chat_template: Option<&str>,
        how: &Render<'_>,
    ) -> PyResult<String> {
        let config = self.inner.config();
        let is_known = |name: &str| config.template_names().any(|known| known == name);
        let rendered = match chat_template {
            Some(source) if !is_known(source) => {
                let template = ChatTemplate::new("given", source, config.special.named());
                template.and_then(|template| template.render(messages, how)).map_err(TemplateError::of)?
            }
            name => {
                let template = config.template(name, how.tools.is_some()).map_err(TemplateError::of)?;
                template.render(messages, how).map_err(TemplateError::of)?
            }
        };
        Ok(rendered.text)
    }
}

/// `True` means the content; a string names another field.
fn continued_field(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    match given.extract::<bool>() {
        Ok(true) => Ok(Some("content".to_owned())),
        Ok(false) => Ok(None),
        Err(_) => given.extract().map(Some),
    }
}
