"""Reference that the code writes: commands, settings, routes, problems, metrics."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.parser import text_string_to_metric_families

from laurels import metrics
from laurels.cli.application import loaded
from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.http.problems import EXPLANATIONS, type_of
from laurels.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Options of every command, which the page lists once.
OF_ALL: Final = {"--data-dir", "--json", "--help"}
SCOPE: Final = re.compile(r"\s*Needs the scope `(\w+)`\.")


def markdown(what: str) -> str:
    """The text that replaces `<!-- generated: WHAT -->`."""
    kind, _, name = what.partition(" ")
    return GENERATORS[kind](name)


def table(*head: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def options(command: str) -> str:
    """The options of a command, such as `laurels keys create`."""
    name, *inner = command.split()[1:]
    node: Any = loaded(name)
    for word in inner:
        node = node.commands[word]
    rows = [
        (f"`{option.opts[0]}{f' {option.metavar}' if option.metavar else ''}`", option.help)
        for option in node.params
        if option.opts[0].startswith("--") and option.opts[0] not in OF_ALL
    ]
    return table("option", "does", rows=rows) if rows else ""


def settings(_: str = "") -> str:
    rows: list[tuple[str, ...]] = []
    for name, field in Settings.model_fields.items():
        default: Any = field.default
        shown = "none" if default is None or default == () else f"`{default}`"
        rows.append((f"`{name}`", f"`LAURELS_{name.upper()}`", shown, str(field.description)))
    return table("setting", "environment", "default", "meaning", rows=rows)


def problems(_: str = "") -> str:
    rows = sorted((kind.status, type_of(kind), about) for kind, about in EXPLANATIONS.items())
    return table(
        "type", "status", "means", rows=((f"`{kind}`", str(status), about) for status, kind, about in rows)
    )


def metric_names(prefix: str) -> str:
    families = text_string_to_metric_families(metrics.render().decode())
    rows = [
        (f"`{each.name}{'_total' if each.type == 'counter' else ''}`", each.type, each.documentation)
        for each in families
        if each.name.startswith(prefix) and not each.name.endswith("_created")  # of the library
    ]
    return table("metric", "type", "tells", rows=rows)


@cache
def document() -> dict[str, Any]:
    return create_app(Laurels()).openapi()


def routes(tag: str) -> str:
    """Each route of a part of the API, with its parameters, body and an example of its answer."""
    return "\n\n".join(_route(*each) for each in operations() if each[2]["tags"][0] == tag)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    about = operation.get("description", "")
    scope = SCOPE.search(about)
    parts = [
        f"### {operation['summary']} {{#{operation['operationId']}}}",
        f"`{method} {path}`" + (f", with the scope `{scope[1]}`" if scope else ""),
        SCOPE.sub("", about),
    ]
    parameters: list[dict[str, Any]] = operation.get("parameters", [])
    if parameters:
        parts.append(table("parameter", "in", "default", "means", rows=map(_parameter, parameters)))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body, `{kind}`:\n\n{_example(content)}")
    for status, answer in operation["responses"].items():
        if not status.startswith("2"):
            continue
        contents = answer.get("content", {})
        parts.append(f"Answer {status}: {answer['description'].rstrip('.')}." if not contents else "")
        for kind, content in contents.items():
            parts.append(f"Answer {status}, `{kind}`:\n\n{_example(content)}")
    refused = [f"{status}" for status in operation["responses"] if int(status) >= 400]  # as HTTP has it
    parts.append(f"Problems: {', '.join(refused)}." if refused else "")
    return "\n\n".join(filter(None, parts))


def _parameter(parameter: dict[str, Any]) -> tuple[str, ...]:
    parameter = _resolved(parameter)
    schema: dict[str, Any] = parameter.get("schema", {})
    default = schema.get("default")
    shown = "required" if parameter.get("required") else "" if default is None else f"`{json.dumps(default)}`"
    about = re.sub(r"\s+", " ", parameter.get("description", "")).replace("|", "\\|")
    return f"`{parameter['name']}`", parameter["in"], shown, about


def _example(content: dict[str, Any]) -> str:
    example = content.get("example")
    if isinstance(example, str):
        return f"```text\n{example.rstrip()}\n```"
    return f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: Any = part
    while "$ref" in found:
        steps = found["$ref"].removeprefix("#/").split("/")
        found = document()
        for step in steps:
            found = found[step]
    return found


GENERATORS: Final[dict[str, Callable[[str], str]]] = {
    "options": options,
    "settings": settings,
    "problems": problems,
    "metrics": metric_names,
    "routes": routes,
}
