"""Tools put together from verbs, things and parameters, with requests that name each argument: family 4 beyond tool_shapes.

Whoever reads the names and descriptions can call any of them. A fifth of the verbs, parameters, phrases and frames and
a tenth of the things are for evaluation only.
"""

from __future__ import annotations

from . import wordings
from .attributes import ATTRIBUTES
from .tool_shapes import Parameter, Shape
from .world import Draw

_VERBS = [g.split() for g in """create make;delete remove erase;send deliver;find search look_up;update change edit;open;close shut;start launch;stop end halt;book reserve;cancel;list show;count;rename;
copy duplicate;move transfer;lock;unlock;assign;print;schedule plan;order buy;rate score;check verify;download fetch;upload;share;archive store;restore recover;measure;compare;merge join;split divide;
approve accept;reject refuse;pause;resume continue;invite;register enrol;export;import;convert;publish post;hide;report;repair fix;clean wash;paint;translate;watch monitor;track follow;tag label;pay;sell;
rent hire;return;install;scan;test;calibrate;reset;block;notify alert;water;feed;ship;review inspect;sign;insure;weigh;draw;record;play;load;sort;filter;compress pack;unpack extract;heat;cool""".replace("\n", "").split(";")]  # fmt: skip
_THINGS = """ticket invoice order contract report document file folder message letter parcel shipment booking room table meeting event reminder task project note contact account user team
group role device sensor camera lamp door window engine pump valve robot drone vehicle bus train flight course lesson exam student teacher book article photo album song playlist movie recipe meal
garden plant field animal patient visit prescription sample test_run job queue server database backup snapshot image volume network route port certificate key password session token payment refund
voucher coupon subscription product catalogue price quote survey poll vote comment review rating badge prize game match season player ship cargo crane warehouse shelf pallet machine tool spare_part""".split()  # fmt: skip
_PARAMETERS = [  # name in words, kinds of value
    *((w, "city") for w in "city,destination,origin,location,target city,branch".split(",")),
    *((w, "person") for w in "owner,recipient,customer,author,assignee,contact person,manager,reviewer,guest,full name".split(",")),
    *((w, "noun") for w in "title,topic,subject,category,keyword,theme,tag,section,label,query".split(",")),
    *((w, "date") for w in "start date,end date,due date,delivery date,day,expiry date".split(",")),
    *((w, "time") for w in "start time,end time,opening time,alarm time".split(",")),
    *((w, "small") for w in "quantity,level,page,duration,rows,nights,retries,seats,copies,floor".split(",")),
    *((w, "count") for w in "limit,width,height,size,capacity,distance,timeout,weight".split(",")),
    *((w, "number") for w in "amount,price,budget,rate,temperature,ratio,score".split(",")),
    *((w, "bool") for w in "urgent,public,dry run,silent,express,overwrite,insured,recurring".split(",")),
    *((w, "code") for w in "id,reference,code,serial number,order id,tracking code,booking code".split(",")),
    *((w, "choice") for w in "mode,priority,status,type,format,unit,region,quality,language,color scheme".split(",")),
    *((w, "text") for w in "message,comment,description,body,reason".split(",")),
    *((w, "company") for w in "company,supplier,carrier,vendor".split(",")),
    *((w, "path") for w in "path,file,source file,target folder".split(",")), *((w, "email") for w in "email,sender,reply address".split(",")),
    *((w, "color") for w in "color,background,paint".split(",")), *((w, "words") for w in "tags,items,parts,names".split(",")),
]  # fmt: skip
_KINDS = [
    "city",
    "person",
    "noun",
    "noun",
    "good",
    "date",
    "time",
    "small",
    "count",
    "count",
    "number",
    "bool",
    "code",
    "code",
    "choice",
    "company",
    "path",
    "color",
    "words",
    "digits",
]
_ENDINGS = "name id code number level limit type date count size owner place state mode group".split()
_OF_KIND = {"code": ["code", "digits"], "word": ["noun"], "person": ["person"], "city": ["city"], "color": ["color"], "good": ["good"], "date": ["date"], "time": ["time"],
            "wordcode": ["code"], "job": ["job"], "company": ["company"]}  # fmt: skip
_DESCRIPTIONS = ["The {w}.", "{W} of the {n}.", "{W}.", "The {w} to use.", "Which {w}.", "{W} for this {n}.", "Sets the {w}.", "The wanted {w}.", "{W}, as given."]  # fmt: skip
_PURPOSES = ["{V} {a} {n}.", "Use this to {v} {a} {n}.", "Tool to {v} {a} {n}.", "{V} one {n} with the given values.", "{V} {a} {n} in the system.", "Call this to {v} {a} {n}.", "Can {v} {a} {n}."]  # fmt: skip
_PHRASES = [
    "with {w} {v}", "with the {w} {v}", "{w} {v}", "{w}: {v}", "{w} = {v}", "the {w} is {v}", "using {v} as {w}", "use {v} as the {w}", "set the {w} to {v}", "where {w} is {v}",
    "{v} as {w}", "whose {w} is {v}", "the {w} should be {v}", "having {w} {v}", "({w} {v})", "the {w} must be {v}", "take {v} for the {w}", "{w} is {v}", "for {w} use {v}",
    "and {w} {v}", "its {w} is {v}", "put {v} as {w}", "I want {w} {v}", "{v} is the {w}", "make the {w} {v}", "{w} -> {v}", "let {w} be {v}",
]  # fmt: skip
_FRAMES = [
    "{C} {a}.", "Please {c} {a}.", "I want to {c} {a}.", "Can you {c} {a}?", "{C}: {a}", "I need you to {c} {a}.", "Could you please {c} {a}?", "{C}. {a}.", "It is time to {c} {a}.",
    "My task for you: {c} {a}.", "Let us {c}, {a}.", "We have to {c}. Values: {a}", "Next: {c}, {a}", "{C}!\n{a}", "Would you {c} {a}?", "{C}, {a}, please.", "Hi, {c} {a}, thanks.",
    "I would like to {c}: {a}.", "Hello! I must {c}, {a}.", "Go and {c} {a}.", "You should {c} {a}.", "First {c} {a}.", "Do this: {c}. {a}.", "{C} now, {a}.", "We want to {c}, {a}.",
    "Help me to {c}. {a}.", "Is it possible to {c} {a}?", "{C} for me: {a}.", "Somebody asked me to {c}. {a}.", "Now {c} {a}.",
]  # fmt: skip
_GLUES = ["; ", "\n", ", ", ", ", ", ", ", and ", " and "]  # the first two also where a value has commas
_RESULTS = ["id", "number", "total", "count", "position", "cost", "code", "length", "queue", "version"]
_ANSWERS = "The {k} is {{r}}."
_STYLES = ["snake", "snake", "snake", "camel", "pascal", "kebab"]


