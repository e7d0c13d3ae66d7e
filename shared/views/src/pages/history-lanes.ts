// Which lane of a drawing each commit is in, and which lines lead on from it: newest first, as git lists them.

export interface Commit {
  id: string;
  parents: string[];
  date: string;
  author: string;
  refs: string;
  subject: string;
}

export interface Drawn {
  commit: Commit;
  lane: number;
  /** Lines through the upper half of the row, from lane to lane; those of the lower half begin where these end. */
  above: [number, number][];
  below: [number, number][];
  /** Lanes that go on below the row. */
  open: number[];
}

/** Lay out `commits`; a parent that is not among them keeps its lane to the end. */
export function lanes(commits: Commit[]): Drawn[] {
  let waiting: (string | null)[] = [];
  return commits.map((commit) => {
    const before = waiting.slice();
    let lane = before.indexOf(commit.id);
    if (lane < 0) lane = before.indexOf(null);
    if (lane < 0) lane = before.length;
    const after = before.map((id) => (id === commit.id ? null : id));
    while (after.length <= lane) after.push(null);
    const to: number[] = [];
    commit.parents.forEach((parent, number) => {
      let at = after.indexOf(parent);
      if (at < 0 && number === 0) at = lane;
      if (at < 0) at = after.findIndex((id, index) => id === null && index !== lane);
      if (at < 0) at = after.length;
      after[at] = parent;
      to.push(at);
    });
    while (after.length && after[after.length - 1] === null) after.pop();
    waiting = after;
    const above = before.flatMap((id, from): [number, number][] => (id === null ? [] : [[from, id === commit.id ? lane : from]]));
    const passing = before.flatMap((id, from): [number, number][] => (id === null || id === commit.id ? [] : [[from, from]]));
    return {
      commit, lane, above,
      below: [...passing, ...to.map((at): [number, number] => [lane, at])],
      open: after.flatMap((id, index) => (id === null ? [] : [index])),
    };
  });
}
