//! Gives arguments that are written as plain text the types their tool declares.
//!
//! Between tags the text `5` may be a number or a string, and only the tool's schema knows.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::OnceCell;
use std::collections::HashMap;

/// What may be called, in OpenAI's form.
#[derive(Debug)]
pub(super) struct Tools {
    list: Box<RawValue>,
    /// Read when the first call needs it: most families write types themselves.
    types: OnceCell<HashMap<String, Types>>,
}

/// The names of JSON schema's types that each argument may have.
type Types = HashMap<String, Vec<String>>;

#[derive(Deserialize)]
struct Tool {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Value,
}

impl Tools {
    pub(super) fn new(list: &RawValue) -> Self {
        Self { list: list.to_owned(), types: OnceCell::new() }
    }

    /// An argument as JSON.
    pub(super) fn value(&self, tool: &str, key: &str, text: &str) -> String {
        let types = self.types.get_or_init(|| types(&self.list));
        let declared = types.get(tool).and_then(|types| types.get(key));
        value(text, declared.map(Vec::as_slice).unwrap_or_default())
    }
}

/// A tool that is not in OpenAI's form declares nothing.
fn types(list: &RawValue) -> HashMap<String, Types> {
    let tools: Vec<Value> = serde_json::from_str(list.get()).unwrap_or_default();
    let tools = tools.into_iter().filter_map(|tool| serde_json::from_value::<Tool>(tool).ok());
    tools.map(|Tool { function }| (function.name, of_properties(&function.parameters))).collect()
}

fn of_properties(schema: &Value) -> Types {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    properties.map(|(key, schema)| (key.clone(), of_schema(schema))).collect()
}

fn of_schema(schema: &Value) -> Vec<String> {
    let mut types = match schema.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    for key in ["anyOf", "oneOf"] {
        let schemas = schema.get(key).and_then(Value::as_array);
        types.extend(schemas.into_iter().flatten().flat_map(of_schema));
    }
    types
}

/// JSON where the schema allows it or says nothing, and otherwise the text as it stands.
fn value(text: &str, declared: &[String]) -> String {
    let may_be = |name: &str| declared.iter().any(|declared| declared == name);
    let json = match text.trim() {
        // Models that think in Python.
        "True" if may_be("boolean") => "true",
        "False" if may_be("boolean") => "false",
        "None" if may_be("null") => "null",
        text => text,
    };
    let fits = match serde_json::from_str::<Value>(json) {
        Err(_) => false,
        Ok(_) if declared.is_empty() => true,
        Ok(Value::Null) => may_be("null") || !may_be("string"),
        Ok(Value::Bool(_)) => may_be("boolean") || !may_be("string"),
        Ok(Value::Number(number)) => {
            may_be("number") || (may_be("integer") && !number.is_f64()) || !may_be("string")
        }
        Ok(Value::String(_)) => !may_be("string"),
        Ok(Value::Array(_)) => may_be("array") || !may_be("string"),
        Ok(Value::Object(_)) => may_be("object") || !may_be("string"),
    };
    // As it is written: a number of twenty digits keeps them.
    if fits { json.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn text_becomes_what_the_schema_says() {
        for (text, declared, expect) in [
            ("5", &[][..], "5"),
            ("five", &[], r#""five""#),
            ("[1, 2]", &[], "[1, 2]"),
            ("5", &["string"], r#""5""#),
            (" 5 ", &["integer"], "5"),
            ("12345678901234567890123", &["number"], "12345678901234567890123"),
            ("five", &["integer"], r#""five""#),
            ("5", &["string", "integer"], "5"),
            ("5.5", &["string", "integer"], r#""5.5""#),
            ("null", &["string", "null"], "null"),
            ("null", &["string"], r#""null""#),
            ("True", &["boolean"], "true"),
            ("True", &["string"], r#""True""#),
            ("{\"a\": 1}", &["object"], "{\"a\": 1}"),
            ("{\"a\": 1}", &["string"], r#""{\"a\": 1}""#),
            ("  x = \"ü\"\n", &["string"], r#""  x = \"ü\"\n""#),
        ] {
            let declared: Vec<String> = declared.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(value(text, &declared), expect, "{text:?} as {declared:?}");
        }
    }
}
