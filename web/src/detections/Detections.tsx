import { useJump, type JumpSpan } from "@/reader/useJump";
import type { Detection } from "@/reader/useRollout";
import css from "./Detections.module.css";

const NAMES: Record<string, string> = {
  leak: "Answer leak",
  tampering: "Test tampering",
  format_only: "Format-only win",
  dead_group: "Dead group",
  length_ratio: "Length inflation",
  repetition: "Repetition",
};

/** The stretch that a detector fired at; null where it is about the whole rollout. */
export function spanOf({ message, channel = null, start, end }: Detection): JumpSpan | null {
  if (typeof message !== "number" || typeof start !== "number" || typeof end !== "number") return null;
  return { message, channel, start, end };
}

/** What looks wrong with a rollout, why, and where. */
export function Detections({ detections }: { detections: Detection[] }) {
  const jump = useJump();
  if (detections.length === 0) return null;
  return (
    <ul className={css["detections"]} aria-label="Detections">
      {detections.map((detection, n) => {
        const span = spanOf(detection);
        const name = NAMES[detection.detector] ?? detection.detector.replaceAll("_", " ");
        return (
          <li key={n}>
            <span className={css["name"]}>{name}</span>
            <span className={css["why"]}>{detection.why}</span>
            {span && (
              <button type="button" title={detection.quote ?? undefined} aria-label={`Show where: ${name}`} onClick={() => jump(span)}>
                Show
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
