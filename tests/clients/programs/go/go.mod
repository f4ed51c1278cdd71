module switchback.dev/lookup

go 1.21
