import { useEffect, useState } from "react";
import { ApiError } from "@/api/client";
import { events } from "@/api/events";
import { heard, type News, type Session } from "./news";

export interface Watched {
  session: Session | null;
  /** `lost` asks again until it is `live`; after `gone` nothing more comes. */
  state: "connecting" | "live" | "lost" | "gone";
  /** Why it is gone, in the server's words. */
  error: Error | null;
}

const AGAIN_MS = 1_000;

/** Words come by the hundred a second; eyes want less. */
const SHOWN_EVERY_MS = 60;

const NOTHING: Watched = { session: null, state: "connecting", error: null };

/** Watches a session. What is known of it stays while the connection is lost, and when it is gone. */
export function useSession(id: string): Watched {
  const [watched, setWatched] = useState(NOTHING);
  useEffect(() => {
    const stop = new AbortController();
    let latest = NOTHING;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (next: Watched, isUrgent: boolean) => {
      latest = next;
      if (isUrgent) clearTimeout(timer);
      else if (timer !== undefined) return;
      const now = () => {
        timer = undefined;
        setWatched(latest);
      };
      if (isUrgent) now();
      else timer = setTimeout(now, SHOWN_EVERY_MS);
    };
    const isStopped = () => stop.signal.aborted;
    const watch = async () => {
      while (!isStopped()) {
        try {
          for await (const { name, data } of events(`/api/sessions/${encodeURIComponent(id)}/events`, { signal: stop.signal })) {
            if (name === "whole") show({ session: data as Session, state: "live", error: null }, true);
            else if (name === "news" && latest.session) show({ ...latest, session: heard(latest.session, data as News) }, false);
          }
        } catch (error) {
          if (error instanceof ApiError && !error.isAway && error.status < 500) {
            show({ ...latest, state: "gone", error }, true);
            return;
          }
        }
        if (isStopped()) return;
        show({ ...latest, state: "lost" }, true);
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    };
    void watch();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id]);
  return watched;
}
