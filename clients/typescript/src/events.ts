import { FathomError, failureIn } from "./failure.js";

/** Something that happened in a run. `id` counts from 1, without gaps; 0: it is not kept. */
export interface RunEvent {
  id: number;
  type: string;
  /** ISO 8601, UTC. */
  at: string;
  /** One line for a person. */
  message: string;
  data: Record<string, unknown>;
}

export interface Following {
  /** The id of the last event that is known. */
  after?: number;
  /** How often to connect again without hearing anything. */
  retries?: number;
  signal?: AbortSignal;
}

export interface Source {
  /** Ask for the events after one of them. */
  open(after: number, signal: AbortSignal): Promise<Response>;
  /** Say whether the run has ended. */
  ended(): Promise<boolean>;
}

/** Milliseconds without a byte after which a connection is given up: the server sends one at least every 15 s. */
const SILENCE = 60_000;
/** Milliseconds after which a connection that still brings something has not failed. */
const LIVES = 10_000;
/** Seconds of Retry-After that are waited for, at most. */
const LONGEST_WAIT = 60;

/** Yield the events of a run, each once, until it has ended; after a break it goes on where it stopped. */
export async function* follow(source: Source, options: Following): AsyncGenerator<RunEvent, void, void> {
  let last = options.after ?? 0;
  let ended = await source.ended();
  let failures = 0;
  for (;;) {
    options.signal?.throwIfAborted();
    const before = last;
    try {
      for await (const event of connection(source, last, options.signal, () => (failures = 0))) {
        if (event.id && event.id <= last) continue;
        last = Math.max(last, event.id);
        yield event;
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      const failure = named(error);
      failures += 1;
      if (!failure.passing || failures > (options.retries ?? 6) || (failure.retryAfter ?? 0) > LONGEST_WAIT) {
        throw failure;
      }
      await pause(failure.retryAfter ?? Math.min(2 ** (failures - 2), 15), options.signal);
      continue;
    }
    // A proxy may end an answer early and in good order. It was whole if it was begun when nothing more happened, and
    // brought nothing new.
    const over = await source.ended();
    if (ended && over && last === before) return;
    ended = over;
    if (!over) await pause(1, options.signal);
  }
}

async function* connection(
  source: Source,
  after: number,
  signal: AbortSignal | undefined,
  alive: () => void,
): AsyncGenerator<RunEvent, void, void> {
  const silent = new AbortController();
  const forward = () => silent.abort(signal?.reason);
  signal?.addEventListener("abort", forward);
  let timer = setTimeout(() => silent.abort(), SILENCE);
  try {
    const response = await source.open(after, silent.signal);
    if (!response.ok) throw await failureIn(response);
    const opened = Date.now();
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    let data: string[] = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (Date.now() - opened > LIVES) alive();
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE);
      const lines = (left + value).split("\n");
      left = lines.pop() ?? "";
      for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
        if (line.startsWith("data:")) {
          data.push(line.slice(5).replace(/^ /, ""));
        } else if (line === "" && data.length) {
          const event = JSON.parse(data.join("\n")) as RunEvent;
          data = [];
          alive();
          yield event;
        }
      }
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
    silent.abort(); // closes the connection when the caller stops listening
  }
}

/** Return a failure of any kind as one of ours: `fetch` throws a TypeError when there is no answer. */
export function named(error: unknown): FathomError {
  if (error instanceof FathomError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new FathomError(`The server does not answer: ${text}.`, null, null, "start it with `fathom serve`", null, {
    cause: error,
  });
}

/** Wait for some seconds. */
export async function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
