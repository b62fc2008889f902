"""Wordings put together from parts, for training only: what is asked matters, not how.

Every function takes a Draw and returns a template with the placeholders of the list that it extends (`Draw.wording`).
"""

from __future__ import annotations

from .world import Draw

# fmt: off


def _sentence(text: str) -> str:
    """With a capital, unless a placeholder comes first."""
    return text[0].upper() + text[1:]


def _joined(*parts: str) -> str:
    return " ".join(p for p in parts if p)


# -- a text and a question or an instruction

_TEXT_MARKS = [
    ("", ""), ("", ""), ("", ""), ("", ""), ("Text:\n", ""), ("Text: ", ""), ("Passage: ", ""), ("Context:\n", ""), ("Source:\n\n", ""), ("Article:\n", ""), ("Input:\n", ""), ("Material: ", ""),
    ("<input>\n", "\n</input>"), ("<context>\n", "\n</context>"), ("<source>", "</source>"), ("<article>\n", "\n</article>"), ("[begin]\n", "\n[end]"), ("--- text ---\n", "\n--- end ---"),
    ("```\n", "\n```"), ('"""\n', '\n"""'), ("=====\n", "\n====="), ("***\n", "\n***"), ("## Text\n", "\n"), ("Below is a text.\n", ""), ("The text is this:\n\n", ""), ("Have a look:\n", ""),
    ("I was given this:\n", ""), ("Consider this.\n\n", ""), ("Somebody wrote:\n", ""), ("Work with this:\n", ""), ("Here it is:\n\n", ""), ("Study this.\n", "\n\nThat was it."),
]
_ASK_MARKS = [
    "", "", "", "", "", "Question: ", "Q: ", "Task: ", "My question is: ", "Now: ", "Then: ", "Tell me: ", "Request: ", "Asked: ", "## Question\n", "Please: ", "What I ask: ", "Query: ",
    "Based on the text: ", "With the help of the text: ", "To be answered: ", "After reading: ",
]
_CLOSINGS = [
    "", "", "", "", "", "", " Be brief.", " Only the answer, please.", " Answer in the words of the text.", "\nAnswer:", " No explanation.", " It is in the text.", " Read carefully.",
    " Thank you.", " Keep it short.", "\n\nReply with the value.",
]
_GAPS = ["\n\n", "\n\n", "\n\n", "\n", "\n", "\n---\n", "\n\n\n", "\n***\n"]


def around_text(draw: Draw) -> str:
    """{t} and {q}, in either order."""
    before, after = draw.pick(_TEXT_MARKS)
    text, asked = before + "{t}" + after, draw.pick(_ASK_MARKS) + "{q}"
    gap = draw.pick(_GAPS)
    if draw.chance(0.4):
        return asked + gap + text
    return text + gap + asked + draw.pick(_CLOSINGS)


def around_document(draw: Draw, instruction: str) -> str:
    """The same for an instruction, as {i} in the lists of extraction.py."""
    before, after = draw.pick(_TEXT_MARKS)
    text, gap = before + "{t}" + after, draw.pick(_GAPS)
    return instruction + gap + text if draw.chance(0.45) else text + gap + instruction


# -- statements and questions about an attribute {a} of {k} with the value {v}

_LEADS = [
    "", "", "", "", "", "", "as of today, ", "officially, ", "by the way, ", "it seems that ", "somebody wrote that ", "reminder: ", "update: ", "in the register, ", "our notes say that ",
    "I heard that ", "from now on ", "as agreed, ", "it was announced that ", "one can read that ", "fact: ", "by decree, ", "in short, ", "the files show that ", "people agree that ",
]
_TAILS = ["", "", "", "", "", "", " at the moment", ", as before", " again", " these days", ", it is said", " for good", " until further notice", ", without doubt"]
_BECAME = ["is", "is", "is", "was", "reads", "remains", "has been", "became", "turned out to be", "is said to be", "is still", "equals", "will be", "is recorded as", "is now"]
_GOT = [
    "got", "received", "was given", "took", "keeps", "carries", "holds", "reported", "named", "picked", "prefers", "entered", "wrote down", "selected", "registered", "announced", "goes with",
    "was assigned", "decided on", "works with", "settled on", "asked for", "submitted",
]


