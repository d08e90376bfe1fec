"""Puts values in place of those that only the world can give, such as numbers that may be called and addresses, which all are of 127.0.0.1.

A value that its schema refuses stays as it is, because the gateway has to refuse it. What a valid request needs besides, because no schema can
say it, is in `fitting` and what it calls; each rule stands beside its code.
"""

import ipaddress
import itertools
import os
import re
import unicodedata
from urllib.parse import unquote

import schemathesis
from schemathesis import GenerationMode

CALLER = os.environ["CALLER"]
CALLEE = os.environ["CALLEE"]
# For the do-not-call list.
NOT_CALLED = "+4930999999"
TRUNK = os.environ["TRUNK"]
# A server of the test, which answers webhooks and tools.
RECEIVER = os.environ["RECEIVER"]
STREAM = RECEIVER.replace("http:", "ws:")
TOOL_ID = os.environ["TOOL_ID"]
CERTIFICATE = os.environ["CERTIFICATE"]
KEY = os.environ["KEY"]

# Both are of the documents.
PHONE_NUMBER = re.compile(os.environ["PHONE_NUMBER"], re.ASCII)
ENDPOINT = re.compile(os.environ["ENDPOINT"], re.ASCII)
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

NUMBERS = {"phone_number": CALLEE, "phone_numbers": NOT_CALLED, "from": CALLER, "From": CALLER, "To": CALLEE, "inbound_id": CALLEE}
# Of numbers in Twilio's forms, in characters.
LONGEST_NUMBERS = {"From": 200, "To": 200}
ENDPOINTS = {"sip_endpoint", "registrar", "outbound_proxy"}
ADDRESSES = {
    "webhook",
    "url",
    "voice_url",
    "voice_fallback_url",
    "status_callback",
    "Url",
    "FallbackUrl",
    "StatusCallback",
    "RecordingStatusCallback",
}
SCHEME = re.compile(r"(https?|wss?)://", re.IGNORECASE)


def placed(name, value):
    """A text by the name of its field."""
    if name in NUMBERS and PHONE_NUMBER.fullmatch(value) and len(value) <= LONGEST_NUMBERS.get(name, 32):
        return NUMBERS[name]
    if name in ENDPOINTS and ENDPOINT.fullmatch(value) and len(value) <= 256:
        return TRUNK
    if name in ADDRESSES and SCHEME.match(value) and len(value) <= 2000 and not re.search(r"[\s@\\]", value):
        return STREAM if value.lower().startswith("ws") else RECEIVER
    # An address in a field for any text, such as the TwiML of a call.
    return re.sub(r"(?i)\b(https?|wss?|sips?):[^\s\"'<>]*", RECEIVER, value)


