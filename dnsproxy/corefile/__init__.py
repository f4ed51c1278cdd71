"""Corefile text in, Corefile text out. Pure."""

# plan.py decides what an install or an uninstall writes; stanza.py has the text, placing.py its place and markers.py
# the comments around it. lexer.py, parser.py and model.py turn a text into a value; edits.py changes a value.
