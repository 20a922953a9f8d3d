//! Sums of numbers that may be missing.

/// What some numbers come to; those that are missing are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub n: u64,
    sum: f64,
    pub least: Option<f64>,
    pub most: Option<f64>,
}

impl Sum {
    pub(super) fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        self.n += 1;
        self.sum += value;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = Some(self.most.map_or(value, |most| most.max(value)));
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}
