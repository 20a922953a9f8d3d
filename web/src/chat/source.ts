/**
 * Rendered Markdown that still knows where it comes from: every text of the tree becomes pieces that say their place
 * in the source, with marks and visible signs for what cannot be seen.
 */

import { segments, type Segment, type TextMark } from "@/text/segments";

/** As much of a tree of HTML as is needed here. */
export interface Node {
  type: string;
  tagName?: string;
  value?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
  position?: { start: { offset?: number }; end: { offset?: number } };
}

/** For `rehypePlugins`. `base` is where the source begins in the text of the part. */
export function withSource(source: string, base: number, marks: readonly TextMark[]) {
  return () => (tree: Node) => {
    let cursor = 0;
    const pieces = (value: string, within: Node): Node[] => {
      const from = Math.max(cursor, within.position?.start.offset ?? 0);
      const found = source.indexOf(value, from);
      const to = within.position?.end.offset ?? source.length;
      if (found < 0 || found + value.length > to) return apart(value, Math.min(from, to), base);
      cursor = found + value.length;
      return segments(source, found, cursor, shifted(marks, base)).map((segment) => piece(segment, base));
    };
    const visit = (parent: Node, placed: Node) => {
      parent.children = parent.children?.flatMap((child) => {
        const at = child.position ? child : placed;
        // Markup of the source is text like any other.
        if (child.type === "text" || child.type === "raw") return pieces(child.value ?? "", at);
        visit(child, at);
        return [child];
      }) as Node[];
    };
    visit(tree, tree);
  };
}

function shifted(marks: readonly TextMark[], base: number): TextMark[] {
  return marks.map((mark) => ({ ...mark, from: mark.from - base, to: mark.to - base }));
}

/** What is written otherwise in the source, as `&amp;` is: it has no marks, but is shown with the same care. */
function apart(value: string, at: number, base: number): Node[] {
  return segments(value, 0, value.length, []).map((segment) => piece({ ...segment, at, length: 0 }, base, true));
}

function piece(segment: Segment, base: number, isApart = false): Node {
  const properties: Record<string, unknown> = { dataAt: segment.at + base };
  if (segment.odd !== undefined || isApart) properties["dataLength"] = segment.length;
  if (segment.kinds.length > 0) properties["dataKind"] = segment.kinds.join(" ");
  const title = segment.odd ?? segment.label;
  if (title !== undefined) properties["title"] = title;
  if (segment.odd !== undefined) properties["dataOdd"] = "1";
  return {
    type: "element",
    tagName: segment.kinds.length > 0 ? "mark" : "span",
    properties,
    children: [{ type: "text", value: segment.text }],
  };
}