def statement(draw: Draw) -> str:
    at = draw.rng.random()
    if at < 0.4:
        body = f"the {{a}} {draw.pick(['of', 'of', 'for', 'belonging to', 'at', 'on file for', 'linked to', 'used by'])} {{k}} {draw.pick(_BECAME)} {{v}}"
    elif at < 0.55:
        body = f"{{k}}'s {{a}} {draw.pick(_BECAME)} {{v}}"
    elif at < 0.85:
        body = f"{{k}} {draw.pick(_GOT)} {{v}} {draw.pick(['as', 'as the', 'as its', 'for the', 'as a new', 'as', 'under the heading'])} {{a}}"
    else:
        body = f"{{v}} {draw.pick(['serves as', 'became', 'was made', 'counts as', 'acts as', 'is on record as', 'is used as'])} the {{a}} {draw.pick(['of', 'for'])} {{k}}"
    lead = draw.pick(_LEADS)
    return _sentence(lead + body + draw.pick(_TAILS) + draw.pick([".", ".", ".", ".", "!", ";"]))


_IMPERATIVES = [
    "show", "return", "print", "provide", "reveal", "search for", "I am looking for", "help me find", "I forgot", "remind me of", "we need", "do you have", "answer with", "read out", "quote",
    "pick out", "identify", "determine", "could you give me", "may I have", "I'd like", "please send me", "get me", "look up", "I would like to have", "kindly state", "output", "retrieve",
    "I have to know", "mention", "please find", "report back with", "let us have", "spell out", "go and find", "what do we know of", "where is", "say",
]

_INDIRECT = ["tell me", "say", "I wonder", "find out", "show me", "do you know", "please check", "can you see"]


def question(draw: Draw) -> str:
    core = draw.pick(["the {a} of {k}", "the {a} of {k}", "the {a} for {k}", "{k}'s {a}", "the {a} that {k} has", "the {a} belonging to {k}", "which {a} {k} has", "what {a} goes with {k}"])
    at = draw.rng.random()
    if at < 0.6 or core.startswith(("which", "what")):
        lead = draw.pick(_INDIRECT if core.startswith(("which", "what")) else _IMPERATIVES)
        mark = "?" if lead.split()[0] in ("could", "do", "may", "can", "what", "where") else draw.pick([".", ".", "", ", please.", "!"])
        return _sentence(f"{lead} {core}{mark}")
    if at < 0.8:
        verb = draw.pick(["is", "was", "would be", "might be", "could be"])
        return f"{draw.pick(['What', 'What exactly', 'Which', 'And what', 'So what', 'Then what'])} {verb} {core}?"
    return _sentence(core) + draw.pick(["?", ":", " = ?", ", please", "...", " - what is it?", " - tell me.", " (from the text)?"])


# -- copying

_WRITE = [
    "repeat", "copy", "echo", "reproduce", "write", "output", "print", "type", "return", "give back", "say", "restate", "duplicate", "mirror", "recite", "transcribe", "note down", "state again",
    "send back", "show me again", "answer with", "put down", "hand back",
]
_WHAT = ["this", "this text", "the following", "the following text", "the text here", "these words", "what comes now", "my words", "this string", "this piece of text", "all this"]
_HOW = ["", "", "", "exactly", "once more", "without changes", "word for word", "verbatim", "character by character", "unchanged", "just as it is", "and nothing else", "in full", "to the letter"]


def repeat(draw: Draw) -> str:
    request = _joined(draw.pick(["", "", "", "please", "now", "can you", "you should", "I want you to"]), draw.pick(_WRITE), draw.pick(_WHAT), draw.pick(_HOW))
    if draw.chance(0.65):
        return _sentence(request) + draw.pick([": ", ":\n", ":\n\n", ".\n\n", " - ", "\n", ' -> ', ".\n---\n"]) + "{t}"
    return "{t}" + draw.pick(["\n\n", "\n", "\n---\n", " <- "]) + _sentence(request).replace("following", draw.pick(["above", "given"])).replace("comes now", "stands above") + "."


