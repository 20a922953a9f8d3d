/** The differences of two texts, by words where they are short enough and by coarser parts where they are not. */

import { diffArrays } from "diff";

export interface Segment {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Sizes in characters of both texts together, without what they begin and end with in common. */
const BY_WORDS_MAX = 200_000;
const BY_LINES_MAX = 5_000_000;
/**
 * Two long texts with little in common would take minutes, and the answer would say no more. Steps and not time, so that
 * the same two texts have the same diff on every machine; so many take about a second.
 */
const EDITS_MAX = 3_000;

type Grain = "words" | "lines" | "blocks";

const SPLITS: Record<Grain, RegExp> = {
  words: /[\p{L}\p{N}_]+|\n|[^\S\n]+|[^\p{L}\p{N}_\s]/gu,
  lines: /[^\n]*\n|[^\n]+/g,
  blocks: /[^\n]{0,4096}(?:\n+|$)|[^\n]{4096}/g,
};

const split = (text: string, grain: Grain): string[] => text.match(SPLITS[grain])?.filter((part) => part !== "") ?? [];

export function compare(left: string, right: string): Segment[] {
  if (left === right) return left === "" ? [] : [{ kind: "same", text: left }];
  const start = startOf(left, right);
  const end = endOf(left, right, start);
  const [a, b] = [left.slice(start, left.length - end), right.slice(start, right.length - end)];
  return joined([{ kind: "same", text: left.slice(0, start) }, ...between(a, b), { kind: "same", text: left.slice(left.length - end) }]);
}

function between(left: string, right: string): Segment[] {
  const size = left.length + right.length;
  const grains: Grain[] = size <= BY_WORDS_MAX ? ["words", "lines"] : size <= BY_LINES_MAX ? ["lines", "blocks"] : ["blocks"];
  for (const grain of left === "" || right === "" ? [] : grains) {
    const changes = diffArrays(split(left, grain), split(right, grain), { maxEditLength: EDITS_MAX });
    if (!changes) continue;
    return changes.map(({ added, removed, value }) => ({ kind: added ? "added" : removed ? "removed" : "same", text: value.join("") }));
  }
  return [
    { kind: "removed", text: left },
    { kind: "added", text: right },
  ];
}

const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}_\ud800-\udfff]/u.test(character);

/** Characters that both begin with; a word that they share only a part of is not shared. */
function startOf(left: string, right: string): number {
  const most = Math.min(left.length, right.length);
  let n = 0;
  while (n < most && left.charCodeAt(n) === right.charCodeAt(n)) n++;
  while (n > 0 && isWord(left[n - 1]) && (isWord(left[n]) || isWord(right[n]))) n--;
  return n;
}

function endOf(left: string, right: string, start: number): number {
  const most = Math.min(left.length, right.length) - start;
  let n = 0;
  while (n < most && left.charCodeAt(left.length - 1 - n) === right.charCodeAt(right.length - 1 - n)) n++;
  while (n > 0 && isWord(left[left.length - n]) && (isWord(left[left.length - n - 1]) || isWord(right[right.length - n - 1]))) n--;
  return n;
}

/** A lone space between two changed words is no rest for the eye: it counts as changed too. */
function joined(segments: Segment[]): Segment[] {
  const result: Segment[] = [];
  let removed = "";
  let added = "";
  const flush = () => {
    if (removed !== "") result.push({ kind: "removed", text: removed });
    if (added !== "") result.push({ kind: "added", text: added });
    removed = added = "";
  };
  segments.forEach((segment, i) => {
    if (segment.text === "") return;
    if (segment.kind === "removed") removed += segment.text;
    else if (segment.kind === "added") added += segment.text;
    else if (/^[^\S\n]+$/.test(segment.text) && removed !== "" && added !== "" && changesGoOn(segments, i)) {
      removed += segment.text;
      added += segment.text;
    } else {
      flush();
      const last = result.at(-1);
      if (last?.kind === "same") last.text += segment.text;
      else result.push({ ...segment });
    }
  });
  flush();
  return result;
}

function changesGoOn(segments: Segment[], i: number): boolean {
  const [next, after] = [segments[i + 1], segments[i + 2]];
  return next !== undefined && after !== undefined && next.kind !== "same" && after.kind !== "same";
}
