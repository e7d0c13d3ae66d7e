// The Inspector's page with one server in its configuration: connect, list the tools, run the one that needs nothing.
import { pathToFileURL } from "node:url";

const [playwright, words] = process.argv.slice(2);
const task = JSON.parse(words);
const { chromium } = await import(pathToFileURL(playwright).href);
const browser = await chromium.launch({ executablePath: task.chromium, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
try {
  page.setDefaultTimeout(30_000);
  await page.goto(task.url);
  await page.locator("label:has(input[role=switch]), [role=switch]").first().click();
  await page.getByText("Tools", { exact: true }).first().click();
  await page.getByText(task.title, { exact: true }).first().click();
  await page.getByRole("button", { name: /^(run|execute|call)/i }).first().click();
  const text = async () => (await page.locator("body").innerText()).replace(/\s+/g, " ");
  await page.getByText(/tools\/call/i).first().waitFor();
  await page.getByText("Results", { exact: true }).waitFor();
  const [listed] = (await text()).match(/Tools \(\d+\)/) ?? [];
  if (!listed) throw new Error(await text());
  console.log(`${listed} listed, “${task.title}” called: ${(await text()).split(" Results ")[1].slice(0, 60)}`);
} finally {
  if (task.picture) await page.screenshot({ path: task.picture });
  await browser.close();
}
