// A backend that says how a request reached it, and a client for each protocol that a controller passes on.
//
//	speaker serve                      HTTP/1.1 and h2c on :8080, WebSocket at /ws; gRPC health on :9000
//	speaker http1|http2|grpc|ws URL CA prints `ok WHAT` or `failed WHY`, exit status 0 or 1
//
// CA is a file of certificates; the URL decides between TLS and plain.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const patience = 8 * time.Second

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		fail(serve())
	}
	if len(os.Args) != 4 {
		fail(fmt.Errorf("speaker serve, or speaker http1|http2|grpc|ws URL CA"))
	}
	ask, known := map[string]func(*url.URL, *tls.Config) (string, error){
		"http1": http1, "http2": http2, "grpc": health1, "ws": webSocket,
	}[os.Args[1]]
	if !known {
		fail(fmt.Errorf("unknown protocol %s", os.Args[1]))
	}
	where, err := url.Parse(os.Args[2])
	fail(err)
	trusted, err := trust(os.Args[3])
	fail(err)
	said, err := ask(where, trusted)
	fail(err)
	fmt.Println("ok", said)
}

func fail(err error) {
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

func serve() error {
	listener, err := net.Listen("tcp", ":9000")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { fail(server.Serve(listener)) }()
	pages := http.NewServeMux()
	pages.Handle("/ws", websocket.Handler(func(peer *websocket.Conn) { _, _ = io.Copy(peer, peer) }))
	pages.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(answer, "hello from %s to %s\n", request.Host, request.Header.Get("X-Forwarded-For"))
	})
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return (&http.Server{Addr: ":8080", Handler: pages, Protocols: protocols}).ListenAndServe()
}

func trust(file string) (*tls.Config, error) {
	certificates, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return &tls.Config{RootCAs: pool}, nil
}

func http1(where *url.URL, trusted *tls.Config) (string, error) {
	return page(where, "HTTP/1.1", &http.Transport{TLSClientConfig: trusted})
}

func http2(where *url.URL, trusted *tls.Config) (string, error) {
	return page(where, "HTTP/2.0", &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true})
}

func page(where *url.URL, wanted string, transport *http.Transport) (string, error) {
	if wanted == "HTTP/1.1" {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	answer, err := (&http.Client{Timeout: patience, Transport: transport}).Get(where.String())
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK || answer.Proto != wanted {
		return "", fmt.Errorf("%s %s", answer.Proto, answer.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

func health1(where *url.URL, trusted *tls.Config) (string, error) {
	secured := insecure.NewCredentials()
	if where.Scheme == "https" {
		secured = credentials.NewTLS(trusted)
	}
	connection, err := grpc.NewClient("dns:///"+authority(where), grpc.WithTransportCredentials(secured))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := &grpc_health_v1.HealthCheckRequest{}
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(limited, asked)
	if err != nil {
		return "", err
	}
	return answer.Status.String(), nil
}

func webSocket(where *url.URL, trusted *tls.Config) (string, error) {
	there := *where
	there.Scheme = map[string]string{"http": "ws", "https": "wss"}[where.Scheme]
	settings, err := websocket.NewConfig(there.String(), where.String())
	if err != nil {
		return "", err
	}
	settings.TlsConfig, settings.Dialer = trusted, &net.Dialer{Timeout: patience}
	peer, err := websocket.DialConfig(settings)
	if err != nil {
		return "", err
	}
	defer peer.Close()
	fail(peer.SetDeadline(time.Now().Add(patience)))
	sent := []byte("a message\n")
	if _, err := peer.Write(sent); err != nil {
		return "", err
	}
	echoed := make([]byte, len(sent))
	if _, err := io.ReadFull(peer, echoed); err != nil {
		return "", err
	}
	if !bytes.Equal(sent, echoed) {
		return "", fmt.Errorf("echoed %q", echoed)
	}
	return strings.TrimSpace(string(echoed)), nil
}

func authority(where *url.URL) string {
	if where.Port() != "" {
		return where.Host
	}
	return net.JoinHostPort(where.Hostname(), map[string]string{"http": "80", "https": "443"}[where.Scheme])
}
