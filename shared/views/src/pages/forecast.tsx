// A forecast as people look at it: now, alerts, then temperature, precipitation and wind over the hours or days.

import { useEffect, useState } from "preact/hooks";

import { Chart, type Series } from "../kit/chart";
import { ask, dataOf, list, type Row, text } from "../kit/data";
import { type Call, mount } from "../kit/mount";
import { type Cell, seconds } from "../kit/rows";
import { plain, Text } from "../kit/text";
import "./forecast.css";

type Units = "metric" | "imperial";

interface Table {
  model: string;
  time: string[];
  series: { name: string; unit: string; values: (number | string | null)[] }[];
  origin: Row;
}

/** The tables of a forecast by model, or the days of a weather report. */
function tables(data: Row): Table[] {
  const found = data["tables"] ? Object.entries(data["tables"] as Row) : data["daily"] ? [["", data["daily"]] as const] : [];
  return found.map(([model, value]) => {
    const table = value as Row;
    const units = list(table["units"]), columns = list(table["values"]);
    return {
      model,
      time: list(table["time"]).map(String),
      series: list(table["names"]).map((name, at) => ({
        name: String(name), unit: text(units[at]),
        values: list(columns[at]).map((value) => (typeof value === "number" || typeof value === "string" ? value : null)),
      })),
      origin: (table["origin"] ?? {}) as Row,
    };
  });
}

const PANELS: { title: string; belongs: RegExp; bars?: RegExp }[] = [
  { title: "Temperature", belongs: /temperature|dew_point/ },
  { title: "Precipitation", belongs: /precipitation|rain|snowfall|showers/, bars: /^(?!.*(probability|hours))/ },
  { title: "Wind", belongs: /wind_(speed|gusts)/ },
];
const MOST_SERIES = 6;

const numeric = (value: unknown) => (typeof value === "number" ? value : null);

const words = (name: string) => plain(name.replace(/_(2m|10m)/, "").replaceAll("_", " "), 60);

/** Whether a picture can show it: codes and directions can't be drawn as a line. */
const drawable = (name: string) => !/weather_code|direction|is_day|sunrise|sunset/.test(name);

function Forecast(call: Call) {
  const [data, setData] = useState(() => dataOf(call.result));
  const [units, setUnits] = useState<Units | undefined>(call.input["units"] as Units | undefined);
  const [alerts, setAlerts] = useState<Row | undefined>(data["alerts"] as Row | undefined);
  const shown = tables(data);
  const place = (data["place"] ?? {}) as Row;
  const metric = units ? units === "metric" : !shown.some((table) => table.series.some((series) => /°F|mph|inch/.test(series.unit)));

  useEffect(() => {
    // A forecast alone knows of no alerts: they are asked for beside it, and missing ones are said to be.
    if (alerts) return;
    ask(call.host, "get_alerts", { place: call.input["place"] }).then(setAlerts, (error: Error) => call.say(`Alerts are not known: ${plain(error.message, 300)}`));
  }, []);
  const change = async (units: Units) => {
    call.say("Loading…");
    try {
      setData(await ask(call.host, call.host.tool ?? "get_forecast", { ...call.input, units }));
      setUnits(units);
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
    }
  };

  const now = data["now"] as Row | undefined;
  const notes = list(data["notes"]).map(text);
  return (
    <>
      <div class="bar">
        <h2 class="grow"><Text value={plain(text(place["name"]) || text(call.input["place"]), 120)} /></h2>
        <div role="group" aria-label="Units" class="units">
          <button type="button" aria-pressed={metric} onClick={() => change("metric")}>Metric</button>
          <button type="button" aria-pressed={!metric} onClick={() => change("imperial")}>Imperial</button>
        </div>
      </div>
      {alerts && <Alerts alerts={alerts} />}
      {now && <Now reading={now} />}
      {notes.map((note) => <p class="quiet"><Text value={note} /></p>)}
      {PANELS.map((panel) => <Panel key={panel.title} panel={panel} tables={shown} zone={text(place["timezone"])} theme={call.theme} />)}
      <details>
        <summary>All values as a table</summary>
        {shown.map((table) => <Values key={table.model} table={table} />)}
      </details>
      {shown.slice(0, 1).map(({ origin }) => (
        <p class={origin["stale"] ? "warn" : "quiet"}>
          {origin["stale"] ? `Old: ${plain(text(origin["reason"]), 200)} ` : ""}
          <Text value={plain(`Source: ${text(origin["source"])}, ${text(origin["licence"])}`, 200)} />
        </p>
      ))}
    </>
  );
}

