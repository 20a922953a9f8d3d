/** What terminals print: colours become ours, other commands to the terminal are left out, the text stays. */

export interface Run {
  from: number;
  to: number;
  colour: string | null;
  bold: boolean;
  dim: boolean;
  underline: boolean;
  inverse: boolean;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

// Colours and other commands, links and titles. Any other escape is shown for what it is.
const COMMAND = /\x1b\[([0-9;:?]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)/g;

type Style = Omit<Run, "from" | "to">;
const PLAIN: Style = { colour: null, bold: false, dim: false, underline: false, inverse: false };

/** The stretches of a text between commands, each with its style. */
export function runs(text: string): Run[] {
  const result: Run[] = [];
  let style = PLAIN;
  let from = 0;
  const put = (to: number) => to > from && result.push({ from, to, ...style });
  for (const match of text.matchAll(COMMAND)) {
    put(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, (match[1] ?? "").split(/[;:]/).map(Number));
  }
  put(text.length);
  return result;
}

function styled(before: Style, codes: number[]): Style {
  let style = before;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 0) style = PLAIN;
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 2) style = { ...style, dim: true };
    else if (code === 4) style = { ...style, underline: true };
    else if (code === 7) style = { ...style, inverse: true };
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 24) style = { ...style, underline: false };
    else if (code === 27) style = { ...style, inverse: false };
    else if (code === 39) style = { ...style, colour: null };
    else if (code >= 30 && code <= 37) style = { ...style, colour: COLOURS[code - 30] ?? null };
    else if (code >= 90 && code <= 97) style = { ...style, colour: COLOURS[code - 90] ?? null };
    else if (code === 38 || code === 48) {
      const isIndexed = codes[i + 1] === 5;
      const colour = isIndexed ? indexed(codes[i + 2] ?? 0) : closest(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0);
      if (code === 38) style = { ...style, colour };
      i += isIndexed ? 2 : 4;
    }
  }
  return style;
}

function indexed(n: number): string {
  if (n < 16) return COLOURS[n % 8] ?? "white";
  if (n >= 232) return n < 244 ? "black" : "white";
  const cube = n - 16;
  const level = (value: number) => (value % 6) * 51;
  return closest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6)), level(cube));
}

/** One of eight: the page has its own colours, which can be read in both themes. */
function closest(red: number, green: number, blue: number): string {
  const middle = (Math.max(red, green, blue) + Math.min(red, green, blue)) / 2;
  const bit = (value: number) => (value > middle || (value === middle && value > 127) ? 1 : 0);
  return COLOURS[bit(red) + 2 * bit(green) + 4 * bit(blue)] ?? "white";
}