def local(value, name=None):
    if isinstance(value, dict):
        return {key: local(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [local(inner, name) for inner in value]
    return placed(name, value) if isinstance(value, str) else value


IDS = {"org_id": os.environ["ORG_ID"], "call_id": os.environ["CALL_ID"], "agent_id": os.environ["AGENT_ID"]}
SIDS = {"accountSid": os.environ["ACCOUNT_SID"], "callSid": os.environ["CALL_SID"]}


def is_address(text):
    """An address, or a block of them: a pattern has its characters alone."""
    try:
        ipaddress.ip_interface(text)
        return True
    except ValueError:
        return False


def may_be_listed(header):
    """Which headers belong to the SIP stack is not in the pattern."""
    return header.lower().startswith("x-") and not header.lower().startswith("x-trunkline-")


# A text of a valid request, by the name of its field: what no pattern can say of it.
FITTING = {
    # Which code points print changes with Unicode.
    "name": lambda text: "Desk" if any(unicodedata.category(one).startswith("C") for one in text) else text,
    "source_ip": lambda text: text if is_address(text) else "127.0.0.1",
    "allowed_sources": lambda text: text if is_address(text) else "127.0.0.0/8",
    "headers_to_agent": lambda text: text if may_be_listed(text) else "Subject",
    "headers_from_agent": lambda text: text if may_be_listed(text) else "Subject",
    # What PEM holds has to be a certificate, and the key its own.
    "ca": lambda _: CERTIFICATE,
    "certificate": lambda _: CERTIFICATE,
    "key": lambda _: KEY,
    # The gateway has these voices, agents and tools alone.
    "voice": lambda _: "",
    "agent_id": lambda _: IDS["agent_id"],
    "tools": lambda _: TOOL_ID,
    # Which texts are CSV with numbers is not in a schema.
    "csv": lambda _: f"phone_number\n{CALLEE}\n",
    # Twilio's document has to be TwiML, and its events are words in one text.
    "Twiml": lambda _: "<Response/>",
    "StatusCallbackEvent": lambda _: "answered completed",
}
# Headers of the connection, which a tool cannot have.
OWN_HEADERS = {"host", "content-length", "connection", "transfer-encoding", "upgrade", "expect", "te", "trailer", "keep-alive"}


def fitting(value, name=None):
    """A part of a valid body, as the gateway's other rules want it."""
    if isinstance(value, list):
        return [fitting(inner, name) for inner in value]
    if isinstance(value, str):
        return FITTING[name](value) if name in FITTING else value
    if not isinstance(value, dict) or name in ANY_JSON:
        return value
    part = {key: fitting(inner, key) for key, inner in value.items()}
    if name == "response":
        # Which texts are JSONPaths is not in the pattern.
        return {key: "$.id" for key in part}
    if name == "headers":
        return {key: inner for key, inner in part.items() if key.lower() not in OWN_HEADERS}
    if name == "input_schema":
        # A later request to run the tool does not know what it requires.
        return part | {"required": []}
    if name == "hours":
        # One time has to be later than the other.
        return part | {"from": min(part["from"], part["to"]), "to": "24:00"}
    if name == "challenge":
        # Without a password it keeps that of before, which the number may not have.
        return part | {"password": part.get("password", "secret")}
    return part


# They hold what their owner likes.
ANY_JSON = {"metadata", "dynamic_data", "transfer_list", "analysis_schema", "body", "example", "input", "payload"}


def harmless(value):
    """JSON without the names that change what objects are: these the gateway refuses everywhere."""
    if isinstance(value, list):
        return [harmless(inner) for inner in value]
    if isinstance(value, dict):
        return {key: harmless(inner) for key, inner in value.items() if key not in ("__proto__", "constructor")}
    return value


def with_prompt(settings):
    """An agent needs a prompt, unless a pathway or a program of its owner's has one; an update sees what the agent has already."""
    other = {"stream": None} if settings.get("provider") else {"provider": None} if settings.get("stream") else {}
    return settings | {"prompt": settings.get("prompt") or "Be brief."} | other


def with_endpoint(body):
    """No direction comes twice, and an outbound one needs an endpoint, its own or the body's."""
    by_type = {one if isinstance(one, str) else one["type"]: one for one in body["directions"]}
    return body | {"directions": list(by_type.values()), "sip_endpoint": body.get("sip_endpoint", TRUNK)}


def once(body):
    directions = body["directions"]
    if not isinstance(directions, list):
        return body
    by_type = {one if isinstance(one, str) else one["type"]: one for one in directions}
    return body | {"directions": list(by_type.values())}


def known_entry(body):
    """The payload of these types has fields of its own."""
    payloads = {
        "lifecycle": {"message": "1 requested", "state_change": "in_progress"},
        "complete": {"calls_total": 1, "calls_failed": 0, "calls_successful": 1},
    }
    return body | {"payload": payloads.get(body["event_type"], body["payload"])}


def allowed_call(body):
    """A call without headers: which ones it may have is in the number's `headers_from_agent`."""
    inline = {"agent": with_prompt(body["agent"])} if "agent" in body else {}
    return {name: value for name, value in body.items() if name != "sip_headers"} | inline


def place_form(form):
    """Url or Twiml is needed, and there are no applications."""
    return {"Url": RECEIVER} | {name: value for name, value in form.items() if name != "ApplicationSid" and value != ""}


def update_form(form):
    """One of the three is needed, and the call is answered: it cannot be cancelled."""
    return {"Method": form["Method"], "Url": RECEIVER} if "Method" in form else {"Url": RECEIVER}


BODIES = {
    ("POST", "/sip/attach"): with_endpoint,
    ("POST", "/sip/detach"): once,
    ("POST", "/v1/agents"): with_prompt,
    ("POST", "/v1/agents/{agent_id}"): with_prompt,
    ("POST", "/v1/calls"): allowed_call,
    ("POST", "/v2/batches/{batch_id}/logs"): known_entry,
    ("POST", "/2010-04-01/Accounts/{accountSid}/Calls.json"): place_form,
    ("POST", "/2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json"): update_form,
}
# A cursor comes from the page before.
CURSORS = {"before", "PageToken"}

calls = itertools.count()


def fit(case):
    """Changes a valid request so that the gateway's other rules hold too."""
    operation = (case.method, case.path)
    if case.media_type == "text/csv":
        # The other fields are in the query.
        case.body = FITTING["csv"](case.body)
        case.query = {"name": "Desk", "from": CALLER}
    elif isinstance(case.body, dict):
        case.body = fitting(harmless(case.body))
        case.body = BODIES.get(operation, lambda body: body)(case.body)
    if operation == ("POST", "/v1/calls"):
        # A key of an earlier call with another body is refused.
        case.headers["idempotency-key"] = f"call-{next(calls)}"
    query = case.query or {}
    if "org_id" in query:
        # The key is of one organization.
        query["org_id"] = IDS["org_id"]
    for name in CURSORS & query.keys():
        del query[name]


@schemathesis.serializer("text/csv")
def csv(ctx, value):
    return str(value).encode()


@schemathesis.hook
def before_call(ctx, case, kwargs):
    if isinstance(case.body, (dict, list)):
        case.body = local(case.body)
    for name, value in (case.query or {}).items():
        case.query[name] = local(value, name) if name == "phone_number" else value
    if case.query and UUID.fullmatch(str(case.query.get("org_id", ""))):
        case.query["org_id"] = IDS["org_id"]
    for name, value in (case.path_parameters or {}).items():
        if name in SIDS:
            case.path_parameters[name] = SIDS[name]
        elif name == "call_id" and UUID.fullmatch(str(value)):
            case.path_parameters[name] = IDS[name]
        elif name == "phone_number":
            # It is in the form in which it goes into the path.
            case.path_parameters[name] = local(unquote(str(value)), name)
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        fit(case)
