import { useEffect, useState, type ReactNode } from "react";
import { Button } from "@/parts/Button";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { useLate } from "@/parts/useLate";
import { follow, type Followed } from "./follow-old-link";
import { go, useViewState } from "./location";
import { parseOldLink } from "./old-links";
import { format } from "./url";
import css from "./OldLink.module.css";

/** Turns a link of the older viewer into one of today before anything is shown, and says what was not certain. */
export function OldLink({ children }: { children: ReactNode }) {
  const [state, set] = useViewState();
  // Places are there as soon as the link has been followed.
  const link = state.places.length === 0 ? location.search : "";
  const isOld = parseOldLink(link) !== null;
  const [said, setSaid] = useState<Followed | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const late = useLate(isOld);
  useEffect(() => {
    const old = parseOldLink(link);
    if (!old) return;
    const stop = new AbortController();
    follow(old, stop.signal).then(
      (followed) => {
        if (stop.signal.aborted) return;
        setSaid(followed);
        go(`/${format(followed.state)}`, "replace");
      },
      (problem: unknown) => !stop.signal.aborted && setError(problem instanceof Error ? problem : new Error(String(problem))),
    );
    return () => stop.abort();
  }, [link]);
  if (isOld) {
    if (error) return <ErrorNotice error={error} title="This older link could not be followed" />;
    return late ? <Notice title="Looking for what this older link shows…">The file is indexed first, once.</Notice> : null;
  }
  // Once something else is opened it is no longer about what is on screen.
  const notice = said?.notice !== undefined && said.notice !== null && said.state.places.join() === state.places.join() ? said.notice : null;
  return (
    <div className={css["page"]}>
      {notice !== null && (
        <div className={css["bar"]} role="status">
          <p>{notice}</p>
          {said?.others !== undefined && said.others !== null && (
            <Button label="Show all of them" onClick={() => set({ clauses: [...new Set([...state.clauses, said.others ?? ""])] })} />
          )}
          <Button label="Dismiss" kind="quiet" onClick={() => setSaid(null)} />
        </div>
      )}
      <div className={css["rest"]}>{children}</div>
    </div>
  );
}
