//! How a request is told that it cannot be done.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::BadRunName;
use rollyard_core::ledger::Refusal;
use rollyard_core::replay::ReplayError;
use rollyard_core::run_config::ConfigError;
use rollyard_core::wire::item::ItemError;
use rollyard_store::log::{LogError, StageError};
use rollyard_store::yard::{AdmitError, YardError};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::admit::OTHER_CLAIM;
use crate::runs::RunError;

/// An answer other than yes: `{"error": {"code", "message"}}`.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) field: Option<String>,
    pub(crate) hint: Option<Box<Hint>>,
}

/// What helps to ask again, beyond words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hint {
    pub(crate) at: Option<[usize; 2]>,
    pub(crate) expected: Vec<String>,
    pub(crate) nearest: Vec<String>,
}

/// The body of an error answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorAnswer {
    error: ErrorDetail,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// A short name to branch on.
    pub(crate) code: &'static str,
    /// What is wrong, with the field and the value, and what to do.
    pub(crate) message: String,
    /// The field that is to blame, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// Bytes of the text that is to blame, from and to, where a filter does not parse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<[usize; 2]>,
    /// What could stand there instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) expected: Vec<String>,
    /// Ids of rollouts that may be meant, where the one asked for is not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nearest: Vec<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, hint: None }
    }

    pub(crate) fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A field that has a value it must not have.
    pub(crate) fn wrong_field(field: &str, value: impl std::fmt::Display, expected: &str) -> Self {
        let message = format!("field {field:?} is {value}, but must be {expected}");
        Self { field: Some(field.to_owned()), ..Self::bad("wrong_field", message) }
    }

    pub(crate) fn detail(&self) -> ErrorDetail {
        let Hint { at, expected, nearest } = self.hint.as_deref().cloned().unwrap_or_default();
        let (message, field) = (self.message.clone(), self.field.clone());
        ErrorDetail { code: self.code, message, field, at, expected, nearest }
    }
}

/// How long a refused writer should wait before it tries again.
const RETRY_AFTER_SECS: &str = "1";

/// In an answer that says that the run is somebody else's, or about to be: another node may answer.
pub(crate) const MOVED: &str = "x-rollyard-moved";

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let is_moved = matches!(self.code, "owner_moved" | "closing" | OTHER_CLAIM);
        if self.status.is_server_error() && !is_moved {
            tracing::error!(code = self.code, "{}", self.message);
        }
        // Clients of the buffer calls look for `success` and `message`, ours for `error`.
        let body = json!({
            "success": false,
            "message": self.message,
            "data": {"data": [], "meta_info": {}},
            "error": self.detail(),
        });
        let mut response = (self.status, Json(body)).into_response();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECS));
        }
        if is_moved {
            response.headers_mut().insert(MOVED, HeaderValue::from_static(self.code));
        }
        response
    }
}

impl From<ItemError> for ApiError {
    fn from(error: ItemError) -> Self {
        let field = error.field().map(str::to_owned);
        Self { field, ..Self::bad(error.code(), error.to_string()) }
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        Self { field: Some(error.name().to_owned()), ..Self::bad(error.code(), error.to_string()) }
    }
}

impl From<BadRunName> for ApiError {
    fn from(error: BadRunName) -> Self {
        Self::bad("bad_run_name", error.to_string())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Setting(error) => return error.into(),
            Refusal::Item(error) => return error.into(),
            Refusal::Full { .. } | Refusal::Replay(ReplayError::Paced { .. }) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Refusal::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::LeaseGone { .. } => StatusCode::GONE,
            Refusal::LeaseUnknown { .. } | Refusal::RolloutUnknown { .. } | Refusal::NoOpenGroup { .. } => {
                StatusCode::NOT_FOUND
            }
            Refusal::UidTaken { .. }
            | Refusal::LeaseAcked { .. }
            | Refusal::NotAcked { .. }
            | Refusal::StepNotAfter { .. }
            | Refusal::TooFarBack { .. }
            | Refusal::RolloutBusy { .. }
            | Refusal::WrongMode { .. }
            | Refusal::ModeFixed { .. }
            | Refusal::FutureStep { .. }
            | Refusal::BatchDiffers { .. }
            | Refusal::Replay(ReplayError::StepBack { .. }) => StatusCode::CONFLICT,
            Refusal::BadLeaseTime { .. } | Refusal::NoVersion { .. } | Refusal::Replay(_) => {
                StatusCode::BAD_REQUEST
            }
        };
        Self::new(status, refusal.code(), refusal.to_string())
    }
}

impl From<AdmitError> for ApiError {
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::Refused(refusal) => refusal.into(),
            AdmitError::Unstaged(error) => error.into(),
        }
    }
}

impl From<StageError> for ApiError {
    fn from(error: StageError) -> Self {
        let message = error.to_string();
        match error {
            StageError::TooLarge { .. } | StageError::BatchFull { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            StageError::NoBlobs => Self {
                field: Some("stored".to_owned()),
                ..Self::bad("no_blobs", format!("field \"stored\": {message}"))
            },
            StageError::OtherClaim { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, OTHER_CLAIM, message),
        }
    }
}

impl From<YardError> for ApiError {
    fn from(error: YardError) -> Self {
        let message = error.to_string();
        match error {
            YardError::Refused(refusal) => refusal.into(),
            YardError::Unstaged(error) => error.into(),
            YardError::Log(LogError::NoSpace { .. }) => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message)
            }
            YardError::Log(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "log_failed", message),
            YardError::Moved { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "owner_moved", message),
            YardError::State(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "state_lost", message),
            YardError::Closed => Self::new(StatusCode::SERVICE_UNAVAILABLE, "closing", message),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let message = error.to_string();
        match error {
            RunError::Unknown { .. } => Self::new(StatusCode::NOT_FOUND, "run_unknown", message),
            RunError::Elsewhere { .. } | RunError::NoOwner { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "owner_moved", message)
            }
            RunError::Config(error) => error.into(),
            RunError::Yard { cause, .. } => Self { message, ..Self::from(cause) },
            RunError::Log(_) | RunError::Folder { .. } | RunError::Archive { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "data_folder", message)
            }
        }
    }
}
