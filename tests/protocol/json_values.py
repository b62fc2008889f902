"""JSON values that remember their spelling, for tests: the random ones are written, broken and made smaller here.

A `Number` is written as it stands, and `Members` is an object that may repeat a key; `dumps` writes both. `mutated` changes
a value in one place, `smaller` yields what helps to find out which place of a value matters.
"""

import json

class Number(str):
    """A number as it is spelt."""


class Members(list):
    """An object as pairs: keys may repeat."""


def dumps(value, spell=json.dumps):
    """The JSON text. `spell` writes strings."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, (dict, Members)):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ", ".join(spell(key) + ": " + dumps(item, spell) for key, item in pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dumps(item, spell) for item in value) + "]"
    return json.dumps(value)


def spell_plainly(text):
    return json.dumps(text, ensure_ascii=False)


FIELDS = (
    "role content text type name id tool_call_id tool_calls function arguments parameters input_schema prefix "
    "reasoning_content image_url url "
    "detail source data media_type call_id output input namespace tools tool_choice thinking reasoning effort stream "
    "stop stop_sequences "
    "response_format json_schema schema strict max_tokens n messages system instructions tool_use_id is_error "
    "signature summary"
).split()


def places(value, found=None):
    """(container, key or index) of everything below `value`."""
    found = [] if found is None else found
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        found.append((value, key))
        if isinstance(item, (dict, list)) and not isinstance(item, Members):
            places(item, found)
    return found


def mutated(source, body):
    body = copied(body)
    where = places(body)
    if not where:
        return body
    container, key = source.pick(where)
    value = container[key]
    kind = source.rng.randint(0, 9)
    if kind <= 1:
        del container[key]
    elif kind == 2:
        container[key] = None
    elif kind <= 4:
        container[key] = source.pick([True, Number("0"), Number("1.0"), "", "x", [], {}, ["x"], {"type": "x"},
            source.number(), [value], {"a": value}])
    elif kind == 5:
        repeat(source, container, key)
    elif kind == 6 and isinstance(container, dict):
        container[source.pick(FIELDS)] = container.pop(key)
    elif kind == 7 and isinstance(container, dict):
        container[source.pick(FIELDS)] = copied(source.pick(where)[0])
    elif kind == 8 and isinstance(container, list):
        source.rng.shuffle(container)
    elif isinstance(value, str) and not isinstance(value, Number):
        container[key] = source.pick([value.upper(), value[:-1], value + " ", value + "x", source.text()])
    else:
        other, its_key = source.pick(where)
        container[key] = copied(other[its_key])
    return body


def repeat(source, container, key):
    """Doubles an item, or gives a member of an object twice."""
    if isinstance(container, list):
        container.insert(source.rng.randint(0, len(container)), copied(container[key]))
        return
    value = container[key]
    if isinstance(value, dict) and value:
        twice = source.pick(list(value))
        container[key] = Members([*value.items(), (twice, source.pick([value[twice], None, "x", source.number()]))])


def copied(value):
    if isinstance(value, Members):
        return Members((key, copied(item)) for key, item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def smaller(value):
    """Values that are simpler in one place."""
    if isinstance(value, Number) or value is None or isinstance(value, (bool, int)):
        return
    if isinstance(value, str):
        for size in (len(value) // 2, len(value) // 4, 1):
            if size and size < len(value):
                for start in range(0, len(value), size):
                    yield value[:start] + value[start + size :]
        if value:
            yield ""
        return
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
        for key, item in value.items():
            for simpler in smaller(item):
                yield {**value, key: simpler}
        return
    kind = type(value)
    if len(value) > 3:
        half = len(value) // 2
        yield kind(value[:half])
        yield kind(value[half:])
    for i in range(len(value)):
        yield kind(value[:i] + value[i + 1 :])
    for i, item in enumerate(value):
        for simpler in smaller(item[1] if kind is Members else item):
            yield kind([*value[:i], (item[0], simpler) if kind is Members else simpler, *value[i + 1 :]])
