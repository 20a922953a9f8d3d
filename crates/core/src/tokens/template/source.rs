//! Turns a template written for Jinja2 into one our engine reads alike.
//!
//! What differs is settled on the level of characters, outside strings, comments and raw blocks:
//! `{% generation %}`, which transformers adds to Jinja2, becomes a scope with a call at either end; a slice
//! `x[a:b:c]` becomes a method call and the list of a loop goes through a function, which we can answer as Python
//! does; a macro that sets a member of a namespace reads it first, or the engine would not hand it the namespace;
//! and every line break becomes `\n`.

/// A source to compile, and what is known about its generation blocks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) has_generation: bool,
    /// A generation block stands where output is collected first (a macro, a set block) and placed later.
    pub(super) generation_is_captured: bool,
}

/// The function behind `{% generation %}`, the method behind slices, the function around the list of a loop.
pub(super) const GENERATION: &str = "__generation";
pub(super) const SLICE: &str = "__slice";
pub(super) const ITERATE: &str = "__iterate";

// The first and the last tag are blocks, so that white space around them goes as it went around the one replaced.
const GENERATION_OPENS: &str = "with __marker = __generation(true) %}{{ __marker }}{% set __marker = none";
const GENERATION_CLOSES: &str = "set __marker = none %}{{ __generation(false) }}{% endwith";

pub(super) fn prepare(template: &str) -> Source {
    let normal = template.replace("\r\n", "\n").replace('\r', "\n");
    let mut scan = Scan { rest: &normal, out: String::new(), captures: 0, found: false, captured: false };
    scan.run();
    Source { text: scan.out, has_generation: scan.found, generation_is_captured: scan.captured }
}

struct Scan<'a> {
    rest: &'a str,
    out: String,
    captures: usize,
    found: bool,
    captured: bool,
}

impl<'a> Scan<'a> {
    fn run(&mut self) {
        while let Some(at) = next_tag(self.rest) {
            self.copy(at);
            if self.rest.starts_with("{#") {
                let end = self.rest.find("#}").map_or(self.rest.len(), |end| end + 2);
                self.copy(end);
            } else if self.rest.starts_with("{{") {
                self.copy(2);
                self.expression("}}");
            } else {
                self.block();
            }
        }
        self.copy(self.rest.len());
    }

    fn copy(&mut self, len: usize) {
        let (head, tail) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.out.push_str(head);
        self.rest = tail;
    }

    fn block(&mut self) {
        self.copy(2);
        let space = |text: &str| text.len() - text.trim_start_matches(['-', '+']).trim_start().len();
        self.copy(space(self.rest));
        let name_len = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, after) = self.rest.split_at_checked(name_len).unwrap_or_default();
        match name {
            "raw" => {
                let end = find_endraw(after).map_or(self.rest.len(), |end| name_len + end);
                return self.copy(end);
            }
            "generation" => {
                self.found = true;
                self.captured |= self.captures > 0;
                self.captures += 1;
                self.out.push_str(GENERATION_OPENS);
                self.rest = after;
            }
            "endgeneration" => {
                self.captures = self.captures.saturating_sub(1);
                self.out.push_str(GENERATION_CLOSES);
                self.rest = after;
            }
            "set" => self.read_namespace(after),
            "macro" | "call" | "filter" => self.captures += 1,
            "endmacro" | "endcall" | "endfilter" | "endset" => {
                self.captures = self.captures.saturating_sub(1)
            }
            _ => {}
        }
        let expression = self.expression("%}");
        match name {
            "set" if !expression.assigns => self.captures += 1,
            "for" => self.wrap_list(&expression),
            _ => {}
        }
    }

    /// `set a.b` alone does not count as a use of `a` with our engine.
    fn read_namespace(&mut self, after: &str) {
        let target = after.split_once('=').map_or("", |(target, _)| target.trim());
        if let Some((namespace, _)) = target.split_once('.')
            && namespace.chars().all(|c| c.is_alphanumeric() || c == '_')
            && self.captures > 0
        {
            self.out.push_str(&format!("if {namespace} %}}{{% endif %}}{{% "));
        }
    }

    /// `for x in LIST if TEST`: the list ends at the first bare `if` or `recursive`.
    fn wrap_list(&mut self, expression: &Expression) {
        let mut words = expression.words.iter();
        let Some((_, list)) = words.find(|(word, _)| *word == "in") else { return };
        let end = words.find(|(word, _)| *word != "in").map_or(expression.end, |(_, at)| *at);
        self.out.insert_str(end, ") ");
        self.out.insert_str(list + 2, &format!(" {ITERATE}("));
    }

    /// Copies an expression up to and with its end.
    fn expression(&mut self, end: &str) -> Expression {
        let mut found = Expression::default();
        let mut open: Vec<Bracket> = Vec::new();
        while let Some(c) = self.rest.chars().next() {
            let trims = self.rest.trim_start_matches(['-', '+']).starts_with(end);
            if open.is_empty() && (trims || self.rest.starts_with(end)) {
                found.end = self.out.len();
                self.copy(self.rest.find(end).unwrap_or(0) + end.len());
                return found;
            }
            if open.is_empty() && !self.out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'))
            {
                found.words.extend(loop_word(self.rest).map(|word| (word, self.out.len())));
            }
            match c {
                '\'' | '"' => {
                    self.copy(string_len(self.rest, c));
                    continue;
                }
                '[' | '(' | '{' => open.push(Bracket { at: self.out.len(), kind: c, colons: Vec::new() }),
                ']' | ')' | '}' => {
                    if let Some(bracket) = open.pop()
                        && bracket.kind == '['
                        && c == ']'
                        && !bracket.colons.is_empty()
                    {
                        self.close_slice(&bracket);
                        continue;
                    }
                }
                ':' => {
                    if let Some(bracket) = open.last_mut() {
                        bracket.colons.push(self.out.len());
                    }
                }
                '=' => found.assigns |= open.is_empty(),
                _ => {}
            }
            self.copy(c.len_utf8());
        }
        found.end = self.out.len();
        found
    }

    /// Only a slice has a colon directly between square brackets.
    fn close_slice(&mut self, bracket: &Bracket) {
        let inner = self.out.split_off(bracket.at);
        self.out.push('.');
        self.out.push_str(SLICE);
        self.out.push('(');
        let mut from = 1;
        for (at, end) in bracket.colons.iter().map(|at| at - bracket.at).chain([inner.len()]).enumerate() {
            let part = inner.get(from..end).unwrap_or_default();
            self.out.push_str(if at == 0 { "" } else { "," });
            self.out.push_str(if part.trim().is_empty() { "none" } else { part });
            from = end + 1;
        }
        self.out.push(')');
        self.rest = self.rest.get(1..).unwrap_or_default();
    }
}

