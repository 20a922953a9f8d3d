//! Dicts and lists as Python has them, for templates to look into.
//!
//! Templates were written against Python: a dict keeps the order of its keys, `params.items()` is a method even
//! where the schema has a key called `items`, and printing either gives Python's `repr`.
//! Both are built once and shared: a message in a thousand lists costs a thousand counters.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};
use minijinja::{Error, State, Value};

use super::{methods, python};

/// Up to here a walk over the keys is faster than hashing the one looked for.
const WALKED_KEYS: usize = 12;

/// A Python dict: keys in the order they came.
#[derive(Debug, Default)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    index: HashMap<Value, usize>,
}

impl Dict {
    /// A key that comes twice keeps its first place and its last value, as in Python.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (Value, Value)>) -> Self {
        let mut dict = Self::default();
        for (key, value) in pairs {
            dict.set(key, value);
        }
        dict
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position_of_str(key).and_then(|at| self.entries.get(at)).map(|(_, value)| value)
    }

    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub fn into_value(self) -> Value {
        Value::from_object(self)
    }

    /// The same dict with one value changed or added at the end.
    pub(super) fn with(&self, key: &str, value: Value) -> Self {
        let mut changed = Self { entries: self.entries.clone(), index: self.index.clone() };
        changed.set(Value::from(key), value);
        changed
    }

    fn set(&mut self, key: Value, value: Value) {
        if let Some((_, old)) = self.position(&key).and_then(|at| self.entries.get_mut(at)) {
            *old = value;
            return;
        }
        self.entries.push((key.clone(), value));
        if self.entries.len() == WALKED_KEYS + 1 {
            self.index = self.entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        } else if self.entries.len() > WALKED_KEYS {
            self.index.insert(key, self.entries.len() - 1);
        }
    }

    fn position(&self, key: &Value) -> Option<usize> {
        if self.entries.len() > WALKED_KEYS {
            return self.index.get(key).copied();
        }
        match key.as_str() {
            Some(text) => self.position_of_str(text),
            None => self.entries.iter().position(|(have, _)| have == key),
        }
    }

    fn position_of_str(&self, key: &str) -> Option<usize> {
        if self.entries.len() > WALKED_KEYS {
            return self.index.get(&Value::from(key)).copied();
        }
        self.entries.iter().position(|(have, _)| have.as_str() == Some(key))
    }
}

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.position(key).and_then(|at| self.entries.get(at)).map(|(_, value)| value.clone())
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(key, _)| key.clone()).collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        methods::call(state, &Value::from_dyn_object(DynObject::new(self.clone())), method, args)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&python::repr(&Value::from_dyn_object(DynObject::new(self.clone()))))
    }
}

/// A Python list.
#[derive(Debug)]
pub struct List(Vec<Value>);

impl List {
    pub fn new(items: Vec<Value>) -> Self {
        Self(items)
    }

    pub fn items(&self) -> &[Value] {
        &self.0
    }

    pub fn into_value(self) -> Value {
        Value::from_object(self)
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&python::repr(&Value::from_dyn_object(DynObject::new(self.clone()))))
    }
}

/// What `map`, `select` and their kin return in Jinja: true even when empty, without a length, read once.
#[derive(Debug)]
pub(super) struct Generator(Mutex<Vec<Value>>);

impl Generator {
    pub(super) fn value(items: Vec<Value>) -> Value {
        Value::from_object(Self(Mutex::new(items)))
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        // Indexing a generator finds nothing in Jinja; without this the engine would count through it.
        key.is_integer().then_some(Value::UNDEFINED)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let items = self.0.lock().map(|mut items| std::mem::take(&mut *items)).unwrap_or_default();
        Enumerator::Iter(Box::new(items.into_iter()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<generator object>")
    }
}

/// A whole number beyond 128 bits: printed as it was written, not calculated with.
#[derive(Debug)]
pub(super) struct BigInt(pub(super) String);

impl Object for BigInt {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
