import type { MouseEvent } from "react";
import { Button } from "@/parts/Button";
import { go, usePath } from "@/state/location";
import { switchTheme } from "./theme";
import css from "./TopBar.module.css";

export function TopBar({ onHelp }: { onHelp: () => void }) {
  return (
    <header className={css["bar"]}>
      <PageLink to="/">
        <strong>Rollyard</strong>
      </PageLink>
      <nav className={css["pages"]} aria-label="Pages">
        <PageLink to="/">Rollouts</PageLink>
        <PageLink to="/live">Live</PageLink>
      </nav>
      <span className={css["space"]} />
      <Button label="Switch between light and dark" hotkey="Shift+T" kind="quiet" onClick={switchTheme}>
        ◐
      </Button>
      <Button label="Show the keys" kind="quiet" onClick={onHelp}>
        ?
      </Button>
    </header>
  );
}

function PageLink({ to, children }: { to: string; children: React.ReactNode }) {
  const path = usePath();
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} onClick={follow} className={css["link"]} aria-current={path === to ? "page" : undefined}>
      {children}
    </a>
  );
}
