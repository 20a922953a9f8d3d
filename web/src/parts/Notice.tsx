import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import css from "./Notice.module.css";

interface Props {
  /** What happened, in a sentence. */
  title: string;
  /** What to do about it. */
  children?: ReactNode;
  kind?: "plain" | "error";
}

/** Stands where rows would: nothing there, still coming, or gone wrong. */
export function Notice({ title, children, kind = "plain" }: Props) {
  return (
    <div className={css["notice"]} data-kind={kind} role={kind === "error" ? "alert" : "status"}>
      <p className={css["title"]}>{title}</p>
      {children !== undefined && <div className={css["more"]}>{children}</div>}
    </div>
  );
}

export function ErrorNotice({ error, title, children }: { error: Error; title: string; children?: ReactNode }) {
  const away = error instanceof ApiError && error.isAway;
  return (
    <Notice kind={away ? "plain" : "error"} title={title}>
      <p>{error.message}</p>
      {children}
    </Notice>
  );
}
