//! Looks for marks in a text that has not ended.

/// What is there before the first mark, and what comes then.
pub(super) struct Seen<'t, M> {
    pub(super) before: &'t str,
    pub(super) next: Next<'t, M>,
}

pub(super) enum Next<'t, M> {
    Mark {
        mark: M,
        after: &'t str,
    },
    /// May be the beginning of a mark, or is empty.
    Held(&'t str),
}

/// Finds the first mark. Reads no further than its end, so that a text with many marks is read once.
pub(super) fn look<'t, M: Copy>(text: &'t str, marks: &[(&str, M)]) -> Seen<'t, M> {
    for (at, _) in text.char_indices() {
        let Some((before, rest)) = text.split_at_checked(at) else { continue };
        for (spelled, mark) in marks {
            if let Some(after) = rest.strip_prefix(spelled) {
                work::add(at + spelled.len());
                return Seen { before, next: Next::Mark { mark: *mark, after } };
            }
            if spelled.starts_with(rest) {
                work::add(text.len());
                return Seen { before, next: Next::Held(rest) };
            }
        }
    }
    work::add(text.len());
    Seen { before: text, next: Next::Held("") }
}

/// Bytes looked at, so that a test can say that they are not many.
pub(super) mod work {
    #[cfg(test)]
    thread_local!(static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

    #[cfg(test)]
    pub(in crate::parse) fn add(bytes: usize) {
        BYTES.set(BYTES.get() + bytes);
    }

    #[cfg(not(test))]
    pub(in crate::parse) fn add(_bytes: usize) {}

    #[cfg(test)]
    pub(in crate::parse) fn take() -> usize {
        BYTES.replace(0)
    }
}
