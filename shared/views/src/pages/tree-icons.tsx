// What a file is, as a small picture, judged by its name alone.

type Kind = "folder" | "open" | "more" | "code" | "text" | "picture" | "sound" | "data" | "archive" | "file";

const ENDINGS: [RegExp, Kind][] = [
  [/\.(png|jpe?g|gif|webp|bmp|avif|svg|ico|tiff?|heic|psd)$/i, "picture"],
  [/\.(mp3|wav|ogg|flac|m4a|aac|mp4|mov|mkv|webm|avi)$/i, "sound"],
  [/\.(csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|xml|sqlite3?|db|parquet|xlsx?|ods|lock)$/i, "data"],
  [/\.(zip|tar|t?gz|bz2|xz|zst|7z|rar|whl|jar|deb|rpm|mcpb)$/i, "archive"],
  [/\.(md|txt|rst|pdf|docx?|odt|log|tex|epub)$|^(licen[cs]e|readme|changelog|notice|authors)$/i, "text"],
  [/\.(py|pyi|[mc]?[jt]sx?|rs|go|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|sh|bash|ps1|sql|css|scss|html?|vue|lua|pl|r|scala)$|^(dockerfile|makefile|justfile)$/i, "code"],
];

export const kindOf = (name: string): Kind => ENDINGS.find(([pattern]) => pattern.test(name))?.[1] ?? "file";

const SHEET = "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3";
const PATHS: Record<Kind, string> = {
  folder: "M1.5 3.5h5l1.5 2h6.5v8h-13z",
  open: "M1.5 13.5v-10h5l1.5 2h5v2M1.5 13.5l2.3-6h11l-2.3 6z",
  more: "M4 8h.1M8 8h.1M12 8h.1",
  file: SHEET,
  text: `${SHEET}M5.5 7.5h5M5.5 9.5h5M5.5 11.5h3`,
  code: "M5 4.5L1.8 8L5 11.5M11 4.5L14.2 8L11 11.5M9.2 3.5L6.8 12.5",
  picture: "M2 3h12v10H2zM2.5 12l3.5-4 2.5 2.6L10.5 8l3.5 4M11 5.6h.1",
  sound: "M6 12.5V3.5l7-1.5v9M6 12.5a1.8 1.8 0 1 1-3.6 0a1.8 1.8 0 0 1 3.6 0zM13 11a1.8 1.8 0 1 1-3.6 0a1.8 1.8 0 0 1 3.6 0z",
  data: "M2.5 4c0-1.2 2.5-2 5.5-2s5.5.8 5.5 2-2.5 2-5.5 2-5.5-.8-5.5-2zM2.5 4v8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2V4M2.5 8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2",
  archive: "M2 2.5h12v3H2zM3 5.5h10v8H3zM6.5 8h3",
};

export function Icon({ kind }: { kind: Kind }) {
  return <svg class={`icon ${kind}`} width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[kind]} /></svg>;
}
