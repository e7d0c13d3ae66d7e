// Issues or pull requests of a repository: filtered, paged through the server's own cursor, each opened in place.

import { useMemo, useState } from "preact/hooks";

import { ask, dataOf, list, type Row, rowsOf, text } from "../kit/data";
import { Ago, Colours, Labels, Said, State, useColours, Who } from "../kit/github";
import { Link } from "../kit/link";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";

function Issues(call: Call) {
  const [pages, setPages] = useState<Row[]>([dataOf(call.result)]);
  const [wanted, setWanted] = useState("");
  const [open, setOpen] = useState<{ number: number; data?: Row }>();
  const [loading, setLoading] = useState(false);
  const items = useMemo(() => pages.flatMap(rowsOf), [pages]);
  const cursor = pages[pages.length - 1]!["cursor"];
  const tool = call.host.tool ?? "list_issues";
  const getter = tool === "list_pull_requests" ? "get_pull_request" : "get_issue";
  const shown = items.filter((item) => Object.values(item).some((value) => text(value).toLowerCase().includes(wanted.toLowerCase())));

  const colours = useColours(call, items.some((item) => list(item["labels"]).length > 0));

  const attempt = async (work: () => Promise<void>) => {
    setLoading(true);
    call.say("Loading…");
    try {
      await work();
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
    } finally {
      setLoading(false);
    }
  };
  const more = () => attempt(async () => {
    const page = await ask(call.host, tool, { ...call.input, cursor });
    setPages([...pages, page]);
  });
  const show = (number: number) => {
    if (open?.number === number) return setOpen(undefined);
    setOpen({ number });
    void attempt(async () => setOpen({ number, data: (await ask(call.host, getter, { repo: call.input["repo"], number }))["data"] as Row }));
  };

  return (
    <Colours.Provider value={colours}>
      <div class="bar">
        <h2><Text value={plain(text(call.input["repo"]), 120)} /></h2>
        <input type="search" class="grow" aria-label="Filter" placeholder="Filter" onInput={(event) => setWanted(event.currentTarget.value)} />
        <span class="quiet">{shown.length === items.length ? items.length : `${shown.length} of ${items.length}`}{cursor ? " loaded, more at GitHub" : ""}</span>
      </div>
      <ul class="scroll items">
        {shown.map((item) => {
          const number = Number(item["number"]);
          return (
            <li key={number}>
              <div class="line">
                <State item={item} brief />
                <h2><button type="button" class="plain" aria-expanded={open?.number === number} onClick={() => show(number)}>
                  <span class="number">#{number}</span> <Text value={plain(text(item["title"]), 300)} />
                </button></h2>
                <Labels item={item} />
                {Number(item["comments"]) > 0 && <span class="bar end quiet">{item["comments"]} {item["comments"] === 1 ? "comment" : "comments"}</span>}
              </div>
              <div class="quiet about">
                <Who item={item} />
                {item["updated_at"] ? <>, updated <Ago value={item["updated_at"]} /></> : ""}
                {item["head"] !== undefined && <>, <code><Text value={plain(text(item["head"]), 80)} /></code> into <code><Text value={plain(text(item["base"]), 80)} /></code></>}
              </div>
              {open?.number === number && open.data && (
                <div class="whole">
                  <Said item={open.data} call={call} />
                  <Link call={call} url={open.data["url"]} />
                </div>
              )}
            </li>
          );
        })}
      </ul>
      {shown.length === 0 && <p class="quiet">{items.length ? "None matches." : "There are none."}</p>}
      {cursor !== undefined && cursor !== null && (
        <nav class="bar pager" aria-label="Pages"><button type="button" disabled={loading} onClick={more}>Load more</button></nav>
      )}
    </Colours.Provider>
  );
}

mount("Issues", (call) => <Issues key={call.version} {...call} />);
