// Research a question and print the report: node examples/research.mjs "What is a descriptor in Python?"
// FATHOM_URL and FATHOM_TOKEN name the server and who asks.
import { Fathom, FathomError } from "../dist/index.js";

const { FATHOM_URL: url = "http://127.0.0.1:8700", FATHOM_TOKEN: token } = process.env;
const fathom = new Fathom({ url, ...(token ? { token } : {}) });

try {
  const run = await fathom.research(process.argv[2] ?? "What is a descriptor in Python?", {
    settings: { profile: "quick" },
    onEvent: (event) => console.error(`${event.type}: ${event.message}`),
  });
  console.log(run.report || `There is no report: ${run.state}`);
} catch (error) {
  if (!(error instanceof FathomError)) throw error;
  console.error(`${error.code ?? ""} ${error.message} ${error.nextStep}`);
  process.exitCode = 1;
}
