import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse, until } from "./harness.mjs";
import { weather } from "./weather.mjs";

let browser, server;
before(async () => { [browser, server] = await Promise.all([browse(), weather("evil")]); });
after(() => Promise.all([browser.close(), server.close()]));

test("a forecast with its alerts, in other units at a press", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("get_forecast", { place: "Birmingham", hours: 72, variables: ["basic", "wind"] });
  await view.getByText("Severe Thunderstorm Warning").first().waitFor();
  const temperature = view.getByRole("region", { name: "Temperature" });
  assert.match(await temperature.getByRole("img").getAttribute("aria-label"), /: temperature, between 11 and 19\./);
  for (const name of ["Precipitation", "Wind"]) await view.getByRole("region", { name }).locator("canvas").waitFor();
  assert.equal(await view.getByRole("button", { name: "Metric" }).getAttribute("aria-pressed"), "true");
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: "Imperial" }).click();
  await until(async () => assert.match(await temperature.getByRole("img").getAttribute("aria-label"), /between 51\.8 and 66\.2/));
  await temperature.getByText("(°F)").first().waitFor();
  await view.getByText("All values as a table").click();
  assert.equal(await view.locator(".values tbody tr").count(), 72);
  await view.getByRole("columnheader", { name: "temperature (°F)" }).waitFor();
  await view.locator(".values").getByText("light rain").first().waitFor();
  assert.deepEqual(await host.violations(number), []);
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["get_alerts", "get_forecast"]);
  assert.equal(host.seen.calls[1].input.units, "imperial");
  host.clean();
  await host.close();
});

test("the weather now, as modelled and as measured, and the days to come", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("get_weather", { place: "Birmingham", days: 5 });
  await view.getByRole("region", { name: "Now" }).getByText("116° ESE").waitFor();
  const measured = view.getByRole("region", { name: "Measured at KBHM" });
  await measured.getByText("mostly clear").waitFor();
  await measured.getByText("13.9 °C").waitFor();
  assert.equal(await view.getByRole("list", { name: "Days" }).getByRole("listitem").count(), 5);
  assert.deepEqual(await host.violations(number), []);
  const hours = view.getByRole("list", { name: "Hours" }).getByRole("listitem");
  await until(async () => assert.equal(await hours.count(), 24));
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["get_forecast"]);
  // The hours of tomorrow are within what its card says.
  const degrees = async (list) => (await list.allInnerTexts()).map((words) => [...words.matchAll(/(-?\d+)°/g)].map((found) => Number(found[1])));
  const cards = (await degrees(view.getByRole("list", { name: "Days" }).getByRole("listitem"))).flat();
  const warmths = (await degrees(hours)).flat();
  assert.ok(Math.min(...warmths) >= Math.min(...cards) && Math.max(...warmths) <= Math.max(...cards), `${warmths} beside ${cards}`);
  await view.getByRole("button", { name: "Imperial" }).click();
  await measured.getByText("57 °F").waitFor();
  await until(() => assert.equal(host.seen.calls.at(-1).input.units, "imperial"));
  // A tenth of a millimetre is no inch worth mentioning, but it is not nothing.
  const rain = async () => (await view.locator(".wet").allInnerTexts()).flatMap((words) => words.match(/\S+(?= inch)/g) ?? []);
  await until(async () => assert.ok((await rain()).some((inches) => /^0\.\d\d/.test(inches))));
  assert.ok((await rain()).every((inches) => Number(inches) > 0), `${await rain()}`);
  await view.getByText(/^(29|30)\.\d\d inHg$/).first().waitFor();
  host.clean();
  await host.close();
});

test("what an alert says stays text, and comes when it is opened", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("get_weather", { place: "Birmingham" });
  const alert = view.getByRole("listitem").filter({ hasText: "High Wind Warning" });
  await alert.getByText("<img src=x onerror=alert(1)><script>alert(2)</script>").first().waitFor();
  await alert.getByText("⟨U+202E⟩").first().waitFor();
  await alert.locator("summary").focus();
  await host.page.keyboard.press("Enter");
  await alert.getByText("Stay inside.").waitFor();
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["get_forecast", "get_alerts"]);
  assert.equal(await view.locator("#view img, #view script").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("a place without alerts, and a place that is none", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("get_forecast", { place: "Longyearbyen", step: "daily" });
  await view.getByRole("list", { name: "Days" }).getByRole("listitem").first().waitFor();
  await view.getByText("no service built in covers this place").waitFor();
  const unknown = await host.show("get_weather", { place: "Nowhere at all" });
  await unknown.view.getByRole("alert").getByText("Nowhere at all").waitFor();
  host.clean();
  await host.close();
});
