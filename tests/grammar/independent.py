"""PyPI `jsonschema` as an independent judge of documents: numbers exact, patterns as ECMA-262 has them (Python's are not)."""

import calendar
import decimal
import json
import re

import jsonschema
import jsonschema._keywords
import jsonschema._utils
from jsonschema import validators

decimal.getcontext().prec = 3000
decimal.getcontext().traps[decimal.InvalidOperation] = False

BLANKS = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class NotPython(Exception):
    """The pattern means something that Python's `re` cannot say."""


def python_pattern(pattern):
    """The same language for re.search with re.ASCII."""
    out, in_class, i = [], False, 0
    while i < len(pattern):
        c = pattern[i]
        two = pattern[i : i + 2]
        if two in (r"\p", r"\P", r"\c"):
            raise NotPython(pattern)
        if two == r"\s":
            out.append(BLANKS if in_class else f"[{BLANKS}]")
            i += 2
        elif two == r"\S" and not in_class:
            out.append(f"[^{BLANKS}]")
            i += 2
        elif two == r"\/" or two == r"\-":
            out.append(re.escape(two[1]))
            i += 2
        elif two == r"\u" and pattern[i + 2 : i + 3] == "{":
            raise NotPython(pattern)
        elif c == "\\":
            out.append(two)
            i += 2
        else:
            if in_class:
                in_class = c != "]"
                out.append("\\[" if c == "[" else c)
            elif c == "[":
                in_class = True
                if pattern[i : i + 2] == "[]" or pattern[i : i + 3] == "[^]":
                    raise NotPython(pattern)
                out.append(c)
            else:
                out.append({"$": r"\Z", ".": "[^\n\r\u2028\u2029]"}.get(c, c))
            i += 1
    return "".join(out)


class EcmaRe:
    """Stands in for `re` inside jsonschema."""

    def __getattr__(self, name):
        return getattr(re, name)

    @staticmethod
    def search(pattern, text):
        try:
            return re.search(python_pattern(pattern), text, re.ASCII)
        except re.error as error:
            raise NotPython(pattern) from error


jsonschema._keywords.re = EcmaRe()
jsonschema._utils.re = EcmaRe()


def is_integer(_, value):
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, decimal.Decimal) and value == value.to_integral_value())


def strictly_typed(cls):
    return validators.extend(cls, type_checker=cls.TYPE_CHECKER.redefine("integer", is_integer))


CLASSES = {cls: strictly_typed(cls) for cls in (
    jsonschema.Draft4Validator, jsonschema.Draft6Validator, jsonschema.Draft7Validator, jsonschema.Draft201909Validator,
    jsonschema.Draft202012Validator)}


def read(text):
    """Numbers stay exact; of a member that repeats the last counts."""
    return json.loads(text, parse_float=decimal.Decimal)


def is_date_time(value):
    """RFC 3339 with its leap seconds and small letters, which the usual checker lacks; without the year 0000, as for dates."""
    if not isinstance(value, str):
        return True
    match = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", value, re.ASCII)
    if not match:
        return False
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    offset = (int(match[8]) * 60 + int(match[9])) * (1 if match[7] == "+" else -1) if match[7] else 0
    if match[7] and (int(match[8]) > 23 or int(match[9]) > 59):
        return False
    in_range = year > 0 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1] and hour < 24 and minute < 60
    is_leap = second == 60 and (hour * 60 + minute - offset) % 1440 == 1439
    return in_range and (second < 60 or is_leap)


def judge_of(schema_text, formats=("date", "ipv4", "ipv6", "email", "json-pointer")):
    """A function from a document's text to its first fault, or None."""
    schema = json.loads(schema_text, parse_float=decimal.Decimal)
    found = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    cls = CLASSES.get(found) or CLASSES[jsonschema.Draft202012Validator]
    checker = jsonschema.FormatChecker(formats)
    checker.checkers["date-time"] = (is_date_time, ())
    validator = cls(schema, format_checker=checker)

    def fault(text):
        error = next(validator.iter_errors(read(text)), None)
        return None if error is None else f"{error.message[:300]} ({error.json_path}, {list(error.schema_path)[-3:]})"

    return fault
