import type { ReactNode } from "react";

/** A first visit, or places that cannot be opened. */
export function Welcome({ problem }: { problem?: ReactNode }) {
  return <div>{problem}</div>;
}
