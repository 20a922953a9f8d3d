//! An answer on its way to the agent. Only when the last of it was taken does the answer count as heard.

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::convert::Infallible;
use std::sync::Arc;

use crate::answer::{Answering, Source};
use crate::ask::Ask;
use crate::dialect::{Dialect, Voice};
use crate::flight::{Ear, Told};
use crate::gateway::Gateway;
use crate::live::{Called, Live};
use crate::refusal::{Kind, Refusal};
use crate::tell::{Answer, Choice, Piece, Spoken};

/// All choices, each complete.
pub(super) async fn whole(
    gateway: &Gateway,
    live: &Live,
    dialect: Dialect,
    ask: &Ask,
    answering: Answering,
) -> Result<Body, Refusal> {
    let Answering { begun, called, source } = answering;
    let (choices, ears) = match source {
        Source::Recorded(choices) => (choices, Vec::new()),
        Source::Flights(mut ears) => {
            let mut choices = Vec::with_capacity(ears.len());
            for ear in &mut ears {
                choices.push(ended(gateway, live, ear, ask.logprobs).await?);
            }
            (choices, ears)
        }
    };
    let bytes = Bytes::from(dialect.write(&Answer { begun, choices }, ask));
    let rest = stream::once(async move {
        // Asked for after the answer itself was taken.
        called.take();
        drop(ears);
        Ok::<_, Infallible>(Bytes::new())
    });
    let first = stream::once(async move { Ok(bytes) });
    Ok(Body::from_stream(first.chain(rest)))
}

async fn ended(gateway: &Gateway, live: &Live, ear: &mut Ear, logprobs: bool) -> Result<Choice, Refusal> {
    loop {
        let told = ear.next().await;
        if told.is_empty() {
            return Err(Refusal::new(Kind::Internal, "the answer was given up"));
        }
        for told in told {
            match told {
                Told::Spoken(_) => {}
                Told::Failed(refusal) => return Err(refusal),
                Told::Ended(ended, no) => {
                    let inner = live.inner();
                    let turn = inner.state.tree.get(no);
                    let turn =
                        turn.ok_or_else(|| Refusal::new(Kind::Internal, "the answer was not recorded"))?;
                    return Ok(Choice { ended, ..gateway.recorded(turn, ear.choice(), logprobs) });
                }
            }
        }
    }
}

/// Everything as it comes.
pub(super) fn streamed(voice: Voice, answering: Answering) -> Body {
    let Answering { called, source, .. } = answering;
    let told: BoxStream<'static, Vec<Told>> = match source {
        Source::Flights(ears) => stream::select_all(ears.into_iter().map(|ear| heard(ear).boxed())).boxed(),
        Source::Recorded(choices) => stream::iter(choices.into_iter().map(replayed)).boxed(),
    };
    let first = Speaking { voice, told, called, step: Step::Begin };
    let body = stream::unfold(first, |mut speaking| async move {
        let bytes = speaking.next().await?;
        Some((Ok::<_, Infallible>(bytes), speaking))
    });
    Body::from_stream(body)
}

fn heard(ear: Ear) -> impl futures_util::Stream<Item = Vec<Told>> + Send {
    stream::unfold(ear, |mut ear| async move {
        let told = ear.next().await;
        (!told.is_empty()).then_some((told, ear))
    })
}

/// A choice that was made before, at once.
fn replayed(choice: Choice) -> Vec<Told> {
    let mut pieces = Vec::new();
    pieces.extend(choice.reasoning.map(Piece::Reasoning));
    if !choice.content.is_empty() {
        pieces.push(Piece::Content(choice.content));
    }
    for (index, call) in (0..).zip(choice.calls) {
        pieces.push(Piece::CallBegun { index, id: call.id, name: call.name });
        pieces.push(Piece::CallArguments { index, json: call.arguments });
    }
    let spoken = Spoken { choice: choice.ended.choice, pieces, tokens: choice.tokens };
    vec![Told::Spoken(spoken), Told::Ended(choice.ended, crate::session::turn::TurnNo(0))]
}

struct Speaking {
    voice: Voice,
    told: BoxStream<'static, Vec<Told>>,
    called: Arc<Called>,
    step: Step,
}

enum Step {
    Begin,
    Speak,
    Taken,
}

impl Speaking {
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        match self.step {
            Step::Begin => {
                self.voice.begin(&mut out);
                self.step = Step::Speak;
                return Some(out.into());
            }
            Step::Taken => {
                self.called.take();
                return None;
            }
            Step::Speak => {}
        }
        while out.is_empty() {
            let Some(told) = self.told.next().await else {
                self.voice.close(&mut out);
                self.step = Step::Taken;
                break;
            };
            for told in told {
                match told {
                    Told::Spoken(spoken) => self.voice.speak(&spoken, &mut out),
                    Told::Ended(ended, _) => self.voice.end(&ended, &mut out),
                    Told::Failed(refusal) => {
                        self.voice.fail(&refusal, &mut out);
                        self.step = Step::Taken;
                        return Some(out.into());
                    }
                }
            }
        }
        Some(out.into())
    }
}
