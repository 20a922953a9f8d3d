//! Takes rollouts in, whole or by reference.

use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use rollyard_core::wire::item::{self, ItemError};
use rollyard_store::log::{LogError, StageError};
use rollyard_store::yard::{Admission, Submission, Yard, YardError};

use crate::error::ApiError;

/// Blobs that are looked for at the same time.
const LOOKED_FOR_AT_ONCE: usize = 16;

/// Reads a rollout, or what stands for one.
pub(crate) fn submission(bytes: Bytes) -> Result<Submission, ItemError> {
    Ok(match item::decode_any(&bytes)? {
        (item, None) => Submission::new(item, bytes),
        (item, Some(stored)) => Submission::stored(item, stored),
    })
}

/// Admits rollouts, each for itself, once their bytes are seen to be where they say.
pub(crate) async fn admit(
    yard: &Yard,
    submissions: Vec<Submission>,
) -> Result<Vec<Result<Admission, ApiError>>, ApiError> {
    if !submissions.iter().any(Submission::is_by_reference) {
        let admitted = yard.admit(submissions).await?;
        return Ok(admitted.into_iter().map(|outcome| outcome.map_err(ApiError::from)).collect());
    }
    let mut outcomes: Vec<Option<Result<Admission, ApiError>>> = vec![None; submissions.len()];
    let mut present = Vec::with_capacity(submissions.len());
    let looks = submissions.into_iter().enumerate().map(|(no, submission)| async move {
        let refused = look_for(yard, &submission).await?;
        Ok::<_, YardError>((no, submission, refused))
    });
    let mut looks = stream::iter(looks).buffered(LOOKED_FOR_AT_ONCE);
    while let Some(looked) = looks.next().await {
        let (no, submission, refused) = looked?;
        match (refused, outcomes.get_mut(no)) {
            (Some(refused), Some(outcome)) => *outcome = Some(Err(refused)),
            _ => present.push(submission),
        }
    }
    drop(looks);
    let mut admitted = yard.admit(present).await?.into_iter();
    let mut told = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        told.push(
            match outcome.or_else(|| admitted.next().map(|admitted| admitted.map_err(ApiError::from))) {
                // The others were stored for the same claim: whoever sent them is to store them all again.
                Some(Err(refused)) if refused.code == OTHER_CLAIM => return Err(refused),
                Some(outcome) => outcome,
                None => Err(YardError::Closed.into()),
            },
        );
    }
    Ok(told)
}

/// In an answer that says that a payload was stored for another owner.
pub(crate) const OTHER_CLAIM: &str = "other_claim";

/// Why a submission cannot be admitted, if its bytes are not where they should be.
async fn look_for(yard: &Yard, submission: &Submission) -> Result<Option<ApiError>, YardError> {
    if !submission.is_by_reference() {
        return Ok(None);
    }
    if yard.blobs().is_none() {
        return Ok(Some(StageError::NoBlobs.into()));
    }
    let (looking, looked_for) = (yard.clone(), submission.clone());
    let looked = tokio::task::spawn_blocking(move || looking.is_stored(&looked_for)).await;
    let is_there = looked.unwrap_or_else(|error| {
        let (doing, stream) = ("look for a payload", yard.run_name().to_string());
        Err(LogError::Stream { doing, cause: error.to_string(), stream })
    })?;
    let uid = submission.uid().to_owned();
    // One that was admitted before may have come and gone.
    if is_there || yard.ask(move |ledger| ledger.whereabouts(&uid).is_some()).await? {
        return Ok(None);
    }
    let message = format!(
        "field \"stored\": there are no {} bytes stored for rollout {:?}; put them there first, or send the rollout whole",
        submission.size_bytes(),
        submission.uid()
    );
    let refused = ApiError::new(StatusCode::CONFLICT, "not_stored", message);
    Ok(Some(ApiError { field: Some("stored".to_owned()), ..refused }))
}
