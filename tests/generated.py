"""Documents made from the code: `python -m tests.generated` writes them, a test checks that they are current."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict

from pydantic.fields import FieldInfo

from fathom.config.form import SetBy, Setting, bounds_of, default_of, setting_of
from fathom.config.groups import PROFILES, Profile, RoleModel
from fathom.config.settings import SETTINGS
from fathom.errors import FathomError, InvalidState, ModelRejected
from fathom.llm import responses, services
from fathom.llm.dialects import CONCESSIONS, TABLE, Line
from fathom.tools import http
from fathom.tools.base import SearchVendor
from fathom.tools.fetch.client import TOTAL_SECONDS
from fathom.tools.registry import REGISTRY
from fathom.tools.search import over_litellm
from tests.conftest import ROOT
from tests.fault_matrix import DEADLINE, RESTS, table
from tests.tool_fault_matrix import tool_table
from tests.vendors import CASES

__all__ = ["DOCUMENTS", "errors"]

ERRORS = """\
# Errors

Every failure that Fathom names has a code. You find it on the last line that the command prints, in the reason why a
run is degraded, and in the report's coverage table. A program that knows the codes of the Research engine finds them
in the [last table](#the-codes-of-the-research-engine).

{table}

Exit codes: 0 done (including degraded), 1 failed, 2 bad input, 3 no evidence, 130 interrupted or cancelled, 143
terminated (SIGTERM).

## The codes of the Research engine

Appendix C of the [Research engine](specification.md#research-engine) names 14 codes. Each means the same here, but for
two that are no errors:

| code | name | here |
|---|---|---|
| E1001 | BUDGET_EXCEEDED | E1001 |
| E1002 | MAX_ITERATIONS | no error: a run normally ends with its last round (`stop`: "the last round is done") |
| E1003 | TIMEOUT | E1003 for a model, E3002 for a tool, E7014 for a request here; the cap `max_seconds` is E1001 |
| E2001 | LLM_RATE_LIMIT | E2001; E2006 while no request is made because of it |
| E2002 | LLM_CONTEXT_OVERFLOW | E2002 |
| E2003 | LLM_SAFETY_FILTER | E2003 |
| E2004 | LLM_API_ERROR | E2004; E2005, E2008 if the provider will never accept the request; E2007, E2009 |
| E3001 | TOOL_NOT_FOUND | E3001 |
| E3002 | TOOL_TIMEOUT | E3002 |
| E3003 | TOOL_RATE_LIMIT | E3003; other failures of tools are E3004 and E3005 |
| E4001 | VALIDATION_FAILED | E4001, for what a person gives; E4004 for what a model answers |
| E4002 | PLAN_INVALID | E4004: a plan is requested again like any invalid answer. A plan that a person edits is E4001 |
| E5001 | SESSION_NOT_FOUND | E5001, for runs and sessions |
| E5002 | INVALID_STATE | E5002 |
"""

FAULTS = """\
# Faults

## When a model fails

What happens to a run when the provider fails at one role: how the run ends, and how many requests the role makes at
most. The run of the table has three steps, one round, a reflection and four sections, each with a sentence to which the
judge objects; without a fault, its roles make 1, 3, 3, 1, 1, 4, 2 and 4 requests, the corrections of three sections at
the same time. `tests/test_model_faults.py` injects each fault over HTTP and holds the pipeline to this table. A section
is prose, so faults of JSON do not concern it. Other fields are empty where the client meets a fault in the same way
whichever role asks.

{table}

- **complete** exit code 0; the model answered, if not at once. **degraded** exit code 0 and a report: the role was
  answered without the model, and the run's reason names it. **failed** exit code 1 and the setting to correct; the run
  can be resumed.
- A call is tried up to five times, 2, 4, 8 and 16 seconds or the provider's Retry-After apart. If Retry-After is more
  than a minute, Fathom does not wait.
- If no server answers at the model's address (the connection is refused, or the host name cannot be resolved), and the
  provider has not answered the run since it was started or resumed, a call is tried only twice. Then the run is
  **failed**: the message names the address and the variable that holds it. A fallback model answers after the first
  try instead; with the fallback `extractive`, the role is answered without a model. Once the provider has answered the
  run, a refused connection is tried five times like any other failure.
- An answer is not abandoned because of its total duration. If it is silent for {deadline} seconds
  (`model_calls.seconds`), it is abandoned and tried once more. If a server answers one request after the other,
  requests that wait for their first token are not abandoned while the server sends tokens to others.
- An answer that only repeats itself is cut off and asked for once more, with a higher temperature and a penalty on
  repetition where the provider takes them. A model that used up its room in thinking gets more room for it.
- What a provider refuses by name, such as a parameter or a form of JSON, is left out or asked for in another form from
  then on.
- After five failures in a row, of at least two different requests, a service rests for {rest:g} seconds: a prompt that
  always fails costs only its own answer. Calls wait until then, hold neither a slot nor money meanwhile, and one of
  them tests the service. If it fails too, the waiting calls go on without it, and the service rests twice as long
  as before, at most {longest_rest:g} seconds. A call does not wait for a rest of more than {longest_wait:g} seconds,
  nor for one that outlasts the time of the budget, nor if the role has a fallback model left. So a service that is down
  holds up a run for at most {rests} seconds, beside the time of its first five attempts and its two tests. All roles
  and runs of a process share this knowledge: the service is asked once after each rest, not five times for every call.
- An answer may have {token_bytes} bytes for each token that was asked for, a stream {event_bytes:,}, beside
  {error_kb:g} KB; an error, or what is no JSON, {error_kb:g} KB. What is larger is not read any further, and is asked
  for once more.
- A request has as much of its material as the model's window holds, if the server tells that window or a refusal told
  it. One that does not fit all the same is sent again with the least relevant half left out, up to four times, never
  the same prompt twice. A planner's prompt holds little that could be left out.
- The role's fallback models (`fallback_models`, or `fallbacks` of a role's model) are asked in turn before a role
  continues without a model. Their answers are stored like any other answer: a resumed run does not ask again.

## When a search or a page fails

The run of this table has two steps. Each has one search, whose two pages are then read in full; for `fetch`, each has
one page that the question names. Each cell says how the run ends and how many requests it makes at most to the services
that fail. `tests/test_tool_faults.py` injects each fault over HTTP.

{tool_table}

- **search** Tavily searches, and there is no other vendor. **with SearXNG** `SEARXNG_URL` is set. **extract** Tavily
  cannot read the pages, so Fathom reads them itself. **extract and pages** neither can: the excerpts of the search
  remain. **fetch** reads a page. **no evidence** exit code 3 and no report: nothing was found.
- A search that fails for good or finds nothing goes to the next vendor. A failure that the next vendor made good is
  listed in the report's coverage table and does not make the run `degraded`.
- A call is tried up to {attempts} times, {pause:g} and {next_pause:g} seconds or the vendor's Retry-After apart; if
  Retry-After is more than {longest:g} seconds, Fathom does not wait. A vendor has {seconds:g} seconds to answer. All
  requests for a page together have {page_seconds:g} seconds, so a page that hangs is not asked for again.
- An answer of a vendor may have {vendor_mb:g} MB, on the wire and unpacked; what is larger is not read any further.
- The message of a failure is never evidence: it appears in the coverage table and in the file of the failed call, in no
  note, section or text of a source. That file stands beside [what the service answered](pipeline.md#what-arrived).

"""


TOOLS = """\
# Tools

The researcher may call these tools. A tool or vendor is used when its variables are set; `fathom doctor` shows which
are. `--tools` restricts a run to some of them. Tools of MCP servers are added to them ([mcp.md](mcp.md)), and so are
tools of packages that register them in the entry-point group `fathom.tools` ([an example](../examples/glossary)).

{tools}

The tools of a group are asked only by runs that choose them, by name or together: `--tools default,{groups}`, where
`default` stands for the tools that a run uses by itself. The tools of a group need no key, so every question would be
sent to them. A step is offered the ones that fit it: [Which tool a step uses](searching.md#which-tool-a-step-uses).

| tool | group | good for | optional variables |
|---|---|---|---|
{domains}

`FATHOM_CONTACT` is your e-mail address. Public services want to know whom to write to before they block somebody, and
some serve who gives one faster. It is sent to them and to nobody else. `..._BASE_URL` is another address of a service.

`web_search` asks the search vendors that are configured in this order until one finds something;
[searching.md](searching.md) says how to choose others, another order, or all together. The dollars are what a search
for five pages costs by the vendor's price list; they count in the run's budget.

{vendors}

These are asked only when `--search` names them: the first because its key is most often set for models, the others
over litellm, which knows how to ask them and how to read their answers.

{others}
"""


PROVIDERS = """\
# Providers

How models are asked is data: `TABLE` in `fathom/llm/dialects.py`, where later lines add to earlier ones. Without a
line, a model is asked with `max_tokens`, a system role, a strict JSON schema without bounds, and the temperature that
you set. [models.md](models.md) says what you need to know to use a model.

{table}

What a server refuses by name (HTTP 400, 422 or 500) is changed for the rest of the run, and the request is sent again.
The first line that fits the message and would change something counts:

{concessions}

A refusal of the structured output itself leads from `json_schema` or `tool` to `json_object`, and from there to
`prompt`. To add a provider, add a line to the table, and a case to `tests/test_model_servers.py` against a server that
refuses as the provider does.
"""


_GIVEN = {"title": "title", "published": "date", "score": "score", "excerpt": "excerpt", "whole": "whole text"}


def errors(kind: type[FathomError] = FathomError) -> Iterator[type[FathomError]]:
    """Yield the errors that are raised: the leaves of the tree, and a branch that is raised itself."""
    children = [child for child in kind.__subclasses__() if child.__module__.startswith("fathom.errors")]
    if not children or kind in (InvalidState, ModelRejected):
        yield kind
    for child in children:
        yield from errors(child)


def errors_page() -> str:
    """Return `docs/errors.md`."""
    lines = ["| code | error | what happened | what Fathom does | what you can do |", "|---|---|---|---|---|"]
    for kind in sorted(errors(), key=lambda error: error.code):
        happened = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
        lines.append(f"| {kind.code} | `{kind.__name__}` | {happened} | {kind.reaction} | {kind.remedy or 'nothing'} |")
    return ERRORS.format(table="\n".join(lines))


def faults_page() -> str:
    """Return `docs/faults.md`; what stands below the mark is written by hand."""
    _, mark, by_hand = (ROOT / "docs/faults.md").read_text(encoding="utf-8").partition("<!-- by hand -->")
    generated = FAULTS.format(
        table=table(),
        deadline=DEADLINE,
        rest=services.REST_SECONDS,
        longest_rest=services.LONGEST_REST,
        longest_wait=services.MAX_WAIT,
        rests=RESTS,
        token_bytes=responses.TOKEN_BYTES,
        event_bytes=responses.EVENT_BYTES,
        error_kb=responses.ERROR_BYTES / 2**10,
        vendor_mb=http.MAX_BYTES / 2**20,
        tool_table=tool_table(),
        attempts=http.ATTEMPTS,
        pause=http.FIRST_PAUSE,
        next_pause=2 * http.FIRST_PAUSE,
        longest=http.LONGEST_PAUSE,
        seconds=http.ATTEMPT_SECONDS,
        page_seconds=TOTAL_SECONDS,
    )
    return generated + mark + by_hand


def tools_page() -> str:
    """Return `docs/tools.md`."""
    tools = [
        "| tool | what it does | configured by | network | `fetch` may read its results |",
        "|---|---|---|---|---|",
    ]
    for tool in REGISTRY.tools.values():
        offered = (
            f"called after {tool.follows}, not by a model" if tool.follows else (tool.__doc__ or "").partition("\n")[0]
        )
        cells = [
            f"`{tool.name}`",
            offered,
            "a search vendor" if tool.by_vendors else REGISTRY.variables(tool) or "nothing",
            _yes(tool.network),
            _yes(tool.fetchable),
        ]
        tools.append(f"| {' | '.join(cells)} |")
    known = [*REGISTRY.vendors, *map(over_litellm.vendor_of, over_litellm.PROVIDERS)]
    asked = [tool for tool in REGISTRY.tools.values() if tool.domains]
    domains = (f"| `{t.name}` | `{t.group}` | {', '.join(t.domains)} | {_code(t.optional)} |" for t in asked)
    return TOOLS.format(
        tools="\n".join(tools),
        groups=",".join(dict.fromkeys(tool.group for tool in asked)),
        domains="\n".join(domains),
        vendors=_vendors(one for one in known if not one.only_named),
        others=_vendors(one for one in known if one.only_named),
    )


def _vendors(vendors: Iterable[type[SearchVendor]]) -> str:
    """Return a table of vendors; what each gives of a page is what the test of its wire finds."""
    lines = [
        "| vendor | variables | another address | of a page | limits of a search | dollars | how to set them |",
        "|---|---|---|---|---|--:|---|",
    ]
    given = {case.name: asdict(case.pages[0]) for case in CASES}
    for vendor in vendors:
        assert vendor.key() in given, f"tests/vendors.py has no case for {vendor.key()}"
        kept = [name for field, name in _GIVEN.items() if given[vendor.key()][field]]
        price = vendor.price(5)
        dollars = "unknown" if price is None else f"{float(price):g}"
        named = [_code([vendor.key()]), _code(vendor.variables), _code(vendor.optional)]
        cells = [*named, ", ".join(kept), ", ".join(vendor.limits), dollars]
        lines.append(f"| {' | '.join([*cells, vendor.setup])} |")
    return "\n".join(lines)


def providers_page() -> str:
    """Return `docs/providers.md`."""
    rows = ["| models | asked with | source |", "|---|---|---|"]
    rows += [f"| {_models(line)} | {_fields(line.differs)} | {_linked(line.source)} |" for line in TABLE]
    refusals = ["| the message has | then |", "|---|---|"]
    refusals += [
        f"| `{pattern.replace('|', chr(92) + '|')}` | {_fields(differs)} |" for pattern, differs in CONCESSIONS
    ]
    return PROVIDERS.format(table="\n".join(rows), concessions="\n".join(refusals))


def _models(line: Line) -> str:
    parts = [_code(sorted(line.providers))] if line.providers else []
    parts += {True: ["at an address of your own"], False: ["at OpenAI's own address"], None: []}[line.own_server]
    parts += [f"named `{line.name.replace('|', chr(92) + '|')}`"] if line.name else []
    parts += ["that reason, by litellm's table"] if line.flags.get("supports_reasoning") else []
    return " ".join(parts)


def _fields(differs: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`: {getattr(value, 'value', value)}" for name, value in differs.items())


def _linked(source: str) -> str:
    return re.sub(r"https?://[^\s,]+?(?=[:,]?(?:\s|$))", lambda found: f"<{found[0]}>", source)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def settings_page() -> str:
    """Return `docs/settings.md` with its tables as the settings are declared."""
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    tables = {
        "settings": _table_of(SETTINGS),
        "profiles": _profiles(),
        "role_models": _table_of(RoleModel.model_fields),
    }
    for name, lines in tables.items():
        text = re.sub(rf"(<!-- {name}: .*?-->\n).*?(<!-- end -->)", rf"\g<1>{lines}\n\g<2>", text, flags=re.DOTALL)
    return text


def _profiles() -> str:
    values = [*PROFILES[Profile.quick]]
    lines = [f"| profile | {' | '.join(f'`{name}`' for name in values)} |", f"|---|{'--:|' * len(values)}"]
    for profile, implied in PROFILES.items():
        cells = (str(implied[name]) if isinstance(implied[name], str) else f"{implied[name]:,}" for name in values)
        lines.append(f"| `{profile}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table_of(fields: Mapping[str, FieldInfo]) -> str:
    """Return a table of settings, with a column of options if some have one."""
    has_options = any(setting_of(field).option for field in fields.values())
    heads = ["setting", *(["option"] if has_options else []), "default", "meaning", *(["who"] if has_options else [])]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for path, field in fields.items():
        setting = setting_of(field)
        option = f"`{setting.option} {setting.value}`".replace(" `", "`") if setting.option else ""
        about = [field.description or "", f"({bounds_of(field)})" if bounds_of(field) else ""]
        about += [f"See [{setting.page}]({setting.page}.md)."] if setting.page else []
        default = default_of(field)
        shown = default if setting.otherwise or not default else f"`{default}`"
        cells = [f"`{path}`", *([option] if has_options else []), shown, " ".join(filter(None, about))]
        cells += [_who(setting)] if has_options else []
        escaped = (cell.replace("|", chr(92) + "|") for cell in cells)
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


def _who(setting: Setting) -> str:
    """Return who may not set a setting, or not to any value; empty if everybody may."""
    told = {SetBy.anyone: "", SetBy.admins: "on a server: administrators", SetBy.server: "not in requests"}
    most = "" if setting.most is None else f"on a server: at most {setting.most:,}"
    return "; ".join(filter(None, (told[setting.set_by], most, "" if setting.by_template else "not in templates")))


def openapi_document() -> str:
    """Return `docs/openapi.json`, without the routes of the page."""
    from fathom.interfaces.server import create_app
    from fathom.service.options import Options

    found = create_app(Options(str(ROOT / "artifacts"))).openapi()
    return f"{json.dumps({**found, 'servers': [{'url': 'http://127.0.0.1:8700'}]}, indent=1, ensure_ascii=False)}\n"


DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/errors.md": errors_page,
    "docs/faults.md": faults_page,
    "docs/openapi.json": openapi_document,
    "docs/providers.md": providers_page,
    "docs/settings.md": settings_page,
    "docs/tools.md": tools_page,
}

if __name__ == "__main__":
    for name, page in DOCUMENTS.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
