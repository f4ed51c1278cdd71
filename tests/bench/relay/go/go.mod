module switchback.dev/tests/bench/relay

go 1.22
