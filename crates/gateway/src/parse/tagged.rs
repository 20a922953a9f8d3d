//! Calls whose arguments stand between tags, one by one: Qwen3-Coder and GLM.

use serde_json::Value;
use std::collections::HashSet;

use super::form::Unread;
use super::schema::Tools;
use super::told::Written;

/// `<function=name>`, then `<parameter=key>`, the value on lines of its own and `</parameter>` for each argument.
pub(super) fn qwen_coder(body: &str, tools: &Tools) -> Result<Vec<Written>, Unread> {
    let function = body.trim().strip_prefix("<function=").and_then(|body| body.strip_suffix("</function>"));
    let function = function.ok_or_else(|| expected("<function=…> and </function> around the parameters"))?;
    let (name, mut rest) = function.split_once('>').ok_or_else(|| expected("> behind the name"))?;
    let mut arguments = Arguments::new(name.trim(), tools);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return arguments.finish();
        }
        let parameter = rest.strip_prefix("<parameter=").ok_or_else(|| expected("<parameter=…>"))?;
        let (key, value) = parameter.split_once('>').ok_or_else(|| expected("> behind the key"))?;
        let (value, behind) = value.split_once("</parameter>").ok_or_else(|| expected("</parameter>"))?;
        // The template puts the value on lines of its own; all other space is the value's.
        let value = value.strip_prefix('\n').unwrap_or(value);
        arguments.add(key.trim(), value.strip_suffix('\n').unwrap_or(value))?;
        rest = behind;
    }
}

/// The name, then `<arg_key>…</arg_key>` and `<arg_value>…</arg_value>` for each argument, on lines of their own in
/// 4.5 and without space in 4.7.
pub(super) fn glm(body: &str, tools: &Tools) -> Result<Vec<Written>, Unread> {
    let at = body.find("<arg_key>").unwrap_or(body.len());
    let (name, mut rest) = body.split_at_checked(at).unwrap_or((body, ""));
    let name = name.trim();
    if name.contains(char::is_whitespace) || name.contains(['<', '{']) {
        return Err(expected("a name and <arg_key>"));
    }
    let mut arguments = Arguments::new(name, tools);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return arguments.finish();
        }
        let key = rest.strip_prefix("<arg_key>").ok_or_else(|| expected("<arg_key>"))?;
        let (key, behind) = key.split_once("</arg_key>").ok_or_else(|| expected("</arg_key>"))?;
        let value = behind.trim_start().strip_prefix("<arg_value>").ok_or_else(|| expected("<arg_value>"))?;
        let (value, behind) = value.split_once("</arg_value>").ok_or_else(|| expected("</arg_value>"))?;
        arguments.add(key.trim(), value)?;
        rest = behind;
    }
}

fn expected(what: &str) -> Unread {
    Unread::Malformed(format!("the call has no {what} where one is expected"))
}

/// Becomes a JSON object, in the order of the tags.
struct Arguments<'a> {
    name: &'a str,
    tools: &'a Tools,
    keys: HashSet<&'a str>,
    json: String,
}

impl<'a> Arguments<'a> {
    fn new(name: &'a str, tools: &'a Tools) -> Self {
        Self { name, tools, keys: HashSet::new(), json: "{".to_owned() }
    }

    fn add(&mut self, key: &'a str, text: &str) -> Result<(), Unread> {
        if !self.keys.insert(key) {
            return Err(Unread::Malformed(format!("the argument {key} is given twice")));
        }
        if self.keys.len() > 1 {
            self.json.push_str(", ");
        }
        self.json.push_str(&Value::from(key).to_string());
        self.json.push_str(": ");
        self.json.push_str(&self.tools.value(self.name, key, text));
        Ok(())
    }

    fn finish(self) -> Result<Vec<Written>, Unread> {
        Ok(vec![Written::new(self.name, &(self.json + "}"))?])
    }
}
