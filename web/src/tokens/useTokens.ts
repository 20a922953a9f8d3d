import { api, ApiError, ask, type Schema } from "@/api/client";
import { useAsk } from "@/api/view";

/** What the server knows of each token. All but the ids and texts are about the tokens after the prompt. */
export type TokensAnswer = Schema["TokensAnswer"];

/** Fields that hold tokens, as the formats name them. */
const FIELDS = ["tokens", "prompt_tokens", "response_tokens", "turns"];

/** Whether it is worth asking: a length in the summary does not mean that the tokens themselves were kept. */
export function mayHaveTokens({ rest }: Pick<Schema["RolloutAnswer"], "rest">): boolean {
  return FIELDS.some((name) => name in rest);
}

/** The tokens of a rollout, with the id that they belong to: while those of the next one come, these are still shown. */
export function useTokens(id: string | null, enabled = true) {
  return useAsk(
    ["tokens", id],
    async (view) => {
      try {
        const answer = await ask(api.GET("/api/view/{view}/rollouts/{id}/tokens", { params: { path: { view, id: id ?? "" } } }));
        return { id, answer };
      } catch (error) {
        // Most rows of most files have none, so that it is an answer and not a failure.
        if (error instanceof ApiError && error.code === "no_tokens") return { id, answer: null };
        throw error;
      }
    },
    { enabled: enabled && id !== null, live: false },
  );
}
