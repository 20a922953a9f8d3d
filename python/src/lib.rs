//! The native part of the Python package `rollyard`.
//!
//! Read in this order: [`tokenizer`] and [`masks`] make tokens of conversations ([`values`] brings Python's
//! dicts to the templates), [`rollout`] is one rollout to the token, made of [`numbers`], of [`items`] as the
//! yard keeps them, or of [`foreign`] objects; [`batch`] lays many out as tensors, [`replay`] keeps and picks
//! them, [`storage`] keeps them as files, [`logger`] as lines for people to read, [`making`] makes them with engines
//! and workflows, [`catalog`] answers questions about files of them, [`array`] lends Rust's memory to numpy,
//! [`errors`] names what can go wrong.
//! Python sees all of it as `rollyard._rollyard`, and gives it better names in `rollyard/__init__.py`.

mod tokenizer;
mod values;

mod masks;

mod foreign;
mod items;
mod numbers;
mod rollout;

mod batch;
mod logger;
mod replay;
mod storage;

mod making;

mod catalog;

mod array;
mod errors;

use pyo3::prelude::*;

// Batches are large and short-lived: the system's allocator would map and clear their pages every time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Filled once, at import; starts nothing, so a process may fork afterwards.
#[pymodule]
mod _rollyard {
    #[pymodule_export]
    use crate::tokenizer::Tokenizer;

    #[pymodule_export]
    use crate::masks::{Drift, MaskedTokens, Masks, response_len};

    #[pymodule_export]
    use crate::rollout::{Rollout, RolloutMetadata};

    #[pymodule_export]
    use crate::foreign::{rollout_of, stamp};

    #[pymodule_export]
    use crate::items::{item_of, reference_of, rollouts_of, split_lease, split_sample};

    #[pymodule_export]
    use crate::batch::{balance, concat, digest, pack, plan, sequences, split, training};

    #[pymodule_export]
    use crate::replay::{Replay, RolloutWithAdvantage, RolloutWithCount};

    #[pymodule_export]
    use crate::logger::Lines;

    #[pymodule_export]
    use crate::storage::{FolderReader, FolderWriter};

    #[pymodule_export]
    use crate::catalog::{Answer, Catalog};

    #[pymodule_export]
    use crate::making::{
        AgentCall, AgentDesk, AgentPlan, BuiltInWorkflow, Call, Engine, Episode, Executor, Host,
        HostedWorkflow, LoopWorkflow, Mailbox, ModelResponse, NativeAgentWorkflow, Task, agent_needs_python,
        extract_answer, needs_python, record, recorded, verify_answer,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python looks for")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