function Alerts({ alerts }: { alerts: Row }) {
  const found = list(alerts["alerts"]) as Row[];
  if (!found.length) return <p class="quiet"><Text value={plain(text(alerts["explanation"]), 300)} /></p>;
  return (
    <ul class="alerts" aria-label="Alerts">
      {found.map((alert, number) => (
        <li key={number} class={/extreme|severe/i.test(text(alert["severity"])) ? "severe" : ""}>
          <details>
            <summary>
              <strong>⚠ <Text value={plain(text(alert["event"]), 120)} /></strong>{" "}
              <Text value={plain(text(alert["severity"]), 30)} />
              {alert["ends"] ? <> until <Text value={plain(text(alert["ends"]).slice(0, 16).replace("T", " "))} /></> : ""}
            </summary>
            {["headline", "area", "description", "instruction"].map((part) => alert[part] ? <p key={part} class="body"><Text value={text(alert[part])} /></p> : null)}
          </details>
        </li>
      ))}
    </ul>
  );
}

function Now({ reading }: { reading: Row }) {
  const units = list(reading["units"]), values = list(reading["values"]);
  return (
    <dl class="now" aria-label="Now">
      {list(reading["names"]).map((name, at) => (typeof values[at] === "number" && drawable(String(name)) ? (
        <div key={at}><dt>{words(String(name))}</dt><dd>{values[at].toLocaleString("en")} {plain(text(units[at]), 12)}</dd></div>
      ) : null))}
    </dl>
  );
}

function Panel({ panel, tables, zone, theme }: { panel: (typeof PANELS)[number]; tables: Table[]; zone: string; theme: string }) {
  const first = tables[0];
  if (!first) return null;
  const stamps = first.time.map((time) => seconds(time as Cell));
  const series = tables.flatMap((table) => table.series
    .filter((item) => panel.belongs.test(item.name) && drawable(item.name) && item.values.some((value) => typeof value === "number"))
    .map((item): Series => {
      // Models are put on the times of the first; one that knows nothing of an hour leaves it out.
      const at = new Map(table.time.map((time, number) => [time, item.values[number] ?? null]));
      return {
        label: `${table.model && tables.length > 1 ? `${plain(table.model, 40)}: ` : ""}${words(item.name)}`,
        values: first.time.map((time) => numeric(at.get(time))),
        kind: panel.bars?.test(item.name) ? "bars" : "line",
        scale: item.unit || "y", unit: plain(item.unit, 12),
      };
    })).slice(0, MOST_SERIES);
  if (!series.length || stamps.some((stamp) => stamp === null)) return null;
  const zoned = /[T ].*(Z|[+-]\d\d:?\d\d)$/.test(first.time[0] ?? "");
  const all = series.flatMap((item) => item.values).filter((value) => value !== null);
  return (
    <section aria-label={panel.title}>
      <h2>{panel.title}</h2>
      <Chart height={190} theme={theme} timeZone={zoned && zone ? zone : "UTC"} series={series}
        label={`${panel.title} from ${first.time[0]} to ${first.time[first.time.length - 1]}: ${series.map((item) => item.label).join(", ")}, between ${Math.min(...all)} and ${Math.max(...all)}. The table has the values.`}
        x={{ label: "time", kind: "time", values: stamps as number[] }} />
    </section>
  );
}

function Values({ table }: { table: Table }) {
  return (
    <div class="scroll values" role="region" aria-label={`Values ${plain(table.model, 40)}`} tabIndex={0}>
      <table>
        <thead><tr><th scope="col">time</th>{table.series.map((item) => <th key={item.name} scope="col">{words(item.name)}{item.unit && ` (${plain(item.unit, 12)})`}</th>)}</tr></thead>
        <tbody>
          {table.time.map((time, at) => (
            <tr key={time}><th scope="row">{plain(time, 40)}</th>{table.series.map((item) => <td key={item.name}><Text value={plain(String(item.values[at] ?? "–"), 200)} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

mount("Forecast", (call) => <Forecast key={call.text} {...call} />);
