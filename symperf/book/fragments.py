r"""Mathematics in sentences: finds what is an expression between the words of a docstring, and sets it in LaTeX.

    "FLOPs of g products: 2 m n k g."  ->  FLOPs of \(g\) products: \(2\,m\,n\,k\,g\).

A grammar of expressions is tried at every word; what it takes is mathematics where it holds a quantity. Nothing is
evaluated. An English word stays one: `a` before a word is an article, `in s` ends in a unit, words are parts of an
expression only between the brackets of a function, or beside a spaced operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .letters import GREEK, NAMES

if TYPE_CHECKING:
    from .letters import Letters

FUNCTIONS = {
    "max": (r"\max(", ")"),
    "min": (r"\min(", ")"),
    "ceil": (r"\lceil ", r"\rceil "),
    "floor": (r"\lfloor ", r"\rfloor "),
    "sqrt": (r"\sqrt{", "}"),
    "exp": (r"\exp(", ")"),
    "ln": (r"\ln(", ")"),
    "log": (r"\log(", ")"),
    "log2": (r"\log_{2}(", ")"),
    "above_one": ("[", " > 1]"),
}
"""Functions as docstrings write them: what LaTeX begins and ends them with."""
PREFIXES = {"max": r"\max ", "min": r"\min ", "ln": r"\ln ", "log": r"\log ", "log2": r"\log_{2} "}
"""Those that are written before one factor without brackets, too."""
OPERATORS = {
    **{sign: sign for sign in "+-=<>/"},
    "−": "-",
    "!=": r"\ne ",
    "~": r"\sim ",
    "->": r"\to ",
    **dict.fromkeys(("<=", "≤"), r"\le "),
    **dict.fromkeys((">=", "≥"), r"\ge "),
}
BRACKETS = {"(": ")", "[": "]"}
ARTICLES = ("a", "A", "I")
"""Letters that are words as well."""
TOKEN = re.compile(
    r"""
      (?P<code>`[^`]+`)
    | (?P<emphasis>\*[A-Za-z][A-Za-z -]*\*(?![A-Za-z0-9]))
    | (?P<dots>\.\.\.)
    | (?P<letter>[A-Za-z]+'?_[A-Za-z0-9]+(?:,[a-z]+(?=\())?'*(?![A-Za-z0-9_])  # beta_u, a'_kv; T_rs,up of something
        | [A-Za-z]_\+ | [A-Za-z]+'+(?![A-Za-z]) | [A-Za-z]\*(?![A-Za-z0-9]) | BW\b)  # T_+, F', beta', s*
    | (?P<mixed>\d+[a-wyzA-CE-Z](?![A-Za-z0-9_'-]))                     # 2p, but not 3D or 2x
    | (?P<number>\d+(?:\.\d+)?(?!['’]?[A-Za-z0-9]))
    | (?P<word>[A-Za-z0-9]+(?:[_&'’.-]+[A-Za-z0-9]+)*)
    | (?P<operator><=|>=|!=|->|[-+=<>/−≤≥~^])
    | (?P<bracket>[()\[\]])
    | (?P<other>.)
    """,
    re.VERBOSE,
)
MINUS = re.compile(r"(\d+|[A-Za-z])-(\d+|[A-Za-z])")
"""A difference without spaces, q-1, where a word with a hyphen was read."""
UNITS = re.compile(r"(\d+(\.\d+)?\\, )?[sBWJKM]")
"""A letter that is a unit after a number, or so many thousands."""
NO_NOUNS = frozenset(("and", "as", "at", "by", "for", "in", "is", "of", "on", "or", "to", "with"))
"""Words before which there is no article."""
ADJECTIVES = ("delta", "gamma")
"""Greek letters that are words before a word: the delta rule, a gamma distribution."""
COUNTED = ("appendix", "section", "table", "figure", "in")
"""Words after which a letter is no quantity: appendix B, in s."""


@dataclass(frozen=True)
class Piece:
    """A part of a sentence: `text` as it is, `math` in LaTeX, `emphasis`, or `code`, a name between backticks."""

    kind: str
    text: str


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    spaced: bool
    start: int
    end: int


@dataclass(frozen=True)
class _Found:
    """An expression: its LaTeX, the token after it, whether it holds a quantity, and whether an operation."""

    latex: str
    after: int
    quantity: bool = False
    operation: bool = False

    def joined(self, between: str, other: _Found, operation: bool = True) -> _Found:
        return _Found(
            self.latex + between + other.latex,
            other.after,
            self.quantity or other.quantity,
            operation or self.operation or other.operation,
        )


def pieces(text: str, letters: Letters) -> list[Piece]:
    r"""A sentence in its pieces.

    >>> from .letters import Letters
    >>> found = pieces("Time to send n bytes in s: (n + half) / BW.", Letters())
    >>> [piece.kind for piece in found]
    ['text', 'math', 'text', 'math', 'text']
    >>> print(found[1].text, "and", found[3].text)
    n and (n + \mathrm{half}) / \mathrm{BW}
    """
    parser = _Parser(_tokens(text), letters)
    found: list[Piece] = []
    begin = position = 0
    while position < len(parser.tokens):
        token = parser.tokens[position]
        expression = parser.mathematics(position)
        if expression is None and token.kind not in ("code", "emphasis"):
            position += 1
            continue
        if begin < token.start:
            found.append(Piece("text", text[begin : token.start]))
        if expression is None:
            found.append(Piece(token.kind, token.text[1:-1]))
            position += 1
        else:
            found.append(Piece("math", expression.latex.strip()))
            position = expression.after
        begin = parser.tokens[position - 1].end
    if begin < len(text):
        found.append(Piece("text", text[begin:]))
    return found


def expression(text: str, letters: Letters) -> str | None:
    r"""The whole of a text as mathematics, or nothing where it is none.

    >>> from .letters import Letters
    >>> print(expression("2 num_layers head_dim", Letters()), expression("a word", Letters()))
    2\, L\, d_h None
    """
    parser = _Parser(_tokens(text), letters)
    found = parser.expression(0)
    return found.latex.strip() if found and found.quantity and found.after == len(parser.tokens) else None


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in TOKEN.finditer(text):
        kind, start = match.lastgroup or "other", match.start()
        if match[0].isspace():
            continue
        spaced = start == 0 or text[start - 1].isspace()
        difference = MINUS.fullmatch(match[0]) if kind == "word" else None
        if difference:
            middle = start + len(difference[1])
            found.append(_single(difference[1], spaced, start))
            found.append(_Token("operator", "-", False, middle, middle + 1))
            found.append(_single(difference[2], False, middle + 1))
        elif kind in ("word", "number") and len(match[0]) == 1:
            found.append(_single(match[0], spaced, start))
        elif kind == "word" and match[0] in GREEK:
            found.append(_Token("letter", match[0], spaced, start, match.end()))
        elif kind == "letter" and not _is_letter(re.split("['_*]", match[0])[0]):
            found.append(_Token("word", match[0], spaced, start, match.end()))
        else:
            found.append(_Token(kind, match[0], spaced, start, match.end()))
    return found


def _is_letter(name: str) -> bool:
    return len(name) == 1 or name in GREEK or name in NAMES


def _single(text: str, spaced: bool, start: int) -> _Token:
    return _Token("number" if text.isdigit() else "letter", text, spaced, start, start + len(text))


class _Parser:
    """Recursive descent: a sum of products of factors, each method from a token on, or nothing."""

    def __init__(self, tokens: list[_Token], letters: Letters) -> None:
        self.tokens, self.letters = tokens, letters

    def mathematics(self, at: int) -> _Found | None:
        """What is mathematics from here on, as far as it goes."""
        token = self.tokens[at]
        if token.kind in ("code", "emphasis", "other", "dots") or (token.kind == "operator" and token.text != "-"):
            return None
        if token.kind == "operator" and (at > 0 and self.tokens[at - 1].kind != "other"):
            return None
        if token.text in ARTICLES and self._is_article(at, first=True):
            return None
        if token.text in ADJECTIVES and self._kind(at + 1) == "word" and not self.letters.is_meant(token.text):
            return None
        if token.text == "[" and not self._is_condition(at):
            return None
        found = self.expression(at)
        if found is None or not found.quantity:
            return None
        unit = UNITS.fullmatch(found.latex)
        before = self.tokens[at - 1] if at else token
        if before.text in COUNTED[:-1] and token.kind == "number":
            return None
        if unit and (unit[1] or before.kind == "number" or (before.text in COUNTED and found.latex in "sBJW")):
            return None
        return None if before.text in COUNTED[:-1] and not found.operation else found

    def expression(self, at: int, inside: bool = False) -> _Found | None:
        """Terms with signs and relations between them."""
        sign = self._text(at) if self._text(at) in ("-", "−") else ""
        found = self.term(at + len(sign), inside)
        if found is None:
            return None
        if sign:
            found = _Found("-" + found.latex, found.after, found.quantity, True)
        while self._kind(found.after) == "operator" and self._text(found.after) not in "/^":
            operator = self.tokens[found.after]
            right = self.term(found.after + 1, inside) or self._word_beside(found.after + 1, operator)
            if right is None:
                break
            shown = OPERATORS.get(operator.text, operator.text)
            found = found.joined(f" {shown} ", right)
        return found

    def term(self, at: int, inside: bool) -> _Found | None:
        """Factors, multiplied by standing beside each other or by x, and divided."""
        found = self.factor(at, inside) or self._word_before_slash(at)
        while found is not None:
            after = found.after
            if self._kind(after) == "operator" and self._text(after) == "/":
                right = self.factor(after + 1, inside) or self._word_beside(after + 1, self.tokens[after])
                between = " / "
            elif self._text(after) == "x" and (right := self.factor(after + 1, inside)) is not None:
                between = r" \times "
            else:
                right, between = self._beside(after, inside), r"\, "
            if right is None:
                return found
            found = found.joined(between, right, operation=between != r"\, ")
            if between == r" \times ":
                found = replace(found, quantity=True)
        return found

    def _beside(self, at: int, inside: bool) -> _Found | None:
        """A factor that stands beside the one before it."""
        if self._kind(at) == "word" and not (inside or self._is_function(at) or self.letters.knows(self._text(at))):
            return None
        if self._kind(at) == "number" or (self._text(at) == "a" and self._is_article(at, first=False)):
            return None
        return self.factor(at, inside)

    def factor(self, at: int, inside: bool) -> _Found | None:
        """An atom with its power, or applied to arguments."""
        found = self.atom(at, inside)
        if found is None:
            return None
        opening = self._text(found.after)
        if self._kind(at) == "letter" and opening in BRACKETS and not self.tokens[found.after].spaced:
            arguments = self._listed(found.after + 1, BRACKETS[opening])
            if arguments is not None:
                shown = f"{found.latex}{opening}{arguments.latex}{BRACKETS[opening]}"
                found = _Found(shown, arguments.after + 1, True, True)
        if self._text(found.after) == "^":
            raised = self._exponent(found.after + 1, inside)
            if raised is not None:
                base = f"{{{found.latex}}}" if "^" in found.latex else found.latex
                found = _Found(f"{base}^{{{raised.latex}}}", raised.after, found.quantity or raised.quantity, True)
        return found

    def _exponent(self, at: int, inside: bool) -> _Found | None:
        sign = "-" if self._text(at) == "-" else ""
        found = self.atom(at + len(sign), inside)
        if found is None:
            return None
        shown = found.latex
        if shown.startswith("(") and shown.endswith(")"):
            shown = shown[1:-1]
        return _Found(sign + shown, found.after, found.quantity, True)

    def atom(self, at: int, inside: bool) -> _Found | None:
        """A number, a letter, a bracket, a function of arguments; words only inside of one."""
        kind, text = self._kind(at), self._text(at)
        if kind == "number":
            return _Found(text, at + 1)
        if kind == "dots":
            return _Found(r"\dots ", at + 1)
        if kind == "mixed":
            return _Found(text[:-1] + r"\, " + self.letters.latex(text[-1]), at + 1, True, True)
        if kind == "letter":
            return _Found(self.letters.latex(text), at + 1, True)
        if text in BRACKETS:
            return self._bracket(at, inside)
        if kind == "word":
            return self._word(at, inside)
        return None

    def _bracket(self, at: int, inside: bool) -> _Found | None:
        closing = BRACKETS[self._text(at)]
        found = self.expression(at + 1, inside)
        if found is None or self._text(found.after) != closing:
            return None
        return _Found(f"{self._text(at)}{found.latex}{closing}", found.after + 1, found.quantity, True)

    def _word(self, at: int, inside: bool) -> _Found | None:
        text = self._text(at)
        if self._is_function(at):
            opening, closing = FUNCTIONS[text]
            if self._text(at + 1) != "(" or self.tokens[at + 1].spaced:
                found = self.factor(at + 1, inside)
                return found and _Found(PREFIXES[text] + found.latex, found.after, found.quantity, True)
            found = self._listed(at + 2, ")")
            return found and _Found(opening + found.latex + closing, found.after + 1, True, True)
        if self.letters.knows(text):
            return _Found(self.letters.latex(text), at + 1, True)
        if "&" in text:  # F&B, two passes beside each other
            return _Found(text.replace("&", r"\&"), at + 1, True)
        applied = self._text(at + 1) == "(" and not self.tokens[at + 1].spaced
        if applied and (inside or (at > 0 and self._kind(at - 1) == "operator")) and text.isalpha():
            found = self._listed(at + 2, ")")
            return found and _Found(rf"\mathrm{{{text}}}({found.latex})", found.after + 1, True, True)
        if text == "half" and (inside or self._kind(at + 1) in ("operator", "bracket")):
            return _Found(self.letters.latex(text), at + 1, True)
        if not inside:
            return None
        last = at
        while (
            self._kind(last + 1) == "word"
            and not self._is_function(last + 1)
            and not self.letters.knows(self._text(last + 1))
        ):
            last += 1
        return _Found(_words(" ".join(token.text for token in self.tokens[at : last + 1])), last + 1)

    def _listed(self, at: int, closing: str) -> _Found | None:
        """Expressions between commas, up to a closing bracket; `after` is its place."""
        found = self.expression(at, inside=True)
        while found is not None and self._text(found.after) == ",":
            more = self.expression(found.after + 1, inside=True)
            found = more and found.joined(", ", more)
        return found if found is not None and self._text(found.after) == closing else None

    def _word_before_slash(self, at: int) -> _Found | None:
        """A word over something: waves / max(...)."""
        spaced = self._kind(at) == "word" and self._text(at + 1) == "/" and self.tokens[at + 1].spaced
        right = self.factor(at + 2, inside=False) if spaced else None
        return _Found(_words(self._text(at)), at + 1) if right is not None and right.quantity else None

    def _word_beside(self, at: int, operator: _Token) -> _Found | None:
        """A word after a spaced operator, at the end of an expression: Lambda / capacity."""
        spaced = operator.spaced and operator.text in ("/", "+") and at < len(self.tokens) and self.tokens[at].spaced
        if not spaced or self._kind(at) != "word" or self._kind(at + 1) in ("word", "letter", "code", "number"):
            return None
        return _Found(_words(self._text(at)), at + 1)

    def _is_function(self, at: int) -> bool:
        text = self._text(at)
        if text not in FUNCTIONS:
            return False
        opened = self._text(at + 1) == "(" and not self.tokens[at + 1].spaced
        first = self._kind(at + 1) in ("letter", "mixed") and self._text(at + 1) not in ARTICLES
        return opened or (text in PREFIXES and (first or text == "ln"))

    def _is_condition(self, at: int) -> bool:
        """Whether a square bracket that begins an expression holds a relation, [q > 1]."""
        found = self.expression(at + 1)
        return found is not None and bool(re.search("[<>=]|le |ge ", found.latex))

    def _is_article(self, at: int, first: bool) -> bool:
        """Whether a letter that is a word as well is one here: before a word, or before what begins an expression."""
        if self._text(at + 1) in NO_NOUNS:
            return False
        after, before = self._kind(at + 1), self._text(at - 1) if at else "."
        if not first:
            return after in ("word", "code")
        if self._text(at) != "a":
            return after in ("word", "code") and before in ".:;"
        indexed = after == "letter" and "_" in self._text(at + 1) and self._text(at + 2) == "="
        return not (after == "operator" and self._text(at + 1) != "-") and not indexed

    def _kind(self, at: int) -> str:
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""


def _words(text: str) -> str:
    return rf"\text{{{text.replace('_', ' ')}}}"
