"""`dnsproxy serve`: flags, settings, lifetime; the only place where server and sources meet."""
