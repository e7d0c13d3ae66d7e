// A forecast as people look at it: now, alerts, the next hours, the days, then temperature, precipitation and wind as curves.

import { useEffect, useRef, useState } from "preact/hooks";

import { Chart, type Series } from "../kit/chart";
import { ask, dataOf, list, type Row, text } from "../kit/data";
import { type Call, mount } from "../kit/mount";
import { type Cell, seconds } from "../kit/rows";
import { plain, Text } from "../kit/text";
import "./forecast.css";
import { isNight, Symbol } from "./sky";

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

const PANELS: { title: string; belongs: RegExp; bars?: RegExp; from?: number }[] = [
  { title: "Temperature", belongs: /temperature|dew_point/ },
  { title: "Precipitation", belongs: /precipitation|rain|snowfall|showers/, bars: /^(?!.*(probability|hours))/, from: 0 },
  { title: "Wind", belongs: /wind_(speed|gusts)/, from: 0 },
];
const MOST_SERIES = 6, HOURS = 24;

const numeric = (value: unknown) => (typeof value === "number" ? value : null);

const words = (name: string) => plain(name.replace(/_(2m|10m|msl)/, "").replaceAll("_", " "), 60);

/** A number as people read it: inches have two decimals, all else has one, and what is little is not nothing. */
function measured(value: number, unit: string) {
  const decimals = /^in/i.test(unit) ? 2 : 1;
  const little = value !== 0 && Math.abs(value) < 10 ** -decimals;
  return value.toLocaleString("en", little ? { maximumSignificantDigits: 1 } : { maximumFractionDigits: decimals });
}

/** Whether a picture can show it: codes and directions can't be drawn as a line. */
const drawable = (name: string) => !/weather|direction|is_day|sunrise|sunset/.test(name);

function Forecast(call: Call) {
  const [data, setData] = useState(() => dataOf(call.result));
  const [units, setUnits] = useState<Units | undefined>(call.input["units"] as Units | undefined);
  const [alerts, setAlerts] = useState<Row | undefined>(data["alerts"] as Row | undefined);
  const [beside, setBeside] = useState<Row>();
  const first = useRef(call.version);
  const shown = tables(data);
  const place = (data["place"] ?? {}) as Row;
  const metric = units ? units === "metric" : !shown.some((table) => table.series.some((series) => /°F|mph|inch/.test(series.unit)));

  // A newer result comes in the units of the call, which may not be those that were chosen since.
  useEffect(() => {
    if (call.version === first.current) return;
    if (units && units !== call.input["units"]) void change(units);
    else setData(dataOf(call.result));
    setAlerts((dataOf(call.result)["alerts"] as Row | undefined) ?? alerts);
  }, [call.version]);
  useEffect(() => {
    // A forecast alone knows of no alerts: they are asked for beside it, and missing ones are said to be.
    if (alerts) return;
    ask(call.host, "get_alerts", { place: call.input["place"] }).then(setAlerts, (error: Error) => call.say(`Alerts are not known: ${plain(error.message, 300)}`));
  }, []);
  const wanted = units ?? (metric ? undefined : "imperial");
  useEffect(() => {
    // The weather in one answer knows days; the hours of the next one stand beside it where they can be had.
    if (!data["now"]) return;
    ask(call.host, "get_forecast", { place: call.input["place"], hours: HOURS, ...(wanted ? { units: wanted } : {}) }).then(setBeside, () => setBeside(undefined));
  }, [data, wanted]);
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

  const zone = text(place["timezone"]);
  const hourly = [...shown, ...(beside ? tables(beside) : [])].find((table) => /T\d\d:/.test(table.time[0] ?? ""));
  const charted = data["now"] && hourly ? [hourly] : shown;
  const inFull = () => void ask(call.host, "get_alerts", { place: call.input["place"] }).then(setAlerts, (error: Error) => call.say(plain(error.message, 300)));
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
      {alerts && <Alerts alerts={alerts} zone={zone} onOpen={inFull} />}
      {(["now", "observation"] as const).map((name) => data[name] ? <Now key={name} reading={data[name] as Row} place={place} zone={zone} /> : null)}
      {hourly && <Hours table={hourly} place={place} zone={zone} />}
      {shown.slice(0, 1).map((table) => <Days key={0} table={table} />)}
      {notes.map((note) => <p class="quiet"><Text value={note} /></p>)}
      {PANELS.map((panel) => <Panel key={panel.title} panel={panel} tables={charted} zone={zone} theme={call.theme} />)}
      <details>
        <summary>All values as a table</summary>
        {shown.map((table) => <Values key={table.model} table={table} />)}
      </details>
      {shown.slice(0, 1).map(({ origin }) => (
        <p class={origin["stale"] ? "warn" : "quiet"}>
          {origin["stale"] ? <>Old: <Text value={plain(text(origin["reason"]), 200)} /> </> : ""}
          <Text value={plain(`Source: ${text(origin["source"])}, ${text(origin["licence"])}`, 200)} />
        </p>
      ))}
    </>
  );
}

