import { useMemo } from "react";
import type { Mark } from "@/chat/places";
import { spanOf } from "@/detections/Detections";
import { placesIn } from "@/hits/place";
import type { Notes } from "@/notes/useNotes";
import { useViewState } from "@/state/location";
import type { Rollout } from "./useRollout";

/** Everything that stands out in the text of a rollout: hits, comments, quotes of grades, detections. */
export function useMarks(rollout: Rollout, { comments, byModels }: Notes): Mark[] {
  const [{ search }] = useViewState();
  const { pieces, detections } = rollout;
  const hits = useMemo(() => placesIn(pieces, search), [pieces, search]);
  return useMemo(() => {
    const marks: Mark[] = hits.map(({ message, channel, range: [start, end] }) => ({ message, channel, start, end, kind: "hit" }));
    for (const { span, text, by = "" } of comments) if (span) marks.push({ ...span, kind: "note", label: by === "" ? text : `${by}: ${text ?? ""}` });
    for (const { quotes = [], metric = "" } of byModels) {
      for (const { span } of quotes) if (span) marks.push({ ...span, kind: "quote", label: `quoted for ${metric}` });
    }
    for (const detection of detections) {
      const span = spanOf(detection);
      if (span) marks.push({ ...span, kind: "detection", label: detection.why });
    }
    return marks;
  }, [hits, comments, byModels, detections]);
}
