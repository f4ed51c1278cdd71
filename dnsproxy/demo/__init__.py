"""`dnsproxy demo`: the whole story on one computer, with the real programs and without a cluster."""