/// What was seen in an expression outside all brackets.
#[derive(Default)]
struct Expression {
    assigns: bool,
    /// The words that structure a loop, and where in the output they stand.
    words: Vec<(&'static str, usize)>,
    /// Where in the output the expression ended.
    end: usize,
}

struct Bracket {
    at: usize,
    kind: char,
    colons: Vec<usize>,
}

fn loop_word(text: &str) -> Option<&'static str> {
    let len = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    ["in", "if", "recursive"].into_iter().find(|word| text.get(..len) == Some(word))
}

fn next_tag(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('{')?;
        if matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn string_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Where the `{% endraw` tag that closes a raw block starts.
fn find_endraw(text: &str) -> Option<usize> {
    text.match_indices("{%").map(|(at, _)| at).find(|at| {
        let tag = text.get(at + 2..).unwrap_or_default();
        tag.trim_start_matches(['-', '+']).trim_start().starts_with("endraw")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_generation_blocks_are_rewritten_and_nothing_else() {
        for (template, expect) in [
            ("{{ x[1:] }}", "{{ x.__slice(1,none) }}"),
            ("{{ x[::-1] }}", "{{ x.__slice(none,none,-1) }}"),
            ("{{ x[a[1:]['k']:-1].y }}", "{{ x.__slice(a.__slice(1,none)['k'],-1).y }}"),
            ("{{ x[0] }}{{ {'a': [1]} }}", "{{ x[0] }}{{ {'a': [1]} }}"),
            ("{{ ']:[' }}{# x[1:] #} x[1:]", "{{ ']:[' }}{# x[1:] #} x[1:]"),
            (
                "{% raw %}{{ x[1:] }}{% generation %}{% endraw %}",
                "{% raw %}{{ x[1:] }}{% generation %}{% endraw %}",
            ),
            (
                "{%- generation -%}a{%+ endgeneration %}",
                "{%- with __marker = __generation(true) %}{{ __marker }}{% set __marker = none -%}a\
                 {%+ set __marker = none %}{{ __generation(false) }}{% endwith %}",
            ),
            ("{%- for a in b -%}", "{%- for a in __iterate( b ) -%}"),
            (
                "{% for a, b in c['if x'].in if a in b %}",
                "{% for a, b in __iterate( c['if x'].in ) if a in b %}",
            ),
            ("{% for x in y.__z recursive %}", "{% for x in __iterate( y.__z ) recursive %}"),
            ("{% set ns.x = 1 %}", "{% set ns.x = 1 %}"),
            ("{% macro m() %}{% set ns.x = 1 %}", "{% macro m() %}{% if ns %}{% endif %}{% set ns.x = 1 %}"),
            ("{{ 'generation' }}{% if generation %}", "{{ 'generation' }}{% if generation %}"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("{% raw", "{% raw"),
            ("{{ 'open", "{{ 'open"),
        ] {
            assert_eq!(prepare(template).text, expect);
        }
    }

    #[test]
    fn a_generation_block_in_a_macro_or_a_set_block_is_captured() {
        for (template, captured) in [
            ("{% generation %}{% endgeneration %}", false),
            ("{% for m in x %}{% set a = 1 %}{% generation %}{% endgeneration %}{% endfor %}", false),
            ("{% macro a(b='=') %}{% generation %}{% endgeneration %}{% endmacro %}", true),
            ("{% set a %}{% generation %}{% endgeneration %}{% endset %}", true),
            ("{% set a %}{% endset %}{% generation %}{% endgeneration %}", false),
        ] {
            assert_eq!(prepare(template).generation_is_captured, captured, "{template}");
        }
    }
}
