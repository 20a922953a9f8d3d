/** What a reader has selected, in the terms of the rollout rather than of the page. */

import type { Message, Part } from "./parts";
import { spanBetween, type Place, type Span } from "./places";

export interface Selected extends Span {
  text: string;
}

/** Where a point of the page comes from: its part, and units of that part's text. */
function sourceOf(node: Node, offset: number, parts: ReadonlyMap<number, Part>): { part: Part; at: number } | null {
  let element: Element | null;
  let inside = offset;
  if (node.nodeType === Node.TEXT_NODE) {
    element = node.parentElement?.closest("[data-at]") ?? null;
  } else {
    // Between elements: the text after the point, or the end of that before it.
    const child = node.childNodes[offset];
    const after = child instanceof Element ? (child.matches("[data-at]") ? child : child.querySelector("[data-at]")) : (child?.parentElement?.closest("[data-at]") ?? null);
    const before = node instanceof Element ? [...node.querySelectorAll("[data-at]")].at(-1) : undefined;
    element = after ?? before ?? null;
    inside = after ? 0 : (before?.textContent.length ?? 0);
  }
  const holder = element?.closest("[data-part]");
  const part = parts.get(Number(holder?.getAttribute("data-part")));
  if (!element || !holder || !part) return null;
  const at = Number(element.getAttribute("data-at"));
  const whole = element.getAttribute("data-length");
  return { part, at: whole === null ? at + inside : at + (inside > 0 ? Number(whole) : 0) };
}

export function selectedIn(within: Element, messages: readonly Message[]): Selected | null {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || selection.rangeCount === 0) return null;
  const range = selection.getRangeAt(0);
  if (!within.contains(range.commonAncestorContainer)) return null;
  const parts = new Map(messages.flatMap((message) => message.parts).map((part) => [part.index, part]));
  const start = sourceOf(range.startContainer, range.startOffset, parts);
  const end = sourceOf(range.endContainer, range.endOffset, parts);
  if (!start) return null;
  const first: Place = { part: start.part, from: start.at, to: start.at };
  const last: Place = end ? { part: end.part, from: end.at, to: end.at } : { part: start.part, from: 0, to: start.part.text.length };
  const span = spanBetween(first, last);
  return span && span.end > span.start ? { ...span, text: selection.toString() } : null;
}
