import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse, until } from "./harness.mjs";
import { weather } from "./weather.mjs";

let browser;
before(async () => { browser = await browse(); });
after(() => browser.close());

test("a forecast with its alerts, in other units at a press", async () => {
  const host = await browser.open(weather());
  const { view, number } = await host.show("get_forecast", { place: "Springfield", hours: 72 });
  await view.getByText("High Wind Warning").waitFor();
  const temperature = view.getByRole("region", { name: "Temperature" });
  assert.match(await temperature.getByRole("img").getAttribute("aria-label"), /temperature, apparent temperature, between -3\.5 and 13\./);
  for (const name of ["Precipitation", "Wind"]) await view.getByRole("region", { name }).locator("canvas").waitFor();
  assert.equal(await view.getByRole("button", { name: "Metric" }).getAttribute("aria-pressed"), "true");
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: "Imperial" }).click();
  await until(async () => assert.match(await temperature.getByRole("img").getAttribute("aria-label"), /between 25\.7 and 55\./));
  await temperature.getByText("(°F)").first().waitFor();
  await view.getByText("High Wind Warning").click();
  await view.getByText("<script>alert(1)</script>").waitFor();
  await view.getByText("All values as a table").click();
  assert.equal(await view.locator(".values tbody tr").count(), 72);
  assert.equal(await view.locator(".values tbody tr:nth-child(11) td").first().innerText(), "–");
  assert.deepEqual(await host.violations(number), []);
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["get_alerts", "get_forecast"]);
  host.clean();
  await host.close();
});
