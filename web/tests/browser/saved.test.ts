import { expect, test } from "vitest";
import { open, params } from "./page";

test("a view is saved under a name, opened and deleted", async () => {
  const name = `view ${Date.now()}`;
  const page = await open(`/?place={example}&f=${encodeURIComponent("reward >= 0.5")}&sort=-reward`);
  const section = page.getByRole("region", { name: "Saved views" });
  await section.waitFor();
  await page.keyboard.press("Shift+S");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  const link = section.getByRole("link", { name });
  await link.waitFor();
  const saved = page.url();
  await page.getByRole("button", { name: "Remove reward >= 0.5" }).click();
  await expect.poll(() => params(page).has("f")).toBe(false);
  await link.click();
  await expect.poll(() => [params(page).get("f"), params(page).get("sort")]).toEqual(["reward >= 0.5", "-reward"]);
  expect(new URL(page.url()).searchParams.toString()).toBe(new URL(saved).searchParams.toString());
  await section.getByRole("button", { name: `Delete ${name}` }).click();
  await link.waitFor({ state: "detached" });
  await page.reload();
  await section.waitFor();
  expect(await link.count()).toBe(0);
});
