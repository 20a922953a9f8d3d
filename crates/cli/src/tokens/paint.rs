//! Colours, and what stands in their place where there are none.

/// How text is set off from other text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) in_color: bool,
}

impl Paint {
    pub(super) fn bold(self, text: &str) -> String {
        self.styled("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.styled("2", text)
    }

    pub(super) fn alarm(self, text: &str) -> String {
        self.styled("31", text)
    }

    /// Trained tokens: in colour line by line, so that a pager keeps it; without colour in brackets.
    pub(super) fn trained(self, text: &str) -> String {
        if !self.in_color {
            return format!("⟦{text}⟧");
        }
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| if line.is_empty() { String::new() } else { self.styled("32", line) })
            .collect();
        lines.join("\n")
    }

    fn styled(self, code: &str, text: &str) -> String {
        if self.in_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Text a rollout cannot use to paint on our terminal.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .map(|symbol| match symbol {
            '\n' | '\t' => symbol,
            '\u{7f}' => '\u{2421}',
            // The pictures of the control characters stand in their order.
            control if control < ' ' => char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}'),
            // Controls of the second table begin sequences on some terminals.
            '\u{80}'..='\u{9f}' => '\u{fffd}',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_cannot_paint_on_the_terminal() {
        assert_eq!(visible("a\x1b[31mb\tc\nd\u{7f}\u{9b}"), "a␛[31mb\tc\nd␡\u{fffd}");
    }

    #[test]
    fn colour_ends_with_its_line() {
        let text = "a\n\nb\n";
        assert_eq!(Paint { in_color: true }.trained(text), "\x1b[32ma\x1b[0m\n\n\x1b[32mb\x1b[0m\n");
        assert_eq!(Paint { in_color: false }.trained(text), "⟦a\n\nb\n⟧");
    }
}
