"""What the published formats demand, in our own words, and a check of it.

CTRF: specification 0.0.0 (ctrf.io). KCIDB: schema 5.3 of KernelCI. Both allow only the members named here.
"""

import re

STATUS = {"enum": ["passed", "failed", "skipped", "pending", "other"]}
TEXT, WHOLE, NUMBER, FREE, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "object"}, {"type": "boolean"}


def closed(required, **members):
    return {"type": "object", "required": required, "properties": members, "additionalProperties": False}


CTRF = closed(
    ["results", "reportFormat", "specVersion"],
    reportFormat={"const": "CTRF"}, specVersion={"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
    reportId={"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
    timestamp={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}, generatedBy=TEXT, extra=FREE,
    results=closed(
        ["tool", "summary", "tests"],
        tool=closed(["name"], name={"type": "string", "minLength": 1}, version=TEXT, extra=FREE),
        summary=closed(["tests", "passed", "failed", "skipped", "pending", "other", "start", "stop"], tests=WHOLE, passed=WHOLE,
                       failed=WHOLE, skipped=WHOLE, pending=WHOLE, other=WHOLE, flaky=WHOLE, suites=WHOLE, start=WHOLE, stop=WHOLE,
                       duration=WHOLE, extra=FREE),
        tests={"type": "array", "items": closed(
            ["name", "status", "duration"], name={"type": "string", "minLength": 1}, status=STATUS, duration=WHOLE,
            suite={"type": "array", "minItems": 1, "items": TEXT}, message=TEXT, trace=TEXT, rawStatus=TEXT, type=TEXT,
            retries=WHOLE, flaky=FLAG, extra=FREE,
            retryAttempts={"type": "array", "items": closed(["attempt", "status"], attempt={"type": "integer", "minimum": 1},
                                                            status=STATUS, extra=FREE)})},
        environment=closed([], reportName=TEXT, appName=TEXT, appVersion=TEXT, osPlatform=TEXT, osRelease=TEXT, commit=TEXT,
                           healthy=FLAG, extra=FREE)))

ID = {"type": "string", "pattern": r"^[a-z0-9_]+:.+$"}
ORIGIN = {"type": "string", "pattern": r"^[a-z0-9_]+$"}
CLEAN = {"type": "string", "pattern": "^[^\0]*$"}
EXCERPT = {"type": "string", "pattern": "^[^\0]*$", "maxLength": 16384}
RUN = {"enum": ["FAIL", "ERROR", "MISS", "PASS", "DONE", "SKIP"]}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}

KCIDB = closed(
    ["version"],
    version=closed(["major", "minor"], major={"const": 5}, minor={"const": 3}),
    checkouts={"type": "array", "items": closed(["id", "origin"], id=ID, origin=ORIGIN, comment=CLEAN, start_time=TIME, valid=FLAG,
                                                misc=FREE)},
    builds={"type": "array", "items": closed(["checkout_id", "id", "origin"], checkout_id=ID, id=ID, origin=ORIGIN, comment=CLEAN,
                                             architecture={"type": "string", "pattern": "^[a-z0-9_]*$"}, status=RUN, misc=FREE)},
    tests={"type": "array", "items": closed(
        ["build_id", "id", "origin"], build_id=ID, id=ID, origin=ORIGIN,
        environment=closed([], comment=CLEAN, misc=FREE),
        path={"type": "string", "pattern": r"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?$"}, comment=CLEAN, log_excerpt=EXCERPT, status=RUN,
        start_time=TIME, duration=NUMBER, misc=FREE)},
    issues={"type": "array", "items": closed(
        ["id", "version", "origin"], id=ID, version={"type": "integer", "minimum": 0}, origin=ORIGIN,
        report_url={"type": "string", "pattern": "^[a-z]+://"}, comment=CLEAN,
        culprit=closed([], code=FLAG, tool=FLAG, harness=FLAG), misc=FREE)},
    incidents={"type": "array", "items": closed(
        ["id", "origin", "issue_id", "issue_version"], id=ID, origin=ORIGIN, issue_id=ID, issue_version={"type": "integer", "minimum": 0},
        test_id=ID, build_id=ID, present=FLAG, comment=CLEAN, misc=FREE)})

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def faults(value, schema, at=""):
    """What is wrong with a value, one line each: the keywords that are used above."""
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "type" in schema:
        right = isinstance(value, TYPES[schema["type"]]) and (schema["type"] == "boolean" or not isinstance(value, bool))
        if not right:
            return found + [f"{at}: {value!r} is no {schema['type']}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: {value!r} does not match {schema['pattern']}")
    if len(value) < schema.get("minLength", 0) if isinstance(value, str) else False:
        found.append(f"{at}: is too short")
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        found.append(f"{at}: is too long")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{at}: {value} is too small")
    if isinstance(value, dict):
        found += [f"{at}: lacks {name}" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            if name in schema.get("properties", {}):
                found += faults(member, schema["properties"][name], f"{at}/{name}")
            elif schema.get("additionalProperties", True) is False:
                found.append(f"{at}/{name}: is not in the format")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{at}: has too few items")
        for i, each in enumerate(value):
            found += faults(each, schema.get("items", {}), f"{at}/{i}")
    return found
