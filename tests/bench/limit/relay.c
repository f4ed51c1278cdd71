/* The least that a relayed connection costs with our system calls: a header, and octets passed on.

   relay ADDRESS:PORT ADDRESS:PORT      where it listens and its backend; both addresses are 127.0.0.1

   The calls and their order are those of proxy for requests that fit into its buffer: accept4, getsockname, ioctl, recv,
   socket, setsockopt (TCP_QUICKACK), connect, one send of the header and the first octets, two registrations
   (edge-triggered), recv and send, one shutdown, two closes. The last data leaves with its FIN (MSG_MORE). It has no deadline, limit, log, metric, second address or half-written buffer: a peer that does
   not read at once loses its connection. A measure, and no relay. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS = 20000, SIZE = 65536, EVENTS = 256, WATCHED = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET };

struct side {
  int other; /* 0 once closed */
  char is_backend, ended, prompt;
};

static struct side sides[DESCRIPTORS];
static char buffer[108 + SIZE];
static struct sockaddr_in backend = {.sin_family = AF_INET};
static int poller, listener;

static void watch(int fd, uint32_t events) {
  struct epoll_event event = {.events = events, .data = {.fd = fd}};
  epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void end_both(int fd) {
  int other = sides[fd].other;
  int client = sides[fd].is_backend ? other : fd;
  sides[fd].other = sides[other].other = 0;
  close(client);
  close(client == fd ? other : fd);
}

static void start(int client, const struct sockaddr_in *source) {
  struct sockaddr_in own;
  socklen_t size = sizeof own;
  char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
  int yes = 1;
  getsockname(client, (struct sockaddr *)&own, &size);
  ioctl(client, FIONBIO, &yes);
  inet_ntop(AF_INET, &source->sin_addr, from, sizeof from);
  inet_ntop(AF_INET, &own.sin_addr, to, sizeof to);
  int head = sprintf(buffer, "PROXY TCP4 %s %s %u %u\r\n", from, to, ntohs(source->sin_port), ntohs(own.sin_port));
  ssize_t got = recv(client, buffer + head, SIZE, 0);
  int behind = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), no = 0;
  if (got > 0) setsockopt(behind, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof no);
  int failed = connect(behind, (struct sockaddr *)&backend, sizeof backend) && errno != EINPROGRESS;
  sides[client] = (struct side){.other = behind};
  sides[behind] = (struct side){.other = client, .is_backend = 1};
  if (failed || got == 0 || send(behind, buffer, head + (got > 0 ? got : 0), MSG_NOSIGNAL) < 0) {
    end_both(client);
    return;
  }
  watch(behind, WATCHED);
  watch(client, WATCHED);
}

static void accept_all(void) {
  struct sockaddr_in source;
  socklen_t size = sizeof source;
  int client;
  while ((client = accept4(listener, (struct sockaddr *)&source, &size, SOCK_CLOEXEC)) >= 0) start(client, &source);
}

static void pass_on_end(int fd) {
  int other = sides[fd].other;
  sides[fd].ended = 1;
  if (sides[other].ended) end_both(fd);
  else shutdown(other, SHUT_WR);
}

static void move(int fd, uint32_t events) {
  int other = sides[fd].other, yes = 1;
  ssize_t got = recv(fd, buffer, SIZE, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got < 0) {
    end_both(fd);
  } else if (got == 0) {
    pass_on_end(fd);
  } else {
    int last = (events & EPOLLRDHUP) && got < SIZE;
    if (sides[other].is_backend && !sides[other].prompt) {
      sides[other].prompt = 1;
      setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    if (send(other, buffer, got, MSG_NOSIGNAL | (last ? MSG_MORE : 0)) < got) end_both(fd);
    else if (last) pass_on_end(fd);
  }
}

static uint16_t port_of(const char *text) {
  const char *colon = strrchr(text, ':');
  return htons(colon ? atoi(colon + 1) : 0);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = port_of(argv[1]), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  backend.sin_port = port_of(argv[2]);
  backend.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int yes = 1;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 4096)) return 3;
  poller = epoll_create1(0);
  watch(listener, EPOLLIN);
  for (;;) {
    struct epoll_event ready[EVENTS];
    int count = epoll_wait(poller, ready, EVENTS, 250);
    for (int i = 0; i < count; i++) {
      int fd = ready[i].data.fd;
      if (fd == listener) accept_all();
      else if (sides[fd].other) move(fd, ready[i].events);
    }
  }
}