def quote(draw: Draw) -> str:
    """{n} is the number of a sentence of {t}."""
    which = draw.pick(["sentence {n}", "sentence no. {n}", "the sentence with number {n}", "sentence number {n}", "the sentence at place {n}", "sentence #{n}", "number {n} of the sentences"])
    request = draw.pick([
        "write down {w}", "what is {w}?", "copy {w}", "I want {w}", "say {w}", "what does {w} say?", "return {w}", "show {w}", "count the sentences and give {w}", "print only {w}",
        "find {w}", "output {w}", "please read out {w}", "let me see {w}", "I need {w} of it", "how does {w} read?", "pick {w}", "reproduce {w}",
    ]).replace("{w}", which)
    request += "" if request.endswith("?") else draw.pick([".", ".", "", "!", ", word for word."])
    before, after = draw.pick(_TEXT_MARKS)
    text, gap = before + "{t}" + after, draw.pick(_GAPS)
    return _sentence(request) + gap + text if draw.chance(0.45) else text + gap + _sentence(request)


def form(draw: Draw) -> str:
    """{f} is a form with blanks, {v} the values."""
    verb = draw.pick(["fill in", "fill out", "put the values into", "complete", "insert the values into", "finish", "write the values into", "use the values to complete", "enter the data in"])
    what = draw.pick(["the form", "this form", "the blanks", "the template", "the lines", "what is missing", "the gaps", "the empty fields", "it"])
    values = draw.pick(["Values: {v}", "Data: {v}", "Given: {v}", "We know: {v}", "Take {v}", "{v}", "The values are {v}", "Use {v}", "With {v}", "Entries: {v}", "Known: {v}."])
    shape = draw.pick(["Form: {f}", "{f}", "Template: {f}", "The form: {f}", "Blank form: {f}", "To fill: {f}", "Lines: {f}"])
    parts = draw.some([f"{_sentence(f'{verb} {what}')}{draw.pick(['.', ':', '', '!'])}", values, shape], 3)
    return draw.pick(["\n", "\n\n", "\n", " "]).join(parts)


def carry_on(draw: Draw) -> str:
    """The next item of {t}."""
    ask = draw.pick(["next?", "the next one?", "go on", "which item follows", "one more", "the next item, please", "and then?", "what follows", "add the next one", "name the next", "say the next item",
                     "how does it go on", "what would be next", "give one more item", "extend by one"])
    if draw.chance(0.5):
        return f"{_sentence(ask)}{draw.pick([': ', chr(10), ' - ', '? ', chr(10) * 2])}{{t}}"
    return f"{{t}}{draw.pick([' ...', ', ...', ' ..', chr(10), ' -', ' ... '])}{draw.pick(['', ' ', chr(10)])}{_sentence(ask)}{draw.pick(['', '?', '.'])}"


# -- extraction: {k} the keys, {d} the kind of document, {t} the document

_TAKE = [
    "extract", "give", "return", "list", "collect", "find", "read", "pick out", "get", "take", "output", "report", "fetch", "write", "show", "I want", "I need", "provide", "look up", "gather",
    "send me", "note", "determine", "select", "we want", "please give", "please return", "copy", "deliver",
]
_AS_JSON = [
    "as JSON", "as a JSON object", "in JSON", "in JSON form", "in a JSON object", "as one JSON object", "as an object in JSON", "using JSON", "and answer in JSON", "(JSON)", "in the JSON format",
    "as valid JSON", "written as JSON", "in one JSON object",
]
_FROM = ["", "", "", "from the {d}", "from this {d}", "of the {d}", "out of the text", "found here", "in the {d}", "of this {d}"]


def extract_words(draw: Draw) -> str:
    at = draw.rng.random()
    if at < 0.6:
        said = _joined(draw.pick(_TAKE), draw.pick(["{k}", "{k}", "the values of {k}", "the fields {k}", "the entries {k}", "only {k}"]), *draw.some([draw.pick(_AS_JSON), draw.pick(_FROM)], 2))
    elif at < 0.8:
        said = _joined(draw.pick(["build", "write", "make", "create", "compose", "form", "give me", "output", "reply with"]), draw.pick(["JSON", "a JSON object", "one object (JSON)", "a JSON record"]),
                       draw.pick(["with {k}", "with the members {k}", "that holds {k}", "containing {k}", "whose keys are {k}", "with these keys: {k}", "from the {d}: {k}", "for {k}"]))
    else:
        said = draw.pick(["keys: {k}; answer in JSON", "JSON keys: {k}", "wanted: {k} (JSON)", "what does the {d} say of {k}? Reply in JSON", "{k} -> JSON", "required members of the JSON object: {k}",
                          "my keys are {k}; I expect JSON", "answer format JSON, fields {k}", "object with {k} in JSON", "the {d} as JSON, but only {k}"])
    return around_document(draw, _sentence(said) + draw.pick([".", ".", "", "!"]))


