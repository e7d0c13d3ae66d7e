// `count_forms(LINES or ROWS)`: how texts are written. A script that is to meet all of them prints this in place of them.
(() => {
  const {stringify} = JSON;
  const MAX_FORMS = 12;
  // The rarest forms are mostly those that a script did not expect.
  const MAX_RARE_FORMS = 4;
  const MAX_SHOWN_CHARACTERS = 100;

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
  // From the finest on; the first that finds few forms is taken, else the last.
  const LEVELS = [
    {name: "", formOf: (text) => text},
    {name: "alike but for numbers", formOf: withoutNumbers},
    {name: "alike but for numbers and words behind a label", formOf: withoutWordsBehindLabel},
    {name: "alike but for words and numbers", formOf: withoutWords},
  ];

  const countBy = (counts, formOf) => {
    const forms = new Map();
    for (const [text, count] of counts) {
      const form = formOf(text);
      const entry = forms.get(form);
      if (entry) entry.count += count;
      else forms.set(form, {example: text, count});
    }
    return [...forms.values()].sort((a, b) => b.count - a.count);
  };
  const countForms = (texts) => {
    const counts = new Map();
    for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
    for (const {name, formOf} of LEVELS) {
      const forms = countBy(counts, formOf);
      if (forms.length <= MAX_FORMS) return {name, forms};
    }
    const {name, formOf} = LEVELS.at(-1);
    return {name, forms: countBy(counts, formOf)};
  };

  // Blanks at the ends of a text would not be seen, and a line end would end the line.
  const HIDDEN = /^$|^\s|\s$|[\0-\x08\n-\x1f\x7f-\x9f\u2028\u2029]/;
  const showText = (text) => {
    const shown = text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}...` : text;
    return HIDDEN.test(shown) ? stringify(shown) : shown;
  };
  const showForms = (forms) => {
    const shown = forms.map(({example, count}) => `${count}x ${showText(example)}`);
    const leftOut = forms.slice(MAX_FORMS - MAX_RARE_FORMS, -MAX_RARE_FORMS);
    if (forms.length > MAX_FORMS) {
      const sum = leftOut.reduce((total, {count}) => total + count, 0);
      shown.splice(MAX_FORMS - MAX_RARE_FORMS, leftOut.length, `(${sum} of ${leftOut.length} forms between)`);
    }
    return shown;
  };

  const toText = (value) => (typeof value === "object" ? stringify(value) : String(value));
  const describeTexts = (texts) => {
    const {name, forms} = countForms(texts);
    const title = [`${texts.length} texts`, `${forms.length} forms`, name].filter(Boolean).join(", ");
    return [`[${title}]`, ...showForms(forms)].join("\n");
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
      const {name, forms} = countForms(texts);
      const notes = [texts.length < rows.length && `in ${texts.length} rows`, name].filter(Boolean).join(", ");
      return `${showText(column)}${notes && ` (${notes})`}: ${showForms(forms).join(" | ")}`;
    });
    return [`[${rows.length} rows]`, ...lines].join("\n");
  };

  const isRow = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  globalThis.count_forms = (items) => {
    const all = typeof items === "string" ? items.lines() : [...items];
    if (all.length > 0 && all.every(isRow)) return describeRows(all);
    return describeTexts(all.map(toText));
  };
})();
