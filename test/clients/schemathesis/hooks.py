"""Puts values in place of those that only the world can give: numbers that may be called, and addresses, which all are of 127.0.0.1.

The document's patterns allow more than the gateway takes, such as a phone number that no country has. A value that its schema refuses stays as
it is, because the gateway has to refuse it.
"""

import itertools
import os
import re

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

PHONE_NUMBER = re.compile(r"\s*\+?\(?[1-9](?:[-.()]*[0-9]){6,14}[-.()]*\s*")
ENDPOINT = re.compile(r"[!-~]{1,256}")
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

NUMBERS = {"phone_number": CALLEE, "phone_numbers": NOT_CALLED, "from": CALLER, "From": CALLER, "To": CALLEE, "inbound_id": CALLEE}
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


def placed(name, value):
    """A text by the name of its field."""
    if name in NUMBERS and PHONE_NUMBER.fullmatch(value) and len(value) <= 32:
        return NUMBERS[name]
    if name in ENDPOINTS and ENDPOINT.fullmatch(value):
        return TRUNK
    if name in ADDRESSES and value != "" and len(value) <= 2048:
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


calls = itertools.count()


def allowed(body):
    """A valid body of a call without what only this organization's records allow, or what excludes another field."""
    agent = {"agent_id": IDS["agent_id"]} if UUID.fullmatch(str(body.get("agent_id"))) else {}
    return {name: value for name, value in body.items() if name not in ("agent", "agent_id", "sip_headers")} | agent


@schemathesis.hook
def before_call(ctx, case, kwargs):
    if isinstance(case.body, (dict, list)):
        case.body = local(case.body)
    is_valid = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if is_valid and isinstance(case.body, dict) and (case.method, case.path) == ("POST", "/v1/calls"):
        case.body = allowed(case.body)
        # A key of an earlier call with another body is refused.
        case.headers["idempotency-key"] = f"call-{next(calls)}"
    if case.query and UUID.fullmatch(str(case.query.get("org_id", ""))):
        case.query["org_id"] = IDS["org_id"]
    for name, value in (case.path_parameters or {}).items():
        if name in SIDS:
            case.path_parameters[name] = SIDS[name]
        elif name == "call_id" and UUID.fullmatch(str(value)):
            case.path_parameters[name] = IDS[name]
