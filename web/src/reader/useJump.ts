import { useCallback } from "react";
import { useViewState } from "@/state/location";

export interface JumpSpan {
  message: number;
  start: number;
  end: number;
  channel: string | null;
}

/** Shows a stretch of the open rollout in the chat. */
export function useJump(): (span: JumpSpan) => void {
  const [, set] = useViewState();
  return useCallback(({ message, start, end, channel }) => set({ tab: "chat", message, range: [start, end], channel }), [set]);
}
