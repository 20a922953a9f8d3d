/** Which part of one rollout answers to which of the other. */

export interface Piece {
  message: number;
  channel: string;
  text: string;
}

/** Null where the other side has nothing like it. */
export interface Pair {
  left: Piece | null;
  right: Piece | null;
}

/** Beyond it, alignment costs more than it says; parts are then paired in order. */
const CELLS_MAX = 160_000;
/** So much of a text decides how alike two are. */
const LOOKED_AT = 2_000;

const sharedWords = new WeakMap<Piece, Set<string>>();

function wordsOf(piece: Piece): Set<string> {
  let words = sharedWords.get(piece);
  if (!words) {
    words = new Set(piece.text.slice(0, LOOKED_AT).toLowerCase().match(/[\p{L}\p{N}]+/gu));
    sharedWords.set(piece, words);
  }
  return words;
}

/** From 0, nothing in common, to 1, the same. Of different channels nothing is. */
export function likeness(left: Piece, right: Piece): number {
  if (left.channel !== right.channel) return 0;
  if (left.text === right.text) return 1;
  const [a, b] = [wordsOf(left), wordsOf(right)];
  let common = 0;
  for (const word of a) common += Number(b.has(word));
  const all = a.size + b.size - common;
  // Even without a common word, two answers at the same place are held against each other.
  return 0.1 + 0.85 * (all === 0 ? 0 : common / all);
}

const same = (left: Piece | undefined, right: Piece | undefined) => left?.channel === right?.channel && left?.text === right?.text;

/** Pairs in reading order, such that the likenesses add up to the most. */
export function align(left: Piece[], right: Piece[]): Pair[] {
  let start = 0;
  while (start < left.length && start < right.length && same(left[start], right[start])) start++;
  const head = left.slice(0, start).map((piece, i): Pair => ({ left: piece, right: right[i] ?? null }));
  return [...head, ...middle(left.slice(start), right.slice(start))];
}

function middle(left: Piece[], right: Piece[]): Pair[] {
  if (left.length * right.length > CELLS_MAX) return inOrder(left, right);
  const width = right.length + 1;
  // best[i * width + j] is the most that left from i and right from j can add up to.
  const best = new Float64Array((left.length + 1) * width);
  const at = (i: number, j: number) => best[i * width + j] ?? 0;
  const likenesses = new Float64Array(left.length * right.length);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      const [a, b] = [left[i], right[j]];
      const like = a && b ? likeness(a, b) : 0;
      likenesses[i * right.length + j] = like;
      best[i * width + j] = Math.max(at(i + 1, j), at(i, j + 1), like > 0 ? like + at(i + 1, j + 1) : 0);
    }
  }
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const like = i < left.length && j < right.length ? (likenesses[i * right.length + j] ?? 0) : 0;
    if (like > 0 && at(i, j) === like + at(i + 1, j + 1)) pairs.push({ left: left[i++] ?? null, right: right[j++] ?? null });
    else if (i < left.length && (j >= right.length || at(i, j) === at(i + 1, j))) pairs.push({ left: left[i++] ?? null, right: null });
    else pairs.push({ left: null, right: right[j++] ?? null });
  }
  return pairs;
}

function inOrder(left: Piece[], right: Piece[]): Pair[] {
  const pairs: Pair[] = [];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [a, b] = [left[i] ?? null, right[i] ?? null];
    if (a && b && a.channel !== b.channel) pairs.push({ left: a, right: null }, { left: null, right: b });
    else pairs.push({ left: a, right: b });
  }
  return pairs;
}

/** How many leading values two lists share. */
export function commonStart<T>(left: readonly T[], right: readonly T[]): number {
  const most = Math.min(left.length, right.length);
  let n = 0;
  while (n < most && left[n] === right[n]) n++;
  return n;
}
