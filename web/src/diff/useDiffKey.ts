import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";

/** `d` shows how the rollout differs from a sibling, from whichever tab. */
export function useDiffKey() {
  const [{ rollout }, set] = useViewState();
  useKey(rollout === null ? null : { keys: "d", label: "Diff with a sibling", group: "Reader", run: () => set({ tab: "diff" }) });
}
