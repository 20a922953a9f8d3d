//! Holds requests back while the engine is paused.

use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Gate {
    is_open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { is_open: watch::Sender::new(true) }
    }
}

impl Gate {
    pub(super) fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(super) fn close(&self) {
        self.is_open.send_replace(false);
    }

    pub(super) fn is_open(&self) -> bool {
        *self.is_open.borrow()
    }

    pub(super) async fn passed(&self) {
        if self.is_open() {
            return;
        }
        let mut is_open = self.is_open.subscribe();
        // The sender lives as long as the gate, so this ends by opening and by nothing else.
        let _open = is_open.wait_for(|open| *open).await;
    }
}
