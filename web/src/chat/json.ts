/**
 * JSON in lines, token by token as it was written: no number is rounded, no key is lost, and every sign knows where it
 * stands in the source, so that hits in it can be marked.
 */

export interface Cell {
  at: number;
  to: number;
  /** In place of the source, where that is an escape. */
  shown: string | null;
  kind: "key" | "string" | "value" | "sign";
}

export interface Line {
  depth: number;
  cells: Cell[];
  /** For a line that opens something: the line that closes it, and how much is in it. */
  closes: number | null;
  entries: number;
}

const TOKEN = /\s+|[{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+/gy;
const INLINE_UNITS = 64;

interface Token {
  at: number;
  to: number;
  sign: string;
}

function tokensOf(text: string, from: number, to: number): Token[] {
  const tokens: Token[] = [];
  for (const match of text.slice(from, to).matchAll(TOKEN)) {
    if (match[0].trim() !== "") tokens.push({ at: from + match.index, to: from + match.index + match[0].length, sign: match[0].charAt(0) });
  }
  return tokens;
}

/** Null for what is not JSON. */
export function jsonLines(text: string, from: number, to: number): Line[] | null {
  try {
    JSON.parse(text.slice(from, to));
  } catch {
    return null;
  }
  const tokens = tokensOf(text, from, to);
  const ends = closings(tokens);
  const lines: Line[] = [];
  const opened: number[] = [];
  let line: Line = { depth: 0, cells: [], closes: null, entries: 0 };
  const put = (token: Token, kind: Cell["kind"]) => line.cells.push({ at: token.at, to: token.to, shown: null, kind });
  const turn = (depth: number) => {
    lines.push(line);
    line = { depth, cells: [], closes: null, entries: 0 };
  };
  let inlineUntil = -1;
  tokens.forEach((token, i) => {
    const isKey = tokens[i + 1]?.sign === ":";
    if (token.sign === "{" || token.sign === "[") {
      put(token, "sign");
      const end = ends.get(i) ?? i;
      const isShort = (tokens[end]?.to ?? 0) - token.at <= INLINE_UNITS && !text.slice(token.at, tokens[end]?.to).includes("\\n");
      if (i > inlineUntil && !isShort) {
        opened.push(lines.length);
        turn(opened.length);
      } else inlineUntil = Math.max(inlineUntil, end);
    } else if (token.sign === "}" || token.sign === "]") {
      if (i > inlineUntil) {
        const opener = opened.pop() ?? 0;
        turn(opened.length);
        const open = lines[opener];
        if (open) open.closes = lines.length;
      }
      put(token, "sign");
    } else if (token.sign === ",") {
      put(token, "sign");
      if (i > inlineUntil) {
        const open = lines[opened.at(-1) ?? -1];
        if (open) open.entries += 1;
        turn(opened.length);
      } else space(line, token);
    } else if (token.sign === ":") {
      put(token, "sign");
      space(line, token);
    } else if (token.sign === '"' && !isKey && text.slice(token.at, token.to).includes("\\n")) {
      written(text, token, line, () => {
        turn(opened.length + 1);
        return line;
      });
    } else put(token, isKey ? "key" : token.sign === '"' ? "string" : "value");
  });
  lines.push(line);
  return lines;
}

function space(line: Line, after: Token) {
  line.cells.push({ at: after.to, to: after.to, shown: " ", kind: "sign" });
}

/** A text of several lines is shown in lines: it is code, or a file, and is read as such. */
function written(text: string, token: Token, first: Line, turn: () => Line) {
  let line = first;
  const put = (at: number, to: number, shown: string | null = null) => at < to && line.cells.push({ at, to, shown, kind: "string" });
  put(token.at, token.at + 1);
  line = turn();
  let at = token.at + 1;
  for (const match of text.slice(token.at, token.to).matchAll(/\\(?:u[0-9a-fA-F]{4}|.)/g)) {
    const from = token.at + match.index;
    const to = from + match[0].length;
    const plain = { "\\n": "", "\\t": "\t", '\\"': '"', "\\\\": "\\", "\\/": "/" }[match[0]];
    if (plain === undefined) continue;
    put(at, from);
    if (match[0] === "\\n") line = turn();
    else put(from, to, plain);
    at = to;
  }
  put(at, token.to);
}

function closings(tokens: readonly Token[]): Map<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  tokens.forEach(({ sign }, i) => {
    if (sign === "{" || sign === "[") open.push(i);
    else if (sign === "}" || sign === "]") ends.set(open.pop() ?? i, i);
  });
  return ends;
}
