// A forecast as mcp-weather answers it, and a server of nothing else, for the view before its server.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { ROOT } from "./harness.mjs";

const HOURS = 72;
const start = Date.UTC(2026, 10, 21, 6);
const hours = Array.from({ length: HOURS }, (_, hour) => hour);
const origin = { source: "Open-Meteo.com", licence: "CC BY 4.0", fetched_at: "2026-11-21T05:50:00Z", age_s: 600, stale: false };
const place = { name: "Springfield, Illinois", latitude: 39.8, longitude: -89.64, timezone: "America/Chicago", resolved: "by name" };
const round = (value) => Math.round(value * 10) / 10;

function forecast({ units = "metric" }) {
  const metric = units === "metric";
  const degrees = (celsius) => round(metric ? celsius : celsius * 1.8 + 32);
  const speed = (kilometres) => round(metric ? kilometres : kilometres * 0.621);
  const wave = (hour) => 6 + 7 * Math.sin(((hour - 3) * Math.PI) / 12);
  const values = [
    hours.map((hour) => (hour === 10 ? null : degrees(wave(hour)))),
    hours.map((hour) => degrees(wave(hour) - 2.5)),
    hours.map((hour) => round(Math.max(0, 3 * Math.sin(hour / 9)) * (metric ? 1 : 0.04))),
    hours.map((hour) => speed(14 + 8 * Math.cos(hour / 7))),
    hours.map((hour) => speed(26 + 12 * Math.cos(hour / 7))),
    hours.map(() => 3),
  ];
  const names = ["temperature_2m", "apparent_temperature", "precipitation", "wind_speed_10m", "wind_gusts_10m", "weather_code"];
  const wind = metric ? "km/h" : "mph", warm = metric ? "°C" : "°F";
  const time = hours.map((hour) => new Date(start + (hour - 6) * 3_600_000).toISOString().replace(/:00\.000Z$/, "-06:00"));
  const table = { time, names, units: [warm, warm, metric ? "mm" : "inch", wind, wind, ""], values, origin };
  return { place, step: "hourly", tables: { best_match: table }, notes: [] };
}

const alerts = {
  place, status: "alerts", explanation: "1 alert.", covered_by: ["US National Weather Service"], not_covered_by: [],
  alerts: [{
    id: "1", event: "High Wind Warning", severity: "Severe", headline: "Winds to 90 km/h <b>expected</b>", area: "Sangamon",
    ends: "2026-11-22T18:00:00-06:00", description: "<script>alert(1)</script> Secure what is loose.\nStay inside.",
  }],
};

export function weather() {
  const uri = "ui://mcp-batteries/forecast";
  const answers = { get_forecast: forecast, get_alerts: () => alerts };
  return {
    tool: (name) => ({ name, inputSchema: { type: "object" }, _meta: { ui: { resourceUri: uri } } }),
    close: async () => {},
    client: {
      readResource: async () => ({ contents: [{
        uri, mimeType: "text/html;profile=mcp-app", _meta: { ui: { csp: {} } },
        text: await readFile(join(ROOT, "shared/src/mcp_batteries/pages/forecast.html"), "utf8"),
      }] }),
      callTool: async ({ name, arguments: input }) => {
        const data = answers[name](input);
        return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
      },
    },
  };
}
