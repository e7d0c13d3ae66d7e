// Text from elsewhere, shown as what it is: isolated in its direction, with every character that can't be seen named.

const HIDDEN = new RegExp(
  [
    // Control and format characters but for tab and line ends; soft hyphen, fillers, tags, what reorders text.
    "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5]",
    "[\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff]",
    "[\\u{e0000}-\\u{e0fff}\\u{1d173}-\\u{1d17a}]",
    // Joiners belong in some scripts and in emoji, and nowhere else.
    "(?<![\\p{L}\\p{M}\\p{Extended_Pictographic}\\ufe0f])[\\u200c\\u200d]",
    "[\\ud800-\\udfff]",
  ].join("|"),
  "gu",
);

/** `value` with its hidden characters as visible labels; `kind` is a class for it. */
export function Text({ value, kind }: { value: string; kind?: string }) {
  const parts: (string | preact.JSX.Element)[] = [];
  let end = 0;
  for (const match of value.matchAll(HIDDEN)) {
    parts.push(value.slice(end, match.index));
    parts.push(<span class="hidden-character">{codePoint(match[0])}</span>);
    end = match.index + match[0].length;
  }
  parts.push(value.slice(end));
  return kind ? <bdi class={kind}>{parts}</bdi> : <bdi>{parts}</bdi>;
}

/** The same for places that take only a string: labels, titles, text in a drawing. */
export function plain(value: string, longest = 200): string {
  const text = value.replace(HIDDEN, codePoint);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** `value` without them. */
export function revealed(value: string): string {
  return value.replace(HIDDEN, "");
}

function codePoint(character: string): string {
  return `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
