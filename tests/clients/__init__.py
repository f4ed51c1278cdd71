"""Real resolver libraries as clients of a real CoreDNS with our stanza: what each makes of our answers.

The law: the programs of `programs` take the defaults of their resolver. The page docs/pages/clients.md shows what they
saw, from docs/clients.json; `UPDATE_GOLDENS=1 make test ARGS=tests/clients` writes that file again.
"""