/** A moment in the place's own zone, with its day. */
function when(value: unknown, zone: string): string {
  const day = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  try {
    return new Date(text(value)).toLocaleString(document.documentElement.lang, { ...day, timeZone: zone || "UTC" });
  } catch {
    return plain(text(value), 40);
  }
}

function Alerts({ alerts, zone, onOpen }: { alerts: Row; zone: string; onOpen: () => void }) {
  const found = list(alerts["alerts"]) as Row[];
  if (!found.length) return <p class="quiet">Alerts: <Text value={plain(text(alerts["explanation"]), 300)} /></p>;
  return (
    <ul class="alerts" aria-label="Alerts">
      {found.map((alert, number) => (
        <li key={number} class={/extreme|severe/i.test(text(alert["severity"])) ? "severe" : ""}>
          {/* The weather in one answer names alerts; what they say in full is asked for when somebody wants to read it. */}
          <details onToggle={(event) => { if (event.currentTarget.open && !alert["description"]) onOpen(); }}>
            <summary>
              <strong>⚠ <Text value={plain(text(alert["event"]), 120)} /></strong>{" "}
              <Text value={plain(text(alert["severity"]).toLowerCase(), 30)} />
              {alert["ends"] ? <>, until <Text value={when(alert["ends"], zone)} /></> : ""}
            </summary>
            {["headline", "area", "description", "instruction"].map((part) => alert[part] ? <p key={part} class="body"><Text value={text(alert[part])} /></p> : null)}
          </details>
        </li>
      ))}
    </ul>
  );
}

const WINDS = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"];

/** Whether it is night at `place`, as far as place and moment are known. */
function dark(place: Row, at: unknown): boolean {
  const stamp = Date.parse(text(at)) / 1000, [latitude, longitude] = [place["latitude"], place["longitude"]];
  return typeof latitude === "number" && typeof longitude === "number" && Number.isFinite(stamp) && isNight(stamp, latitude, longitude);
}

const degrees = (value: unknown) => (typeof value === "number" ? `${Math.round(value)}°` : "–");

/** One moment, by a model or measured at a station: what it is like in words, then the numbers that are known. */
function Now({ reading, place, zone }: { reading: Row; place: Row; zone: string }) {
  const units = list(reading["units"]), values = list(reading["values"]), names = list(reading["names"]).map(String), station = text(reading["station"]);
  const origin = (reading["origin"] ?? {}) as Row;
  const title = station ? `Measured at ${plain(station, 40)}` : "Now, by the forecast";
  const said = values.filter((value) => typeof value === "string").map((value) => plain(value.toLowerCase(), 60)).join(", ");
  const large = station ? -1 : names.findIndex((name) => /^temperature/.test(name)), feels = names.findIndex((name) => /^apparent_temperature/.test(name));
  const known = large >= 0 && typeof values[large] === "number";
  return (
    <section class="now" aria-label={title}>
      <h2><Text value={title} />{said && !known && <>: <Text value={said} /></>} {reading["observed_at"] ? <span class="quiet"><Text value={when(reading["observed_at"], zone)} /></span> : null}</h2>
      {known && (
        <p class="large">
          <Symbol words={said} night={dark(place, reading["observed_at"])} size={64} />
          <span class="degrees">{Math.round(values[large] as number)}<Text value={plain(text(units[large]), 12)} /></span>
          <span><Text value={said} />{typeof values[feels] === "number" && <><br /><span class="quiet">feels like {degrees(values[feels])}</span></>}</span>
        </p>
      )}
      {/* All the page shows is as old as its source says below; a station may have been silent for longer. */}
      {station && origin["stale"] ? <p class="warn"><Text value={plain(text(origin["reason"]) || "This is old.", 200)} /></p> : null}
      <dl>
        {names.map((name, at) => (typeof values[at] === "number" && !/is_day|code/.test(name) && !(known && (at === large || at === feels)) ? (
          <div key={at}>
            <dt><Text value={words(name)} /></dt>
            <dd>{measured(values[at], text(units[at]))}{units[at] === "°" ? "" : " "}<Text value={plain(text(units[at]), 12)} />
              {units[at] === "°" && ` ${WINDS[Math.round((((values[at] % 360) + 360) % 360) / 22.5) % 16]}`}</dd>
          </div>
        ) : null))}
      </dl>
    </section>
  );
}

const column = (table: Table, name: RegExp) => table.series.find((series) => name.test(series.name));

