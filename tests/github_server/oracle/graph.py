"""GitHub's own GraphQL schema, as a judge of queries and a source of answers of the right shape."""

import lzma
from functools import cache
from typing import Any

from graphql import (
    ExecutionResult,
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    OperationDefinitionNode,
    OperationType,
    OverlappingFieldsCanBeMergedRule,
    build_schema,
    execute_sync,
    parse,
    specified_rules,
    validate,
)

from github_server.oracle import echo
from github_server.oracle.description import DATA

_VALUES: dict[str, Any] = {
    "Int": 1, "Float": 1.0, "Boolean": False, "ID": "NODE_kwDOAAAAAQ", "DateTime": "2026-01-02T03:04:05Z",
    "Date": "2026-01-02", "URI": "https://github.com/octo/app", "GitObjectID": "a" * 40, "Base64String": "",
}  # fmt: skip


@cache
def schema() -> GraphQLSchema:
    """The whole schema, without prose."""
    return build_schema(lzma.decompress((DATA / "graphql.xz").read_bytes()).decode(), assume_valid=True)


_ABSENT = {"startLine", "startDiffSide", "originalStartLine"}
"""What is null where nobody says otherwise: most threads are about one line."""


def operation_name(query: str) -> str:
    """The name of the only operation in `query`."""
    for definition in parse(query).definitions:
        if isinstance(definition, OperationDefinitionNode) and definition.name is not None:
            return definition.name.value
    return ""


# GitHub takes a field that is null in one place and never in another, which the specification forbids.
_GITHUB_S_RULES = [rule for rule in specified_rules if rule is not OverlappingFieldsCanBeMergedRule]


def answered(
    query: str, variables: dict[str, Any], known: Any, *, strict: bool = True
) -> tuple[dict[str, Any], list[str]]:
    """The answer to `query`, with `known` filled up to the schema's shape, and what is wrong with it.

    Args:
        strict: judge by the specification, and not only as GitHub does.
    """
    try:
        document = parse(query)
    except Exception as error:
        return {}, [f"GraphQL: {error}"]
    if errors := validate(schema(), document, specified_rules if strict else _GITHUB_S_RULES):
        return {}, [f"GraphQL: {error.message}" for error in errors]
    result = execute_sync(
        schema(), document, root_value=known or {}, variable_values=variables, field_resolver=_field,
        type_resolver=_type,
    )  # fmt: skip
    assert isinstance(result, ExecutionResult)
    # The resolvers never fail: what is wrong are the variables, or an answer a test made up.
    return {"data": result.data}, [f"GraphQL: {error.message}" for error in result.errors or []]


def _field(source: Any, info: Any, **_: Any) -> Any:
    if isinstance(source, dict) and info.field_name in source:
        return source[info.field_name]
    if info.operation.operation is OperationType.MUTATION and len(path := info.path.as_list()) == 2:
        # The object that it made or changed has what was asked for.
        return echo.mutated(path[0], info.variable_values.coerced.get("input", {}))
    named = info.variable_values.coerced
    if info.path.as_list() == ["repository", "nameWithOwner"] and "owner" in named:
        return f"{named['owner']}/{named['name']}"
    return None if info.field_name in _ABSENT else _made_up(info.return_type, info.field_name)


def _made_up(kind: Any, name: str) -> Any:
    match kind:
        case GraphQLNonNull():
            return _made_up(kind.of_type, name)
        case GraphQLList():
            return [_made_up(kind.of_type, name)]
        case GraphQLEnumType():
            return next(iter(kind.values.values())).value
        case GraphQLScalarType():
            return _VALUES.get(kind.name, f"some {name}")
        case _:
            return {}


def _type(value: Any, info: Any, kind: GraphQLInterfaceType | GraphQLUnionType) -> str:
    if isinstance(value, dict) and "__typename" in value:
        return value["__typename"]
    possible = schema().get_possible_types(kind)
    wanted = next((item for item in possible if item.name == "User"), possible[0])
    assert isinstance(wanted, GraphQLObjectType)
    return wanted.name
