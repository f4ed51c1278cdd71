"""Syntactically odd Corefiles and CoreDNS's verdict on each. Plugins are known ones, so that syntax alone decides.

No key has a port: the real CoreDNS gets one by its flag.
"""

from __future__ import annotations

import pytest

ACCEPTED = [
    pytest.param("", id="an empty file"),
    pytest.param("# nothing\n", id="a comment alone"),
    pytest.param(".", id="a key and no body"),
    pytest.param(". {\n}", id="no final newline"),
    pytest.param(". { }", id="an empty body on one line"),
    pytest.param(".\n{\n whoami\n}\n", id="the brace on the next line"),
    pytest.param('. "{"\n whoami\n"}"\n', id="quoted braces"),
    pytest.param(".\nwhoami\n", id="no braces at all"),
    pytest.param(".\nwhoami\n}\nexample.org {\n}\n", id="no opening brace but a closing one"),
    pytest.param(". {\n errors {\n }\n", id="the last brace is missing behind a nested block"),
    pytest.param(". { whoami\n}", id="a directive on the line of the brace"),
    pytest.param(". {\r\n whoami\r\n}\r\n", id="CRLF"),
    pytest.param(". {\r whoami\n}", id="CR without LF is no line end"),
    pytest.param("\ufeff. {\n whoami\n}\n", id="a byte order mark"),
    pytest.param("example.org, example.net {\n}\n", id="a comma between keys"),
    pytest.param("example.org,\nexample.net {\n}\n", id="keys over two lines"),
    pytest.param("example.org\t.\u2003{\n}\n", id="odd blanks between keys"),
    pytest.param('"" . {\n}\n', id="an empty key is passed over"),
    pytest.param(". {\n}\n}\n", id="a stray closing brace is a key"),
    pytest.param("{\n whoami\n}\n", id="a body without keys"),
    pytest.param("(s) {\n whoami\n}\n. {\n import s\n}\n", id="a snippet"),
    pytest.param("(s) {\n}\n. {\n import s\n}\n", id="an empty snippet"),
    pytest.param("(s) {\n { whoami }\n}\n. {\n}\n", id="a bad snippet that is never imported"),
    pytest.param(
        "(s) {\n import t\n}\n(t) {\n import s\n}\n. {\n}\n", id="snippets in a circle that are never imported"
    ),
    pytest.param("(s) {\n . {\n  whoami\n }\n}\nimport s\n", id="a server block in a snippet"),
    pytest.param("(s) {\n . example.org\n}\nimport s\n{\n whoami\n}\n", id="keys in a snippet"),
    pytest.param('"(s)" {\n whoami\n}\n. {\n "import" "s"\n}\n', id="quoted snippet names"),
    pytest.param("(s)", id="a snippet's name without a body is a key"),
    pytest.param(". {\n import nowhere/*.conf\n}\n", id="a pattern without files"),
    pytest.param("import nowhere/*.conf\n. {\n}\nimport nowhere/*.server\n", id="patterns between blocks"),
    pytest.param(". {\n forward . 192.0.2.1 { max_fails 1 }\n}\n", id="a nested block on one line"),
    pytest.param(". {\n forward . 192.0.2.1 {\n  max_fails 1 policy random\n }\n}\n", id="two options on one line"),
    pytest.param(". {\n whoami#what\n}\n", id="a glued comment"),
    pytest.param(
        '. {\n template ANY ANY {\n  answer "{{ .Name }} 5 IN A\n 192.0.2.1"\n }\n}\n', id="a quote over lines"
    ),
    pytest.param('. {\n template ANY ANY {\n  match "a\\\\.b {2}"\n }\n}\n', id="backslashes and braces in quotes"),
    pytest.param(". {\n erratic\n}\n#", id="a comment without text at the end"),
    pytest.param('. {\n}\n"', id="a quote that opens at the end"),
    pytest.param("{$NOT_SET_ANYWHERE}\n", id="a key that is an unset variable"),
    pytest.param(". {\n forward . {$NOT_SET_ANYWHERE}192.0.2.1\n}\n", id="a variable inside a word"),
    pytest.param(". {\n log {\n  class error\n } \n}\n", id="a nested block"),
    pytest.param("{%NOT_SET_ANYWHERE%}\n", id="a key that is an unset variable, in the other form"),
    pytest.param(". {\n forward . {%NOT_SET_ANYWHERE%}192.0.2.1 {$NOT_SET_ANYWHERE}192.0.2.2\n}\n", id="both forms"),
    pytest.param(".\t{\n\t\tforward\t.\t192.0.2.1\t{\n\t\t\tmax_fails\t1\n\t}\n}", id="tabs everywhere"),
    pytest.param('"." {\r\n\t"forward" "." "192.0.2.1"\r\n}', id="quotes everywhere, CRLF, no final newline"),
    pytest.param("a\\.b.example.org {\n}\n", id="a key with a hidden dot"),
    pytest.param("\\097.example.org a\\..example.org {\n}\n", id="keys with octets by number"),
    pytest.param("192.0.2.0/24 2001:db8::/32 {\n}\n", id="keys in CIDR notation"),
    pytest.param("dns://example.org dns://. {\n}\n", id="keys with schemes"),
    pytest.param("{$NOT_SET_ANYWHERE}. {\n whoami\n}\n", id="a variable in front of a zone"),
    pytest.param("(s) {\n import t\n}\n(t) {\n whoami\n}\n. {\n import s\n}\n", id="a snippet in a snippet"),
    pytest.param("(a b) {\n whoami\n}\n. {\n}\n", id="a snippet's name with a blank is two keys"),
    pytest.param(". {\n# }\n whoami # { \n}\n", id="braces in comments"),
    pytest.param(". {\n whoami\n}# the end", id="a comment right behind the brace"),
    pytest.param('. {\n template ANY ANY {\n  match "\\"{"\n }\n}\n', id="a hidden quote"),
]

