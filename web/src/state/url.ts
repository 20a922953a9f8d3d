/** What is on screen, as a URL: a link shows the next person exactly this. */

export const TABS = ["chat", "tokens", "group", "diff", "info"] as const;
export type Tab = (typeof TABS)[number];

export const LISTS = ["rows", "groups", "hits", "figures", "compare"] as const;
export type List = (typeof LISTS)[number];

/** One condition of a text search. */
export interface Condition {
  kind: "all" | "any" | "none";
  text: string;
  regex: boolean;
  case: boolean;
  /** Empty for all channels. */
  channels: string[];
}

export interface ViewState {
  places: string[];
  /** What the user typed into the filter box. */
  q: string;
  /** Narrower still, by clicks on facets, curves and figures; each is a filter of its own. */
  clauses: string[];
  sort: string;
  /** Null for the usual ones. */
  columns: string[] | null;
  list: List;
  search: Condition[];
  rollout: string | null;
  tab: Tab;
  message: number | null;
  /** Characters of that message's content, from and to. */
  range: [number, number] | null;
  /** Set where the range counts what the message says in one channel, as hits and quotes do. */
  channel: string | null;
  /** The rollout that the diff is made with. */
  other: string | null;
  /** The column of the curve, and the one that splits it. */
  curve: string;
  series: string | null;
  /** Places that the run is compared with. */
  against: string[];
  /** What colours the tokens. */
  heat: string;
  /** The token that is looked at, with the beginning of its rollout's id: `8d0fb2a1.412`. */
  token: string | null;
  /** The chat stands beside the tokens. */
  beside: boolean;
  /** The diff in one column. */
  inline: boolean;
  /** New rows are shown as they come. */
  follow: boolean;
}

export const INITIAL: ViewState = {
  places: [],
  q: "",
  clauses: [],
  sort: "",
  columns: null,
  list: "rows",
  search: [],
  rollout: null,
  tab: "chat",
  message: null,
  range: null,
  channel: null,
  other: null,
  curve: "reward_mean",
  series: null,
  against: [],
  heat: "logprob",
  token: null,
  beside: false,
  inline: false,
  follow: false,
};

function among<T extends string>(names: readonly T[], name: string | null, usual: T): T {
  return names.find((known) => known === name) ?? usual;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** `all:rc:assistant+reasoning:the text`; the text is last, so that it may hold anything. */
function parseCondition(text: string): Condition | null {
  const match = /^(all|any|none):([rc]*):([a-z_+]*):([\s\S]+)$/.exec(text);
  if (!match) return null;
  const [, kind, flags = "", channels = "", wanted = ""] = match;
  return {
    kind: kind as Condition["kind"],
    text: wanted,
    regex: flags.includes("r"),
    case: flags.includes("c"),
    channels: channels === "" ? [] : channels.split("+"),
  };
}

function formatCondition(condition: Condition): string {
  const flags = (condition.regex ? "r" : "") + (condition.case ? "c" : "");
  return `${condition.kind}:${flags}:${condition.channels.join("+")}:${condition.text}`;
}

/** Reads a query string. What it cannot read is left as it is at first: an old or broken link still opens. */
export function parse(search: string): ViewState {
  const params = new URLSearchParams(search);
  const range = /^(?:([a-z_]{1,20}):)?(\d{1,12})-(\d{1,12})$/.exec(params.get("c") ?? "");
  return {
    places: params.getAll("place"),
    q: params.get("q") ?? "",
    clauses: params.getAll("f"),
    sort: params.get("sort") ?? "",
    columns: params.has("cols") ? (params.get("cols") ?? "").split(",").filter(Boolean) : null,
    list: among(LISTS, params.get("list"), INITIAL.list),
    search: params.getAll("s").map(parseCondition).filter((condition) => condition !== null),
    rollout: params.get("r"),
    tab: among(TABS, params.get("tab"), INITIAL.tab),
    message: whole(params.get("m")),
    range: range ? [Number(range[2]), Number(range[3])] : null,
    channel: range?.[1] ?? null,
    other: params.get("other"),
    curve: params.get("curve") ?? INITIAL.curve,
    series: params.get("series"),
    against: params.getAll("against"),
    heat: params.get("heat") ?? INITIAL.heat,
    token: params.get("t"),
    beside: params.get("beside") === "1",
    inline: params.get("inline") === "1",
    follow: params.get("follow") === "1",
  };
}

/** The other way; what is as usual is left out, so that links stay short. */
export function format(state: ViewState): string {
  const params = new URLSearchParams();
  const put = (name: string, value: string | null, usual: string | null = null) => {
    if (value !== null && value !== "" && value !== usual) params.append(name, value);
  };
  for (const place of state.places) put("place", place);
  put("q", state.q);
  for (const clause of state.clauses) put("f", clause);
  put("sort", state.sort);
  if (state.columns) put("cols", state.columns.join(","));
  put("list", state.list, INITIAL.list);
  for (const condition of state.search) put("s", formatCondition(condition));
  put("r", state.rollout);
  put("tab", state.tab, INITIAL.tab);
  put("m", state.message === null ? null : String(state.message));
  put("c", state.range ? (state.channel === null ? "" : `${state.channel}:`) + state.range.join("-") : null);
  put("other", state.other);
  put("curve", state.curve, INITIAL.curve);
  put("series", state.series);
  for (const place of state.against) put("against", place);
  put("heat", state.heat, INITIAL.heat);
  put("t", state.token);
  put("beside", state.beside ? "1" : null);
  put("inline", state.inline ? "1" : null);
  put("follow", state.follow ? "1" : null);
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

/** All that narrows the rows, as one filter. */
export function filterOf(state: Pick<ViewState, "q" | "clauses">): string {
  const parts = [state.q, ...state.clauses].map((part) => part.trim()).filter(Boolean);
  return parts.length < 2 ? (parts[0] ?? "") : parts.map((part) => `(${part})`).join(" AND ");
}

/** A text as the filter language quotes it. */
export function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** The filter for one value of a column. */
export function equals(field: string, value: unknown): string {
  if (value === null || value === undefined) return `${field} is null`;
  // Integers that a browser would round come as text and are numbers to the server.
  if (typeof value === "string" && !/^-?\d{16,}$/.test(value)) return `${field} == ${quoted(value)}`;
  return `${field} == ${JSON.stringify(value).replaceAll('"', "")}`;
}
