/** What the page says of the nodes that share the runs. */

import type { Schema } from "@/api/client";

export type NodesAnswer = Schema["NodesAnswer"];

export interface NodeLine {
  node: string;
  url: string;
  /** This is the one that the page comes from. */
  asked: boolean;
  alive: boolean;
  state: string;
  runs: string[];
}

export interface Nodes {
  lines: NodeLine[];
  /** Runs that nobody owns. */
  orphans: string[];
}

/** Null for a server that is by itself: there is nothing to tell. */
export function nodesOf(answer: NodesAnswer | undefined): Nodes | null {
  if (!answer || (!answer.clustered && answer.nodes.length < 2)) return null;
  const lines = answer.nodes.map(({ node, url, alive, this: asked, heard_ms_ago, runs }) => ({
    node,
    url,
    asked,
    alive,
    state: alive ? "alive" : `not heard for ${Math.round(heard_ms_ago / 1000)} s`,
    runs: runs.map(({ run }) => run),
  }));
  return { lines, orphans: answer.runs.filter(({ owner }) => (owner ?? null) === null).map(({ run }) => run) };
}
