"""The addresses of backends: from names, Services and hosts files, and which of them are ready."""
