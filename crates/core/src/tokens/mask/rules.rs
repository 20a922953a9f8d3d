//! The mask types by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Auto, DistillQwen, MaskError, MaskRule, Qwen, Qwen3, Qwen35};

/// Known mask types: ours, and those that were registered.
#[derive(Clone)]
pub struct MaskRules {
    rules: BTreeMap<String, Arc<dyn MaskRule>>,
}

impl Default for MaskRules {
    fn default() -> Self {
        let ours: [(&str, Arc<dyn MaskRule>); 5] = [
            ("auto", Arc::new(Auto)),
            ("distill_qwen", Arc::new(DistillQwen)),
            ("qwen", Arc::new(Qwen)),
            ("qwen3", Arc::new(Qwen3)),
            ("qwen3_5", Arc::new(Qwen35)),
        ];
        Self { rules: ours.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect() }
    }
}

impl MaskRules {
    pub fn get(&self, name: &str) -> Result<Arc<dyn MaskRule>, MaskError> {
        self.rules.get(name).cloned().ok_or_else(|| MaskError::UnknownType {
            name: name.to_owned(),
            known: self.rules.keys().cloned().collect(),
        })
    }

    /// Adds a type of your own. A name is given once.
    pub fn register(&mut self, name: &str, rule: Arc<dyn MaskRule>) -> Result<(), MaskError> {
        if self.rules.contains_key(name) {
            return Err(MaskError::Taken { name: name.to_owned() });
        }
        self.rules.insert(name.to_owned(), rule);
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.keys().map(String::as_str)
    }
}

impl fmt::Debug for MaskRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
