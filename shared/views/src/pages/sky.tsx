// The weather as small pictures, drawn here: nothing is loaded.

import type { JSX } from "preact";

type Sky = "clear" | "partly" | "cloudy" | "fog" | "rain" | "snow" | "sleet" | "storm";

const WORDS: [RegExp, Sky][] = [
  [/thunder|storm/, "storm"], [/sleet|freezing|ice|hail|wintry/, "sleet"], [/snow|blizzard|flurr/, "snow"], [/rain|drizzle|shower/, "rain"],
  [/fog|mist|haze|smoke/, "fog"], [/partly|mostly clear|mainly clear|few clouds|scattered/, "partly"], [/overcast|cloud/, "cloudy"], [/clear|sunny|fair/, "clear"],
];

const skyOf = (words: string) => WORDS.find(([pattern]) => pattern.test(words.toLowerCase()))?.[1];

const SUN = <g class="sun"><circle cx="12" cy="12" r="5" />{[0, 45, 90, 135, 180, 225, 270, 315].map((turn) => <path key={turn} d="M12 4.6V2" transform={`rotate(${turn} 12 12)`} />)}</g>;
const MOON = <path class="moon" d="M15.5 3.5a8.6 8.6 0 1 0 5 12.2A7.2 7.2 0 0 1 15.5 3.5z" />;
const CLOUD = <path class="cloud" d="M7 18.5a4.2 4.2 0 0 1-.5-8.4 5.6 5.6 0 0 1 10.8-.9A4.7 4.7 0 0 1 17 18.5z" />;
const lifted = (below: JSX.Element) => <><g transform="translate(0 -3.5)">{CLOUD}</g>{below}</>;
const drops = (...at: number[]) => <path class="drops" d={at.map((x) => `M${x} 17.5l-1.2 4`).join("")} />;
const flakes = (...at: number[]) => <g class="flakes">{at.map((x) => <circle key={x} cx={x} cy="20" r="1.3" />)}</g>;

/** `words` as a picture; nothing where they name none of those that are drawn. They stand beside it: it is not read out. */
export function Symbol({ words, night = false, size = 28 }: { words: string; night?: boolean; size?: number }) {
  const sky = skyOf(words);
  if (!sky) return null;
  const light = night ? MOON : SUN;
  const drawn: Record<Sky, JSX.Element> = {
    clear: light,
    partly: <><g transform={night ? "translate(5 -1) scale(0.72)" : "translate(7 -1) scale(0.72)"}>{light}</g><g transform="translate(-1 2.5) scale(0.95)">{CLOUD}</g></>,
    cloudy: CLOUD,
    fog: lifted(<path class="lines" d="M5 18h14M7 21h10" />),
    rain: lifted(drops(9, 13, 17)),
    snow: lifted(flakes(8, 12, 16)),
    sleet: lifted(<>{drops(9)}{flakes(13, 17)}</>),
    storm: lifted(<path class="bolt" d="M13.4 14l-4 5h2.8l-1.2 4 4.4-5.4h-2.8l1.8-3.6z" />),
  };
  return <svg class="symbol" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">{drawn[sky]}</svg>;
}

/** Whether the sun is down at a place: its height from the day of the year and the hour, good to a few minutes. */
export function isNight(stamp: number, latitude: number, longitude: number): boolean {
  const days = stamp / 86_400 - 10_957.5, turn = Math.PI / 180;
  const anomaly = (357.528 + 0.9856003 * days) * turn;
  const ecliptic = (280.46 + 0.9856474 * days + 1.915 * Math.sin(anomaly) + 0.02 * Math.sin(2 * anomaly)) * turn;
  const declination = Math.asin(Math.sin(23.439 * turn) * Math.sin(ecliptic));
  const ascension = Math.atan2(Math.cos(23.439 * turn) * Math.sin(ecliptic), Math.cos(ecliptic));
  const hour = (280.46061837 + 360.98564736629 * days + longitude) * turn - ascension;
  return Math.asin(Math.sin(latitude * turn) * Math.sin(declination) + Math.cos(latitude * turn) * Math.cos(declination) * Math.cos(hour)) < -0.833 * turn;
}
