import { lazy, Suspense, useEffect, useState } from "react";
import { onTrouble } from "@/api/client";
import { KeyHelp } from "@/keys/KeyHelp";
import { useKey } from "@/keys/keys";
import { usePath } from "@/state/location";
import { OldLink } from "@/state/OldLink";
import { Away } from "./Away";
import { SignIn } from "./SignIn";
import { TopBar } from "./TopBar";
import { Yard } from "./Yard";
import css from "./App.module.css";

// The overview draws other charts and is not needed to read rollouts.
const Live = lazy(() => import("@/live/Live").then((module) => ({ default: module.Live })));

export function App() {
  const path = usePath();
  const [needsToken, setNeedsToken] = useState(false);
  const [help, setHelp] = useState(false);
  useEffect(() => onTrouble((what) => what === "unauthorized" && setNeedsToken(true)), []);
  useKey({ keys: "?", label: "Show the keys", group: "General", run: () => setHelp(true) });
  return (
    <div className={css["app"]}>
      <TopBar onHelp={() => setHelp(true)} />
      <Away />
      <main className={css["main"]}>
        {needsToken ? (
          <SignIn onDone={() => location.reload()} />
        ) : path === "/live" ? (
          <Suspense fallback={null}>
            <Live />
          </Suspense>
        ) : (
          <OldLink>
            <Yard />
          </OldLink>
        )}
      </main>
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </div>
  );
}