def extract_plain(draw: Draw) -> str:
    what = draw.pick(["the data", "the values", "the fields", "what is needed", "all that the schema asks for", "the entries", "the information", "the contents", "the requested members", "the facts"])
    where = draw.pick(["", "from this {d}", "of the {d}", "in the {d}", "from the text", "out of this", "given in the {d}"])
    verb = draw.pick(["extract", "read", "collect", "return", "output", "find", "report", "fill in", "give", "write", "get", "pick out", "provide", "look up", "list", "take", "fetch", "deliver"])
    return around_document(draw, _sentence(_joined(draw.pick(["", "", "please", "now", "your task:", "could you"]), verb, what, where)) + draw.pick([".", ".", "", "!"]))


# -- tools: {c} a command, {C} the same with a capital, {a} what is said of the arguments, {w} a parameter, {v} its value

_WISHES = [
    "", "", "", "", "please", "I want you to", "you have to", "I ask you to", "it is necessary to", "kindly", "be so kind as to", "try to", "we should", "make sure to", "your job is to",
    "today you must", "I'd like you to", "the plan is to", "somebody has to", "remember to", "the customer wants to", "it would be good to", "I was told to", "quickly", "do not forget to",
    "start to", "they want us to", "as agreed,", "next you", "once more,", "can we", "may I ask you to", "are you able to", "will you", "why not",
]


def tool_frame(draw: Draw) -> str:
    wish = draw.pick(_WISHES)
    command = _sentence(f"{wish} {{c}}") if wish else "{C}"
    asking = wish.split(" ")[0] in ("can", "may", "are", "will", "why")
    glue = draw.pick([" ", " ", " ", ", ", ": ", ". ", " - ", "\n", "; ", " ("])
    text = command + glue + "{a}" + (")" if glue == " (" else "")
    return text + ("?" if asking else draw.pick([".", ".", ".", "", "!", ", thanks.", ", thank you."]))


def tool_phrase(draw: Draw) -> str:
    lead = draw.pick(["", "", "with", "with", "given", "at", "in which", "assuming", "provided", "plus", "and", "including", "for", "such that", "so that", "note that", "by", "having", "under"])
    if lead in ("in which", "such that", "so that", "note that", "assuming", "provided"):
        core = draw.pick(["the {w} is {v}", "{w} equals {v}", "the {w} becomes {v}", "{v} is used as {w}", "the {w} reads {v}", "{w} gets the value {v}", "its {w} will be {v}"])
    else:
        core = draw.pick(["{w} {v}", "{w} = {v}", "{w}: {v}", "the {w} {v}", "{w} set to {v}", "{w} being {v}", "{w} equal to {v}", "a {w} of {v}", "{w} of {v}", "{v} for {w}", "{w}={v}", "{w} - {v}",
                          "the value {v} for {w}", "{w} given as {v}", "{v} in the field {w}", "the {w}, which is {v},", "{w}, {v}", "{v} as its {w}"])
    return _joined(lead, core)


def tool_start(draw: Draw) -> str:
    return draw.pick(["Dear assistant, ", "Now then: ", "OK. ", "Well, ", "Request: ", "Another one: ", "This is urgent. ", "Hey! ", "A small favour: ", "To do: ", "Work for you: ", "Thanks in advance. ",
                      "Let me see. ", "First of all: ", "As discussed: ", "From the list: ", "- ", "Ticket 1: ", "Good evening. ", "It is late. "])


def method_form(draw: Draw) -> str:
    """{d} the purpose of a method, {a} its arguments."""
    lead = draw.pick(["", "", "use", "take", "set", "the arguments are", "arguments:", "values:", "given", "I pass", "input:", "enter", "with the values", "data:", "it needs", "apply"])
    said = _sentence(_joined(lead, "{a}")) + draw.pick([".", ".", "", "!"])
    task = draw.pick(["", "", "I need this: ", "Purpose: ", "Goal: ", "Find the tool that does this. ", "What should happen: ", "Let us do this: ", "Now: ", "Wanted: "]) + "{d}"
    return draw.pick(["\n", " ", " ", "\n\n", " - "]).join([task, said] if draw.chance(0.7) else [said, task])