REFUSED = [
    pytest.param(". {", id="an open brace and nothing else"),
    pytest.param(". {\n whoami\n", id="an open brace"),
    pytest.param(". {\n errors {\n", id="two open braces"),
    pytest.param(
        ". {\n errors {\n  consolidate 5m x\n}\nexample.org {\n}\n", id="a nested brace that takes the block's"
    ),
    pytest.param(". { whoami }", id="a closing brace behind a directive"),
    pytest.param(". {\n whoami }\n}\n", id="a closing brace on a directive's line"),
    pytest.param(". {\n errors { } }\n", id="two closing braces on a line"),
    pytest.param(". {\n {\n }\n}\n", id="a block that belongs to no directive"),
    pytest.param('. {\n ""\n}\n', id="an empty directive"),
    pytest.param(". {\n}\n}\nexample.org {\n}\n", id="a stray closing brace before a block"),
    pytest.param(". {\n whoami\nexample.org {\n}\n", id="a block inside an unclosed block"),
    pytest.param("example.org, {\n}\n", id="a comma before the brace"),
    pytest.param("example.org,", id="a comma before the end"),
    pytest.param(", {\n}\n", id="a comma alone"),
    pytest.param(". , example.org {\n}\n", id="a comma between blanks"),
    pytest.param("(s)\nwhoami\n", id="a snippet without a brace"),
    pytest.param("(s) {\n whoami\n", id="a snippet without its closing brace"),
    pytest.param("(s) {\n}\n(s) {\n}\n", id="a snippet defined twice"),
    pytest.param("(s) {\n { whoami }\n}\n. {\n import s\n}\n", id="a snippet with a block of its own"),
    pytest.param("(s) {\n whoami }\n}\n. {\n import s\n}\n", id="a snippet that ends too early"),
    pytest.param(". {\n import\n}\n", id="import of nothing"),
    pytest.param("import", id="import of nothing at the top"),
    pytest.param('. {\n import ""\n}\n', id="import of an empty word"),
    pytest.param(". {\n import a/*.x b/*.x\n}\n", id="import of two patterns"),
    pytest.param(". {\n import a*/*.x\n}\n", id="import with two wildcards"),
    pytest.param(". {\n import a?/?.x\n}\n", id="import with two question marks"),
    pytest.param(". {\n import a[bc].x\n}\n", id="import with a class"),
    pytest.param(". {\n import a[*.x\n}\n", id="import with an open class"),
    pytest.param(". {\n import a\\\n}\n", id="import with a backslash that hides nothing"),
    pytest.param("import x/*.server {\n}\n", id="import as a key"),
    pytest.param(". {\n errors {\n  import\n }\n}\n", id="a nested import of nothing"),
    pytest.param(".: {\n}\n", id="a key with a colon and no port"),
    pytest.param(":1053 {\n}\n", id="a key with a port and no zone"),
    pytest.param("a..b {\n}\n", id="a key with an empty label"),
    pytest.param("a" * 64 + " {\n}\n", id="a key with a long label"),
    pytest.param("ab." * 90 + " {\n}\n", id="a long key"),
    pytest.param(".#x y: {\n}\n", id="words behind a glued comment are keys"),
    pytest.param('. {\n whoami "\n}\n', id="a quote that swallows the brace"),
    pytest.param("a\\...example.org {\n}\n", id="a key with an empty label behind a hidden dot"),
    pytest.param("<html>\n<p>not found</p>\n", id="a web page"),
    pytest.param('{"apiVersion": "v1", "kind": "ConfigMap"}\n', id="JSON"),
    pytest.param("data:\n  Corefile: |\n    .:53 {\n    }\n", id="a ConfigMap"),
]

REFUSED_SINCE = [
    pytest.param("(s) {\n import s\n}\n", id="a snippet that imports itself"),
    pytest.param("(s) {\n import t\n}\n(t) {\n import s\n}\n. {\n import s\n}\n", id="snippets in a circle"),
    pytest.param("example.org\\ {\n}\n", id="a key whose last backslash hides nothing"),
]
"""Refused by the newest CoreDNS; 1.9.4 accepts them, or never ends reading."""