/** How much is to fall, and how likely; nothing where neither is known. */
function Wet({ table, at, likely, much }: { table: Table; at: number; likely: RegExp; much: RegExp }) {
  const chance = column(table, likely)?.values[at], amount = column(table, much);
  const value = amount?.values[at];
  const falls = typeof value === "number" && value > 0;
  if (typeof chance !== "number" && !falls) return null;
  return (
    <span class="wet">
      {typeof chance === "number" && <span><svg class="drop" width="8" height="11" viewBox="0 0 9 12" aria-hidden="true"><path d="M4.5 0C7 4 9 6 9 8a4.5 4.5 0 0 1-9 0c0-2 2-4 4.5-8z" /></svg> <span class="unseen">chance of precipitation </span>{Math.round(chance)} %</span>}
      {falls && <span>{measured(value, amount!.unit)} <Text value={plain(amount!.unit, 8)} /></span>}
    </span>
  );
}

/** The next hours, side by side. */
function Hours({ table, place, zone }: { table: Table; place: Row; zone: string }) {
  const warm = column(table, /^temperature(_2m)?$/), said = column(table, /^weather$/);
  if (!warm) return null;
  const hour = (time: string) => {
    const stamp = Date.parse(time);
    return Number.isNaN(stamp) ? plain(time, 20) : new Date(stamp).toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zoneOr(zone) });
  };
  return (
    <section aria-label="Next hours">
      <h2>Next hours</h2>
      <ul class="hours" tabIndex={0} aria-label="Hours">
        {table.time.slice(0, HOURS).map((time, at) => (
          <li key={time} title={said ? plain(text(said.values[at]), 40) : undefined}>
            <span class="quiet">{hour(time)}</span>
            <Symbol words={text(said?.values[at])} night={dark(place, time)} />
            <strong>{degrees(warm.values[at])}</strong>
            <Wet table={table} at={at} likely={/^precipitation_probability$/} much={/^precipitation$/} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** `zone` as far as the browser knows it. */
function zoneOr(zone: string): string {
  try {
    new Date().toLocaleTimeString("en", { timeZone: zone });
    return zone || "UTC";
  } catch {
    return "UTC";
  }
}

/** The days of a daily table, each with its weather, its highest and lowest within those of all days, and what falls. */
function Days({ table }: { table: Table }) {
  const said = column(table, /^weather$/), high = column(table, /^temperature_2m_max$/), low = column(table, /^temperature_2m_min$/);
  if (!high || !low || !table.time.every((time) => /^\d{4}-\d\d-\d\d$/.test(time))) return null;
  const all = [...high.values, ...low.values].filter((value) => typeof value === "number");
  const least = Math.min(...all), span = Math.max(1, Math.max(...all) - least);
  return (
    <section aria-label="Days ahead">
      <h2>Days</h2>
      <ul class="days" aria-label="Days">
        {table.time.map((time, at) => {
          const from = numeric(low.values[at]), to = numeric(high.values[at]);
          return (
            <li key={time}>
              <strong>{new Date(time).toLocaleDateString(document.documentElement.lang, { weekday: "short", day: "numeric", timeZone: "UTC" })}</strong>
              <span class="sky"><Symbol words={text(said?.values[at])} size={36} />{said && <span class="quiet"><Text value={plain(text(said.values[at]), 40)} /></span>}</span>
              <span class="range">
                <span class="quiet">{degrees(from)}</span>
                <span class="scale" aria-hidden="true">{from !== null && to !== null && <span style={{ insetInlineStart: `${100 * (from - least) / span}%`, width: `${Math.max(6, 100 * (to - from) / span)}%` }} />}</span>
                <strong>{degrees(to)}</strong>
              </span>
              <Wet table={table} at={at} likely={/^precipitation_probability/} much={/^precipitation_sum$/} />
            </li>
          );
        })}
      </ul>
    </section>
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
        ...(panel.from === undefined ? {} : { from: panel.from }), ...(item.unit === "%" ? { to: 100 } : {}),
      };
    })).sort((one, other) => Number(other.kind === "bars") - Number(one.kind === "bars")).slice(0, MOST_SERIES);
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
        <thead><tr><th scope="col">time</th>{table.series.map((item) => <th key={item.name} scope="col"><Text value={words(item.name)} />{item.unit && <> (<Text value={plain(item.unit, 12)} />)</>}</th>)}</tr></thead>
        <tbody>
          {table.time.map((time, at) => (
            <tr key={time}><th scope="row"><Text value={plain(time, 40)} /></th>{table.series.map((item) => <td key={item.name}><Text value={plain(String(item.values[at] ?? "–"), 200)} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the answer names, or the series and the alerts of the place. */
function live({ result }: Pick<Call, "result">): string[] {
  const data = dataOf(result), place = (data["place"] ?? {}) as Row;
  if (data["resources"]) return list(data["resources"]).map(String);
  return [data["step"], "alerts"].map((kind) => `weather://${place["latitude"]},${place["longitude"]}/${kind}`);
}

mount("Forecast", Forecast, live);