# -- short skills of the chat family: {t} the words, {w} which of them

_DO = ["please", "now", "can you", "I want you to", "your task:", "just", "", "", ""]


def skill(draw: Draw, requests: list[str]) -> str:
    """One of the requests, before or after {t}; {w} stays."""
    request = _sentence(_joined(draw.pick(_DO), draw.pick(requests)))
    if draw.chance(0.6):
        return request + draw.pick([": ", ":\n", " -> ", ".\n\n", ":\n\n", " - "]) + "{t}"
    return "{t}" + draw.pick(["\n\n", "\n", " - ", "\n---\n", " <- "]) + request + draw.pick([".", "", "!"])


UPPER = ["write this all in capitals", "convert to capital letters", "put it in upper case", "capitalise every letter of this", "use big letters for this", "upper-case this", "make the letters big",
         "say it in capitals", "change to capitals", "all caps", "upper case for this text", "render in capital letters"]
LOWER = ["write this all in lower case", "convert to small letters", "put it in lower case", "use small letters for this", "lower-case this", "make the letters small", "no capitals in this",
         "change to small letters", "lower case for this text", "render in small letters"]
SORT = ["arrange from a to z", "bring into alphabetical order", "sort from a to z", "give the alphabetical order", "order by the alphabet", "list alphabetically", "arrange the words by the alphabet",
        "alphabetise this", "put the words in order of the alphabet", "sort by the first letter"]
FIRST_LAST = ["take the {w} entry", "say only the {w} word", "pick the {w} item", "which entry is {w}", "show the {w} one", "return the {w} element", "the {w} entry of this list", "read out the {w} item",
              "I want the {w} thing", "only the {w} one", "what stands {w}", "copy the {w} entry"]
LISTING = ["turn into bullet points", "one item a line with a dash", "write the items with dashes", "format as a list with dashes", "make bullet points", "put each one on its own line with a dash",
           "dash list", "break this into a list", "itemise", "as bullets"]
SENTENCE_OF = ["copy the {w} sentence", "which sentence is {w}", "write down the {w} sentence", "output the {w} sentence only", "read out the {w} sentence", "the {w} sentence, please",
               "show me the {w} sentence", "say the {w} sentence again", "find the {w} sentence"]

# -- passages

CLOZE = [
    'Which word fits into "{g}"?', 'Replace the blank with the right word: "{g}"', '"{g}" - complete it with one word.', 'Give the word that was cut out of "{g}"', 'The gap in "{g}" is for which word?',
    'Restore the word: "{g}"', 'What was at the gap in "{g}"?', 'Read the text and fill "{g}"', 'There is a hole in "{g}" What was there?', '"{g}" Missing word?', 'Guess nothing, look it up: "{g}"',
    'Find this line and name the lost word: "{g}"', 'What word did I remove? "{g}"', 'Blank to fill: "{g}"',
]
MENTIONS = [
    'Read out the sentence that includes "{w}".', 'Which of the sentences has "{w}"?', 'Write the sentence where "{w}" appears.', 'Search for "{w}" and return its sentence.', 'Sentence with "{w}"?',
    'Where is "{w}"? Repeat that sentence.', 'Return the sentence containing "{w}"', 'Print the sentence that says "{w}".', 'What is said with the word "{w}"? Whole sentence.',
    'I need the full sentence around "{w}".', 'Pick the sentence that mentions "{w}".', 'Cite the sentence with "{w}" in it.', '"{w}" - give its sentence.', 'Look for "{w}" and copy the sentence.',
]
YES_NO = [
    'Do you find "{s}" in the text?', 'Is "{s}" part of the text? Yes or no.', 'Was this said: "{s}"', 'Verify against the text: "{s}"', 'Compare with the text, yes or no: "{s}"',
    '"{s}" - yes or no, is it there?', 'Is the following said in exactly these words? "{s}"', 'Does any sentence read "{s}"?', 'Have I quoted right: "{s}"', 'Say yes or no: the text has "{s}"',
]
