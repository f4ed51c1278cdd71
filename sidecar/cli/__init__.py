"""From a command line to a running program: flags, usage errors, logs, signals and the exit status."""
