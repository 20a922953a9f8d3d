/** What became of a rollout, in a sentence. */

/** The words of the ledger, for those who do not know it by heart. */
const REASONS: Record<string, string> = {
  no_variance: "all rewards of its group were equal",
  stale: "its weights were too old",
  too_old: "its weights were too old",
  duplicate: "it had been written before",
  requested: "somebody asked for it",
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
