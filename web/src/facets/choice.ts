/** What a facet has chosen, as clauses of the filter and back: the URL is the only place where it is kept. */

import { equals } from "@/state/url";

export type Value = string | number | boolean | null;

export interface Choice {
  /** One of these; empty for all. */
  only: Value[];
  /** None of these. */
  not: Value[];
  /** Between these, both included unless `open`. */
  range: Range | null;
}

export interface Range {
  from: number | null;
  to: number | null;
  /** The upper end itself is left out. */
  open: boolean;
}

export const NOTHING: Choice = { only: [], not: [], range: null };

/** A field's name as filters spell it. */
export function named(field: string): string {
  return /^[a-z_][\w.]*$/i.test(field) ? field : `\`${field}\``;
}

export const isSame = (a: Value, b: Value) => JSON.stringify(a) === JSON.stringify(b);

const LITERAL = String.raw`"(?:[^"\\]|\\.)*"|-?[\w.+-]+`;

function valueOf(literal: string): Value {
  if (literal.startsWith('"')) return literal.slice(1, -1).replaceAll(/\\(.)/gs, "$1");
  if (literal === "true" || literal === "false") return literal === "true";
  return /^-?\d{16,}$/.test(literal) ? literal : Number(literal);
}

/** The clause for one of several values. */
function among(name: string, values: Value[]): string {
  const given = values.filter((value) => value !== null);
  if (given.length < 2) return values.map((value) => equals(name, value)).join(" or ");
  const literals = given.map((value) => equals("", value).slice(4));
  return `${name} in (${literals.join(", ")})${given.length < values.length ? ` or ${name} is null` : ""}`;
}

/** `withNulls`: rows that do not have the field are not the value that is left out, and so they stay. */
export function clausesOf(field: string, choice: Choice, withNulls: boolean): string[] {
  const name = named(field);
  const clauses = choice.only.length > 0 ? [among(name, choice.only)] : [];
  for (const value of choice.not) {
    if (value === null) clauses.push(`${name} is not null`);
    else clauses.push(equals(name, value).replace(" == ", " != ") + (withNulls ? ` or ${name} is null` : ""));
  }
  const { from = null, to = null, open = false } = choice.range ?? {};
  const ends = [from === null ? "" : `${name} >= ${from}`, to === null ? "" : `${name} ${open ? "<" : "<="} ${to}`].filter(Boolean);
  if (ends.length > 0) clauses.push(ends.join(" and "));
  return clauses;
}

/** What one clause says of a field, where it is one that a facet could have made. */
function read(name: string, clause: string): Partial<Choice> | null {
  const escaped = name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const match = (pattern: string) => new RegExp(`^${pattern.replaceAll("NAME", () => escaped).replaceAll("LITERAL", () => `(?:${LITERAL})`)}$`, "s").exec(clause);
  const orNull = "( or NAME is null)?";
  let found = match("NAME is null");
  if (found) return { only: [null] };
  if (match("NAME is not null")) return { not: [null] };
  found = match(`NAME == (LITERAL)${orNull}`);
  if (found) return { only: [valueOf(found[1] ?? ""), ...(found[2] === undefined ? [] : [null])] };
  found = match(`NAME != (LITERAL)${orNull}`);
  if (found) return { not: [valueOf(found[1] ?? "")] };
  found = match(`NAME in \\((LITERAL(?:, LITERAL)*)\\)${orNull}`);
  if (found) {
    const literals = (found[1] ?? "").match(new RegExp(LITERAL, "gs")) ?? [];
    return { only: [...literals.map(valueOf), ...(found[2] === undefined ? [] : [null])] };
  }
  const number = String.raw`(-?[\d.]+(?:e[+-]?\d+)?)`;
  found = match(`(?:NAME >= ${number})?(?: and )?(?:NAME (<=?) ${number})?`);
  if (found && clause !== "") {
    return { range: { from: found[1] === undefined ? null : Number(found[1]), to: found[3] === undefined ? null : Number(found[3]), open: found[2] === "<" } };
  }
  return null;
}

/** What all clauses say of a field, and those that are about something else. */
export function choiceOf(field: string, clauses: string[]): { choice: Choice; others: string[] } {
  const name = named(field);
  const choice: Choice = { only: [], not: [], range: null };
  const others: string[] = [];
  for (const clause of clauses) {
    const said = read(name, clause);
    if (!said) others.push(clause);
    choice.only.push(...(said?.only ?? []));
    choice.not.push(...(said?.not ?? []));
    choice.range = said?.range ?? choice.range;
  }
  return { choice, others };
}

/** The choice with one value turned the other way. */
export function turned(choice: Choice, which: "only" | "not", value: Value): Choice {
  const without = (values: Value[]) => values.filter((other) => !isSame(other, value));
  const was = choice[which].some((other) => isSame(other, value));
  const next = { ...choice, only: without(choice.only), not: without(choice.not) };
  return was ? next : { ...next, [which]: [...next[which], value] };
}
