//! From GPUs to what a yard has to do each second, by arithmetic alone.
//!
//! Sampling a token reads the weights and the cache of every sequence in the batch out of the GPU's memory once, so
//! bandwidth gives tokens a second; tokens give rollouts, and rollouts give events. docs/concepts/scale.md walks
//! through the same numbers.

/// The model: 8 billion parameters in bf16, with the attention of Qwen3 8B.
const PARAMETERS: f64 = 8e9;
const WEIGHT_BYTES: f64 = 2.0 * PARAMETERS;
/// 36 layers, 8 heads of 128 numbers, keys and values, two bytes each.
const CACHE_BYTES_PER_TOKEN: f64 = 36.0 * 8.0 * 128.0 * 2.0 * 2.0;

/// An H100: memory bandwidth and bf16 arithmetic by its data sheet, and the shares of them that programs reach.
const MEMORY_BYTES_PER_SEC: f64 = 3.35e12;
const MEMORY_SHARE: f64 = 0.6;
const FLOPS: f64 = 989e12;
const FLOPS_SHARE: f64 = 0.4;
/// Forward and backward.
const FLOPS_PER_TRAINED_TOKEN: f64 = 6.0 * PARAMETERS;

/// The rest trains.
const GENERATING_SHARE: f64 = 0.75;

pub(crate) const GROUP_SIZE: u32 = 8;
/// Each leads some ranks of the trainer and leases a share of the batch.
pub(crate) const READERS: u32 = 8;

/// How often what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mishaps {
    /// Rollouts that never arrive because their agent died.
    pub(crate) lost_share: f64,
    /// Groups whose task does not work, so that half of their rollouts never arrive.
    pub(crate) broken_share: f64,
    /// Writes that are sent again because the answer was lost.
    pub(crate) retry_share: f64,
    /// Leases whose reader dies.
    pub(crate) reader_lost_share: f64,
    /// Steps that end in a crash between the acks and the commit.
    pub(crate) step_lost_share: f64,
}

impl Mishaps {
    /// Far more than real fleets have, so that a few minutes see all of them.
    pub(crate) const MANY: Self = Self {
        lost_share: 0.005,
        broken_share: 0.01,
        retry_share: 0.01,
        reader_lost_share: 0.01,
        step_lost_share: 0.05,
    };
}

/// How a rollout's length spreads around its mean: the sigma of a log-normal.
pub(crate) const LENGTH_SPREAD: f64 = 0.5;

/// A payload above this goes to the object store, and the log has a reference.
pub(crate) const INLINE_BYTES_MAX: f64 = 65_536.0;

/// What one rollout is made of, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) prompt_tokens: f64,
    pub(crate) turns: f64,
    pub(crate) sampled_per_turn: f64,
    /// What a tool answers.
    pub(crate) read_per_turn: f64,
    /// The share of its time that an agent samples; otherwise it waits for a tool.
    pub(crate) sampling_share: f64,
    /// A batch is what is made in this time.
    pub(crate) step_secs: f64,
}

/// Long conversations with tools.
pub(crate) const AGENTS: Shape = Shape {
    name: "agents",
    prompt_tokens: 1_500.0,
    turns: 20.0,
    sampled_per_turn: 250.0,
    read_per_turn: 400.0,
    sampling_share: 0.75,
    step_secs: 80.0,
};

/// One short answer and nothing else: the most rollouts that a GPU can make.
pub(crate) const ANSWERS: Shape = Shape {
    name: "answers",
    prompt_tokens: 200.0,
    turns: 1.0,
    sampled_per_turn: 500.0,
    read_per_turn: 0.0,
    sampling_share: 1.0,
    step_secs: 15.0,
};

pub(crate) const SHAPES: [Shape; 2] = [AGENTS, ANSWERS];

impl Shape {
    pub(crate) fn sampled_tokens(&self) -> f64 {
        self.turns * self.sampled_per_turn
    }

    pub(crate) fn tokens(&self) -> f64 {
        self.prompt_tokens + self.turns * (self.sampled_per_turn + self.read_per_turn)
    }

