//! Says what a store answered, in words that lead somewhere.

use super::super::error::PlaceError;
use super::connection::Connection;
use object_store::Error;

/// What went wrong with the URL. The credentials are named by where they came from, and never shown.
pub(super) fn told(what: &'static str, error: &Error, url: &str, connection: &Connection) -> PlaceError {
    let text = spelled_out(error);
    let place = url.to_owned();
    let source = &connection.source;
    let answered = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if matches!(error, Error::Precondition { .. }) {
        return PlaceError::Changed { place };
    }
    if answered(&["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"]) {
        let near =
            "the store has no such bucket; check its name, and the endpoint in AWS_ENDPOINT_URL".to_owned();
        return PlaceError::NotFound { near, place };
    }
    if matches!(error, Error::NotFound { .. }) {
        return PlaceError::NotFound { near: "the store has no such file".to_owned(), place };
    }
    let expired = answered(&["ExpiredToken", "TokenRefreshRequired", "RequestExpired"]);
    let refused =
        ["SignatureDoesNotMatch", "InvalidAccessKeyId", "AccessDenied", "InvalidToken", " 403 ", " 401 "];
    if expired {
        return PlaceError::Denied {
            why: format!("the credentials of {source} have expired; renew them"),
            place,
        };
    }
    if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) || answered(&refused) {
        let why =
            format!("the store refuses to {what} with the credentials of {source} ({})", shortened(&text));
        return PlaceError::Denied { why, place };
    }
    if answered(&["AuthorizationHeaderMalformed", "PermanentRedirect", "incorrectly configured region"]) {
        let why = "the bucket is in another region; set AWS_REGION to it".to_owned();
        return PlaceError::Io { what, why, place };
    }
    if answered(&["status code: 4"]) || matches!(error, Error::InvalidPath { .. }) {
        return PlaceError::Io { what, why: shortened(&text), place };
    }
    PlaceError::Unreachable { why: format!("cannot {what} ({})", shortened(&text)), place }
}

/// The error and what caused it: the innermost says most.
fn spelled_out(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

/// The code and message of an answer in XML, or the words without the names of their layers.
fn shortened(text: &str) -> String {
    let tag = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0)
    };
    match (tag("Code"), tag("Message")) {
        (Some(code), Some(message)) if !message.is_empty() => {
            format!("{code}: {}", message.trim_end_matches('.'))
        }
        (Some(code), _) => code.to_owned(),
        _ => text.split_once(" error: ").map_or(text, |(_, rest)| rest).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_to_what_it_says() {
        let xml = "Server returned non-2xx status code: 403 Forbidden: <?xml?><Error><Code>AccessDenied</Code>\
                   <Message>Access Denied.</Message></Error>";
        assert_eq!(shortened(xml), "AccessDenied: Access Denied");
        assert_eq!(shortened("Generic S3 error: no route"), "no route");
    }
}
