//! What a sample is called, the same every time it is made.
//!
//! A run that is started again asks which of its samples are there already, and a yard recognises one that is
//! written twice: both by name. The name has the prompt in it, so that another data set is another sample.

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use crate::episode::Data;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Of whatever else makes two runs different: their name, their model, their sampling.
    salt: u64,
}

impl Naming {
    pub fn new(salt: &str) -> Self {
        Self { salt: xxh3_64(salt.as_bytes()) }
    }

    /// `part` counts the samples of one episode, of which there is usually one.
    pub fn uid(&self, task_id: u64, data: &Data, sample_idx: u32, part: usize) -> String {
        let hash = xxh3_128_with_seed(data.json().get().as_bytes(), self.salt ^ task_id);
        let part = if part == 0 { String::new() } else { format!(".{part}") };
        format!("{task_id}-{sample_idx}{part}-{:016x}", (hash >> 64) as u64)
    }

    /// The prompt's own id, or one made of its text: the same prompt is the same instance in every run.
    pub fn instance_id(data: &Data) -> String {
        match data.get("instance_id") {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) if !id.is_f64() => id.to_string(),
            _ => format!("prompt-{:016x}", xxh3_64(data.json().get().as_bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_one_name_and_no_other_has_it() {
        let data = |json: &str| Data::parse(json).unwrap();
        let (one, two) = (data(r#"{"prompt": "1+1"}"#), data(r#"{"prompt": "1+2"}"#));
        let naming = Naming::new("run a");
        let name = naming.uid(7, &one, 2, 0);
        assert_eq!(name, Naming::new("run a").uid(7, &one, 2, 0));
        for other in [
            Naming::new("run b").uid(7, &one, 2, 0),
            naming.uid(8, &one, 2, 0),
            naming.uid(7, &two, 2, 0),
            naming.uid(7, &one, 3, 0),
            naming.uid(7, &one, 2, 1),
        ] {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn an_instance_is_called_by_its_id_or_by_its_text() {
        for (json, expected) in [
            (r#"{"instance_id": "m_7", "prompt": "a"}"#, "m_7"),
            (r#"{"instance_id": 12}"#, "12"),
            (r#"{"instance_id": "", "prompt": "a"}"#, "prompt-"),
            (r#"{"prompt": "a"}"#, "prompt-"),
        ] {
            let id = Naming::instance_id(&Data::parse(json).unwrap());
            assert!(id == expected || id.strip_prefix(expected).is_some_and(|hash| hash.len() == 16), "{id}");
        }
    }
}
