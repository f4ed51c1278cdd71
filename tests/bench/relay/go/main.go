// Command go-relay is a TCP relay of the classic kind, for comparison: a goroutine for each direction, io.Copy (which is
// splice(2) between two TCP connections), and the PROXY protocol version 1 line in front.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	backend := flag.String("backend", "127.0.0.1:80", "where connections go")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go relay(client.(*net.TCPConn), *backend)
	}
}

func relay(client *net.TCPConn, target string) {
	defer client.Close()
	dialled, err := net.Dial("tcp", target)
	if err != nil {
		log.Print(err)
		return
	}
	backend := dialled.(*net.TCPConn)
	defer backend.Close()
	source, destination := client.RemoteAddr().(*net.TCPAddr), client.LocalAddr().(*net.TCPAddr)
	header := fmt.Sprintf("PROXY TCP4 %s %s %d %d\r\n", source.IP, destination.IP, source.Port, destination.Port)
	if _, err := io.WriteString(backend, header); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		pass(backend, client)
		close(done)
	}()
	pass(client, backend)
	<-done
}

func pass(to, from *net.TCPConn) {
	io.Copy(to, from)
	to.CloseWrite()
}
