import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { onTrouble } from "@/api/client";
import css from "./Away.module.css";

/** Says that the server went away, asks until it is back, and then has everything asked for anew. */
export function Away() {
  const [away, setAway] = useState(false);
  const queries = useQueryClient();
  useEffect(() => onTrouble((what) => what !== "unauthorized" && setAway(what === "away")), []);
  useEffect(() => {
    if (!away) return;
    const timer = setInterval(() => {
      // Not through our own client: nothing but this bar is to hear of it before it is sure.
      void fetch("/healthz").then(
        (response) => {
          if (!response.ok) return;
          setAway(false);
          void queries.invalidateQueries();
        },
        () => undefined,
      );
    }, 1000);
    return () => clearInterval(timer);
  }, [away, queries]);
  if (!away) return null;
  return (
    <div className={css["away"]} role="alert">
      The server does not answer. What is on screen stays; it is asked again every second.
    </div>
  );
}
