/** What a Fathom server answers instead of a result, as RFC 9457 has it. */
export interface Problem {
  title: string;
  status: number;
  detail?: string;
  code?: string | null;
  next_step?: string;
  errors?: WrongValue[];
}

/** A setting or a field of a request that cannot have the value that was sent; `message` says what is allowed. */
export interface WrongValue {
  path: string;
  value: string | number | boolean | null;
  message: string;
}

/** A failure. `code` is one of docs/errors.md; it is null where whoever answered is no Fathom server. */
export class FathomError extends Error {
  constructor(
    message: string,
    readonly status: number | null,
    readonly code: string | null = null,
    readonly nextStep: string = "",
    /** Seconds that the server asks to wait. */
    readonly retryAfter: number | null = null,
    options?: ErrorOptions,
    readonly errors: readonly WrongValue[] = [],
  ) {
    super(message, options);
    this.name = "FathomError";
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return this.status === null || [429, 502, 503, 504].includes(this.status);
  }
}

/** Return the failure that an answer tells of. Its body must not have been read. */
export async function failureIn(response: Response): Promise<FathomError> {
  const seconds = response.headers.get("Retry-After") ?? "";
  const retryAfter = /^\d+$/.test(seconds) ? Number(seconds) : null;
  const text = await response.text();
  if (response.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    const problem = JSON.parse(text) as Problem;
    const message = problem.detail || problem.title;
    const { code = null, next_step: nextStep = "", errors } = problem;
    return new FathomError(message, response.status, code, nextStep, retryAfter, undefined, errors);
  }
  return new FathomError(`${response.url} answers ${response.status}.`, response.status, null, "", retryAfter);
}
