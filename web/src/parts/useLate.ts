import { useEffect, useState } from "react";

/** True once `waiting` has lasted: what comes within 150 ms needs no skeleton. */
export function useLate(waiting: boolean, afterMs = 150): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!waiting) return;
    const timer = setTimeout(() => setLate(true), afterMs);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [waiting, afterMs]);
  return waiting && late;
}