    /// Half of what it will read and sample is there on average.
    fn mean_context(&self) -> f64 {
        f64::midpoint(self.prompt_tokens, self.tokens())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fleet {
    pub(crate) gpus: u32,
    pub(crate) agents: u32,
    pub(crate) runs: u32,
    pub(crate) shape: Shape,
    pub(crate) mishaps: Mishaps,
}

/// What follows, for the whole yard where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) sequences_per_gpu: f64,
    pub(crate) tokens_per_sec_of_an_agent: f64,
    pub(crate) tokens_per_sec: f64,
    pub(crate) rollout_secs: f64,
    /// Begun; some are lost.
    pub(crate) rollouts_per_sec: f64,
    pub(crate) admitted_per_sec: f64,
    pub(crate) groups_per_sec: f64,
    /// In a step of one run.
    pub(crate) batch_groups: u32,
    /// From one step of a run to the next.
    pub(crate) step_secs: f64,
    /// What a step takes the trainer, which has to be less.
    pub(crate) training_secs: f64,
    pub(crate) events_per_sec: f64,
    pub(crate) records_per_sec: f64,
}

impl Fleet {
    pub(crate) fn agents_per_run(&self) -> u32 {
        (self.agents / self.runs).max(1)
    }

    pub(crate) fn load(&self) -> Load {
        let Shape { sampling_share, .. } = self.shape;
        let gpus = f64::from(self.gpus);
        let runs = f64::from(self.runs);
        // What is left when agents do not divide evenly takes no part.
        let agents = f64::from(self.agents_per_run()) * runs;
        let generating = gpus * GENERATING_SHARE;

        let sequences_per_gpu = agents * sampling_share / generating;
        let read_bytes = WEIGHT_BYTES + sequences_per_gpu * self.shape.mean_context() * CACHE_BYTES_PER_TOKEN;
        let tokens_per_sec_of_an_agent = MEMORY_BYTES_PER_SEC * MEMORY_SHARE / read_bytes;
        let rollout_secs = self.shape.sampled_tokens() / tokens_per_sec_of_an_agent / sampling_share;

        let rollouts_per_sec = agents / rollout_secs;
        let Mishaps { lost_share, broken_share, .. } = self.mishaps;
        let admitted_per_sec = rollouts_per_sec * (1.0 - lost_share - broken_share / 2.0);
        let groups_per_sec = rollouts_per_sec / f64::from(GROUP_SIZE);
        let trainable_per_sec = groups_per_sec * trainable_share();
        let reader_groups = trainable_per_sec / runs * self.shape.step_secs / f64::from(READERS);
        let batch_groups = (reader_groups.ceil() as u32).max(1) * READERS;
        let steps_per_sec = trainable_per_sec / f64::from(batch_groups);

        let batch_tokens = f64::from(batch_groups * GROUP_SIZE) * self.shape.tokens();
        let trainer_flops = gpus * (1.0 - GENERATING_SHARE) / runs * FLOPS * FLOPS_SHARE;

        // Every reader leases and acks; the step commits and sets a version.
        let step_records = 2.0 * f64::from(READERS) + 2.0;
        Load {
            sequences_per_gpu,
            tokens_per_sec_of_an_agent,
            tokens_per_sec: agents * sampling_share * tokens_per_sec_of_an_agent,
            rollout_secs,
            rollouts_per_sec,
            admitted_per_sec,
            groups_per_sec,
            batch_groups,
            step_secs: runs / steps_per_sec,
            training_secs: batch_tokens * FLOPS_PER_TRAINED_TOKEN / trainer_flops,
            // A group becomes ready or is dropped, once; mostly in the record of its last rollout.
            events_per_sec: admitted_per_sec + groups_per_sec + step_records * steps_per_sec,
            records_per_sec: admitted_per_sec + step_records * steps_per_sec,
        }
    }
}

/// Groups with something to learn from. A task is solved with a probability that is anything from 0 to 1, so that all
/// of `n` rollouts are right, or all wrong, in 2 groups of `n + 1`.
fn trainable_share() -> f64 {
    1.0 - 2.0 / (f64::from(GROUP_SIZE) + 1.0)
}
