"""From the words of a Corefile to its server blocks.

The law: a text is accepted if CoreDNS's own parser accepts it (github.com/coredns/caddy, caddyfile/parse.go), and is
read the same way. An error that only a plugin's setup finds is accepted here, and so is an `import` of a file. The work
is bounded: snippets that import snippets stop at CoreDNS's limit or at ours.

The oddities of CoreDNS's parser, which are kept:

- An `import` of a snippet is replaced by the snippet's words, anywhere, even between server blocks.
- A `{` belongs to the directive before it, even on the next line; a `}` on a directive's own line is refused.
- The brace that closes a server block may be missing where the file ends in another `}`.
- A server block without braces lasts to the end of the file, or to a stray `}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dnsproxy.corefile.lexer import Token, lex
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, Import, Key, Scope, ServerBlock, Snippet, shown
from dnsproxy.corefile.zones import has_environment, parse_origin

MAXIMUM_EXPANSIONS: Final = 10_000
"""Imports of snippets in one file (caddyfile's maxSnippetExpansions)."""

MAXIMUM_SPLICED: Final = 200_000
"""Words that snippets may add. CoreDNS has no such limit; a file above it is an attack or an accident."""

_PLUGIN = re.compile(r"[A-Za-z0-9_-]+")
# A valid pattern for Go's filepath.Match without `[`: each backslash escapes a character.
_PATTERN = re.compile(r"(?:[^\\\[]|\\.)*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Word:
    token: Token
    index: int
    """In the file; for a word of a snippet, the index of the import in the file."""
    imported: bool = False


# A large Corefile takes a second, and each step that discovers, plans and checks begins with its text.
@lru_cache(maxsize=16)
def parse_corefile(text: str, scope: Scope = Scope.BLOCKS) -> Corefile:
    """The value of a text, parsed once however often it is asked for; plugins alone become a block for `.`.

    Lines are those of the text. Raises CorefileError with line and reason for a text that CoreDNS's parser refuses.
    """
    tokens, tail = lex(text if scope is Scope.BLOCKS else f". {{ {text}\n}}\n")
    parser = _Parser(tokens)
    while parser.next():
        parser.read_block()
    snippets = tuple(parser.snippets.values())
    return Corefile(tokens, tail, tuple(parser.blocks), snippets, tuple(parser.imports))


class _Parser:
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.read: list[_Word] = []
        self.ahead = [_Word(token, index) for index, token in enumerate(tokens)][::-1]
        self.blocks: list[ServerBlock] = []
        self.snippets: dict[str, Snippet] = {}
        self.imports: list[Import] = []
        self.expansions = 0
        self.spliced = 0

    # Words. CoreDNS distinguishes arguments from directives by line numbers alone, also in snippets.

    def next(self) -> bool:
        if self.ahead:
            self.read.append(self.ahead.pop())
            return True
        return False

    def back(self) -> None:
        self.ahead.append(self.read.pop())

    @property
    def word(self) -> Token:
        return self.read[-1].token

    def on_new_line(self) -> bool:
        return len(self.read) == 1 or self.read[-2].token.last_line < self.word.line

    def next_on_line(self) -> bool:
        return bool(self.ahead) and self.word.last_line == self.ahead[-1].token.line and self.next()

    # Blocks.

    def read_block(self) -> None:
        keys, ended = self.read_keys()
        if not ended and len(keys) == 1 and re.fullmatch(r"\(.*\)", keys[0].token.text, re.DOTALL):
            self.read_snippet(keys[0])
            return
        imported = bool(keys) and keys[0].imported
        directives: list[Directive] = []
        imports: list[Import] = []
        closing = None if ended else self.read_body(directives, imports)
        if keys:
            parsed = tuple(map(_parse_key, keys))
            self.blocks.append(ServerBlock(parsed, tuple(directives), tuple(imports), closing, imported))

    def read_keys(self) -> tuple[list[_Word], bool]:
        """The keys before the body, and whether the file ended there."""
        keys: list[_Word] = []
        expecting = False
        while True:
            text = self.word.text
            if text == "import" and self.on_new_line():
                self.splice(self.imports)
                if self.next():
                    continue
                text = ""
            elif text == "{":
                if expecting:
                    raise CorefileError(self.word.line, "a key is missing between the comma and {")
                return keys, False
            if text:
                keys.append(self.read[-1])
                expecting = text.endswith(",")
            if not self.next():
                return keys, self.end_of_keys(expecting=expecting)
            if not expecting and self.on_new_line():
                return keys, False

    def end_of_keys(self, *, expecting: bool) -> bool:
        if expecting:
            raise CorefileError(self.word.line, "the file ends after a comma, which needs another key")
        return True

    def read_body(self, directives: list[Directive], imports: list[Import]) -> int | None:
        opening = self.word if self.word.text == "{" else None
        if opening is None:
            self.back()
        closing = self.read_directives(directives, imports)
        if opening and (not self.read or self.word.text != "}"):
            raise CorefileError(opening.line, "the { of this server block is never closed")
        return closing

    def read_directives(self, directives: list[Directive], imports: list[Import]) -> int | None:
        while self.next():
            if self.word.text == "}":
                return self.read[-1].index
            if self.word.text == "import":
                self.splice(imports)
            else:
                directives.append(self.read_directive())
        return None

    def read_directive(self) -> Directive:
        name = self.read[-1]
        _check_plugin(name.token)
        words: list[Token] = []
        unread: list[Import] = []
        openings: list[int] = []
        while self.next():
            text = self.word.text
            if text == "{":
                openings.append(self.word.line)
            elif self.on_new_line() and not openings:
                self.back()
                break
            elif text == "}":
                self.close(openings)
            elif text == "import" and self.on_new_line():
                self.splice(unread)
                continue
            words.append(self.word)
        if openings:
            raise CorefileError(openings[-1], f"the {{ of {shown(name.token.text)} is never closed")
        return Directive(name.token.text, tuple(words), name.token.line, name.index, name.imported, tuple(unread))

    def close(self, openings: list[int]) -> None:
        if not openings:
            raise CorefileError(self.word.line, "a } closes nothing here", "put } on a line of its own")
        openings.pop()

    # Snippets and imports.

    def read_snippet(self, key: _Word) -> None:
        name = key.token.text[1:-1]
        if self.word.text != "{":
            raise CorefileError(self.word.line, f"the snippet {shown(name)} has no {{")
        if name in self.snippets:
            raise CorefileError(key.token.line, f"the snippet {shown(name)} is defined twice")
        words = self.read_snippet_words(f"the snippet {shown(name)}")
        if _imports_itself(words, name):
            raise CorefileError(key.token.line, f"the snippet {shown(name)} imports itself")
        self.snippets[name] = Snippet(name, tuple(words), key.token.line)

    def read_snippet_words(self, name: str) -> list[Token]:
        opening = self.word.line
        depth = 1
        words: list[Token] = []
        while self.next():
            depth += {"{": 1, "}": -1}.get(self.word.text, 0)
            if depth == 0:
                return words
            words.append(self.word)
        raise CorefileError(opening, f"the {{ of {name} is never closed")

    def splice(self, unread: list[Import]) -> None:
        """Replace an import of a snippet by its words; add an import of files to `unread`."""
        statement = self.read[-1]
        line = statement.token.line
        if not self.next_on_line() or self.word.text in ("", "{", "}"):
            raise CorefileError(line, "this import names neither a file nor a snippet")
        pattern = self.word.text
        if self.next_on_line():
            raise CorefileError(line, "import takes one file, pattern or snippet")
        del self.read[-2:]
        if pattern in self.snippets:
            self.expand(self.snippets[pattern], statement)
        else:
            _check_pattern(pattern, line)
            unread.append(Import(pattern, line, statement.index))

    def expand(self, snippet: Snippet, statement: _Word) -> None:
        self.expansions += 1
        self.spliced += len(snippet.words)
        if self.expansions > MAXIMUM_EXPANSIONS or self.spliced > MAXIMUM_SPLICED:
            raise CorefileError(statement.token.line, f"the snippet {shown(snippet.name)} is imported over and over")
        self.ahead.extend(_Word(word, statement.index, imported=True) for word in reversed(snippet.words))


def _parse_key(word: _Word) -> Key:
    text = word.token.text.removesuffix(",")
    try:
        return Key(text, parse_origin(text), word.token, word.index)
    except ValueError as error:
        raise CorefileError(word.token.line, f"{shown(text)} is not a key of a server block: {error}") from None


def _check_plugin(token: Token) -> None:
    if not _PLUGIN.fullmatch(token.text) and not has_environment(token.text):
        raise CorefileError(token.line, f"{shown(token.text)} is not a plugin", "is the server block before it closed?")


def _check_pattern(pattern: str, line: int) -> None:
    """CoreDNS allows one wildcard, because matching several can take very long."""
    if pattern.count("*") > 1 or pattern.count("?") > 1 or ("[" in pattern and "]" in pattern):
        raise CorefileError(line, f"import takes one wildcard, {shown(pattern)} has more")
    if not _PATTERN.fullmatch(pattern):
        raise CorefileError(line, f"import cannot match {shown(pattern)}")


def _imports_itself(words: list[Token], name: str) -> bool:
    return any(
        words[at].text == "import" and words[at + 1].text == name and (at == 0 or words[at - 1].line != words[at].line)
        for at in range(len(words) - 1)
    )
