import { memo, type ReactNode } from "react";
import { segments, type Segment, type TextMark } from "./segments";
import css from "./Text.module.css";

interface Props {
  text: string;
  from?: number;
  to?: number;
  marks?: readonly TextMark[];
}

const NONE: readonly TextMark[] = [];

/** Hostile text, shown as text: nothing in it is markup, and nothing in it is invisible. */
export const Text = memo(function Text({ text, from = 0, to = text.length, marks = NONE }: Props) {
  return segments(text, from, to, marks).map((segment) => <Piece key={segment.at} segment={segment} />);
});

/** One segment. It says where it comes from, so that a selection can be told in characters of the source. */
export function Piece({ segment, className }: { segment: Segment; className?: string | undefined }): ReactNode {
  const { text, at, length, kinds, label, odd } = segment;
  if (odd === undefined && kinds.length === 0) {
    return (
      <span data-at={at} className={className}>
        {text}
      </span>
    );
  }
  const inner = odd === undefined ? text : <span className={css["odd"]}>{text}</span>;
  // A character that is shown by several signs is still one: it is selected as a whole.
  const whole = odd === undefined ? undefined : length;
  if (kinds.length === 0) {
    return (
      <span data-at={at} data-length={whole} title={odd} className={className}>
        {inner}
      </span>
    );
  }
  return (
    <mark data-at={at} data-length={whole} data-kind={kinds.join(" ")} title={odd ?? label} className={[css["mark"], className].filter(Boolean).join(" ")}>
      {inner}
    </mark>
  );
}
