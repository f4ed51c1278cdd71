// Looks names up with Go's net package, as ../README.md describes. GODEBUG=netdns=go or =cgo chooses the resolver.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"time"
)

type result struct {
	Outcome   string   `json:"outcome"`
	Addresses []string `json:"addresses"`
	Detail    string   `json:"detail"`
	Seconds   float64  `json:"seconds"`
}

func lookup(network, name string) result {
	start := time.Now()
	found, err := net.DefaultResolver.LookupNetIP(context.Background(), network, name)
	said := result{Outcome: "found", Addresses: []string{}, Seconds: time.Since(start).Seconds()}
	for _, one := range found {
		said.Addresses = append(said.Addresses, one.Unmap().String())
	}
	if err != nil {
		said.Outcome, said.Detail = outcome(err), err.Error()
	}
	return said
}

func outcome(err error) string {
	var dns *net.DNSError
	var address *net.AddrError
	switch {
	// cgo asks for both families and filters: the name has an address, of the other family.
	case errors.As(err, &address):
		return "no data"
	case !errors.As(err, &dns):
		return "error"
	case dns.IsNotFound:
		return "not found"
	case dns.IsTemporary || dns.IsTimeout:
		return "try again"
	}
	return "error"
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]string{"version": strings.TrimPrefix(runtime.Version(), "go")})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		family, name, _ := strings.Cut(lines.Text(), " ")
		network := map[string]string{"4": "ip4", "6": "ip6", "any": "ip"}[family]
		out.Encode(lookup(network, name))
	}
}
