"""`dnsproxy demo`: shows the fault and the cure on one computer, with the real programs and without a cluster."""