def composed(draw: Draw, count: int, thing: str | None = None) -> list[Shape]:
    """Different tools; sometimes all about one thing, so that only the verb tells them apart."""
    shapes: dict[str, Shape] = {}
    one = thing or (_thing(draw) if draw.chance(0.25) else None)
    style = draw.pick(_STYLES)
    tried: set[tuple[str, str]] = set()
    while len(shapes) < count:
        group, about = draw.template("tool-verb", _VERBS), one or _thing(draw)
        if (group[0], about) in tried:
            one = None
            continue
        tried.add((group[0], about))
        shape = _shape(draw, group, about, style)
        shapes[shape.names[0]] = shape
    return list(shapes.values())


def _thing(draw: Draw) -> str:
    at = draw.rng.random()
    if at < 0.4:
        return draw.template("tool-thing", _THINGS).replace("_", " ")
    return draw.entity("nouns") if at < 0.75 else f"{draw.entity('nouns')} {draw.template('tool-thing', _THINGS).replace('_', ' ')}"  # fmt: skip


def _styled(words: str, style: str) -> str:
    parts = words.replace("_", " ").split()
    if style == "camel":
        return parts[0] + "".join(p.capitalize() for p in parts[1:])
    if style == "pascal":
        return "".join(p.capitalize() for p in parts)
    return ("-" if style == "kebab" else "_").join(parts)


def _shape(draw: Draw, group: list[str], thing: str, style: str) -> Shape:
    verb = draw.pick(group)
    name = _styled(f"{verb} {thing}" if draw.chance(0.8) else f"{thing} {verb}", style)
    article = "an" if thing[0] in "aeiou" else "a"
    said = draw.pick(group) if draw.chance(0.3) else verb
    command = f"{said} {draw.pick([article, article, 'the', 'one', 'this'])} {thing}".replace("_", " ")
    purpose = draw.pick(_PURPOSES).format(v=verb, V=verb.capitalize(), a=article, n=thing).replace("_", " ")
    parameters: dict[str, Parameter] = {}
    for _ in range(draw.pick([1, 2, 2, 3, 3, 4, 5])):
        parameter = _parameter(draw, thing, style)
        parameters[parameter.names[0]] = parameter
    listed = list(parameters.values())
    if not any(p.required for p in listed):
        listed[0] = listed[0]._replace(required=True)
    result = draw.pick(_RESULTS)
    return Shape([name], purpose, [command], listed, f'{{{{"{result}": {{r}}}}}}', _ANSWERS.format(k=result), True)


def _parameter(draw: Draw, thing: str, style: str) -> Parameter:
    at = draw.rng.random()
    if at < 0.45:
        words, kind = draw.template("tool-parameter", _PARAMETERS)
    elif at < 0.65:
        words, attribute_kind = draw.template("attribute", ATTRIBUTES)
        kind = draw.pick(_OF_KIND[attribute_kind])
    else:
        words = draw.entity("nouns") if draw.chance(0.4) else f"{draw.entity('nouns')} {draw.pick(_ENDINGS)}"
        kind = draw.pick(_KINDS)
    choices = None
    if kind == "choice":
        choices = list(dict.fromkeys(draw.entity(draw.pick(["nouns", "adjectives"])) for _ in range(draw.number(2, 5))))
    key = _styled(words, "camel" if style in ("camel", "pascal") else "snake")
    spoken = key if draw.chance(0.15) else words
    phrases = [draw.wording("tool-phrase", _PHRASES, wordings.tool_phrase).replace("{w}", spoken)]
    description = draw.pick(_DESCRIPTIONS).format(w=words, W=words.capitalize(), n=thing)
    return Parameter([key], kind, description, phrases, draw.chance(0.6), choices)


def framed(draw: Draw, command: str, said: list[str], commas: bool) -> str:
    """The whole request: the command and what was said of each argument, with commas between or not."""
    glue = draw.pick(_GLUES if commas else _GLUES[:2])
    if glue == "\n":
        mark = draw.pick(["- ", "* ", "", "  "])
        arguments = "\n" + "\n".join(mark + s for s in said)
    else:
        arguments = glue.join(said)
    frame = draw.wording("tool-frame", _FRAMES, wordings.tool_frame)
    return frame.replace("{c}", command).replace("{C}", command[0].upper() + command[1:]).replace("{a}", arguments)
