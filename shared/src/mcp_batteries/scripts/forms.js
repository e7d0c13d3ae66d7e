// `count_forms(LINES or ROWS)`: how texts are written, by an example of those that are alike but for words or numbers. A
// script that is to meet all of them prints this in place of them. `count_values(VALUES)`: how often each value is there.
(() => {
  const {stringify} = JSON;
  const MAX_FORMS = 20;
  // The rarest forms are mostly those that a script did not expect.
  const MAX_RARE_FORMS = 4;
  const MAX_VALUES = 40;
  const MAX_SHOWN_CHARACTERS = 100;
  // So few are told apart even if none of them occurs twice.
  const FEW_PARTS = 4;

  const withoutNumbers = (text) => text.replace(/\d+/g, "9");
  // A long number is searched for a letter from its beginning alone.
  const WORDS = /(?<!\d)\d*\p{L}[\p{L}\p{M}\d_]*/gu;
  const withoutWords = (text) => withoutNumbers(text.replace(WORDS, "a")).replace(/a(?:[,.]? +a)+/g, "a");
  // As in `Due: 1 May`, `rate = 5` and `Partner | Borg AB`.
  const LABEL = /^[^:=|]{1,40}[:=|]/;
  const withoutWordsBehindLabel = (text) => {
    const [label] = LABEL.exec(text) ?? [""];
    return withoutNumbers(label) + withoutWords(text.slice(label.length));
  };
  const FOLDERS = /^[^\s:]*\//;
  const withoutWordsOfFolders = (text) => {
    const [folders] = FOLDERS.exec(text) ?? [""];
    if (folders === "") return withoutWords(text);
    return withoutWords(folders) + withoutNumbers(text.slice(folders.length));
  };
  // From the finest on.
  const LEVELS = [(text) => text, withoutNumbers, withoutWordsBehindLabel, withoutWordsOfFolders, withoutWords];

  const countEach = (texts) => {
    const counts = new Map();
    for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
    return counts;
  };
  // A group is the texts that are alike at a level, with how often there is each.
  const groupBy = (texts, level) => {
    const groups = new Map();
    for (const [text, count] of texts) {
      const form = LEVELS[level](text);
      const group = groups.get(form) ?? {level, count: 0, texts: []};
      group.count += count;
      group.texts.push([text, count]);
      groups.set(form, group);
    }
    return [...groups.values()];
  };
  const partsOf = (group) => (group.parts ??= group.level > 0 ? groupBy(group.texts, group.level - 1) : []);
  // To tell parts that hardly repeat would be to tell the texts.
  const isDivisible = (group, room) => {
    const {length} = partsOf(group);
    return length > 0 && length - 1 <= room && length <= Math.max(FEW_PARTS, group.count / 2);
  };
  // Each form is told as finely as there is room: first those of few different texts.
  const findForms = (texts) => {
    let groups = groupBy(countEach(texts), LEVELS.length - 1);
    for (;;) {
      const room = MAX_FORMS - groups.length;
      const divisible = groups.filter((group) => isDivisible(group, room));
      if (divisible.length === 0) break;
      const [first] = divisible.sort((a, b) => partsOf(a).length - partsOf(b).length);
      groups = groups.flatMap((group) => (group === first ? partsOf(group) : [group]));
    }
    return groups.sort((a, b) => b.count - a.count);
  };

  // Blanks at the ends of a text would not be seen, and a line end would end the line.
  const HIDDEN = /^$|^\s|\s$|[\0-\x08\n-\x1f\x7f-\x9f\u2028\u2029]/;
  const showText = (text) => {
    const shown = text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}...` : text;
    return HIDDEN.test(shown) ? stringify(shown) : shown;
  };
  const showForms = (forms) => {
    const shown = forms.map(({count, texts}) => {
      const [[example]] = texts;
      return `${count}x ${showText(example)}${texts.length > 1 ? ` (${texts.length} values)` : ""}`;
    });
    const leftOut = forms.slice(MAX_FORMS - MAX_RARE_FORMS, -MAX_RARE_FORMS);
    if (forms.length > MAX_FORMS) {
      const sum = leftOut.reduce((total, {count}) => total + count, 0);
      shown.splice(MAX_FORMS - MAX_RARE_FORMS, leftOut.length, `(${sum} of ${leftOut.length} forms between)`);
    }
    return shown;
  };

  const describeValues = (texts) => {
    const counts = [...countEach(texts)].sort(([, a], [, b]) => b - a);
    const shown = counts.slice(0, MAX_VALUES).map(([text, count]) => `${count}x ${showText(text)}`);
    const others = counts.slice(MAX_VALUES);
    if (others.length > 0) {
      const sum = others.reduce((total, [, count]) => total + count, 0);
      shown.push(`(${sum} of ${others.length} other values)`);
    }
    return `[${texts.length} values, ${counts.length} different] ${shown.join(" | ")}`.trimEnd();
  };

  const toText = (value) => (typeof value === "object" ? stringify(value) : String(value));
  const describeTexts = (texts) => {
    const forms = findForms(texts);
    return [`[${texts.length} texts, ${forms.length} forms]`, ...showForms(forms)].join("\n");
  };
  const describeRows = (rows) => {
    const columns = new Map();
    for (const row of rows) {
      for (const [column, value] of Object.entries(row)) {
        if (!columns.has(column)) columns.set(column, []);
        columns.get(column).push(toText(value));
      }
    }
    const lines = [...columns].map(([column, texts]) => {
      const note = texts.length < rows.length ? ` (in ${texts.length} rows)` : "";
      return `${showText(column)}${note}: ${showForms(findForms(texts)).join(" | ")}`;
    });
    return [`[${rows.length} rows]`, ...lines].join("\n");
  };

  const isRow = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const toItems = (items) => (typeof items === "string" ? items.lines() : [...items]);
  globalThis.count_values = (values) => describeValues(toItems(values).map(toText));
  globalThis.count_forms = (items) => {
    const all = toItems(items);
    if (all.length > 0 && all.every(isRow)) return describeRows(all);
    return describeTexts(all.map(toText));
  };
})();
