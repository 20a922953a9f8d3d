/** What became of a rollout, in a sentence. */

/** The words of the ledger, for those who do not know it by heart. */
const REASONS: Record<string, string> = {
  no_variance: "all rewards of its group were equal",
  too_few_answers: "too few of its group ended in an answer",
  too_few_in_time: "its group ended with too few rollouts",
  filtered: "the filter took it out of a group that was used",
  too_few_valid: "the filter left too few of its group",
  cannot_pad: "its group was too short to be padded with copies",
  requested: "somebody asked for it",
  corrupt: "its bytes on disk did not match their checksum",
  stale_step: "the trainer was too many steps ahead of its weights",
  stale_time: "it was made too long ago",
  stale_tokens: "all its tokens came from weights too far behind",
  future_step: "its weights were not ones that the trainer had",
  capacity: "newer rollouts needed the room",
  hook_rejected: "its generator found the group not valid",
  hook_failed: "a function of its generator failed",
  regenerated: "its generator made the group anew",
};

const STATES: Record<string, string> = {
  trained: "Trained on",
  held: "Held: it waits to be trained on",
  dropped: "Dropped: the trainer never saw it",
  accepted: "Accepted",
  rejected: "Rejected: it did not get in",
  failed: "Failed",
};

export interface Known {
  status: string | null;
  reason: string | null;
  trainedStep: number | null;
}

export function fateOf({ status, reason, trainedStep }: Known): string {
  if (status === null) return "The row does not say what became of it.";
  const state = STATES[status] ?? status;
  const when = status === "trained" && trainedStep !== null ? ` at step ${trainedStep}` : "";
  if (reason === null) return `${state}${when}.`;
  const why = REASONS[reason];
  return `${state}${when}. Reason: ${reason}${why === undefined ? "" : `, ${why}`}.`;
}

/** How old its weights were, in a sentence. */
export function ageOf(version: number | null, lag: number | null, mixed: boolean): string | null {
  if (version === null) return null;
  const from = mixed ? `Its first token was sampled by version ${version}, later ones by others` : `Sampled by version ${version}`;
  if (lag === null) return `${from}.`;
  return `${from}, ${lag === 0 ? "the newest when it was trained on" : `${lag} ${lag === 1 ? "step" : "steps"} behind what was trained`}.`;
}
