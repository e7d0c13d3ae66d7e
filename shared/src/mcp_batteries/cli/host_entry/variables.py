"""What an entry leaves to its user: passwords, tokens and required values, each with the variable that holds it."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_batteries.hosts.definition import HostDefinition, load_host
from mcp_batteries.settings import InstallQuestion, Settings, mask_passwords, variable

__all__ = [
    "HIDDEN_SECRET",
    "entry_variables",
    "secrets_hint",
    "token_hint",
    "token_question",
    "variable_value",
]

# Stands in entries for a secret that was set, in hosts that ask nobody for it.
HIDDEN_SECRET = "***"


def entry_variables(settings: Settings) -> list[InstallQuestion]:
    """Return the variables of an entry: secrets that were set, and required values that were not.

    An entry that connects to a URL starts nothing and has no variables.
    """
    if settings.transport != "stdio":
        return []
    variables: list[InstallQuestion] = []
    for member in settings.parts():
        variables.extend(_variables_of(member))
    return variables


def _variables_of(settings: Settings) -> list[InstallQuestion]:
    secrets = settings.secrets()
    questions = {question.variable: question for question in settings.open_questions() if question.variable}
    variables: list[InstallQuestion] = []
    for name, field in type(settings).model_fields.items():
        key = variable(type(settings), name)
        if key in secrets:
            default = InstallQuestion(name, str(field.description).rstrip("."), "", variable=key, secret=True)
            question = questions.pop(key, default)
            variables.append(question._replace(example=_mask_secret(secrets[key])))
        elif getattr(settings, name) != field.default:
            questions.pop(key, None)
    return [*variables, *questions.values()]


def _mask_secret(value: str) -> str:
    """Return what hosts without a place for secrets show: all but the password of a URL, and nothing of a key."""
    without_password = mask_passwords(value)
    if without_password == value:
        return HIDDEN_SECRET
    return without_password


def token_question(host: str, settings: Settings) -> InstallQuestion | None:
    """Return the variable that holds a caller's token for the server; None if it asks for none in an entry.

    Hosts ask an OAuth issuer for tokens themselves, and some document no header.
    """
    is_asked = settings.transport != "stdio" and (settings.auth_file or settings.auth_tokens)
    if not is_asked or settings.auth_issuer or load_host(host).entry.token is None:
        return None
    # Not a name that begins like the server's own variables, of which it refuses unknown ones.
    name = f"MCP_TOKEN_{settings.entry_name}".upper().replace("-", "_")
    return InstallQuestion("token", f"Token for {settings.COMMAND}", HIDDEN_SECRET, variable=name, secret=True)


def variable_value(definition: HostDefinition, question: InstallQuestion) -> str:
    """Return what stands in an entry for a variable: how the host takes it from its user, or else an example."""
    variables = definition.variables
    if variables is None or variables.form is None:
        return question.example
    form = variables.form
    if variables.optional_form and not question.required:
        form = variables.optional_form
    return form.replace("NAME", str(question.variable))


def secrets_hint(host: str, variables: Sequence[InstallQuestion], text: str, place: str) -> str:
    """Say what a person has to do so that the server gets the values that no entry holds.

    Args:
        place: where an example stands for them in the entry `text`, in hosts that take no variable.
    """
    definition = load_host(host)
    names = ", ".join(sorted(str(question.variable) for question in variables))
    if definition.asks_inputs:
        hint = f"{definition.title} asks you for {names} when it starts the server"
        if not any(question.required for question in variables):
            hint += "; left empty, the server does without"
        return hint
    if any(question.example in text for question in variables):
        return f"set {names} {place}"
    return f"set {names} where the host finds it"


def token_hint(host: str, token: InstallQuestion, text: str) -> str:
    """Say what a person has to do so that the host sends the token with an entry."""
    if load_host(host).asks_inputs:
        return f"{load_host(host).title} asks you for it"
    if HIDDEN_SECRET in text:
        return f"write it in place of {HIDDEN_SECRET}"
    return f"set {token.variable} where the host finds it"
