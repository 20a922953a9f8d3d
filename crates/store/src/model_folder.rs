//! Reads the files of a model that say how text becomes tokens.
//!
//! The core takes bytes and opens nothing; this is where the bytes come from. What the files mean, and which of
//! them wins, is the core's affair (`rollyard_core::tokens::config`).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rollyard_core::tokens::ModelFiles;
use thiserror::Error;

/// The files of one folder, as they are on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelFolder {
    pub tokenizer: Vec<u8>,
    pub tokenizer_config: Option<Vec<u8>>,
    pub special_tokens_map: Option<Vec<u8>>,
    pub chat_template: Option<String>,
    pub chat_template_json: Option<Vec<u8>>,
    /// Name and text of each, by name.
    pub additional_templates: Vec<(String, String)>,
}

impl ModelFolder {
    /// What the core's `ModelConfig::parse` takes.
    pub fn files(&self) -> ModelFiles<'_> {
        ModelFiles {
            tokenizer_config: self.tokenizer_config.as_deref(),
            special_tokens_map: self.special_tokens_map.as_deref(),
            chat_template: self.chat_template.as_deref(),
            additional_templates: &self.additional_templates,
            chat_template_json: self.chat_template_json.as_deref(),
        }
    }
}

#[derive(Debug, Error)]
pub enum ModelFolderError {
    #[error("there is no model folder here; give the folder that holds tokenizer.json: {}", .path.display())]
    NoFolder { path: PathBuf },
    #[error(
        "the model folder has no tokenizer.json; \
         save the model's fast tokenizer there with `tokenizer.save_pretrained`: {}", .path.display()
    )]
    NoTokenizer { path: PathBuf },
    #[error("the file is not UTF-8 text; save it as UTF-8: {}", .path.display())]
    NotText { path: PathBuf },
    #[error("cannot read ({source}): {}", .path.display())]
    Io { source: io::Error, path: PathBuf },
}

/// Reads all that is there. Only `tokenizer.json` has to be.
pub fn read(dir: &Path) -> Result<ModelFolder, ModelFolderError> {
    if !dir.is_dir() {
        return Err(ModelFolderError::NoFolder { path: dir.to_owned() });
    }
    let tokenizer = dir.join("tokenizer.json");
    Ok(ModelFolder {
        tokenizer: bytes(&tokenizer)?.ok_or(ModelFolderError::NoTokenizer { path: tokenizer })?,
        tokenizer_config: bytes(&dir.join("tokenizer_config.json"))?,
        special_tokens_map: bytes(&dir.join("special_tokens_map.json"))?,
        chat_template: text(&dir.join("chat_template.jinja"))?,
        chat_template_json: bytes(&dir.join("chat_template.json"))?,
        additional_templates: templates(&dir.join("additional_chat_templates"))?,
    })
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, ModelFolderError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ModelFolderError::Io { source, path: path.to_owned() }),
    }
}

fn text(path: &Path) -> Result<Option<String>, ModelFolderError> {
    let not_text = |_| ModelFolderError::NotText { path: path.to_owned() };
    bytes(path)?.map(|bytes| String::from_utf8(bytes).map_err(not_text)).transpose()
}

fn templates(dir: &Path) -> Result<Vec<(String, String)>, ModelFolderError> {
    let failed = |source: io::Error| ModelFolderError::Io { source, path: dir.to_owned() };
    let entries = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(name) = file.strip_suffix(".jinja")
            && let Some(text) = text(&path)?
        {
            found.push((name.to_owned(), text));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn every_file_is_read_and_what_is_missing_is_none() {
        let dir = folder(&[
            ("tokenizer.json", "{}"),
            ("chat_template.jinja", "hi"),
            ("additional_chat_templates/tool_use.jinja", "tools"),
            ("additional_chat_templates/rag.jinja", "docs"),
            ("additional_chat_templates/notes.txt", "no template"),
        ]);
        let read = read(dir.path()).unwrap();
        assert_eq!(read.tokenizer, b"{}");
        assert_eq!(read.tokenizer_config, None);
        assert_eq!(read.chat_template.as_deref(), Some("hi"));
        let names: Vec<_> = read.additional_templates.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["rag", "tool_use"]);
    }

    #[test]
    fn a_folder_without_a_tokenizer_is_refused_with_its_path() {
        let dir = folder(&[("tokenizer_config.json", "{}")]);
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no tokenizer.json") && error.ends_with("tokenizer.json"), "{error}");
    }

    #[test]
    fn a_missing_folder_is_refused_with_its_path() {
        let error = read(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.ends_with("/nowhere/at/all"), "{error}");
    }
}
