// What every script finds defined. FUNCTIONS stands for the array of the tools' names.
(() => {
  const call = globalThis.__call;
  const write = globalThis.__print;
  delete globalThis.__call;
  delete globalThis.__print;

  const show = (value) => {
    if (typeof value === "string") return value;
    // What JSON has no form for, such as a function.
    return JSON.stringify(value) ?? String(value);
  };
  // The engine hands over a string that was put together as an object, so it goes as JSON, which is written whole.
  globalThis.print = (...values) => write(JSON.stringify(`${values.map(show).join(" ")}\n`.toWellFormed()));
  globalThis.console = {log: print, info: print, warn: print, error: print, debug: print};

  // The first line of the last answer, if it was one in brackets: what is shown, and what is missing.
  globalThis.remark = "";
  const withoutRemark = (text) => {
    const [line] = text.split("\n", 1);
    const isRemark = /^\[.*\]$/.test(line);
    globalThis.remark = isRemark ? line : "";
    return isRemark ? text.slice(line.length + 1) : text;
  };

  globalThis.tools = {};
  for (const name of FUNCTIONS) {
    const tool = (args = {}, ...others) => {
      if (typeof args !== "object" || args === null || Array.isArray(args) || others.length)
        throw new TypeError(`${name} takes its arguments as one object: ${name}({NAME: VALUE})`);
      const answer = JSON.parse(call(name, JSON.stringify(args)));
      if (answer.error !== undefined) throw new Error(`${name}: ${answer.error}`);
      return withoutRemark(answer.text);
    };
    globalThis[name] = tool;
    globalThis.tools[name] = tool;
  }
})();
