// A receiver that requires the PROXY header: go-proxyproto reads it, and the receiver sends its contents to the client in
// one line of JSON, before the client has sent any data. It echoes the data of the client.
//
//	go-proxyproto ADDR:PORT
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"log"
	"net"
	"os"

	"github.com/pires/go-proxyproto"
)

type told struct {
	Version     byte
	Local       bool
	Source      string
	Destination string
	// "none", "right" or "wrong": go-proxyproto does not verify the checksum itself.
	Checksum string
	Error    string
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(conn)
	}
}

func serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	answer := read(reader)
	if json.NewEncoder(conn).Encode(answer) == nil && answer.Error == "" {
		io.Copy(conn, reader)
	}
}

func read(reader *bufio.Reader) told {
	sum := checksum(reader)
	header, err := proxyproto.Read(reader)
	if err != nil {
		return told{Error: err.Error()}
	}
	answer := told{Version: header.Version, Local: header.Command.IsLocal(), Checksum: sum}
	if header.SourceAddr != nil && header.DestinationAddr != nil {
		answer.Source, answer.Destination = header.SourceAddr.String(), header.DestinationAddr.String()
	}
	return answer
}

// checksum verifies an unread header of version 2. Section 2.2.3: the CRC32c covers the whole header, with zeros in the
// place of the checksum.
func checksum(reader *bufio.Reader) string {
	// `PROXY UNKNOWN` is shorter than the signature of version 2.
	if first, err := reader.Peek(1); err != nil || first[0] != '\r' {
		return "none"
	}
	fixed, err := reader.Peek(16)
	if err != nil || string(fixed[:12]) != "\r\n\r\n\x00\r\nQUIT\n" {
		return "none"
	}
	peeked, err := reader.Peek(16 + int(binary.BigEndian.Uint16(fixed[14:])))
	if err != nil {
		return "none"
	}
	whole := append([]byte(nil), peeked...)
	position := 16 + map[byte]int{0x11: 12, 0x21: 36}[whole[13]]
	for position+3 <= len(whole) {
		length := int(binary.BigEndian.Uint16(whole[position+1:]))
		value := whole[position+3:]
		if whole[position] == 3 && length == 4 && len(value) >= 4 {
			stated := binary.BigEndian.Uint32(value)
			copy(value, []byte{0, 0, 0, 0})
			if crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli)) == stated {
				return "right"
			}
			return "wrong"
		}
		position += 3 + length
	}
	return "none"
}
