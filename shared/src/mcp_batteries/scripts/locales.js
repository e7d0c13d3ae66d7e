// What scripts expect of languages, of which the engine knows none: it would take the arguments and do without them.
(() => {
  const {stringify} = JSON;

  // The order of Unicode's root collation: signs, digits, letters; then without accents first; then small letters first.
  const SIGNS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
  const MARKS = /\p{M}/gu;
  // Characters below the digits stand for signs.
  const toSignKey = (sign) => {
    if (/\s/.test(sign)) return "\x01";
    const index = SIGNS.indexOf(sign);
    return index < 0 ? `\x2f${sign}` : String.fromCharCode(2 + index);
  };
  // Longer numbers are larger.
  const toNumberKey = (digits) => {
    const number = digits.replace(/^0+/, "");
    return `0${String.fromCharCode(number.length)}${number}`;
  };
  // Returns a key: compared by their characters, the keys of texts are in the order that the options ask for.
  const makeKey = (text, numeric, sensitivity) => {
    const decomposed = text.normalize("NFKD");
    const letters = decomposed.replace(MARKS, "");
    // The first of the two makes two letters of `ß`.
    let key = letters.toUpperCase().toLowerCase().replace(/[^\p{L}\p{N}]/gu, toSignKey);
    if (numeric) key = key.replace(/\d+/g, toNumberKey);
    if (sensitivity === "accent" || sensitivity === "variant") key += `\0${decomposed.toLowerCase()}`;
    if (sensitivity === "case" || sensitivity === "variant")
      key += `\0${letters.replace(/./gsu, (letter) => (/\p{Lu}/u.test(letter) ? "1" : "0"))}`;
    return key;
  };
  const MAX_KEYS = 100_000;
  const OPTIONS = ["numeric", "sensitivity", "usage"];
  // Returns a function that makes the key of each text once, since a sort compares a text with many.
  const makeKeyFunction = (options = {}) => {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
    if (unknown) throw new Error(`localeCompare has no ${unknown} here, only ${OPTIONS.join(", ")}`);
    const {numeric = false, sensitivity = "variant"} = options;
    const keys = new Map();
    return (text) => {
      let key = keys.get(text);
      if (key !== undefined) return key;
      key = makeKey(text, numeric, sensitivity);
      if (keys.size >= MAX_KEYS) keys.clear();
      keys.set(text, key);
      return key;
    };
  };
  const keyFunctions = new Map();
  const keyFunctionFor = (options) => {
    const json = options && stringify(options);
    if (!keyFunctions.has(json)) keyFunctions.set(json, makeKeyFunction(options));
    return keyFunctions.get(json);
  };
  String.prototype.localeCompare = function (other, locales, options) {
    const keyOf = keyFunctionFor(options);
    const key = keyOf(String(this));
    const otherKey = keyOf(String(other));
    return key < otherKey ? -1 : Number(key > otherKey);
  };

  for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) {
    const method = Date.prototype[name];
    Date.prototype[name] = function (locales = "en-US", options = undefined) {
      if (locales === "en-US" && options === undefined) return method.call(this);
      throw new Error(`${name} of a Date knows no languages, options and time zones here: take toISOString(), in UTC`);
    };
  }
})();
